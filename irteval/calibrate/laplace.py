"""Gaussian approximation to the posterior of logistic coefficients, batched over subjects and hypotheses.

One routine serves every place where a subject's answers to calibrated items are turned into a posterior: the
latent abilities of a multidimensional model, and the richer hypotheses about a new subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from irteval.calibrate.symmetric import outer_lower, unpack_lower

MAX_STEPS = 100
TOLERANCE = 1e-6
FULL_STEP = 1.0  # a Newton step that moves no logit further is safe as it is


@dataclass(frozen=True)
class LaplacePosterior:
    """Posterior of P coefficients for S subjects under T priors.

    Attributes:
        mean: mode, ``[S, T, P]``.
        covariance: inverse of the negative Hessian at the mode, ``[S, T, P, P]``.
        log_evidence: Laplace approximation of the log marginal likelihood, ``[S, T]``.
    """

    mean: Tensor
    covariance: Tensor
    log_evidence: Tensor


def laplace(
    features: Tensor,
    offset: Tensor,
    y: Tensor,
    weight: Tensor,
    prior_mean: Tensor,
    prior_precision: Tensor,
    scale: Callable[[Tensor], Tensor] | None = None,
) -> LaplacePosterior:
    """Posterior of beta in ``P(y_n = 1) = sigmoid(s_n (x_n @ beta + o_n))``, ``beta ~ N(mean, 1 /
    precision)``.

    Newton's method on the log posterior, which is concave for a fixed scale s. A step that would move some
    logit by d > 1 is shortened by log(1 + d) / d, which makes the method converge from any start (Sun and
    Tran-Dinh, Generalized self-concordant functions, 2019, section 4.1): steep items would throw it to and
    fro otherwise. Where the scale depends on beta it is renewed before every step and held fixed within it.
    The evidence is Laplace's:
    ``log p(y | beta) + log p(beta) + P/2 log 2 pi - 1/2 log |H|`` at the mode (Bishop, Pattern Recognition
    and Machine Learning, 2006, section 4.4.1).

    Args:
        features: x, ``[S, n, P]``.
        offset: o, ``[S, n]``.
        y: answers in [0, 1], ``[S, n]``; any finite number where the weight is 0.
        weight: 1 for an observed answer, 0 for padding, ``[S, n]``.
        prior_mean: ``[T, P]``.
        prior_precision: ``[T, P]``, positive; a huge value fixes a coefficient.
        scale: maps beta ``[S, T, P]`` to s ``[S, T, n]``; None stands for 1.
    """
    subjects, _, size = features.shape
    outer = outer_lower(features)
    beta = prior_mean.expand(subjects, -1, -1)
    for _ in range(MAX_STEPS):
        linear, factor = _linear(features, offset, beta, scale)
        p = torch.sigmoid(linear)
        gradient = (factor * weight[:, None] * (y[:, None] - p)) @ features
        gradient = gradient - prior_precision * (beta - prior_mean)
        step = torch.cholesky_solve(
            gradient[..., None], _hessian_factor(outer, p, factor, weight, prior_precision)
        )[..., 0]
        move = step.abs().amax(-1, keepdim=True)
        reach = (factor * weight[:, None] * (step @ features.mT)).abs()
        farthest = torch.cat([torch.full_like(move, FULL_STEP), reach], -1).amax(-1, keepdim=True)
        beta = beta + step * torch.where(farthest > FULL_STEP, farthest.log1p() / farthest, 1.0)
        if not bool((move > TOLERANCE).any()):
            break
    linear, factor = _linear(features, offset, beta, scale)
    p = torch.sigmoid(linear)
    lower = _hessian_factor(outer, p, factor, weight, prior_precision)
    fit = (weight[:, None] * (y[:, None] * linear + logsigmoid(-linear))).sum(-1)
    distance = (prior_precision * (beta - prior_mean) ** 2).sum(-1)
    log_det = prior_precision.log().sum(-1) - 2 * lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    identity = torch.eye(size, dtype=beta.dtype, device=beta.device)
    covariance = torch.cholesky_solve(identity.expand_as(lower), lower)
    return LaplacePosterior(beta, covariance, fit - distance / 2 + log_det / 2)


def _linear(
    features: Tensor, offset: Tensor, beta: Tensor, scale: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    """The scaled linear predictor and the scale, each ``[S, T, n]``."""
    linear = beta @ features.mT + offset[:, None]
    factor = torch.ones_like(linear) if scale is None else scale(beta)
    return factor * linear, factor


def _hessian_factor(outer: Tensor, p: Tensor, factor: Tensor, weight: Tensor, precision: Tensor) -> Tensor:
    """Cholesky factor of the negative Hessian of the log posterior, ``[S, T, P, P]``."""
    information = unpack_lower((factor**2 * weight[:, None] * p * (1 - p)) @ outer)
    lower: Tensor = torch.linalg.cholesky(information + torch.diag_embed(precision))
    return lower
