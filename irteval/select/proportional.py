"""Sampling with probability proportional to size from the first block on."""

from __future__ import annotations

from irteval.select.design import START, Plan, ScoreDesign, View, block_size, draw


class ProportionalDesign(ScoreDesign):
    """The sampled part of `ScoreDesign` alone: no item is chosen, every one is drawn.

    Systematic sampling (Madow 1949) with inclusion probabilities proportional to the standard deviation of
    the predicted answer, mixed with a uniform share; ten items spread over source difficulty come first.
    """

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        return START - asked if asked < START else batch or block_size(asked)

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        return draw(view, *self.sizes(view), min(limit, self.wanted(view.asked, batch)))
