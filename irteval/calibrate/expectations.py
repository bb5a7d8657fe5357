"""Expectations over the cells of a fit: the linear predictor's moments and the derivatives they give.

A cell's linear predictor ``eta = a @ theta + d`` is taken as normal under the posteriors of its subject and
item,

    mu = a m + d,  s² = tr(V a aᵀ) + tr(S (x xᵀ + V)),  x = (m, 1), V padded with 0.

Both are products of a factor of the subject and one of the item, so that a block of cells costs two matrix
products and a one-dimensional quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from irteval.calibrate.blocks import Block, Blocks
from irteval.calibrate.symmetric import outer_lower, pack_lower, pack_symmetric
from irteval.irt.logistic import NARROW, expected_probability


@dataclass(frozen=True)
class Posterior:
    """Normal posteriors of subjects and items, all float64.

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
class ItemSide:
    """The items' factors of mu, s² and of the subjects' step, in the precision of the cells.

    ``mu = linear_subject @ linear_item``, ``s² = quadratic_subject @ quadratic_item``.
    """

    linear: Tensor  # [K + 1, J]: a, d
    quadratic: Tensor  # [(K + 1)(K + 2)/2 + K(K + 1)/2, J]: S, a aᵀ
    slope: Tensor  # [J, K]
    step: Tensor  # [J, K (K + 1) + K]: a aᵀ, S_aa, S_ad

    @classmethod
    def of(cls, q: Posterior, dtype: torch.dtype) -> ItemSide:
        """Those of all items."""
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
class SubjectSide:
    """The subjects' factors of mu and s²."""

    linear: Tensor  # [n, K + 1]: x = (m, 1)
    quadratic: Tensor  # [n, (K + 1)(K + 2)/2 + K(K + 1)/2]: x xᵀ + V, V

    @classmethod
    def of(cls, mean: Tensor, covariance: Tensor, dtype: torch.dtype) -> SubjectSide:
        """Those of the subjects with these m ``[n, K]`` and V ``[n, K, K]``."""
        x = torch.nn.functional.pad(mean, (0, 1), value=1.0)
        second = outer_lower(x) + pack_lower(torch.nn.functional.pad(covariance, (0, 1, 0, 1)))
        return cls(x.to(dtype), torch.cat([second, pack_lower(covariance)], 1).to(dtype))


class Cells:
    """The cells of a fit with what is learnt about them on the way.

    Attributes:
        blocks: of responses.
        dispersion: variance of counts over the binomial one; 1 where every answer is a single trial.
        wide: for each block the items that have once had a linear predictor too uncertain for three nodes,
            ``[J]``. They keep seven: going back and forth would move the fixed point under the iterations.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.dispersion = 1.0
        self.wide = [torch.zeros(blocks.items, dtype=torch.bool, device=blocks.device)] * len(blocks)

    def derivatives(
        self, number: int, block: Block, subjects: SubjectSide, items: ItemSide
    ) -> tuple[Tensor, Tensor, Tensor]:
        """g, w and E[P] of a block's cells, ``[n, J]`` each."""
        mu = subjects.linear @ items.linear
        variance = (subjects.quadratic @ items.quadratic).clamp_min_(0.0)
        p, w = self._expected(number, mu, variance)
        g = block.score - p
        if not block.whole:
            weight = block.weight / self.dispersion if self.blocks.has_trials else block.weight
            g, w = g.mul_(weight), w.mul_(weight)
        return g, w, p

    def _expected(self, number: int, mu: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """E[P] and E[P (1 - P)], with more nodes for the items that need them."""
        self.wide[number] = self.wide[number] | (variance.amax(0) > NARROW)
        wide = self.wide[number].nonzero()[:, 0]
        if 2 * len(wide) > self.blocks.items:
            return expected_probability(mu, variance, wide=True)
        p, w = expected_probability(mu, variance, wide=False)
        if len(wide) > 0:
            p[:, wide], w[:, wide] = expected_probability(mu[:, wide], variance[:, wide], wide=True)
        return p, w
