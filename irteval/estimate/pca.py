"""Low-rank completion: missing answers imputed by iterated principal components."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import ndtri

from irteval.estimate.estimator import Sample, Scores

COMPONENTS = (2, 5, 10, 20)
VALIDATION = 0.25  # of the source, to choose the number of components
ITERATIONS = 100
TOLERANCE = 1e-4  # largest change of a subject's mean in an iteration


class Pca:
    """Principal components, after Zhang et al. (2025), How benchmark prediction from fewer data misses the
    mark.

    Source and targets are one matrix; open cells start at the item's mean and are replaced by their
    reconstruction from a few components until scores stand still. The number of components is the one that
    does best on a quarter of the source, masked as the targets are. The interval is normal with the root mean
    square error there: it says nothing of subjects unlike the source.

    Of our own choosing: the masked quarter takes turns with the targets' patterns of asked items, and the
    iteration stops on the scores and not on the cells.
    """

    name = "pca"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        self._source, self._weights = source, weights
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`."""
        patterns = np.array([asked for _, asked in sample.patterns()])
        held_out = np.random.default_rng(0).permutation(len(self._source))
        held_out = held_out[: max(1, round(VALIDATION * len(held_out)))]
        masked = self._source.copy()
        masked[held_out] = np.where(
            patterns[np.arange(len(held_out)) % len(patterns)], masked[held_out], np.nan
        )
        truth = impute(self._source, COMPONENTS[0])[held_out] @ self._weights
        errors = {
            components: np.sqrt(np.mean((impute(masked, components)[held_out] @ self._weights - truth) ** 2))
            for components in COMPONENTS
            if components < min(masked.shape) or components == COMPONENTS[0]
        }
        best = min(errors, key=lambda components: errors[components])
        completed = impute(np.vstack([self._source, sample.scores]), best)[len(self._source) :]
        score = np.where(sample.asked.any(1), completed @ self._weights, np.nan)
        half_width = np.full(len(score), ndtri((1 + level) / 2) * errors[best])
        return Scores.around(score, half_width, sample, self._weights)


def impute(matrix: NDArray[np.float64], components: int) -> NDArray[np.float64]:
    """``[R, N]`` with its NaN replaced by their reconstruction from the leading components.

    Components come from the Gram matrix of the shorter side: only its leading eigenvectors are wanted.
    """
    missing = np.isnan(matrix)
    known = np.maximum((~missing).sum(0), 1)
    filled = np.where(missing, np.nan_to_num(matrix).sum(0) / known, matrix)
    if not missing.any():
        return filled
    for _ in range(ITERATIONS):
        mean = filled.mean(0)
        step = np.where(missing, mean + reconstruction(filled - mean, components) - filled, 0.0)
        filled += step
        if np.abs(step.mean(1)).max() < TOLERANCE:
            break
    return filled


def reconstruction(centred: NDArray[np.float64], components: int) -> NDArray[np.float64]:
    """Projection of a matrix on its leading singular vectors."""
    tall = centred.shape[0] > centred.shape[1]
    short = centred.T if tall else centred
    size = len(short)
    _, vectors = eigh(short @ short.T, subset_by_index=[max(size - components, 0), size - 1])
    projected = vectors @ (vectors.T @ short)
    return np.asarray(projected.T if tall else projected)
