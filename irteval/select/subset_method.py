"""What a method of choosing a fixed subset is: from a source's responses to items and a predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SubsetProblem:
    """A subset to choose.

    Attributes:
        scores: of M source subjects on N items, ``[M, N]``, NaN where missing.
        benchmark: of each item, as an index from 0 to L - 1, ``[N]``.
        eligible: items that may be chosen, ``[N]``; the others still count in the full score.
        size: how many items n to choose, at most the eligible ones.
    """

    scores: NDArray[np.float64]
    benchmark: NDArray[np.int64]
    eligible: NDArray[np.bool_]
    size: int

    @property
    def benchmarks(self) -> int:
        """L, the number of benchmarks."""
        return int(self.benchmark.max()) + 1


class FittedSubset(Protocol):
    """Chosen items, and a predictor from the answers to them to the full scores."""

    @property
    def items(self) -> NDArray[np.int64]:
        """Positions of the chosen items, each once, ``[n]``."""
        ...

    def predict(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Full score of each subject on each benchmark, ``[T, L]``.

        Args:
            answers: scores in [0, 1] on the chosen items, in the order of ``items``, ``[T, n]``.
        """
        ...


class SubsetMethod(Protocol):
    """Chooses items and fits the predictor; one more method is one more file and one line of registration."""

    def __call__(self, problem: SubsetProblem, seed: int, /) -> FittedSubset:
        """Choose and fit; the seed is of whatever is drawn."""
        ...
