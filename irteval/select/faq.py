"""Factorized active querying: variance reduction and active learning in one sampling distribution."""

from __future__ import annotations

import torch
from torch import Tensor

from irteval.select.design import START, Plan, RandomDesign, View, block_size, draw, normalised
from irteval.select.score_variance import expected_reduction

LEARNING = 100  # items asked until the active-learning share has run out
TEMPERING = 25  # items asked until the scores count in full
UNIFORM_SHARE = 0.2


class FaqDesign(RandomDesign):
    """Items drawn with the hybrid probabilities of Wu, Nair & Candès (2026), Efficiently evaluating LLM
    performance with statistical guarantees.

    ``q ∝ (1 - tau) [((1 - alpha) h_o + alpha h_a)^beta, normalised] + tau / N``. The first score,
    ``h_o ∝ √(p (1 - p))``, is the optimal allocation for a known p; the second, ``h_a``, the expected
    reduction of the score's posterior variance by the answer. alpha falls from 1 to 0, beta rises from 0 to
    1 with the number of items asked. The paper draws one item at a time, with replacement and within a fixed
    budget; here blocks are drawn without replacement along p (Madow 1949), the two schedules run over fixed
    numbers of items, and the response models of the bank stand in for its factor model.
    """

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        return START - asked if asked < START else batch or block_size(asked)

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        return draw(view, *self.sizes(view), min(limit, self.wanted(view.asked, batch)))

    def sizes(self, view: View) -> tuple[Tensor, Tensor]:
        """See `Design.sizes`."""
        p = view.mixed()[0]
        uniform = torch.where(view.frame, view.weights, 0.0)
        alpha = max(0.0, 1 - view.asked / LEARNING)
        beta = min(1.0, view.asked / TEMPERING)
        spread = normalised((p * (1 - p)).sqrt() * uniform)
        learning = expected_reduction(view.prediction(), view.weights, view.rest)
        learning = normalised(torch.where(view.frame, learning, 0.0).clamp_min(0) + 1e-12 * uniform)
        score = ((1 - alpha) * spread + alpha * learning) ** beta
        score = normalised(torch.where(view.frame, score, 0.0))
        return (1 - UNIFORM_SHARE) * score + UNIFORM_SHARE * normalised(uniform), p
