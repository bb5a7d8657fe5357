"""Samples balanced on predicted difficulty and loadings."""

from __future__ import annotations

import torch
from torch import Tensor

from irteval.irt.parameters import ItemParameters
from irteval.select.design import Plan, RandomDesign, View
from irteval.select.local_pivotal import local_pivotal
from irteval.select.systematic import inclusion_probabilities, random_numbers


class BalancedDesign(RandomDesign):
    """Every open item with the same probability, the sample spread over what predicts its answer.

    The features of the local pivotal method (Grafström et al. 2012) are the predicted answer p of the subject
    and the loadings of the item, each standardised; the loadings share one unit of variance.

    Args:
        parameters: of the bank's N items in K dimensions.
        device: where tensors live.
    """

    def __init__(self, parameters: ItemParameters, device: torch.device) -> None:
        slope = torch.as_tensor(parameters.slope, dtype=torch.float64, device=device)
        self.loadings = _standardised(slope, 0) / parameters.dims**0.5

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        count = min(limit, self.wanted(view.asked, batch))
        size, p = self.sizes(view)
        inclusion = inclusion_probabilities(size, count)
        loadings = self.loadings.expand(len(p), -1, -1)
        features = torch.cat([_standardised(p, 1)[..., None], loadings], -1)
        numbers = random_numbers(view.uniform, 2 * p.shape[1])
        return Plan(local_pivotal(inclusion, features, numbers, count), inclusion, p)

    def sizes(self, view: View) -> tuple[Tensor, Tensor]:
        """See `Design.sizes`."""
        return torch.where(view.frame, view.weights, 0.0), view.mixed()[0]


def _standardised(values: Tensor, dim: int) -> Tensor:
    """Mean 0 and SD 1 along an axis; 0 where nothing varies."""
    centred = values - values.mean(dim, keepdim=True)
    return centred / centred.square().mean(dim, keepdim=True).sqrt().clamp_min(1e-6)
