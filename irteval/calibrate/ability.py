"""Ability of subjects from their answers to calibrated items: EAP, MAP and posterior standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from irteval.calibrate.laplace import laplace
from irteval.errors import InputError
from irteval.irt.logistic import derivatives, information, linear_predictor, log_likelihood
from irteval.irt.parameters import ItemParameters

RANGE = 10.0  # the grid's half-width: ten standard deviations of the prior
SPACING = 0.05
SPACING_SD = 0.5  # of the grid, in the smallest posterior standard deviation that the items allow
CELLS = 4_000_000  # of an array of items by nodes, or subjects by items, at a time
MODE_STEPS = 50
MODE_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Ability:
    """Posterior of theta for S subjects under N(0, I).

    Attributes:
        mean: EAP, ``[S, K]``.
        sd: posterior standard deviation, ``[S, K]``.
        mode: MAP, ``[S, K]``.
        log_marginal: log probability of the answers, ability integrated out, ``[S]``.
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    mode: NDArray[np.float64]
    log_marginal: NDArray[np.float64]


def ability(
    parameters: ItemParameters, scores: ArrayLike, trials: NDArray[np.int32] | None = None
) -> Ability:
    """Posterior of ability under N(0, I), item parameters taken as known.

    One dimension is integrated on a grid; more are approximated at the mode (Laplace).

    Args:
        parameters: of J items.
        scores: ``[S, J]``, NaN where missing; fractions count as shares of a success.
        trials: n of each score, ``[S, J]``; 1 where None.

    Raises:
        InputError: scores of another number of items; asymptotes in several dimensions.
    """
    y = torch.as_tensor(np.asarray(scores, dtype=np.float64))
    if y.ndim != 2 or y.shape[1] != parameters.items:
        raise InputError(f"shape {list(y.shape)}, wanted [subjects, {parameters.items}]", field="scores")
    weight = (~y.isnan()).double()
    if trials is not None:
        weight = weight * torch.as_tensor(np.asarray(trials, dtype=np.float64))
    y = y.nan_to_num()
    return _on_grid(parameters, y, weight) if parameters.dims == 1 else _at_mode(parameters, y, weight)


def _on_grid(parameters: ItemParameters, y: Tensor, weight: Tensor) -> Ability:
    """Trapezoid rule on the log scale, on one uniform grid for all subjects.

    Half of the smallest possible posterior SD as the spacing makes the rule exact to rounding for a smooth
    density (Trefethen & Weideman 2014, The exponentially convergent trapezoidal rule); sums of log
    probabilities are shifted by their maximum, so that nothing underflows at any number of items.
    """
    used = (weight > 0).any(0)
    y, weight = y[:, used], weight[:, used]
    slope, intercept, lower, upper = _tensors(parameters, used)
    coarse = torch.linspace(-RANGE, RANGE, 401, dtype=torch.float64)[:, None]
    most = weight.amax(0) @ information(coarse, slope, intercept, lower, upper).mT
    spacing = min(SPACING, SPACING_SD / math.sqrt(1 + float(most.max())))
    nodes = torch.linspace(-RANGE, RANGE, 2 * math.ceil(RANGE / spacing) + 1, dtype=torch.float64)
    log_posterior = -(nodes**2) / 2 - math.log(2 * math.pi) / 2 + math.log(float(nodes[1] - nodes[0]))
    log_posterior = log_posterior.expand(len(y), -1).clone()
    right, wrong = weight * y, weight * (1 - y)
    step = max(1, CELLS // len(nodes))
    for start in range(0, y.shape[1], step):
        part = slice(start, start + step)
        eta = linear_predictor(nodes[:, None], slope[part], intercept[part])
        c, u = (None if bound is None else bound[part] for bound in (lower, upper))
        log_posterior += right[:, part] @ log_likelihood(eta, torch.ones_like(eta), c, u).mT
        log_posterior += wrong[:, part] @ log_likelihood(eta, torch.zeros_like(eta), c, u).mT
    log_marginal = log_posterior.logsumexp(1)
    mass = (log_posterior - log_marginal[:, None]).exp()
    mean = mass @ nodes
    variance = (mass * (nodes - mean[:, None]) ** 2).sum(1)
    mode = _mode(nodes[log_posterior.argmax(1)], y, weight, slope, intercept, lower, upper)
    return Ability(
        mean.numpy()[:, None], variance.sqrt().numpy()[:, None], mode.numpy()[:, None], log_marginal.numpy()
    )


def _mode(
    start: Tensor,
    y: Tensor,
    weight: Tensor,
    slope: Tensor,
    intercept: Tensor,
    lower: Tensor | None,
    upper: Tensor | None,
) -> Tensor:
    """Fisher scoring from the best node of the grid, never further than one node's neighbourhood a step."""
    mode = start.clone()
    for _ in range(MODE_STEPS):
        eta = linear_predictor(mode[:, None], slope, intercept)
        first, fisher = derivatives(eta, y, lower, upper)
        gradient = (weight * first) @ slope[:, 0] - mode
        step = gradient / (1 + (weight * fisher) @ slope[:, 0] ** 2)
        mode = mode + step.clamp(-SPACING, SPACING)
        if float(step.abs().max()) < MODE_TOLERANCE:
            break
    return mode


def _at_mode(parameters: ItemParameters, y: Tensor, weight: Tensor) -> Ability:
    """Laplace's approximation in K dimensions."""
    if parameters.lower is not None or parameters.upper is not None:
        raise InputError("asymptotes are supported in one dimension", field="lower")
    used = (weight > 0).any(0)
    slope, intercept, _, _ = _tensors(parameters, used)
    subjects = len(y)
    posterior = laplace(
        slope.expand(subjects, -1, -1),
        intercept.expand(subjects, -1),
        y[:, used],
        weight[:, used],
        torch.zeros(1, parameters.dims, dtype=torch.float64),
        torch.ones(1, parameters.dims, dtype=torch.float64),
    )
    mean = posterior.mean[:, 0].numpy()
    deviation = posterior.covariance[:, 0].diagonal(dim1=-2, dim2=-1).sqrt().numpy()
    return Ability(mean, deviation, mean, posterior.log_evidence[:, 0].numpy())


def _tensors(parameters: ItemParameters, used: Tensor) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Slopes, intercepts and asymptotes of the items that some subject answered."""
    return (
        torch.as_tensor(parameters.slope)[used],
        torch.as_tensor(parameters.intercept)[used],
        None if parameters.lower is None else torch.as_tensor(parameters.lower)[used],
        None if parameters.upper is None else torch.as_tensor(parameters.upper)[used],
    )
