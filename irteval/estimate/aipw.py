"""Augmented inverse probability weighting: predicted answers, corrected by what the asked items show."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from irteval.estimate.estimator import Sample, Scores, completed
from irteval.estimate.mean import effective_count, population, wilson

PENALTY = 10.0  # of the ridge, as in the paper's experiments


class Aipw:
    """AIPW after Zhang et al. (2025), How benchmark prediction from fewer data misses the mark.

    A ridge across items, from the source subjects' answers to an item to the target's, gives predictions
    yhat. The paper's ``mean_asked y + (mean_open yhat - mean_asked yhat) / (1 + n / R)``, with n items asked
    and R open, is ``mean yhat + mean_asked (y - yhat)``; here both means go by the items' weights, and the
    second by inclusion probabilities where they are known. Missing source answers are predicted by item and
    subject.

    The interval is Wilson's with the mean square of the leave-one-out residuals ``(y - yhat) / (1 -
    leverage)`` in place of p (1 - p), so that it has a width even where every answer is the same.
    """

    name = "aipw"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        self._features, self._weights = completed(source).T, weights
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`; subjects with the same items asked share one solve."""
        share = sample.expansion(self._weights)
        score, variance = np.full((2, len(share)), np.nan)
        for rows, asked in sample.patterns():
            y, by = sample.scores[rows][:, asked], share[rows][:, asked]
            yhat, leverage = _ridge(self._features, asked, y)
            residual = y - yhat[:, asked]
            score[rows] = np.clip(yhat @ self._weights + (by * residual).sum(1), 0, 1)
            held_out = residual / np.maximum(1 - leverage, 1e-12)
            variance[rows] = (by**2 * held_out**2).sum(1) / (by**2).sum(1)
        limits = wilson(score, effective_count(share), population(sample), level, variance)
        return Scores(score, *limits)


def _ridge(
    features: NDArray[np.float64], asked: NDArray[np.bool_], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predictions of every item ``[T, N]`` from answers ``y [T, n]``, and the leverages of those ``[n]``.

    The intercept has no penalty. The system is solved in the n items, fewer than the features as a rule.
    """
    x = features - features[asked].mean(0)
    gram = x[asked] @ x[asked].T
    hat = np.linalg.solve(gram + PENALTY * np.eye(len(gram)), x[asked] @ x.T)
    mean = y.mean(1, keepdims=True)
    return mean + (y - mean) @ hat, 1 / len(gram) + np.diagonal(hat[:, asked])
