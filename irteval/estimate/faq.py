"""Factorized active querying: draws by known probabilities, aimed by a factor model of the source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from irteval.calibrate.calibration import calibrate
from irteval.errors import InputError
from irteval.estimate.estimator import Scores
from irteval.responses.matrix import ResponseMatrix


@dataclass(frozen=True)
class Faq:
    """FAQ of Wu, Nair & Candès (2026), Efficient evaluation of LLM performance with statistical guarantees.

    From the paper: a logistic factor model of the source; for each target a Gaussian posterior of its factors
    with one rank-one step an answer; query probabilities that mix the oracle's, proportional to
    ``sqrt(p (1 - p))``, with those of active learning, proportional to what an answer takes off the variance
    of the expected score, are tempered and mixed with the uniform; draws with replacement; the mean of
    ``Σ w p + w (y - p) / q`` over the draws, unbiased whatever the model says, with a normal interval from
    the martingale's variance.

    Of our own choosing: the factors are those of a 2PL in several dimensions, with an intercept for each item
    and N(0, I) of the calibrated subjects as the prior; items may have weights; the squared mean that the
    variance takes off is that of the estimate itself, and it is divided by n - 1. The paper tunes the last
    four settings on each data set; the defaults are near its choices for a completely observed source.

    Attributes:
        dims: number of factors.
        beta: power of the probabilities before they are mixed with the uniform, once it is reached.
        rho: share of the draws in which active learning fades out.
        gamma: share of the draws in which the power rises to ``beta``.
        tau: share of the uniform.
    """

    dims: int = 4
    beta: float = 1.0
    rho: float = 0.05
    gamma: float = 0.0
    tau: float = 0.25

    name = "faq"

    def run(
        self,
        source: NDArray[np.float64],
        targets: NDArray[np.float64],
        sizes: Sequence[int],
        seed: int,
        level: float,
        weights: NDArray[np.float64] | None = None,
    ) -> list[Scores]:
        """Query the targets' recorded answers and estimate their full scores, one result a size.

        The factor model is fitted once; each size is a run of its own, as the probabilities depend on it.

        Args:
            source: scores ``[M, N]``, NaN missing.
            targets: scores ``[T, N]``, NaN where no answer is recorded, which is never drawn.
            sizes: draws from each target; an item may be drawn again, and counts again.
            seed: of the draws.
            level: of the intervals.
            weights: of the full score, ``[N]``; equal where None. They are rescaled to each target's recorded
                items.

        Raises:
            InputError: a target without recorded answers.
        """
        recorded = ~np.isnan(targets)
        if not recorded.any(1).all():
            raise InputError("a target without answers, wanted at least one", field="targets")
        share = recorded * (np.ones(targets.shape[1]) if weights is None else weights)
        fit = calibrate(ResponseMatrix.from_dense(source), dims=self.dims, device="cpu").parameters
        problem = _Problem(
            slope=torch.tensor(fit.slope),
            intercept=torch.tensor(fit.intercept),
            scores=torch.tensor(np.nan_to_num(targets)),
            recorded=torch.tensor(recorded, dtype=torch.float64),
            weights=torch.tensor(share / share.sum(1, keepdims=True)),
        )
        return [self._query(problem, size, seed, level) for size in sizes]

    def _query(self, problem: _Problem, size: int, seed: int, level: float) -> Scores:
        """One run of ``size`` draws from every target."""
        generator = torch.Generator().manual_seed(seed)
        subjects, dims = len(problem.scores), self.dims
        mean = torch.zeros(subjects, dims, dtype=torch.float64)
        covariance = torch.eye(dims, dtype=torch.float64).repeat(subjects, 1, 1)
        expected, corrections = torch.empty(2, size, subjects, dtype=torch.float64)
        for step in range(size):
            p = torch.sigmoid(mean @ problem.slope.mT + problem.intercept)
            q = self._probabilities(problem, p, covariance, (step + 1) / size)
            item = torch.multinomial(q, 1, generator=generator)
            residual = (problem.scores - p).gather(1, item)[:, 0]
            expected[step] = (problem.weights * p).sum(1)
            corrections[step] = residual * (problem.weights / q).gather(1, item)[:, 0]
            curvature = (p * (1 - p)).gather(1, item)[:, 0]
            mean, covariance = assimilated(mean, covariance, problem.slope[item[:, 0]], residual, curvature)
        score, error = martingale_mean(expected, corrections)
        half_width = float(ndtri((1 + level) / 2)) * error
        limits = (score, score - half_width, score + half_width)
        return Scores(*(value.clamp(0, 1).numpy() for value in limits))

    def _probabilities(self, problem: _Problem, p: Tensor, covariance: Tensor, progress: float) -> Tensor:
        """Query probabilities after this share of the draws, ``[T, N]``."""
        curvature = p * (1 - p)
        hybrid = _normalised(problem.weights * curvature.sqrt())
        explore = 0.0 if self.rho == 0 else max(0.0, 1 - progress / self.rho)
        if explore > 0:
            gain = variance_gain(problem.slope, problem.weights, curvature, covariance) * problem.recorded
            hybrid = (1 - explore) * hybrid + explore * _normalised(gain)
        power = self.beta if self.gamma == 0 else self.beta * min(1.0, progress / self.gamma)
        tempered = _normalised(hybrid**power * problem.recorded)
        return (1 - self.tau) * tempered + self.tau * _normalised(problem.recorded)


class _Problem(NamedTuple):
    """Factors of N items ``[N, K]``, ``[N]``; answers, recorded cells and weights of T targets ``[T, N]``."""

    slope: Tensor
    intercept: Tensor
    scores: Tensor
    recorded: Tensor
    weights: Tensor


def _normalised(values: Tensor) -> Tensor:
    return values / values.sum(1, keepdim=True)


def variance_gain(slope: Tensor, weights: Tensor, curvature: Tensor, covariance: Tensor) -> Tensor:
    """What the answer to each item would take off the variance of the expected score, ``[T, N]``.

    With g the gradient of ``Σ w p`` in the factors, C their covariance and c = p (1 - p), item j with slope
    v takes off ``c (vᵀ C g)² / (1 + c vᵀ C v)``.

    Args:
        slope: of the items, ``[N, K]``.
        weights, curvature: w and c, ``[T, N]``.
        covariance: ``[T, K, K]``.
    """
    gradient = (weights * curvature) @ slope
    along = (covariance @ gradient[:, :, None])[:, :, 0] @ slope.mT
    own = torch.einsum("nk,tkl,nl->tn", slope, covariance, slope)
    return curvature * along**2 / (1 + curvature * own)


def assimilated(
    mean: Tensor, covariance: Tensor, slope: Tensor, residual: Tensor, curvature: Tensor
) -> tuple[Tensor, Tensor]:
    """Posterior of the factors after one more answer: an extended Kalman step on the logistic likelihood.

    Args:
        mean, covariance: before, ``[T, K]``, ``[T, K, K]``.
        slope: of the item that each target answered, ``[T, K]``.
        residual, curvature: y - p and p (1 - p) there, ``[T]``.
    """
    along = (covariance @ slope[:, :, None])[:, :, 0]
    gain = curvature / (1 + curvature * (along * slope).sum(1))
    covariance = covariance - gain[:, None, None] * along[:, :, None] * along[:, None, :]
    return mean + residual[:, None] * (covariance @ slope[:, :, None])[:, :, 0], covariance


def martingale_mean(expected: Tensor, corrections: Tensor) -> tuple[Tensor, Tensor]:
    """Estimate and standard error from n draws, ``[T]`` each; the error of one draw is infinite.

    Given the draws before, a draw's ``expected + correction`` has the full score as its mean and as its
    variance that of the correction, whose own mean is the full score less what was expected.

    Args:
        expected: ``Σ w p`` at each draw, ``[n, T]``.
        corrections: ``w (y - p) / q`` of the item drawn, ``[n, T]``.
    """
    draws = len(expected)
    score = (expected + corrections).mean(0)
    if draws == 1:
        return score, torch.full_like(score, math.inf)
    variance = (corrections**2 - (score - expected) ** 2).mean(0).clamp_min(0)
    return score, (variance / (draws - 1)).sqrt()
