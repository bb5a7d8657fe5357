"""Ridge regression of the full score on the answers to the asked items."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from irteval.estimate.estimator import Sample, Scores, completed

PENALTIES = np.logspace(-1, 4, 8)


class Ridge:
    """The source's full scores regressed on its answers to the asked items, as by Zhang et al. (2025), How
    benchmark prediction from fewer data misses the mark.

    The penalty has the smallest leave-one-out error, from the closed form (Golub, Heath & Wahba 1979). The
    interval is normal with the root mean square of those errors, which says nothing of subjects unlike the
    source: beyond its range the predictions fall back to its mean. Missing source answers are predicted by
    item and subject.
    """

    name = "ridge"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        self._source, self._weights = completed(source), weights
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`; subjects with the same items asked share one fit."""
        full = self._source @ self._weights
        score, error = np.full((2, len(sample.scores)), np.nan)
        for rows, asked in sample.patterns():
            score[rows], error[rows] = regress(self._source[:, asked], full, sample.scores[rows][:, asked])
        return Scores.around(score, float(ndtri((1 + level) / 2)) * error, sample, self._weights)


def regress(
    x: NDArray[np.float64], y: NDArray[np.float64], new: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Predictions for ``new [T, n]`` from ``x [M, n]`` and ``y [M]``, and the leave-one-out RMSE.

    With the singular values s of the centred x = U s Vᵀ, the hat matrix of a penalty a is
    ``1 / M + U diag(s² / (s² + a)) Uᵀ``, and a left-out residual is the residual over 1 - leverage.
    """
    centre, mean = x.mean(0), y.mean()
    u, s, vt = np.linalg.svd(x - centre, full_matrices=False)
    shrunk = s**2 / (s**2 + PENALTIES[:, None])
    rotated = u.T @ (y - mean)
    residual = (y - mean) - (shrunk * rotated) @ u.T
    leverage = 1 / len(y) + shrunk @ (u**2).T
    errors = np.sqrt(((residual / np.maximum(1 - leverage, 1e-12)) ** 2).mean(1))
    best = int(errors.argmin())
    coefficient = (s / (s**2 + PENALTIES[best]) * rotated) @ vt
    return mean + (new - centre) @ coefficient, float(errors[best])
