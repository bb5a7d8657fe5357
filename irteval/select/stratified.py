"""Stratified sampling over source difficulty, proportional or Neyman allocation."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from irteval.select.design import Plan, RandomDesign, View
from irteval.select.systematic import random_numbers, systematic_draw

STRATA = 10


class StratifiedDesign(RandomDesign):
    """Random items within strata of source difficulty.

    Stratum h of N_h items gets ``n_h ∝ N_h`` (proportional) or ``n_h ∝ N_h S_h`` (Neyman 1934), S_h the root
    of the mean variance of its items' answers in the source. A fractional n_h is rounded at random, up or
    down: items are laid out stratum by stratum, shuffled within each, and a systematic sample is taken along
    (Madow 1949), so that every inclusion probability is exactly n_h / N_h. Weights of the score multiply it.

    Args:
        source_mean: share of calibrated subjects who got each item, ``[N]``.
        allocation: of the sample to strata.
    """

    def __init__(
        self, source_mean: Tensor, allocation: Literal["proportional", "neyman"] = "proportional"
    ) -> None:
        items = len(source_mean)
        self.stratum = source_mean.argsort(stable=True).argsort() * STRATA // items
        self.factor = torch.ones_like(source_mean)
        if allocation == "neyman":
            count = torch.zeros(STRATA, dtype=source_mean.dtype, device=source_mean.device)
            total = count.index_add(0, self.stratum, source_mean * (1 - source_mean))
            size = count.index_add(0, self.stratum, self.factor)
            self.factor = (total / size.clamp_min(1)).sqrt()[self.stratum].clamp_min(1e-3)

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        count = min(limit, self.wanted(view.asked, batch))
        size, p = self.sizes(view)
        inclusion = view.inclusion(size, count)
        numbers = random_numbers(view.uniform, size.shape[1] + 1)
        order = view.layout(self.stratum + numbers[:, 1:])
        items = systematic_draw(inclusion, order, numbers[:, 0], count)
        return Plan(items, inclusion, p)

    def sizes(self, view: View) -> tuple[Tensor, Tensor]:
        """See `Design.sizes`."""
        return torch.where(view.frame, view.weights * self.factor, 0.0), view.mixed()[0]
