"""Uncertainty sampling: ask where the answer is least certain."""

from __future__ import annotations

from irteval.select.design import Plan, RandomDesign, View


class PosteriorVarianceDesign(RandomDesign):
    """The items whose answers have the largest posterior predictive variance ``p (1 - p)``.

    Lewis & Gale (1994, A sequential algorithm for training text classifiers), with p mixed over the
    hypotheses about the subject. It looks at single answers, not at what they say about the others.
    """

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        return batch or 1

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        count = min(limit, self.wanted(view.asked, batch))
        p = view.mixed()[0]
        return Plan((p * (1 - p)).masked_fill(~view.frame, -1).topk(count, dim=1).indices)
