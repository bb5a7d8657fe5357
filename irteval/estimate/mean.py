"""The control that needs no source: the mean over the answers, with Wilson's interval."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from irteval.estimate.estimator import Sample, Scores


class Mean:
    """Mean of the answers, each by its weight over its inclusion probability.

    The interval is Wilson's for a finite population: of all items or, where inclusion probabilities are
    known, of those that could be asked.
    """

    name = "random"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`; only the weights matter."""
        self._weights = weights
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`."""
        share = sample.expansion(self._weights)
        score = np.where(sample.asked.any(1), (share * np.nan_to_num(sample.scores)).sum(1), np.nan)
        return Scores(score, *wilson(score, effective_count(share), population(sample), level))


def effective_count(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal answers as many as these with unequal shares are worth, ``1 / Σ share²`` (Kish 1965, Survey
    sampling), ``[S]`` from ``[S, N]``; 1 where there is none."""
    squares = (share**2).sum(1)
    return np.asarray(1 / np.where(squares > 0, squares, 1.0))


def population(sample: Sample) -> NDArray[np.int64]:
    """Number of items that each subject could have been asked, ``[S]``."""
    if sample.inclusion is None:
        return np.full(len(sample.scores), sample.scores.shape[1])
    return np.asarray((sample.asked | (sample.inclusion > 0)).sum(1))


def wilson(
    mean: NDArray[np.float64],
    count: NDArray[np.float64] | NDArray[np.int64],
    population: int | NDArray[np.int64],
    level: float,
    variance: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's (1927) score interval, with the number of answers scaled up for a finite population.

    Drawing n of N without replacement has (N - n) / (N - 1) of the variance, as if n were that much larger.

    Args:
        mean: of the answers, ``[T]``.
        count: of the answers n, ``[T]``.
        population: N, one for all or ``[T]``.
        level: of the interval.
        variance: of an answer about what was predicted for it, ``[T]``; ``mean (1 - mean)`` where None.
    """
    n = count * np.maximum(population - 1, 1) / np.maximum(population - count, 1e-12)
    z = ndtri((1 + level) / 2)
    spread = mean * (1 - mean) if variance is None else variance
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * np.sqrt(spread / n + z**2 / (4 * n**2))
    return np.clip(centre - half_width, 0, 1), np.clip(centre + half_width, 0, 1)
