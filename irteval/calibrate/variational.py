"""Gaussian variational Bayes over subjects and items: the default estimator, for any dimension.

``q(theta_i) = N(m_i, V_i)`` and ``q(a_j, d_j) = N((a_j, d_j), S_j)`` are improved in turn by Newton steps
on the expected log-likelihood (Opper and Archambeau 2009, The Variational Gaussian Approximation
Revisited). A cell's linear predictor is taken as normal under q,

    eta ~ N(mu, s²),  mu = a m + d,  s² = tr(V a aᵀ) + tr(S (x xᵀ + V)),  x = (m, 1), V padded with 0,

so every expectation is one-dimensional and exact; the Polya–Gamma bound instead would shrink slopes by a
fifth where subjects have few answers. With g = y - E[P] and w = E[P (1 - P)], sums over cells are matrix
products.

**Parameter expansion.** Along theta -> c theta, a -> a / c the likelihood hardly changes while posteriors
are sharp, so EM and its variational kin stall there with a wrong scale (Liu, Rubin and Wu 1998, Parameter
expansion to accelerate EM). After every iteration the subjects' posterior moments are set to 0 and I, and
the items carry the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from irteval.calibrate.blocks import Block, Blocks
from irteval.calibrate.priors import ItemPrior
from irteval.calibrate.starts import (
    STRETCH,
    further_dimensions,
    margins,
    smoothed_logit,
    standardise,
)
from irteval.calibrate.symmetric import outer_lower, pack_lower, pack_symmetric, unpack_lower
from irteval.calibrate.threads import BlockMap, block_map
from irteval.irt.logistic import expected_probability

CONSTANT_ROW = 20  # answers from which an all-right or all-wrong subject says nothing about the scale
MAX_ABILITY_STEP = 1.5
MAX_ITEM_STEP = 1.0
LEAST_SHARE = 0.05
START_VARIANCE = 0.1
PEARSON_VARIANCE = 0.01  # least variance of an answer in Pearson's statistic: a rare success must not rule it


@dataclass(frozen=True)
class Posterior:
    """The two families of q, all float64.

    Attributes:
        ability, ability_covariance: m ``[N, K]``, V ``[N, K, K]``.
        slope, intercept, item_covariance: ``[J, K]``, ``[J]``, S ``[J, K + 1, K + 1]``.
    """

    ability: Tensor
    ability_covariance: Tensor
    slope: Tensor
    intercept: Tensor
    item_covariance: Tensor


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
        dispersion: variance of counts over the binomial one, at least 1.
    """

    posterior: Posterior
    iterations: int
    converged: bool
    certificate: float
    dispersion: float


def fit_variational(
    blocks: Blocks,
    dims: int,
    prior: ItemPrior,
    *,
    common_slope: bool = False,
    seed: int = 0,
    tolerance: float,
    max_iterations: int,
    progress: Callable[[str], None] | None = None,
) -> VariationalFit:
    """Fit a 2PL in ``dims`` dimensions, or a 1PL with ``common_slope``.

    Converged where an iteration, re-standardisation included, moves no item by more than ``tolerance``
    standard errors: ``max_j sqrt(δᵀ S⁻¹ δ)``. The raw gradient does not vanish, since the scale is set by the
    moments of ability and not by the items' prior.
    """
    posterior, use = _start(blocks, dims, seed)
    pace = _Pace.start(posterior)
    dispersion, certificate, iteration = 1.0, float("inf"), 0
    with block_map(blocks.cells, blocks.device) as each:
        while iteration < max_iterations and certificate > tolerance:
            iteration += 1
            previous = posterior
            posterior, sums = _sweep(blocks, posterior, dispersion, each)
            posterior, pace = _item_step(posterior, sums, prior, pace, common_slope)
            posterior = _restandardise(posterior, use)
            prior = prior.learn(posterior.slope, posterior.intercept, posterior.item_covariance)
            certificate = _net_step(previous, posterior, pace.share)
            if blocks.has_trials:
                dispersion = _dispersion(sums, posterior)
            if progress is not None:
                progress(f"iteration {iteration}: largest step {certificate:.4f} SE")
        posterior, _ = _sweep(blocks, _principal_axes(posterior), dispersion, each)
    return VariationalFit(posterior, iteration, certificate <= tolerance, certificate, dispersion)


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


def _sweep(
    blocks: Blocks, posterior: Posterior, dispersion: float, each: BlockMap
) -> tuple[Posterior, ItemSums]:
    """One pass over the cells: every subject's step, then the items' sums at the new subjects."""
    items = _ItemSide.of(posterior, blocks.dtype)

    def update(number: int) -> tuple[Tensor, ...]:
        block = blocks.block(number)
        rows = slice(block.start, block.stop)
        mean, covariance = posterior.ability[rows], posterior.ability_covariance[rows]
        weight = block.weight / dispersion if blocks.has_trials else block.weight
        subjects = _SubjectSide.of(mean, covariance, blocks.dtype)
        mean, covariance = _subject_step(mean, items, *_derivatives(block.score, weight, subjects, items)[:2])
        subjects = _SubjectSide.of(mean, covariance, blocks.dtype)
        g, w, p = _derivatives(block.score, weight, subjects, items)
        pearson = _pearson(block, p) if blocks.has_trials else torch.zeros(2)
        return mean, covariance, g.mT @ subjects.linear, w.mT @ subjects.quadratic, pearson

    means, covariances = [], []
    dims = posterior.slope.shape[1]
    by_linear: Tensor = torch.zeros_like(posterior.item_covariance[:, 0])
    by_quadratic = by_linear.new_zeros(blocks.items, items.quadratic.shape[0])
    pearson = torch.zeros(2, dtype=torch.float64, device=blocks.device)
    for mean, covariance, linear, quadratic, fit in each(update, range(len(blocks))):
        means.append(mean)
        covariances.append(covariance)
        by_linear += linear
        by_quadratic += quadratic
        pearson = pearson + fit
    triangle = (dims + 1) * (dims + 2) // 2
    weighted_covariance = unpack_lower(by_quadratic[:, triangle:])
    by_linear[:, :dims] -= (weighted_covariance @ posterior.slope[..., None])[..., 0]
    sums = ItemSums(by_linear, unpack_lower(by_quadratic[:, :triangle]), float(pearson[0]), int(pearson[1]))
    updated = replace(posterior, ability=torch.cat(means), ability_covariance=torch.cat(covariances))
    return updated, sums


@dataclass(frozen=True)
class _ItemSide:
    """The items' factors of mu, s² and of the subjects' step, in the precision of the cells.

    ``mu = linear_subject @ linear_item``, ``s² = quadratic_subject @ quadratic_item``.
    """

    linear: Tensor  # [K + 1, J]: a, d
    quadratic: Tensor  # [(K + 1)(K + 2)/2 + K(K + 1)/2, J]: S, a aᵀ
    slope: Tensor  # [J, K]
    step: Tensor  # [J, K (K + 1) + K]: a aᵀ, S_aa, S_ad

    @classmethod
    def of(cls, q: Posterior, dtype: torch.dtype) -> _ItemSide:
        dims = q.slope.shape[1]
        outer = q.slope[:, :, None] * q.slope[:, None, :]
        linear = torch.cat([q.slope, q.intercept[:, None]], 1)
        quadratic = torch.cat([pack_symmetric(q.item_covariance), pack_symmetric(outer)], 1)
        step = torch.cat(
            [
                pack_lower(outer),
                pack_lower(q.item_covariance[:, :dims, :dims]),
                q.item_covariance[:, :dims, dims],
            ],
            1,
        )
        return cls(linear.mT.to(dtype), quadratic.mT.to(dtype), q.slope.to(dtype), step.to(dtype))


@dataclass(frozen=True)
class _SubjectSide:
    """The subjects' factors of mu and s²."""

    linear: Tensor  # [n, K + 1]: x = (m, 1)
    quadratic: Tensor  # [n, (K + 1)(K + 2)/2 + K(K + 1)/2]: x xᵀ + V, V

    @classmethod
    def of(cls, mean: Tensor, covariance: Tensor, dtype: torch.dtype) -> _SubjectSide:
        x = torch.nn.functional.pad(mean, (0, 1), value=1.0)
        second = outer_lower(x) + pack_lower(torch.nn.functional.pad(covariance, (0, 1, 0, 1)))
        return cls(x.to(dtype), torch.cat([second, pack_lower(covariance)], 1).to(dtype))


def _derivatives(
    score: Tensor, weight: Tensor, subjects: _SubjectSide, items: _ItemSide
) -> tuple[Tensor, Tensor, Tensor]:
    """g, w and E[P] of a block's cells, ``[n, J]`` each."""
    mu = subjects.linear @ items.linear
    variance = (subjects.quadratic @ items.quadratic).clamp_min_(0.0)
    p, w = expected_probability(mu, variance)
    return (score - p).mul_(weight), w.mul_(weight), p


def _subject_step(mean: Tensor, items: _ItemSide, g: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
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


@dataclass(frozen=True)
class _Pace:
    """How much of its Newton step each item takes.

    S and the weights w depend on each other, and a few items with hardly any information would swing for ever
    between two states. An item whose step turns back takes half the share, one that goes on half as much
    again.

    Attributes:
        share: in (0, 1], ``[J]``.
        step: the last step taken, ``[J, K + 1]``.
    """

    share: Tensor
    step: Tensor

    @classmethod
    def start(cls, q: Posterior) -> _Pace:
        return cls(torch.ones_like(q.intercept), torch.zeros_like(q.item_covariance[:, 0]))

    def renew(self, step: Tensor, precision: Tensor) -> _Pace:
        """The share for a proposed step, by its direction against the last in the metric of the precision."""
        along = (step * (precision @ self.step[..., None])[..., 0]).sum(1)
        share = torch.where(along < 0, self.share / 2, self.share * 1.5).clamp(LEAST_SHARE, 1.0)
        return _Pace(share, step * share[:, None])


def _item_step(
    q: Posterior, sums: ItemSums, prior: ItemPrior, pace: _Pace, common_slope: bool
) -> tuple[Posterior, _Pace]:
    """A Newton step of every (a, d), and S as the inverse of the precision."""
    gradient = sums.gradient + prior.gradient(q.slope, q.intercept)
    precision = sums.precision + prior.curvature(q.slope, q.intercept)
    if common_slope:
        step, covariance = _common_slope_step(gradient, precision)
    else:
        covariance = torch.linalg.inv(precision)
        step = (covariance @ gradient[..., None])[..., 0]
        step = step * (MAX_ITEM_STEP / step.abs().amax(1, keepdim=True).clamp_min(MAX_ITEM_STEP))
        pace = pace.renew(step, precision)
        step = pace.step
        covariance = torch.lerp(q.item_covariance, covariance, pace.share[:, None, None])
    moved = replace(
        q, slope=q.slope + step[:, :-1], intercept=q.intercept + step[:, -1], item_covariance=covariance
    )
    return moved, pace


def _common_slope_step(gradient: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
    """Step and covariance where all items share one slope: the intercepts are eliminated first.

    The slope is known far better than any intercept, so its variance is left out of S.
    """
    aa, ad, dd = precision[:, 0, 0], precision[:, 0, 1], precision[:, 1, 1]
    by_slope = (gradient[:, 0] - ad / dd * gradient[:, 1]).sum() / (aa - ad**2 / dd).sum()
    step = torch.stack([by_slope.expand_as(dd), (gradient[:, 1] - ad * by_slope) / dd], 1)
    covariance = torch.zeros_like(precision)
    covariance[:, 1, 1] = 1 / dd
    return step.clamp(-MAX_ITEM_STEP, MAX_ITEM_STEP), covariance


def _restandardise(q: Posterior, use: Tensor) -> Posterior:
    """Parameter expansion: the subjects in ``use`` get mean 0 and covariance I, V included."""
    mean = q.ability[use]
    if len(mean) < 2:
        return q
    shift = mean.mean(0)
    spread = (mean - shift).mT @ (mean - shift) / len(mean) + q.ability_covariance[use].mean(0)
    return _change_ability(q, shift, torch.linalg.cholesky(spread))


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


def _net_step(before: Posterior, after: Posterior, share: Tensor) -> float:
    """Largest whole step of an item in its standard errors, ``max_j sqrt(δᵀ S⁻¹ δ)``."""
    step = torch.cat([after.slope - before.slope, (after.intercept - before.intercept)[:, None]], 1)
    spread = torch.diagonal(after.item_covariance, dim1=1, dim2=2)
    # A common slope has no variance of its own: its step is measured through the intercepts.
    free = spread[0] > 0
    covariance = after.item_covariance[:, free][:, :, free]
    scaled = torch.linalg.solve(covariance, step[:, free, None])[..., 0]
    return float(((step[:, free] * scaled).sum(1).clamp_min(0.0).sqrt() / share).max())


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
