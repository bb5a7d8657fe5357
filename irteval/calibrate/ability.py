"""Ability of subjects from their answers to calibrated items: EAP, MAP and posterior standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from irteval.calibrate.laplace import laplace
from irteval.errors import InputError
from irteval.irt.logistic import derivatives, information, linear_predictor, log_likelihood
from irteval.irt.parameters import ItemParameters

RANGE = 10.0  # the grid's half-width: ten standard deviations of the prior
NEGLIGIBLE = -30.0  # log density at the grid's ends, relative to the peak
SPACING = 0.05
SPACING_SD = 0.5  # of the grid, in the smallest posterior standard deviation that the items allow
CELLS = 4_000_000  # of an array of items by nodes, or subjects by items, at a time
MODE_STEPS = 100
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


class _Items(NamedTuple):
    """Parameters of some of the items as tensors: ``[J, K]``, then ``[J]`` each."""

    slope: Tensor
    intercept: Tensor
    lower: Tensor | None
    upper: Tensor | None

    @classmethod
    def of(cls, parameters: ItemParameters, used: Tensor) -> _Items:
        """The items that some subject answered."""
        return cls(
            torch.tensor(parameters.slope)[used],
            torch.tensor(parameters.intercept)[used],
            None if parameters.lower is None else torch.tensor(parameters.lower)[used],
            None if parameters.upper is None else torch.tensor(parameters.upper)[used],
        )


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
    probabilities are shifted by their maximum, so that nothing underflows at any number of items. A grid
    that cuts off somebody's posterior is widened.
    """
    used = (weight > 0).any(0)
    y, weight = y[:, used], weight[:, used]
    items = _Items.of(parameters, used)
    half_width = RANGE
    nodes = _nodes(items, weight, half_width)
    log_posterior = _log_posterior(nodes, y, weight, items)
    while float((log_posterior[:, [0, -1]].amax(1) - log_posterior.amax(1)).max()) > NEGLIGIBLE:
        half_width *= 2
        nodes = _nodes(items, weight, half_width)
        log_posterior = _log_posterior(nodes, y, weight, items)
    log_marginal = log_posterior.logsumexp(1)
    mass = (log_posterior - log_marginal[:, None]).exp()
    mean = mass @ nodes
    variance = (mass * (nodes - mean[:, None]) ** 2).sum(1)
    mode = _mode(nodes[log_posterior.argmax(1)], float(nodes[1] - nodes[0]), y, weight, items)
    return Ability(
        mean.numpy()[:, None], variance.sqrt().numpy()[:, None], mode.numpy()[:, None], log_marginal.numpy()
    )


def _nodes(items: _Items, weight: Tensor, half_width: float) -> Tensor:
    """A grid fine enough for every subject's posterior, ``[G]``."""
    coarse = torch.linspace(-half_width, half_width, 401, dtype=torch.float64)[:, None]
    most = weight.amax(0) @ information(coarse, *items).mT
    spacing = min(SPACING, SPACING_SD / math.sqrt(1 + float(most.max())))
    steps = math.ceil(half_width / spacing)
    return torch.linspace(-half_width, half_width, 2 * steps + 1, dtype=torch.float64)


def _log_posterior(nodes: Tensor, y: Tensor, weight: Tensor, items: _Items) -> Tensor:
    """Log of prior times likelihood times spacing, ``[S, G]``."""
    log_posterior = -(nodes**2) / 2 - math.log(2 * math.pi) / 2 + math.log(float(nodes[1] - nodes[0]))
    log_posterior = log_posterior.expand(len(y), -1).clone()
    right, wrong = weight * y, weight * (1 - y)
    step = max(1, CELLS // len(nodes))
    for start in range(0, y.shape[1], step):
        part = slice(start, start + step)
        eta = linear_predictor(nodes[:, None], items.slope[part], items.intercept[part])
        lower, upper = (None if bound is None else bound[part] for bound in items[2:])
        log_posterior += right[:, part] @ log_likelihood(eta, torch.ones_like(eta), lower, upper).mT
        log_posterior += wrong[:, part] @ log_likelihood(eta, torch.zeros_like(eta), lower, upper).mT
    return log_posterior


def _mode(start: Tensor, spacing: float, y: Tensor, weight: Tensor, items: _Items) -> Tensor:
    """Fisher scoring from the best node of the grid, kept between the nodes beside it.

    Where a step would leave that bracket or isn't half as long as the one before, the bracket is halved
    instead: with asymptotes scoring may go to and fro.
    """
    slope, intercept, lower, upper = items
    low, high = start - spacing, start + spacing
    mode, last = start, torch.full_like(start, 2 * spacing)
    for _ in range(MODE_STEPS):
        eta = linear_predictor(mode[:, None], slope, intercept)
        first, fisher = derivatives(eta, y, lower, upper)
        gradient = (weight * first) @ slope[:, 0] - mode
        low, high = torch.where(gradient > 0, mode, low), torch.where(gradient > 0, high, mode)
        step = gradient / (1 + (weight * fisher) @ slope[:, 0] ** 2)
        inside = (mode + step > low) & (mode + step < high) & (2 * step.abs() <= last.abs())
        step = torch.where(inside, step, (low + high) / 2 - mode)
        mode, last = mode + step, step
        if float(step.abs().max()) < MODE_TOLERANCE:
            break
    return mode


def ability_posterior(
    parameters: ItemParameters, items: Tensor, y: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Mode ``[S, K]`` and covariance ``[S, K, K]`` of ability under N(0, I) from answers in any dimension.

    Laplace's approximation, asymptotes left out of account.

    Args:
        parameters: of J items.
        items: numbers of the items asked, ``[S, n]``.
        y: their answers in [0, 1], ``[S, n]``; any finite number where the weight is 0.
        weight: 1 for an answer, 0 for padding, ``[S, n]``.
    """
    prior = torch.zeros(1, parameters.dims, dtype=torch.float64, device=items.device)
    slope = torch.as_tensor(parameters.slope, device=items.device)[items]
    intercept = torch.as_tensor(parameters.intercept, device=items.device)[items]
    posterior = laplace(slope, intercept, y, weight, prior, torch.ones_like(prior))
    return posterior.mean[:, 0], posterior.covariance[:, 0]


def _at_mode(parameters: ItemParameters, y: Tensor, weight: Tensor) -> Ability:
    """Laplace's approximation in K dimensions."""
    if parameters.lower is not None or parameters.upper is not None:
        raise InputError("asymptotes are supported in one dimension", field="lower")
    used = (weight > 0).any(0)
    slope, intercept, _, _ = _Items.of(parameters, used)
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
