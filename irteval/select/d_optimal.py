"""D-optimality: shrink the posterior of a multidimensional ability."""

from __future__ import annotations

import torch
from torch import Tensor

from irteval.irt.parameters import ItemParameters
from irteval.select.design import Plan, RandomDesign, View


class DOptimalDesign(RandomDesign):
    """The items that add most to the determinant of the posterior precision of ability.

    Segall (1996, Multidimensional adaptive testing, eq. 25), ``max det(C⁻¹ + P Q a aᵀ)``; by the determinant
    lemma ``P Q aᵀ C a``, with C the posterior covariance so far and P at the posterior mode: the D-optimal
    rule of Mulder & van der Linden (2009) with the prior in. Items of one batch, and pending ones, update C
    by rank-one steps as if they had been answered.

    Args:
        parameters: of the bank's N items in K dimensions.
        device: where tensors live.
    """

    def __init__(self, parameters: ItemParameters, device: torch.device) -> None:
        self.slope = torch.as_tensor(parameters.slope, dtype=torch.float64, device=device)
        self.intercept = torch.as_tensor(parameters.intercept, dtype=torch.float64, device=device)

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        return batch or 1

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        mode, covariance = view.posterior()
        p = torch.sigmoid(mode @ self.slope.T + self.intercept)
        curvature = p * (1 - p)
        for column in view.pending.T:
            known = (column >= 0).to(curvature)
            covariance = self._answered(covariance, curvature, column.clamp_min(0), known)
        frame = view.frame.clone()
        chosen = []
        for _ in range(min(limit, self.wanted(view.asked, batch))):
            gain = curvature * ((self.slope @ covariance) * self.slope).sum(-1)
            item = gain.masked_fill(~frame, -1).argmax(-1)
            chosen.append(item)
            frame.scatter_(-1, item[:, None], False)
            covariance = self._answered(covariance, curvature, item, torch.ones_like(curvature[:, 0]))
        return Plan(torch.stack(chosen, -1))

    def _answered(self, covariance: Tensor, curvature: Tensor, items: Tensor, known: Tensor) -> Tensor:
        """C after ``items [R]``, in the rows where ``known [R]`` is 1 (Sherman & Morrison)."""
        a = self.slope[items]
        towards = (covariance @ a[..., None])[..., 0]
        information = known * curvature.gather(1, items[:, None])[:, 0]
        shrink = information / (1 + information * (towards * a).sum(-1))
        return covariance - shrink[:, None, None] * towards[..., :, None] * towards[..., None, :]
