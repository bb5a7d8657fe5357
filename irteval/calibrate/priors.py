"""Hierarchical priors of item parameters: they keep extreme items finite and learn the rest from the items.

A prior gives the gradient and the negative Hessian of its log density at each item's (slope, intercept), and
is learnt anew in every iteration from the items' approximate posteriors (empirical Bayes with a few
pseudo-items for each hyper-parameter, so that one item, or a matrix of ones, still has finite values).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

PSEUDO_ITEMS = 5.0  # weight of the variances' start values
PSEUDO_MEAN = 1.0  # weight of the means' start values
SLOPE_VARIANCE = 0.25
# Subjects in two opposite camps answer some items by camp alone: the likelihood of such a slope has no end,
# and a variance learnt from it would run away.
MOST_SLOPE_VARIANCE = 4.0
DIFFICULTY_VARIANCE = 1.0
INTERCEPT_VARIANCE = 2.0
FAR = 3.0  # largest mean and standard deviation of difficulties
WIDER = 1.2  # times the difficulties' variance: their regression on the truth then stays within 2 % of 1


class ItemPrior(Protocol):
    """What an estimator asks of a prior. ``slope [J, K]``, ``intercept [J]``, P = K + 1."""

    def log_density(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Log density up to a constant, ``[J]``."""
        ...

    def gradient(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Its gradient, ``[J, P]``."""
        ...

    def curvature(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Its negative Hessian, or where that may be indefinite its expectation, ``[J, P, P]``."""
        ...

    def hessian(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Its negative Hessian, exact, ``[J, P, P]``."""
        ...

    def learn(self, slope: Tensor, intercept: Tensor, covariance: Tensor) -> ItemPrior:
        """The prior that fits these items best, given means and covariances ``[J, P, P]``."""
        ...


@dataclass(frozen=True)
class Flat:
    """No prior: plain maximum likelihood."""

    def log_density(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Zero."""
        return torch.zeros_like(intercept)

    def gradient(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Zero."""
        return slope.new_zeros(len(slope), slope.shape[1] + 1)

    def curvature(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Zero."""
        size = slope.shape[1] + 1
        return slope.new_zeros(len(slope), size, size)

    def hessian(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """The same."""
        return self.curvature(slope, intercept)

    def learn(self, slope: Tensor, intercept: Tensor, covariance: Tensor) -> Flat:
        """Nothing to learn."""
        return self


@dataclass(frozen=True)
class Intercept:
    """1PL: ``d ~ N(mean, variance)``, both learnt; the common slope has no prior."""

    mean: Tensor
    variance: Tensor

    @classmethod
    def default(cls, like: Tensor) -> Intercept:
        """Start values on the device of ``like``."""
        one = torch.ones((), dtype=torch.float64, device=like.device)
        return cls(0 * one, INTERCEPT_VARIANCE * one)

    def log_density(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Up to a constant, ``[J]``."""
        return -((intercept - self.mean) ** 2) / self.variance / 2

    def gradient(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """``-(d - mean) / variance``."""
        by_intercept = (self.mean - intercept) / self.variance
        return torch.stack([torch.zeros_like(by_intercept), by_intercept], -1)

    def curvature(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """``1 / variance``."""
        curvature = slope.new_zeros(len(slope), 2, 2)
        curvature[:, 1, 1] = 1 / self.variance
        return curvature

    def hessian(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """The same."""
        return self.curvature(slope, intercept)

    def learn(self, slope: Tensor, intercept: Tensor, covariance: Tensor) -> Intercept:
        """Moments of the intercepts."""
        mean = intercept.sum() / (len(intercept) + PSEUDO_MEAN)
        spread = ((intercept - mean) ** 2 + covariance[:, 1, 1]).sum()
        variance = (spread + PSEUDO_ITEMS * INTERCEPT_VARIANCE) / (len(intercept) + PSEUDO_ITEMS)
        return Intercept(mean, variance)


@dataclass(frozen=True)
class Difficulty:
    """One dimension: slopes normal, difficulties normal and independent of them.

    ``a ~ N(mu, tau)``, ``d | a ~ N(-a bbar, t0 + t1 a²)``: b = -d / a is N(bbar, t1) for a large slope, and
    t0 keeps the density finite at a = 0, where a normal prior on b itself has a pole. Every number but t0 is
    learnt. All are scalars; tau, t0 and t1 are variances.
    """

    mu: Tensor
    tau: Tensor
    bbar: Tensor
    t1: Tensor
    t0: float = 0.5

    @classmethod
    def default(cls, like: Tensor) -> Difficulty:
        """Start values on the device of ``like``."""
        one = torch.ones((), dtype=torch.float64, device=like.device)
        return cls(one, SLOPE_VARIANCE * one, 0 * one, DIFFICULTY_VARIANCE * one)

    def log_density(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Up to a constant, ``[J]``."""
        a, q, r = self._terms(slope, intercept)
        return -((a - self.mu) ** 2 / self.tau + q.log() + r**2 / q) / 2

    def gradient(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Exact derivatives, the normaliser ``-1/2 log(t0 + t1 a²)`` included."""
        a, q, r = self._terms(slope, intercept)
        by_a = -(a - self.mu) / self.tau - (self.t1 * a + r * self.bbar) / q + self.t1 * a * r**2 / q**2
        return torch.stack([by_a, -r / q], -1)

    def curvature(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Its expectation over d given a: positive definite, which the exact one isn't everywhere."""
        a, q, _ = self._terms(slope, intercept)
        aa = 1 / self.tau + self.bbar**2 / q + 2 * (self.t1 * a / q) ** 2
        ad = self.bbar / q
        return torch.stack([torch.stack([aa, ad], -1), torch.stack([ad, 1 / q], -1)], -2)

    def hessian(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Exact, the normaliser ``-1/2 log(t0 + t1 a²)`` included."""
        a, q, r = self._terms(slope, intercept)
        t1, bbar = self.t1, self.bbar
        curved = 2 * t1**2 * a**2 + 4 * t1 * a * r * bbar + t1 * r**2
        aa = 1 / self.tau + (t1 + bbar**2) / q - curved / q**2 + 4 * t1**2 * a**2 * r**2 / q**3
        ad = bbar / q - 2 * t1 * a * r / q**2
        return torch.stack([torch.stack([aa, ad], -1), torch.stack([ad, 1 / q], -1)], -2)

    def learn(self, slope: Tensor, intercept: Tensor, covariance: Tensor) -> Difficulty:
        """One EM step: b's part of ``d + a bbar`` is N(0, t1 a²), the rest N(0, t0)."""
        a, q, _ = self._terms(slope, intercept)
        items = len(a)
        mu = (a.sum() + PSEUDO_MEAN * 1.0) / (items + PSEUDO_MEAN)
        spread = ((a - mu) ** 2 + covariance[:, 0, 0]).sum()
        tau = (spread + PSEUDO_ITEMS * SLOPE_VARIANCE) / (items + PSEUDO_ITEMS)
        tau = tau.clamp_max(MOST_SLOPE_VARIANCE)
        bbar = -(intercept * a / q).sum() / ((a**2 / q).sum() + PSEUDO_MEAN / DIFFICULTY_VARIANCE)
        bbar = bbar.clamp(-FAR, FAR)
        r = intercept + a * bbar
        r2 = r**2 + covariance[:, 1, 1] + bbar * (2 * covariance[:, 0, 1] + bbar * covariance[:, 0, 0])
        deviation = self.t1**2 * a**2 * r2 / q**2 + self.t1 * self.t0 / q
        t1 = (deviation.sum() + PSEUDO_ITEMS * DIFFICULTY_VARIANCE) / (items + PSEUDO_ITEMS)
        return replace(self, mu=mu, tau=tau, bbar=bbar, t1=(WIDER * t1).clamp_max(FAR**2))

    def _terms(self, slope: Tensor, intercept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a = slope[:, 0]
        return a, self.t0 + self.t1 * a**2, intercept + a * self.bbar


@dataclass(frozen=True)
class Normal:
    """Any dimension: ``(a, d) ~ N(mean, variance)`` with a free mean and a full covariance, both learnt.

    The mean is free because loadings centred at zero shrink a benchmark's general factor. The family is
    closed under linear maps of ability, so rotations and re-standardisation are carried by learning it
    anew.

    Attributes:
        mean: ``[P]``.
        variance: ``[P, P]``.
    """

    mean: Tensor
    variance: Tensor

    @classmethod
    def default(cls, like: Tensor, dims: int) -> Normal:
        """Start values on the device of ``like``: slopes around 0, the first around 1."""
        mean = torch.zeros(dims + 1, dtype=torch.float64, device=like.device)
        mean[0] = 1.0
        return cls(mean, _scale(mean))

    def log_density(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """Up to a constant, ``[J]``."""
        x = torch.cat([slope, intercept[:, None]], 1) - self.mean
        scaled: Tensor = torch.linalg.solve(self.variance, x.mT).mT
        return -(scaled * x).sum(1) / 2

    def gradient(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """``-variance⁻¹ (x - mean)``."""
        x = torch.cat([slope, intercept[:, None]], 1)
        scaled: Tensor = torch.linalg.solve(self.variance, (self.mean - x).mT).mT
        return scaled

    def curvature(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """``variance⁻¹`` for every item."""
        precision: Tensor = torch.linalg.inv(self.variance)
        return precision.expand(len(slope), -1, -1)

    def hessian(self, slope: Tensor, intercept: Tensor) -> Tensor:
        """The same."""
        return self.curvature(slope, intercept)

    def learn(self, slope: Tensor, intercept: Tensor, covariance: Tensor) -> Normal:
        """Moments of the items, with pseudo-items at zero and of the start variance."""
        x = torch.cat([slope, intercept[:, None]], 1)
        items = len(x)
        mean = x.sum(0) / (items + PSEUDO_MEAN)
        spread = (x - mean).mT @ (x - mean) + covariance.sum(0)
        variance = (spread + PSEUDO_ITEMS * _scale(mean)) / (items + PSEUDO_ITEMS)
        return replace(self, mean=mean, variance=_bounded(variance))


def _scale(like: Tensor) -> Tensor:
    """Start covariance of (a, d), ``[P, P]``."""
    scale = torch.full_like(like, SLOPE_VARIANCE)
    scale[-1] = INTERCEPT_VARIANCE
    return torch.diag(scale)


def _bounded(variance: Tensor) -> Tensor:
    """The covariance ``[P, P]`` with no direction of the slopes wider than `MOST_SLOPE_VARIANCE`."""
    values, vectors = torch.linalg.eigh(variance[:-1, :-1])
    shrink = (MOST_SLOPE_VARIANCE / values).sqrt().clamp_max(1.0)
    linear = torch.eye(len(variance), dtype=variance.dtype, device=variance.device)
    linear[:-1, :-1] = (vectors * shrink) @ vectors.mT
    linear[-1, -1] = (FAR**2 / variance[-1, -1]).sqrt().clamp_max(1.0)
    return linear @ variance @ linear
