"""Stratified mean: items of like difficulty answer for each other."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from irteval.estimate.estimator import Sample, Scores, completed
from irteval.estimate.mean import population, wilson

MOST_STRATA = 10
ANSWERS_A_STRATUM = 10  # expected; with fewer, uneven counts cost what likeness gains


class Stratified:
    """Mean over strata, each by its weight in the full score (Cochran 1977, Sampling techniques, chapter 5).

    A sample that was not drawn within strata is post-stratified (his section 5A.9) by the items' difficulty
    for the source, in strata of equally many items. A stratum without an answer joins the next harder one.
    The interval is Wilson's with the variance that the stratified mean has, so that it has a width even where
    every answer is the same.
    """

    name = "stratified"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        self._difficulty, self._weights = -completed(source).mean(0), weights
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`."""
        size = population(sample)
        score, low, high = np.full((3, len(size)), np.nan)
        for rows, asked in sample.patterns():
            stratum = merged(self._strata(sample, int(asked.sum())), asked)
            y = sample.scores[rows][:, asked]
            mean, squared_error = stratum_moments(y, stratum[asked], np.bincount(stratum))
            weight = np.bincount(stratum, self._weights).astype(np.float64)
            score[rows], variance = pooled(mean, squared_error, weight)
            n, total = y.shape[1], size[rows]
            spread = variance * n * np.maximum(total - 1, 1) / np.maximum(total - n, 1)
            low[rows], high[rows] = wilson(score[rows], np.full(len(rows), n), total, level, spread)
        return Scores(score, low, high)

    def _strata(self, sample: Sample, answers: int) -> NDArray[np.int64]:
        """Number of each item's stratum, from easy to hard, ``[N]``."""
        if sample.stratum is not None:
            _, stratum = np.unique(sample.stratum, return_inverse=True)
            mean = np.bincount(stratum, self._difficulty) / np.bincount(stratum)
            return np.asarray(np.argsort(np.argsort(mean, kind="stable"))[stratum])
        strata = int(np.clip(answers // ANSWERS_A_STRATUM, 1, MOST_STRATA))
        rank = np.argsort(np.argsort(self._difficulty, kind="stable"))
        return np.asarray(rank * strata // len(rank))


def merged(stratum: NDArray[np.int64], asked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Strata renumbered so that each has an item asked: one without joins the next, the last the one before.

    Args:
        stratum: of each item, in order of difficulty, ``[N]``.
        asked: at least one of the items, ``[N]``.
    """
    answered = np.unique(stratum[asked])
    return np.minimum(np.searchsorted(answered, stratum), len(answered) - 1)


def stratum_moments(
    y: NDArray[np.float64], stratum: NDArray[np.int64], size: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of each stratum and its squared standard error ``s² / n (1 - n / N)``, ``[T, H]`` each.

    A stratum with one answer has the s² of all strata pooled.

    Args:
        y: answers, ``[T, n]``.
        stratum: of each, ``[n]``; every one of the H strata has an answer.
        size: items N of each stratum, ``[H]``; without end where None.
    """
    member = np.eye(int(stratum.max()) + 1)[stratum]
    count = member.sum(0)
    mean = y @ member / count
    squares = (y - mean[:, stratum]) ** 2 @ member
    within = squares.sum(1, keepdims=True) / max(y.shape[1] - len(count), 1)
    spread = np.where(count > 1, squares / np.maximum(count - 1, 1), within)
    return mean, spread / count * (1.0 if size is None else 1 - count / size)


def pooled(
    mean: NDArray[np.float64], squared_error: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean of H independent means ``[T, H]`` and its squared standard error, ``[T]`` each."""
    share = weight / weight.sum()
    return mean @ share, squared_error @ share**2
