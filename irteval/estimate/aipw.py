"""Augmented inverse probability weighting: predicted answers, corrected by what the asked items show."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from irteval.estimate.estimator import Sample, Scores

PENALTY = 10.0  # of the ridge, as in the paper's experiments


class Aipw:
    """AIPW after Zhang et al. (2025), How benchmark prediction from fewer data misses the mark.

    A ridge across items, from the source subjects' answers to an item to the target's, gives predictions
    yhat; with n items asked and R open the score is ``mean_asked y + (mean_open yhat - mean_asked yhat) /
    (1 + n / R)``. Items count equally, whatever their weights, and were asked at random. Missing source
    answers are replaced by the item's mean. The interval is normal with the finite-population variance
    ``(1/n - 1/N) Σ(y - yhat)² / (n - 1)``; the residuals are in-sample, so it is too narrow at small n.
    """

    name = "aipw"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        known = ~np.isnan(source)
        mean = np.where(known, source, 0).sum(0) / np.maximum(known.sum(0), 1)
        self._features = np.where(known, source, mean).T
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`; subjects with the same items asked share one solve."""
        asked = ~np.isnan(sample.scores)
        patterns, group = np.unique(asked, axis=0, return_inverse=True)
        score, deviation = np.full((2, len(asked)), np.nan)
        for g, pattern in enumerate(patterns):
            rows = group.ravel() == g
            if pattern.any():
                score[rows], deviation[rows] = self._shared(sample.scores[rows][:, pattern], pattern)
        half = ndtri((1 + level) / 2) * deviation
        return Scores(score, np.clip(score - half, 0, 1), np.clip(score + half, 0, 1))

    def _shared(
        self, y: NDArray[np.float64], pattern: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Score and standard error where the same items were asked; ``y [T, n]``."""
        n, total = y.shape[1], len(pattern)
        centre = self._features[pattern].mean(0)
        x = self._features - centre
        gram = x[pattern] @ x[pattern].T + PENALTY * np.eye(n)
        mean = y.mean(1, keepdims=True)
        yhat = mean + np.linalg.solve(gram, (y - mean).T).T @ (x[pattern] @ x.T)
        residual = y - yhat[:, pattern]
        variance = (1 / n - 1 / total) * (residual**2).sum(1) / max(n - 1, 1)
        return yhat.mean(1) + residual.mean(1) * (1 - n / total) + (y - yhat[:, pattern]).sum(1) / total, (
            np.sqrt(variance)
        )
