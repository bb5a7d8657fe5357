"""Scores from an item response model: observed answers as they are, open ones as the model expects them."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from irteval.calibrate.ability import ability
from irteval.calibrate.calibration import calibrate
from irteval.estimate.estimator import Sample, Scores, completed
from irteval.estimate.mean import effective_count
from irteval.irt.parameters import ItemParameters
from irteval.responses.matrix import ResponseMatrix

HELD_OUT = 0.25  # of the source, to see p-IRT's error on subjects it was not calibrated on


class PIrt:
    """p-IRT of Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, section 3.

    The full score is ``Σ_asked w y + Σ_open w P(theta)``. Ours are the item parameters, a 2PL in one
    dimension with hierarchical priors, and theta, the posterior mean where the paper has the maximum of the
    likelihood. The interval, which the paper doesn't state, is normal with the variance of the open answers
    plus that of theta by the delta method; the model is taken as true, so it is too narrow once many items
    are asked.
    """

    name = "p-irt"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        self._weights = weights
        self._parameters = _calibrated(source)
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`."""
        score, variance = p_irt(self._parameters, sample, self._weights)
        return Scores.around(score, ndtri((1 + level) / 2) * np.sqrt(variance), sample, self._weights)


class GpIrt:
    """gp-IRT of the same paper: ``lambda mean + (1 - lambda) p-IRT``.

    lambda = b² / (v + b²) has the smallest mean squared error when the mean of the answers is unbiased with
    variance v and p-IRT is off by b. As in the paper, b comes from source subjects who were left out of a
    calibration, a quarter here, and v from their answers; for b² we take the mean square and p-IRT from the
    items that the targets were asked. The interval is normal with the standard error
    ``lambda sqrt(v) + (1 - lambda) b``, as if both errors went together: they come from the same answers.
    """

    name = "gp-irt"

    def fit(self, source: NDArray[np.float64], weights: NDArray[np.float64]) -> Self:
        """See `ScoreEstimator.fit`."""
        self._weights = weights
        self._parameters = _calibrated(source)
        order = np.random.default_rng(0).permutation(len(source))
        left_out = order[: max(1, round(HELD_OUT * len(order)))]
        self._left_out = completed(source)[left_out]
        self._parameters_without = _calibrated(np.delete(source, left_out, axis=0))
        return self

    def estimate(self, sample: Sample, level: float) -> Scores:
        """See `ScoreEstimator.estimate`; subjects with the same items asked share one lambda."""
        share = sample.expansion(self._weights)
        mean = (share * np.nan_to_num(sample.scores)).sum(1)
        model, _ = p_irt(self._parameters, sample, self._weights)
        truth = self._left_out @ self._weights
        score, error = np.full((2, len(mean)), np.nan)
        for rows, asked in sample.patterns():
            trial = Sample(np.where(asked, self._left_out, np.nan))
            bias = np.mean((p_irt(self._parameters_without, trial, self._weights)[0] - truth) ** 2)
            answers = effective_count(share[rows]) / max(1 - asked.mean(), 1e-12)
            noise = np.mean(truth * (1 - truth)) / answers
            lean = bias / np.maximum(noise + bias, 1e-12)
            score[rows] = lean * mean[rows] + (1 - lean) * model[rows]
            error[rows] = lean * np.sqrt(noise) + (1 - lean) * np.sqrt(bias)
        return Scores.around(score, ndtri((1 + level) / 2) * error, sample, self._weights)


def p_irt(
    parameters: ItemParameters, sample: Sample, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p-IRT score and its variance if the model is true, ``[S]`` each; NaN without answers."""
    theta = ability(parameters, sample.scores)
    p = expit(theta.mean @ parameters.slope.T + parameters.intercept)
    asked = sample.asked
    open_weight = np.where(asked, 0.0, weights)
    score = np.where(asked, weights * np.nan_to_num(sample.scores), weights * p).sum(1)
    gradient = (open_weight * p * (1 - p)) @ parameters.slope[:, 0]
    variance = (open_weight**2 * p * (1 - p)).sum(1) + (gradient * theta.sd[:, 0]) ** 2
    return np.where(asked.any(1), score, np.nan), variance


def _calibrated(source: NDArray[np.float64]) -> ItemParameters:
    return calibrate(ResponseMatrix.from_dense(source), dims=1, device="cpu").parameters
