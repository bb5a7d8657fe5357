"""The logistic response model: 1PL and 2PL in any dimension, with optional asymptotes.

``P(y = 1 | theta) = c + (u - c) sigmoid(a @ theta + d)``, logit metric (D = 1). Lord (1980, Applications of
Item Response Theory) for one dimension, Reckase (2009, Multidimensional Item Response Theory) for more;
Barton and Lord (1981) for the upper asymptote. Every function works on the linear predictor
``eta = a @ theta + d`` elementwise, so that shapes broadcast, and keeps its relative precision in the tails.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

# Gauss–Hermite rules for N(0, 1) (Abramowitz and Stegun, 25.4.46): positive nodes, their weights, weight of
# 0.
_THREE_NODES = ((math.sqrt(3.0),), (1 / 6,), 2 / 3)
_SEVEN_NODES = (
    (1.1544053947399682, 2.3667594107345415, 3.750439717725742),
    (0.2401231786050127, 0.030757123967586497, 0.0005482688559722186),
    0.4571428571428571,
)
NARROW = 0.5  # variance of eta up to which three nodes give E[P] to 3e-4


def linear_predictor(ability: Tensor, slope: Tensor, intercept: Tensor) -> Tensor:
    """``eta = a @ theta + d`` of every subject and item: ``[N, K]``, ``[J, K]``, ``[J]`` to ``[N, J]``."""
    return torch.addmm(intercept, ability, slope.mT)


def probability(eta: Tensor, lower: Tensor | None = None, upper: Tensor | None = None) -> Tensor:
    """``P(y = 1)`` at the linear predictor, in its shape."""
    if lower is None and upper is None:
        return torch.sigmoid(eta)
    c, u = _asymptotes(eta, lower, upper)
    return c + (u - c) * torch.sigmoid(eta)


def log_likelihood(
    eta: Tensor, y: Tensor, lower: Tensor | None = None, upper: Tensor | None = None
) -> Tensor:
    """``y log P + (1 - y) log(1 - P)`` for a share y in [0, 1], in the shape of both together.

    Times n it is the log-likelihood of y n successes in n trials, less the binomial coefficient.
    """
    if lower is None and upper is None:
        return y * eta - softplus(eta)
    success, failure = _log_probabilities(eta, lower, upper)
    return torch.where(y > 0, y * success, 0.0) + torch.where(y < 1, (1 - y) * failure, 0.0)


def derivatives(
    eta: Tensor, y: Tensor, lower: Tensor | None = None, upper: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """First derivative of the log-likelihood by eta, and Fisher's information about eta.

    ``l' = (y - P) P' / (P (1 - P))`` and ``I = P'² / (P (1 - P))``; without asymptotes ``y - P`` and
    ``P (1 - P)``.
    """
    if lower is None and upper is None:
        p = torch.sigmoid(eta)
        return y - p, p * torch.sigmoid(-eta)
    c, u = _asymptotes(eta, lower, upper)
    success, failure = _log_probabilities(eta, lower, upper)
    log_rate = (u - c).log() + logsigmoid(eta) + logsigmoid(-eta)
    first = (y - success.exp()) * (log_rate - success - failure).exp()
    return first, (2 * log_rate - success - failure).exp()


def information(
    ability: Tensor,
    slope: Tensor,
    intercept: Tensor,
    lower: Tensor | None = None,
    upper: Tensor | None = None,
) -> Tensor:
    """Fisher's information of each item about a one-dimensional ability, ``[N, J]``.

    ``a² P'² / (P (1 - P))`` with the derivative by eta (Birnbaum 1968); without asymptotes ``a² P (1 - P)``.
    """
    eta = linear_predictor(ability, slope, intercept)
    return slope[:, 0] ** 2 * derivatives(eta, torch.zeros_like(eta), lower, upper)[1]


def expected_probability(mean: Tensor, variance: Tensor, wide: bool = True) -> tuple[Tensor, Tensor]:
    """``E[P]`` and ``E[P (1 - P)]`` for ``eta ~ N(mean, variance)``, P the logistic function.

    Gauss–Hermite quadrature in one dimension with seven nodes, or with three, which are enough where no
    variance exceeds `NARROW`.
    """
    deviation = variance.sqrt()
    nodes, weights, centre = _SEVEN_NODES if wide else _THREE_NODES
    p = torch.sigmoid(mean)
    first = p * centre
    second = first * p
    for node, weight in zip(nodes, weights, strict=True):
        for sign in (-node, node):
            torch.add(mean, deviation, alpha=sign, out=p).sigmoid_()
            first.add_(p, alpha=weight)
            second.addcmul_(p, p, value=weight)
    return first, torch.sub(first, second, out=second)


def _asymptotes(eta: Tensor, lower: Tensor | None, upper: Tensor | None) -> tuple[Tensor, Tensor]:
    c = eta.new_zeros(()) if lower is None else lower
    u = eta.new_ones(()) if upper is None else upper
    return c, u


def _log_probabilities(eta: Tensor, lower: Tensor | None, upper: Tensor | None) -> tuple[Tensor, Tensor]:
    """``log P`` and ``log(1 - P)``: ``P = c (1 - sigmoid) + u sigmoid``, summed on the log scale."""
    c, u = _asymptotes(eta, lower, upper)
    on, off = logsigmoid(eta), logsigmoid(-eta)
    success = torch.logaddexp(c.log() + off, u.log() + on)
    failure = torch.logaddexp((1 - c).log() + off, (1 - u).log() + on)
    return success, failure
