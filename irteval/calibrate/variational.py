"""Gaussian variational Bayes over subjects and items: the default estimator, for any dimension.

``q(theta_i) = N(m_i, V_i)`` and ``q(a_j, d_j) = N((a_j, d_j), S_j)`` are improved in turn by Newton steps
on the expected log-likelihood (Opper and Archambeau 2009, The Variational Gaussian Approximation
Revisited). Its expectations over a cell's linear predictor are one-dimensional and exact; the Polya–Gamma
bound instead would shrink slopes by a fifth where subjects have few answers. With x = (m, 1), g = y - E[P]
and w = E[P (1 - P)], what a step needs is a sum over cells, and these sums are matrix products.

**Parameter expansion.** Along theta -> c theta, a -> a / c the likelihood hardly changes while posteriors
are sharp, so EM and its variational kin stall there with a wrong scale (Liu, Rubin and Wu 1998, Parameter
expansion to accelerate EM). After every iteration the subjects' posterior moments are set to 0 and I, and
the items carry the change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from irteval.calibrate.blocks import Block, Blocks
from irteval.calibrate.expectations import Cells, ItemSide, Posterior, SubjectSide
from irteval.calibrate.priors import ItemPrior
from irteval.calibrate.starts import (
    STRETCH,
    further_dimensions,
    margins,
    smoothed_logit,
    standardise,
)
from irteval.calibrate.symmetric import unpack_lower
from irteval.calibrate.threads import BlockMap, block_map

CONSTANT_ROW = 20  # answers from which an all-right or all-wrong subject says nothing about the scale
MAX_ABILITY_STEP = 1.5
MAX_ITEM_STEP = 1.0
SETTLING = 10  # iterations after which V moves half way
INNER_STEPS = 20
INNER_TOLERANCE = 1e-6
START_VARIANCE = 0.1
RUNAWAY = 6.0  # quadratic mean of the slopes; 1 to 3 is usual
START_STEPS = 2  # iterations at the first abilities: with slopes of 0 a further dimension would be lost
PEARSON_VARIANCE = 0.01  # least variance of an answer in Pearson's statistic: a rare success must not rule it


@dataclass(frozen=True)
class ItemSums:
    """What the items' step needs of the cells, summed over subjects.

    Attributes:
        gradient: of the expected log-likelihood, ``Σ g x - (Σ w V) a``, ``[J, K + 1]``.
        precision: its negative Hessian, ``Σ w (x xᵀ + V)``, ``[J, K + 1, K + 1]``.
        pearson, observed: over cells with several trials, Pearson's ``Σ n (y - E[P])² / (E[P] (1 - E[P]))``
            and how many cells there are.
    """

    gradient: Tensor
    precision: Tensor
    pearson: float = 0.0
    observed: int = 0


@dataclass(frozen=True)
class VariationalFit:
    """A converged fit, or the last state of one that isn't.

    Attributes:
        posterior: standardised; abilities under N(0, I).
        iterations, converged: how it ended.
        certificate: largest net step of an item in the last iteration, in standard errors.
        scale_subjects: how many subjects the scale rests on.
        cells: expectations over the cells, as the last iteration took them.
    """

    posterior: Posterior
    iterations: int
    converged: bool
    certificate: float
    scale_subjects: int
    cells: Cells


def fit_variational(
    blocks: Blocks,
    dims: int,
    prior: ItemPrior,
    *,
    common_slope: bool = False,
    most_slope: float = float("inf"),
    seed: int = 0,
    tolerance: float,
    max_iterations: int,
    progress: Callable[[str], None] | None = None,
) -> VariationalFit:
    """Fit a 2PL in ``dims`` dimensions, or a 1PL with ``common_slope``.

    Converged where an iteration, re-standardisation included, moves no item by more than ``tolerance``
    standard errors: ``max_j sqrt(δᵀ S⁻¹ δ)``. The raw gradient does not vanish, since the scale is set by the
    moments of ability and not by the items' prior.

    Slopes whose quadratic mean in some direction would exceed ``most_slope`` are held to it, at the price of
    abilities that vary more than N(0, I) there. Subjects in opposite camps, who answer by camp, need that:
    every re-standardisation draws the camps together and makes the slopes steeper, without end.
    """
    with block_map(blocks.cells, blocks.device) as each:
        posterior, use = _start(blocks, dims, seed)
        cells = Cells(blocks)
        certificate, iteration = float("inf"), 0
        while iteration < max_iterations and certificate > tolerance and not _runs_away(posterior):
            iteration += 1
            previous = posterior
            if iteration > START_STEPS:
                posterior = _abilities(cells, posterior, each, share=1.0 if iteration <= SETTLING else 0.5)
            sums = _item_sums(cells, posterior, each)
            posterior = _item_step(posterior, sums, prior, common_slope)
            posterior = _restandardise(posterior, use, previous.slope, most_slope)
            prior = prior.learn(posterior.slope, posterior.intercept, posterior.item_covariance)
            certificate = _net_step(previous, posterior)
            if blocks.has_trials:
                cells.dispersion = _dispersion(sums, posterior)
            if progress is not None:
                progress(f"iteration {iteration}: largest step {certificate:.4f} SE")
        posterior = _abilities(cells, _principal_axes(posterior), each)
    return VariationalFit(posterior, iteration, certificate <= tolerance, certificate, int(use.sum()), cells)


def _start(blocks: Blocks, dims: int, seed: int) -> tuple[Posterior, Tensor]:
    """First q, and the subjects ``[N]`` whose moments set the scale.

    Subjects without answers stay out of the moments, and so do long rows of equal answers: their place is
    prior alone, and a handful of perfect scorers would shrink everyone's scale.
    """
    score, weight, item_score, item_weight = margins(blocks)
    constant = ((score == 0) | (score == weight)) & (weight >= CONSTANT_ROW)
    use = (weight > 0) & ~constant
    if int(use.sum()) < 2:
        use = weight > 0
    intercept = STRETCH * smoothed_logit(item_score, item_weight)
    ability = standardise(smoothed_logit(score, weight)[:, None], use)
    slope = torch.ones(blocks.items, 1, dtype=torch.float64, device=blocks.device)
    if dims > 1:
        further = further_dimensions(blocks, ability[:, 0], intercept, dims - 1, use, seed)
        ability = torch.cat([ability, further], 1)
        slope = torch.cat([slope, slope.new_zeros(blocks.items, dims - 1)], 1)
    eye = torch.eye(dims + 1, dtype=torch.float64, device=blocks.device)
    ability_covariance = (START_VARIANCE * eye[:dims, :dims]).repeat(blocks.subjects, 1, 1)
    item_covariance = (START_VARIANCE * eye).repeat(blocks.items, 1, 1)
    return Posterior(ability, ability_covariance, slope, intercept, item_covariance), use


def _abilities(cells: Cells, q: Posterior, each: BlockMap, share: float = 1.0) -> Posterior:
    """q after a step of every subject's m, and this share of one of its V: one pass over the cells.

    V depends on itself through the weights w: where items are steep, whole steps would swing for ever.
    """
    blocks = cells.blocks
    items = ItemSide.of(q, blocks.dtype)

    def update(number: int) -> tuple[Tensor, Tensor]:
        block = blocks.block(number)
        rows = slice(block.start, block.stop)
        subjects = SubjectSide.of(q.ability[rows], q.ability_covariance[rows], blocks.dtype)
        g, w, _ = cells.derivatives(number, block, subjects, items)
        return _subject_step(q.ability[rows], items, g, w)

    means, covariances = zip(*each(update, range(len(blocks))), strict=True)
    covariance = torch.lerp(q.ability_covariance, torch.cat(covariances), share)
    return replace(q, ability=torch.cat(means), ability_covariance=covariance)


def _item_sums(cells: Cells, q: Posterior, each: BlockMap) -> ItemSums:
    """The sums for the items' step: one pass over the cells, added up in double precision."""
    blocks = cells.blocks
    items = ItemSide.of(q, blocks.dtype)

    def add(number: int) -> tuple[Tensor, Tensor, Tensor]:
        block = blocks.block(number)
        rows = slice(block.start, block.stop)
        subjects = SubjectSide.of(q.ability[rows], q.ability_covariance[rows], blocks.dtype)
        g, w, p = cells.derivatives(number, block, subjects, items)
        pearson = _pearson(block, p) if blocks.has_trials else g.new_zeros(2)
        return g.mT @ subjects.linear, w.mT @ subjects.quadratic, pearson

    dims = q.slope.shape[1]
    by_linear = torch.zeros_like(q.item_covariance[:, 0])
    by_quadratic = by_linear.new_zeros(blocks.items, len(items.quadratic))
    pearson = by_linear.new_zeros(2)
    for linear, quadratic, fit in each(add, range(len(blocks))):
        by_linear += linear
        by_quadratic += quadratic
        pearson += fit
    triangle = (dims + 1) * (dims + 2) // 2
    second, uncertainty = by_quadratic[:, :triangle], by_quadratic[:, triangle:]
    by_linear[:, :dims] -= (unpack_lower(uncertainty) @ q.slope[..., None])[..., 0]
    return ItemSums(by_linear, unpack_lower(second), float(pearson[0]), int(pearson[1]))


def _subject_step(mean: Tensor, items: ItemSide, g: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """A Newton step of m and the matching V for the rows of a block."""
    dims = mean.shape[1]
    triangle = dims * (dims + 1) // 2
    by_item = (w @ items.step).double()
    uncertain = unpack_lower(by_item[:, triangle : 2 * triangle])
    eye = torch.eye(dims, dtype=mean.dtype, device=mean.device)
    covariance = torch.linalg.inv(eye + unpack_lower(by_item[:, :triangle]) + uncertain)
    gradient = (g @ items.slope).double() - mean - by_item[:, 2 * triangle :]
    gradient = gradient - (uncertain @ mean[..., None])[..., 0]
    step = (covariance @ gradient[..., None])[..., 0]
    return mean + step.clamp(-MAX_ABILITY_STEP, MAX_ABILITY_STEP), covariance


def _item_step(q: Posterior, sums: ItemSums, prior: ItemPrior, common_slope: bool) -> Posterior:
    """A step of every (a, d), and of S towards the inverse of the precision.

    S moves half way, and less the larger it is: it and the weights w depend on each other, and whole steps
    would throw items with hardly any information to and fro between two states.
    """
    if common_slope:
        step, covariance = _common_slope_step(q, sums, prior)
    else:
        step = _penalised_step(q, sums, prior)
        precision = sums.precision + prior.curvature(q.slope + step[:, :-1], q.intercept + step[:, -1])
        share = 1 / (2 + q.item_covariance.diagonal(dim1=1, dim2=2).sum(1))
        covariance = torch.lerp(q.item_covariance, torch.linalg.inv(precision), share[:, None, None])
    step = step * (MAX_ITEM_STEP / step.abs().amax(1, keepdim=True).clamp_min(MAX_ITEM_STEP))
    return replace(
        q, slope=q.slope + step[:, :-1], intercept=q.intercept + step[:, -1], item_covariance=covariance
    )


def _penalised_step(q: Posterior, sums: ItemSums, prior: ItemPrior) -> Tensor:
    """The step to the maximum of the quadratic expansion of the log-likelihood plus the exact log prior.

    One Newton step where the prior is normal; else a few, halved for an item that they would not improve.
    Expanding the prior as well makes items far out in its tails swing.
    """
    start = _stacked(q)

    def value(items: Tensor) -> Tensor:
        move = items - start
        quadratic = (move * (sums.precision @ move[..., None])[..., 0]).sum(1) / 2
        return (sums.gradient * move).sum(1) - quadratic + prior.log_density(items[:, :-1], items[:, -1])

    items, best = start, value(start)
    share = torch.ones_like(best)
    for _ in range(INNER_STEPS):
        slope, intercept = items[:, :-1], items[:, -1]
        gradient = sums.gradient - (sums.precision @ (items - start)[..., None])[..., 0]
        gradient = gradient + prior.gradient(slope, intercept)
        step = torch.linalg.solve(_definite(sums.precision, prior, slope, intercept), gradient)
        trial = items + share[:, None] * step
        reached = value(trial)
        better = reached >= best
        items, best = torch.where(better[:, None], trial, items), torch.where(better, reached, best)
        share = torch.where(better, 2 * share, share / 2).clamp_max(1.0)
        if float(step.abs().max()) < INNER_TOLERANCE:
            break
    return items - start


def _definite(precision: Tensor, prior: ItemPrior, slope: Tensor, intercept: Tensor) -> Tensor:
    """Precision with the prior's exact Hessian where that is positive definite, else with its stand-in."""
    exact = precision + prior.hessian(slope, intercept)
    fails = torch.linalg.cholesky_ex(exact)[1] > 0
    return torch.where(fails[:, None, None], precision + prior.curvature(slope, intercept), exact)


def _common_slope_step(q: Posterior, sums: ItemSums, prior: ItemPrior) -> tuple[Tensor, Tensor]:
    """Newton step and S where all items share one slope: the intercepts are eliminated first.

    The slope is known far better than any intercept, so its variance is left out of S.
    """
    gradient = sums.gradient + prior.gradient(q.slope, q.intercept)
    precision = sums.precision + prior.curvature(q.slope, q.intercept)
    aa, ad, dd = precision[:, 0, 0], precision[:, 0, 1], precision[:, 1, 1]
    by_slope = (gradient[:, 0] - ad / dd * gradient[:, 1]).sum() / (aa - ad**2 / dd).sum()
    by_slope = by_slope.clamp(-MAX_ITEM_STEP, MAX_ITEM_STEP)
    by_intercept = ((gradient[:, 1] - ad * by_slope) / dd).clamp(-MAX_ITEM_STEP, MAX_ITEM_STEP)
    covariance = torch.zeros_like(precision)
    covariance[:, 1, 1] = 1 / dd
    return torch.stack([by_slope.expand_as(dd), by_intercept], 1), covariance


def _restandardise(q: Posterior, use: Tensor, target: Tensor, most_slope: float) -> Posterior:
    """Parameter expansion: the subjects in ``use`` get mean 0 and covariance I, V included.

    Several dimensions may rotate freely, and would go on turning: they are held to the ``target`` slopes
    ``[J, K]`` (orthogonal Procrustes problem, Schönemann 1966).
    """
    mean = q.ability[use]
    if len(mean) < 2:
        return q
    shift = mean.mean(0)
    spread = (mean - shift).mT @ (mean - shift) / len(mean) + q.ability_covariance[use].mean(0)
    scale = torch.linalg.cholesky(spread)
    if math.isfinite(most_slope):
        scale = scale @ _limit(q.slope @ scale, most_slope)
    left, _, right = torch.linalg.svd((q.slope @ scale).mT @ target)
    return _change_ability(q, shift, scale @ left @ right)


def _runs_away(q: Posterior) -> bool:
    """Whether slopes have left the range that re-standardisation can bring them back from."""
    return float(q.slope.square().mean(0).sum().sqrt()) > RUNAWAY


def _limit(slope: Tensor, most: float) -> Tensor:
    """The symmetric map ``[K, K]`` of slopes ``[J, K]`` that holds every direction's quadratic mean to
    ``most``."""
    values, vectors = torch.linalg.eigh(slope.mT @ slope / len(slope))
    shrink = (most / values.clamp_min(1e-12).sqrt()).clamp_max(1.0)
    limited: Tensor = (vectors * shrink) @ vectors.mT
    return limited


def _principal_axes(q: Posterior) -> Posterior:
    """Rotation to the eigenvectors of AᵀA, largest first, each column of slopes with a positive sum."""
    axes = torch.linalg.eigh(q.slope.mT @ q.slope)[1].flip(1)
    axes = axes * torch.where((q.slope @ axes).sum(0) < 0, -1.0, 1.0)
    return _change_ability(q, torch.zeros_like(q.ability[0]), axes)


def _change_ability(q: Posterior, shift: Tensor, scale: Tensor) -> Posterior:
    """q in terms of ``scale⁻¹ (theta - shift)``: every linear predictor stays as it is."""
    inverse = torch.linalg.inv(scale)
    dims = len(shift)
    change = torch.zeros(dims + 1, dims + 1, dtype=shift.dtype, device=shift.device)
    change[:dims, :dims], change[dims, :dims], change[dims, dims] = scale.mT, shift, 1.0
    return Posterior(
        ability=(q.ability - shift) @ inverse.mT,
        ability_covariance=inverse @ q.ability_covariance @ inverse.mT,
        slope=q.slope @ scale,
        intercept=q.intercept + q.slope @ shift,
        item_covariance=change @ q.item_covariance @ change.mT,
    )


def _stacked(q: Posterior) -> Tensor:
    """(a, d) of every item, ``[J, K + 1]``."""
    return torch.cat([q.slope, q.intercept[:, None]], 1)


def _net_step(before: Posterior, after: Posterior) -> float:
    """Largest move of an item in its standard errors, ``max_j sqrt(δᵀ S⁻¹ δ)``."""
    # A common slope has no variance of its own: its move is measured through the intercepts.
    free = after.item_covariance[0].diagonal() > 0
    move = (_stacked(after) - _stacked(before))[:, free, None]
    scaled = torch.linalg.solve(after.item_covariance[:, free][:, :, free], move)
    return float((move * scaled).sum((1, 2)).clamp_min(0.0).sqrt().max())


def _pearson(block: Block, p: Tensor) -> Tensor:
    """Pearson's statistic of a block's counts and the number of its cells, ``[2]``."""
    variance = (p * (1 - p)).clamp_min(PEARSON_VARIANCE)
    statistic = (block.weight * (block.score - p) ** 2 / variance).sum(dtype=torch.float64)
    return torch.stack([statistic, block.weight.count_nonzero().double()])


def _dispersion(sums: ItemSums, q: Posterior) -> float:
    """Over-dispersion of counts, Pearson's statistic over its degrees of freedom; at least 1."""
    parameters = q.ability.numel() + q.slope.numel() + q.intercept.numel()
    freedom = max(sums.observed - parameters, sums.observed / 2)
    return max(1.0, sums.pearson / freedom)
