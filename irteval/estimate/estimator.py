"""What every score estimator takes and gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """Answers of S subjects to a part of N items, and how those items came to be asked.

    Attributes:
        scores: ``[S, N]``, NaN where not asked.
        inclusion: known inclusion probabilities, ``[S, N]`` or ``[N]``; None where unknown, which estimators
            that need them take for a simple random sample.
        stratum: number of each item's stratum where drawn within strata, ``[N]``.
    """

    scores: NDArray[np.float64]
    inclusion: NDArray[np.float64] | None = None
    stratum: NDArray[np.int64] | None = None

    @property
    def asked(self) -> NDArray[np.bool_]:
        """Whether there is an answer, ``[S, N]``."""
        return ~np.isnan(self.scores)

    def patterns(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
        """Subjects that were asked the same items, and those items ``[N]``; nobody without an answer."""
        patterns, group = np.unique(self.asked, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            if pattern.any():
                yield np.flatnonzero(group.ravel() == number), pattern

    def expansion(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """What every answer counts in a design-based mean, ``[S, N]``: weight over inclusion probability,
        with sum 1 over the items asked (Hájek 1971); 0 for the others."""
        inclusion = 1.0 if self.inclusion is None else np.where(self.inclusion > 0, self.inclusion, 1.0)
        share = np.where(self.asked, weights / inclusion, 0.0)
        return np.asarray(share / np.maximum(share.sum(1, keepdims=True), 1e-300))


@dataclass(frozen=True)
class Scores:
    """Full scores and limits, ``[S]`` each.

    Scores are NaN for a subject without answers, limits also where the method states no interval.
    """

    score: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def around(
        cls,
        score: NDArray[np.float64],
        half_width: NDArray[np.float64],
        sample: Sample,
        weights: NDArray[np.float64],
    ) -> Self:
        """A score and its limits, held to what the answers still open allow."""
        least = np.where(sample.asked, weights * np.nan_to_num(sample.scores), 0.0).sum(1)
        most = least + np.where(sample.asked, 0.0, weights).sum(1)
        return cls(
            *(np.clip(value, least, most) for value in (score, score - half_width, score + half_width))
        )


class ScoreEstimator(Protocol):
    """Predicts full scores from some answers."""

    name: str

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """Learn from the source ``[M, N]``, NaN missing; ``weights [N]`` of the full score sum to 1."""
        ...

    def estimate(self, sample: Sample, level: float) -> Scores:
        """Scores of the sample's subjects."""
        ...


def completed(source: NDArray[np.float64]) -> NDArray[np.float64]:
    """The source ``[M, N]`` with missing cells replaced by the item's mean plus the subject's effect.

    The effect is the mean of the subject's answers minus their items' means. An item that nobody answered
    has the mean of all answers.
    """
    known = ~np.isnan(source)
    values = np.where(known, source, 0.0)
    overall = values.sum() / max(known.sum(), 1)
    item = np.where(known.any(0), values.sum(0) / np.maximum(known.sum(0), 1), overall)
    effect = np.where(known, source - item, 0.0).sum(1) / np.maximum(known.sum(1), 1)
    return np.where(known, source, np.clip(item + effect[:, None], 0, 1))
