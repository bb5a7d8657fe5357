"""From a response matrix to item parameters and abilities: the choice of estimator, priors and device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.calibrate.blocks import Blocks
from irteval.calibrate.expectations import Cells
from irteval.calibrate.grid import GridFit, PatternBlocks, fit_grid
from irteval.calibrate.priors import Difficulty, Flat, Intercept, ItemPrior, Normal
from irteval.calibrate.standard_errors import grid_covariance, normal_covariance
from irteval.calibrate.variational import VariationalFit, fit_variational
from irteval.device import torch_device
from irteval.errors import ConvergenceError, InputError
from irteval.irt.parameters import ItemParameters
from irteval.responses.matrix import ResponseMatrix

RESPONSE_MODELS = ("1pl", "2pl")
ESTIMATORS = ("auto", "variational", "grid")
GRID_ITEMS = 50  # below, posteriors are too wide for the normal approximation and the exact grid is cheap
# Certificates, in standard errors. EM's steps are much smaller than its distance from the maximum.
TOLERANCE, TOLERANCE_SEVERAL, GRID_TOLERANCE = 0.01, 0.05, 1e-5
ITERATIONS, GRID_ITERATIONS = 200, 5000
NORMAL_PRIOR = (
    "the prior with independent difficulties did not converge; slopes and intercepts have a joint normal one"
)
MOST_SLOPE = 2.0  # quadratic mean over items, where a fit does not converge without such a limit
CAMPS = (
    "slopes are held to 2 in quadratic mean: without a limit the fit did not converge, as happens where "
    "subjects answer in opposite camps"
)


@dataclass(frozen=True)
class Calibration:
    """A converged fit.

    Attributes:
        parameters: of the items, with their covariance.
        ability_mean, ability_covariance: posterior of the calibrated subjects, ``[N, K]``, ``[N, K, K]``.
        log_likelihood: marginal, at the estimates; None from the variational estimator.
        iterations, converged, certificate: how it ended; the certificate is the largest net step of an item
            in the last iteration, in standard errors.
        estimator: ``variational`` or ``grid``.
        priors: items have hierarchical priors; without, it is plain marginal maximum likelihood.
        warnings: one line each.
        seconds: of the fit.
    """

    parameters: ItemParameters
    ability_mean: NDArray[np.float64]
    ability_covariance: NDArray[np.float64]
    log_likelihood: float | None
    iterations: int
    converged: bool
    certificate: float
    estimator: str
    priors: bool
    warnings: tuple[str, ...]
    seconds: float


def calibrate(
    responses: ResponseMatrix,
    *,
    response_model: str = "2pl",
    dims: int = 1,
    estimator: str = "auto",
    priors: bool = True,
    device: str = "auto",
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Calibration:
    """Fit a 1PL or 2PL to a response matrix.

    Slopes are signed and scores in [0, 1] count as shares of a success; with trials they are k of n. Missing
    cells are left out. The scale is that of the calibrated subjects: ability has mean 0 and covariance I over
    them, whatever the number of items.

    Args:
        responses: N subjects by J items.
        response_model: ``2pl``, or ``1pl`` with one slope, learnt, for all items.
        dims: K; a 1PL has one.
        estimator: ``variational`` (any size and K), ``grid`` (exact, one dimension), or ``auto``: the grid
            below 50 items in one dimension.
        priors: False for plain marginal maximum likelihood, with the grid only.
        device: ``auto`` (a GPU if there is one), ``cpu`` or ``cuda``.
        seed: of the start of further dimensions in large data.
        progress: called with a line for each iteration.

    Raises:
        InputError: an option that doesn't exist or doesn't go with another, fewer than two subjects with
            answers, or, without priors, an item that they don't tell apart.
        ConvergenceError: the certificate was not reached.
    """
    estimator = _choose(responses, response_model, dims, estimator, priors)
    started = time.perf_counter()
    blocks = Blocks(responses, torch_device(device))
    common = response_model == "1pl"
    prior = _prior(dims, common, priors, blocks.device)
    notes: list[str] = []
    fit: VariationalFit | GridFit
    if estimator == "grid":
        tolerance = GRID_TOLERANCE
        fit = fit_grid(
            blocks,
            prior,
            common_slope=common,
            keep_constant=not priors,
            tolerance=tolerance,
            max_iterations=GRID_ITERATIONS,
            progress=progress,
        )
    else:
        tolerance = TOLERANCE if dims == 1 else TOLERANCE_SEVERAL
        for attempt in _attempts(prior, dims):
            fit = fit_variational(
                blocks,
                dims,
                attempt.prior,
                common_slope=common,
                most_slope=attempt.most_slope,
                seed=seed,
                tolerance=tolerance,
                max_iterations=ITERATIONS,
                progress=progress,
            )
            if fit.converged:
                notes.extend(attempt.notes)
                break
    if not fit.converged:
        steepest = int(fit.posterior.slope.abs().amax(1).argmax())
        raise ConvergenceError(
            f"the largest step of an item is {fit.certificate:.3g} standard errors after {fit.iterations} "
            f"iterations, wanted at most {tolerance}; the steepest item is '{responses.items[steepest]}', "
            f"slope {float(fit.posterior.slope[steepest].norm()):.3g}"
        )
    q = fit.posterior
    parameters = ItemParameters(
        slope=q.slope.cpu().numpy(),
        intercept=q.intercept.cpu().numpy(),
        covariance=_covariance(blocks, fit, common).cpu().numpy(),
        response_model=response_model,
    )
    return Calibration(
        parameters=parameters,
        ability_mean=q.ability.cpu().numpy(),
        ability_covariance=q.ability_covariance.cpu().numpy(),
        log_likelihood=fit.log_likelihood if isinstance(fit, GridFit) else None,
        iterations=fit.iterations,
        converged=fit.converged,
        certificate=fit.certificate,
        estimator=estimator,
        priors=priors,
        warnings=(*notes, *_warnings(responses)),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True)
class _Attempt:
    """A variational fit to try, and what a person should know where it is the one that converges."""

    prior: ItemPrior
    most_slope: float = float("inf")
    notes: tuple[str, ...] = ()


def _attempts(prior: ItemPrior, dims: int) -> Iterator[_Attempt]:
    """The fit as it should be, and those to fall back on."""
    yield _Attempt(prior)
    if isinstance(prior, Difficulty):
        # Items with hardly any information can wander on that prior's curved ridges; this one has none.
        yield _Attempt(Normal.default(prior.mu, dims), notes=(NORMAL_PRIOR,))
    yield _Attempt(prior, MOST_SLOPE, (CAMPS,))


def _covariance(blocks: Blocks, fit: VariationalFit | GridFit, common_slope: bool) -> Tensor:
    """Covariance of (slopes, intercept) of each item, ``[J, K + 1, K + 1]``, NaN for a common slope."""
    if isinstance(fit, GridFit) and blocks.items < GRID_ITEMS:
        return grid_covariance(PatternBlocks(blocks), fit, common_slope)
    if fit.posterior.slope.shape[1] > 1:
        return fit.posterior.item_covariance
    cells = Cells(blocks) if isinstance(fit, GridFit) else fit.cells
    free = slice(1, 2) if common_slope else slice(0, 2)
    covariance = torch.full_like(fit.posterior.item_covariance, torch.nan)
    covariance[:, free, free] = normal_covariance(cells, fit.posterior, fit.scale_subjects, free)
    return covariance


def _warnings(responses: ResponseMatrix) -> Iterator[str]:
    """What a person should know about items that the data say little about."""
    unanswered = int((responses.item_counts() == 0).sum())
    constant = int(_constant(responses).sum())
    if unanswered:
        yield f"{unanswered} items have no answer: their parameters rest on the prior"
    if constant:
        yield f"{constant} items have the same answer from every subject: their parameters rest on the prior"


def _constant(responses: ResponseMatrix) -> NDArray[np.bool_]:
    """Items that everybody or nobody got right, ``[J]``."""
    mean = responses.item_means()
    constant: NDArray[np.bool_] = (mean == 0) | (mean == 1)
    return constant


def _choose(responses: ResponseMatrix, response_model: str, dims: int, estimator: str, priors: bool) -> str:
    if response_model not in RESPONSE_MODELS:
        raise InputError(
            f"'{response_model}', wanted one of {', '.join(RESPONSE_MODELS)}", field="response_model"
        )
    if estimator not in ESTIMATORS:
        raise InputError(f"'{estimator}', wanted one of {', '.join(ESTIMATORS)}", field="estimator")
    if dims < 1 or (dims > 1 and response_model == "1pl"):
        raise InputError(f"{dims}, wanted 1 or, with the 2PL, more", field="dims")
    answering = int((responses.subject_counts() > 0).sum())
    if answering < 2:
        raise InputError(f"{answering} subjects with answers, wanted at least 2", field="subject")
    if estimator == "auto":
        estimator = "grid" if dims == 1 and (responses.shape[1] < GRID_ITEMS or not priors) else "variational"
    if estimator == "grid" and dims > 1:
        raise InputError(
            f"the grid estimator has one dimension, wanted {dims}: use variational", field="estimator"
        )
    if estimator == "variational" and not priors:
        raise InputError("the variational estimator needs priors: use the grid without them", field="priors")
    undetermined = (responses.item_counts() == 0) | _constant(responses)
    if not priors and undetermined.any():
        item = responses.items[int(undetermined.argmax())]
        raise InputError(
            f"nothing but priors would determine {int(undetermined.sum())} items ('{item}' first): "
            "no answer, or the same one from every subject",
            field="priors",
        )
    return estimator


def _prior(dims: int, common_slope: bool, priors: bool, device: torch.device) -> ItemPrior:
    like = torch.zeros((), device=device)
    if not priors:
        return Flat()
    if common_slope:
        return Intercept.default(like)
    return Difficulty.default(like) if dims == 1 else Normal.default(like, dims)
