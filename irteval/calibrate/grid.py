"""Marginal maximum likelihood on a grid of ability: exact in one dimension, for short tests.

Ability is integrated out by the trapezoid rule on a uniform grid, whose error for a density as smooth as a
posterior is below rounding once the spacing is one posterior standard deviation (Trefethen and Weideman 2014,
The exponentially convergent trapezoidal rule). EM in the form of Bock and Aitkin (1981, Marginal maximum
likelihood estimation of item parameters): the E step turns the answers into expected numbers of answers and
of right answers of each item at each node, the M step is one small logistic regression an item on these.

Every iteration ends with the re-standardisation of the subjects' posterior moments, carried by the items
(parameter expansion; Liu, Rubin and Wu 1998, Parameter expansion to accelerate EM). Without priors it leaves
the maximum of the likelihood under theta ~ N(0, 1) where it is; with them it sets the scale. Pairs of
iterations are extrapolated by SQUAREM (Varadhan and Roland 2008, Simple and globally convergent methods for
accelerating the convergence of any EM algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from irteval.calibrate.blocks import Block, Blocks
from irteval.calibrate.expectations import Posterior
from irteval.calibrate.priors import ItemPrior
from irteval.calibrate.starts import STRETCH, margins, smoothed_logit
from irteval.calibrate.threads import BlockMap, block_map
from irteval.calibrate.variational import CONSTANT_ROW

RANGE = 8.0  # least half-width of the grid, in standard deviations of the prior
MARGIN = 5.0  # posterior standard deviations that the grid reaches beyond every posterior mean
SPACING = 0.25
PLAIN = 6  # iterations before the first extrapolation
FURTHEST = 32.0  # longest extrapolation, in iterations
WORSE = 2.0  # growth of an iteration's step from which an extrapolation is taken back
NEWTON_STEPS = 20
NEWTON_TOLERANCE = 1e-8
MAX_ITEM_STEP = 1.0
START_VARIANCE = 0.1
STEEPEST = 50.0  # a slope beyond it belongs to an item that the likelihood would make a step


@dataclass(frozen=True)
class Patterns:
    """Rows of equal answers of a block, once each.

    Attributes:
        right: successes of each cell, weight times score, ``[n, J]``.
        weight: trials of each cell, 0 where missing, ``[n, J]``.
        count: subjects with these answers, ``[n]``.
        pattern: the pattern of each row of the block.
    """

    right: Tensor
    weight: Tensor
    count: Tensor
    pattern: Tensor

    @classmethod
    def of(cls, block: Block) -> Patterns:
        """The patterns of a block, in double precision."""
        right, weight = (block.weight * block.score).double(), block.weight.double()
        rows = torch.cat([right, weight], 1).cpu().numpy()
        whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
        _, first, pattern, count = np.unique(whole, True, True, True)
        at = torch.from_numpy(first).to(right.device)
        return cls(
            right[at],
            weight[at],
            torch.from_numpy(count).to(right),
            torch.from_numpy(pattern).to(right.device),
        )


class PatternBlocks:
    """Blocks as patterns: kept where they are few, made anew in each pass where hardly two rows are equal.

    Attributes:
        blocks: what they are made of.
        most: the largest weight of each item, ``[J]``.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self._kept: list[Patterns | None] = []
        most = []
        for block in blocks:
            patterns = Patterns.of(block)
            most.append(patterns.weight.amax(0))
            few = 2 * len(patterns.count) <= block.stop - block.start
            self._kept.append(patterns if few or len(blocks) == 1 else None)
        self.most = torch.stack(most).amax(0)

    def patterns(self, number: int) -> Patterns:
        """Those of the block with this number."""
        return self._kept[number] or Patterns.of(self.blocks.block(number))

    def __iter__(self) -> Iterator[Patterns]:
        """Those of every block in order."""
        return (self.patterns(number) for number in range(len(self.blocks)))


@dataclass(frozen=True)
class GridFit:
    """A converged fit, or the last state of one that isn't.

    Attributes:
        posterior: abilities under N(0, 1) and items; the items' covariance is the one at known abilities.
        prior: of the items, as learnt.
        log_likelihood: marginal, without binomial coefficients.
        nodes: the last grid, ``[G]``.
        iterations, converged: how it ended.
        certificate: largest step of an item in the last iteration, in standard errors.
        scale_subjects: how many subjects the scale rests on.
    """

    posterior: Posterior
    prior: ItemPrior
    log_likelihood: float
    nodes: Tensor
    iterations: int
    converged: bool
    certificate: float
    scale_subjects: int


@dataclass(frozen=True)
class _Items:
    """What an iteration improves: slope, intercept ``[J]``, their covariance ``[J, 2, 2]``, their prior."""

    slope: Tensor
    intercept: Tensor
    covariance: Tensor
    prior: ItemPrior

    @property
    def values(self) -> Tensor:
        return torch.stack([self.slope, self.intercept], 1)

    def at(self, values: Tensor) -> _Items:
        return replace(self, slope=values[:, 0], intercept=values[:, 1])


class _Squarem:
    """Extrapolation after every two iterations, taken back if the next one then steps further than before.

    ``x + 2 t r + t² v`` with r the first step, v its change to the second and ``t = |r| / |v|``, SQUAREM's
    third scheme; no parameter is carried further than one M step may.
    """

    def __init__(self, values: Tensor) -> None:
        self._path = [values]
        self._before = values
        self._step = math.inf  # of the iteration before the extrapolation

    def next(self, values: Tensor, step: float) -> Tensor:
        """Where to go on from, given an iteration's result and its step in standard errors."""
        if len(self._path) == 1 and step > WORSE * self._step:
            self._path, self._step = [self._before], math.inf
            return self._before
        self._path.append(values)
        if len(self._path) < 3:
            return values
        first, second, third = self._path
        r, v = second - first, third - 2 * second + first
        t = float(r.norm() / v.norm().clamp_min(torch.finfo(v.dtype).tiny))
        t = min(max(t, 1.0), FURTHEST)
        further = first + 2 * t * r + t**2 * v - values
        extrapolated = values + further.clamp(-MAX_ITEM_STEP, MAX_ITEM_STEP)
        self._path, self._before, self._step = [extrapolated], values, step
        return extrapolated


@dataclass(frozen=True)
class _Expectation:
    """The E step.

    Attributes:
        right, weight: expected successes and trials of each item at each node, ``[J, G]``.
        mean, variance: of each subject's posterior, ``[N]``.
        moments: number of subjects that set the scale, their sums of the mean and of the second moment.
        log_likelihood: marginal.
    """

    right: Tensor
    weight: Tensor
    mean: Tensor
    variance: Tensor
    moments: Tensor
    log_likelihood: float


def fit_grid(
    blocks: Blocks,
    prior: ItemPrior,
    *,
    common_slope: bool = False,
    keep_constant: bool = False,
    tolerance: float,
    max_iterations: int,
    progress: Callable[[str], None] | None = None,
) -> GridFit:
    """Fit a 2PL in one dimension, or a 1PL with ``common_slope``.

    Converged where an iteration, re-standardisation included, moves no item by more than ``tolerance``
    standard errors. EM's steps are far smaller than its distance from the maximum where abilities are
    uncertain, so the tolerance must be much below the accuracy that is wanted. Without priors the likelihood
    of a slope may have no maximum: then the fit ends unconverged once the slope is absurd.

    Args:
        blocks: of responses.
        prior: of the items; `Flat` for plain maximum likelihood.
        common_slope: all items share one slope.
        keep_constant: long rows of equal answers take part in the scale too, as maximum likelihood has it.
        tolerance, max_iterations: when to stop.
        progress: called with a line for each iteration.
    """
    cells = PatternBlocks(blocks)
    items = _start(blocks, prior)
    squarem = _Squarem(items.values)
    least = math.inf if keep_constant else CONSTANT_ROW
    certificate, iteration, half_width = math.inf, 0, RANGE
    with block_map(blocks.cells, blocks.device) as each:
        while iteration < max_iterations and certificate > tolerance and not _endless(items):
            iteration += 1
            nodes = grid(cells.most, items.slope, half_width)
            found = _expect(cells, nodes, items, least, each)
            half_width = max(RANGE, float((found.mean.abs() + MARGIN * found.variance.sqrt()).max()))
            after = _restandardise(_maximise(found, nodes, items, common_slope), found)
            certificate = _net_step(items, after)
            if progress is not None:
                progress(f"iteration {iteration}: largest step {certificate:.6f} SE")
            done = certificate <= tolerance or iteration < PLAIN
            items = after if done else after.at(squarem.next(after.values, certificate))
        nodes = grid(cells.most, items.slope, half_width)
        found = _expect(cells, nodes, items, least, each)
    return GridFit(
        posterior=Posterior(
            found.mean[:, None],
            found.variance[:, None, None],
            items.slope[:, None],
            items.intercept,
            items.covariance,
        ),
        prior=items.prior,
        log_likelihood=found.log_likelihood,
        nodes=nodes,
        iterations=iteration,
        converged=certificate <= tolerance and not _endless(items),
        certificate=certificate,
        scale_subjects=max(1, int(found.moments[0])),
    )


def grid(most: Tensor, slope: Tensor, half_width: float = RANGE) -> Tensor:
    """Nodes ``[G]`` no wider apart than any subject's posterior standard deviation.

    It is at least ``1 / sqrt(1 + Σ n a² / 4)`` with the largest weights n ``[J]``: an item's information
    about ability never exceeds a quarter of its squared slope.
    """
    spacing = min(SPACING, 1 / math.sqrt(1 + float(most @ slope**2) / 4))
    steps = math.ceil(half_width / spacing)
    return spacing * torch.arange(-steps, steps + 1, dtype=slope.dtype, device=slope.device)


def posterior_mass(
    patterns: Patterns, nodes: Tensor, slope: Tensor, intercept: Tensor
) -> tuple[Tensor, Tensor]:
    """Posterior probability of each node for each pattern ``[n, G]``, and the log marginals ``[n]``."""
    eta = nodes[:, None] * slope + intercept
    log_prior = -(nodes**2) / 2 - math.log(2 * math.pi) / 2 + math.log(float(nodes[1] - nodes[0]))
    log_joint = log_prior + patterns.right @ eta.mT - patterns.weight @ softplus(eta).mT
    log_marginal = log_joint.logsumexp(1)
    return (log_joint - log_marginal[:, None]).exp(), log_marginal


def _start(blocks: Blocks, prior: ItemPrior) -> _Items:
    """Slopes of 1, intercepts from the items' means."""
    _, _, score, weight = margins(blocks)
    intercept = STRETCH * smoothed_logit(score, weight)
    eye = torch.eye(2, dtype=intercept.dtype, device=intercept.device)
    return _Items(
        torch.ones_like(intercept), intercept, (START_VARIANCE * eye).repeat(len(intercept), 1, 1), prior
    )


def _expect(cells: PatternBlocks, nodes: Tensor, items: _Items, least: float, each: BlockMap) -> _Expectation:
    """One pass over the patterns. Constant rows of ``least`` trials or more stay out of the moments."""

    def expect(number: int) -> tuple[Tensor, ...]:
        patterns = cells.patterns(number)
        mass, log_marginal = posterior_mass(patterns, nodes, items.slope, items.intercept)
        mean = mass @ nodes
        variance = mass @ nodes**2 - mean**2
        total, right = patterns.weight.sum(1), patterns.right.sum(1)
        constant = ((right == 0) | (right == total)) & (total >= least)
        use = patterns.count * ((total > 0) & ~constant)
        counted = patterns.count[:, None] * mass
        return (
            patterns.right.mT @ counted,
            patterns.weight.mT @ counted,
            mean[patterns.pattern],
            variance[patterns.pattern],
            torch.stack([use.sum(), use @ mean, use @ (mean**2 + variance)]),
            patterns.count @ log_marginal,
        )

    right, weight, mean, variance, moments, log_likelihood = zip(
        *each(expect, range(len(cells.blocks))), strict=True
    )
    return _Expectation(
        torch.stack(right).sum(0),
        torch.stack(weight).sum(0),
        torch.cat(mean),
        torch.cat(variance),
        torch.stack(moments).sum(0),
        float(torch.stack(log_likelihood).sum()),
    )


def _maximise(found: _Expectation, nodes: Tensor, items: _Items, common_slope: bool) -> _Items:
    """The M step: Newton's method for every item at once on its expected answers at the nodes."""
    x = torch.stack([nodes, torch.ones_like(nodes)], 1)
    outer = (x[:, :, None] * x[:, None, :]).flatten(1)
    for _ in range(NEWTON_STEPS):
        eta = items.values @ x.mT
        p, q = torch.sigmoid(eta), torch.sigmoid(-eta)
        gradient = (found.right * q - (found.weight - found.right) * p) @ x
        gradient = gradient + items.prior.gradient(items.slope[:, None], items.intercept)
        precision = ((found.weight * p * q) @ outer).reshape(-1, 2, 2)
        precision = precision + items.prior.curvature(items.slope[:, None], items.intercept)
        if common_slope:
            step, covariance = _common_slope_step(gradient, precision)
        else:
            covariance = torch.linalg.inv(precision)
            step = (covariance @ gradient[..., None])[..., 0]
            step = step * (MAX_ITEM_STEP / step.abs().amax(1, keepdim=True).clamp_min(MAX_ITEM_STEP))
        items = replace(items.at(items.values + step), covariance=covariance)
        if float(step.abs().max()) < NEWTON_TOLERANCE:
            break
    return items


def _common_slope_step(gradient: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
    """Newton step where all items share one slope, the intercepts eliminated first.

    The covariance has the slope's variance and those of the intercepts at a known slope.
    """
    aa, ad, dd = precision[:, 0, 0], precision[:, 0, 1], precision[:, 1, 1]
    information = (aa - ad**2 / dd).sum()
    by_slope = (gradient[:, 0] - ad / dd * gradient[:, 1]).sum() / information
    covariance = torch.diag_embed(torch.stack([1 / information.expand_as(dd), 1 / dd], 1))
    step = torch.stack([by_slope.expand_as(dd), (gradient[:, 1] - ad * by_slope) / dd], 1)
    return step.clamp(-MAX_ITEM_STEP, MAX_ITEM_STEP), covariance


def _restandardise(items: _Items, found: _Expectation) -> _Items:
    """Parameter expansion: the scale on which the subjects' posteriors have mean 0 and variance 1.

    Its direction is the one in which the slopes have a positive sum.
    """
    subjects, first, second = found.moments
    if float(subjects) < 2:
        return items
    shift = first / subjects
    scale = (second / subjects - shift**2).sqrt() * (-1.0 if float(items.slope.sum()) < 0 else 1.0)
    change = torch.zeros(2, 2, dtype=shift.dtype, device=shift.device)
    change[0, 0], change[1, 0], change[1, 1] = scale, shift, 1.0
    slope, intercept = items.slope * scale, items.intercept + items.slope * shift
    covariance = change @ items.covariance @ change.mT
    prior = items.prior.learn(slope[:, None], intercept, covariance)
    return _Items(slope, intercept, covariance, prior)


def _net_step(before: _Items, after: _Items) -> float:
    """Largest step of a parameter in its standard errors at known abilities."""
    error = after.covariance.diagonal(dim1=1, dim2=2).sqrt()
    return float(((after.values - before.values).abs() / error).max())


def _endless(items: _Items) -> bool:
    return float(items.slope.abs().max()) > STEEPEST
