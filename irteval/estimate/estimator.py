"""What every score estimator takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """Answers of S subjects to a part of N items, and how those items came to be asked.

    Attributes:
        scores: ``[S, N]``, NaN where not asked.
        inclusion: known inclusion probabilities, ``[S, N]`` or ``[N]``; None where unknown.
        stratum: number of each item's stratum where drawn within strata, ``[N]``.
    """

    scores: NDArray[np.float64]
    inclusion: NDArray[np.float64] | None = None
    stratum: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Scores:
    """Full scores and limits, ``[S]`` each; limits are NaN where the method states no interval."""

    score: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class ScoreEstimator(Protocol):
    """Predicts full scores from some answers."""

    name: str

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """Learn from the source ``[M, N]``, NaN missing; ``weights [N]`` of the full score sum to 1."""
        ...

    def estimate(self, sample: Sample, level: float) -> Scores:
        """Scores of the sample's subjects."""
        ...
