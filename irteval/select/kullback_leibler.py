"""Kullback–Leibler information: Fisher's criterion for the time when ability is hardly known."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

from irteval.calibrate.ability_grid import AbilityGrid
from irteval.select.design import FisherDesign, Plan, View

WINDOW = 3.0  # half-width of the window about the current ability, times the root of the items asked


class KullbackLeiblerDesign(FisherDesign):
    """The items that tell the current ability best from all in a window about it (Chang & Ying 1996, eq. 10).

    ``K_i = ∫ P log(P / P(θ)) + Q log(Q / Q(θ)) dθ`` over ``|θ - t| <= 3 / √n``, with P, Q = 1 - P at the
    posterior mean t and n the items asked so far. With n it tends to Fisher's information at t. The integral
    is a sum over the nodes of the ability grid, a difference of two rows of a running sum.

    Args:
        grid: holds the log probabilities of right and wrong answers at every node.
    """

    def __init__(self, grid: AbilityGrid) -> None:
        super().__init__(grid)
        self.right, self.wrong = grid.log_right.T, grid.log_wrong.T
        self.right_sum, self.wrong_sum = (pad(x.cumsum(0), (0, 0, 1, 0)) for x in (self.right, self.wrong))

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        count = min(limit, self.wanted(view.asked, batch))
        gain = self.information(view.ability(), view.asked).masked_fill(~view.frame, -1)
        return Plan(gain.topk(count, dim=1).indices)

    def information(self, ability: Tensor, asked: int) -> Tensor:
        """``K_i`` of every item in units of the node spacing, ``[R, N]``, at abilities ``[R]``."""
        last, spacing = len(self.nodes) - 1, float(self.nodes[1] - self.nodes[0])
        node = ((ability - self.nodes[0]) / spacing).round().long().clamp(0, last)
        reach = max(1, round(WINDOW / max(asked, 1) ** 0.5 / spacing))
        low, high = (node - reach).clamp_min(0), (node + reach).clamp_max(last) + 1
        right, wrong = self.right[node], self.wrong[node]
        width = (high - low)[:, None]
        right_part = width * right - (self.right_sum[high] - self.right_sum[low])
        wrong_part = width * wrong - (self.wrong_sum[high] - self.wrong_sum[low])
        information: Tensor = right.exp() * right_part + wrong.exp() * wrong_part
        return information
