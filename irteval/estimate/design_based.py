"""Design-based score: unbiased whatever the model says, because every inclusion probability is known.

A block is what is drawn between two looks, with predictions p frozen before the draw. For block b

    D_b = Σ_known w y + Σ_rest w p + Σ_b w (y - p) / incl

is unbiased for the full score Σ w y given everything before it: a difference estimator (Särndal, Swensson &
Wretman 1992, Model Assisted Survey Sampling, section 6.3) with machine predictions (Zrnic & Candès 2024,
Active statistical inference). Blocks are pooled with weights 1 / vm_b that are fixed before the block is
drawn, so the pooled D is a martingale and may be stopped on its own variance (Chow & Robbins 1965).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MIN_CURVATURE = 0.01  # of p (1 - p): a prediction is never trusted to be certain
PRIOR_DRAWS = 16  # the over-dispersion starts at 1 with the weight of that many draws


@dataclass(frozen=True)
class DesignScore:
    """Design-based score of R subjects.

    Attributes:
        mean: pooled D, ``[R]``; 0 where there is no complete block.
        variance: of D, over-dispersion included, ``[R]``; infinite where there is no complete block.
        draws: answered items drawn by probability, ``[R]``.
    """

    mean: Tensor
    variance: Tensor
    draws: Tensor


def planned_variance(weights: Tensor, p: Tensor, inclusion: Tensor, frame: Tensor) -> Tensor:
    """vm_b = ``Σ_frame w² p (1 - p) (1 / incl - 1)``, known before the block is drawn, ``[R]``.

    Args:
        weights: weight of each item in the score, ``[N]``.
        p: predictions, ``[R, N]``.
        inclusion: inclusion probabilities, ``[R, N]``.
        frame: whether an item could be drawn, ``[R, N]``.
    """
    odds = torch.where(frame, 1 / inclusion.clamp_min(1e-12) - 1, 0.0)
    return (weights**2 * (p * (1 - p)).clamp_min(MIN_CURVATURE) * odds).sum(-1)


def pooled_design_score(
    weights: Tensor,
    y: Tensor,
    p: Tensor,
    inclusion: Tensor,
    step: Tensor,
    answered: Tensor,
    pending: Tensor,
    base: Tensor,
    planned: Tensor,
) -> DesignScore:
    """Pool the complete blocks.

    A block with a pending answer waits. An item whose answer was lost stands for a random one of its block:
    as if every item had been drawn with its inclusion probability times answered / drawn. Towards later
    blocks it counts as predicted.

    Args:
        weights: weight in the score of every item asked, in the order of asking, ``[R, M]``.
        y, p, inclusion: its answer, its prediction when it was asked, its inclusion probability (NaN where it
            was not drawn by probability), ``[R, M]``.
        step: the step in which it was asked, −1 for padding, ``[R, M]``.
        answered, pending: state of each, ``[R, M]``; neither for a lost one or padding.
        base: ``Σ_rest w p`` of each step, ``[R, B]``; NaN where the step drew nothing by probability.
        planned: vm_b, ``[R, B]``.
    """
    blocks = base.shape[1]
    drawn = inclusion.isfinite() & (step >= 0)
    used = drawn & answered
    known = torch.where(answered, y, p) * weights * (step >= 0)

    def by_block(values: Tensor) -> Tensor:
        total = torch.zeros_like(base)
        return total.scatter_add_(1, step.clamp(0, blocks - 1), torch.where(step >= 0, values, 0.0))

    asked_before = by_block(known).cumsum(1) - by_block(known)
    count, complete = by_block(used.to(base)), by_block((drawn & ~pending).to(base))
    waiting = by_block((drawn & pending).to(base)) > 0
    scale = complete / count.clamp_min(1)
    chance = inclusion / scale.gather(1, step.clamp(0, blocks - 1))  # of being drawn and answered
    residual = torch.where(used, weights * (y - p) / chance, 0.0)
    squared = torch.where(used, residual**2 * (1 - chance), 0.0)
    curvature = torch.where(used, weights**2 * (p * (1 - p)).clamp_min(MIN_CURVATURE) / inclusion**2, 0.0)
    estimate = asked_before + base.nan_to_num() + by_block(residual)
    valid = base.isfinite() & (count > 0) & ~waiting
    variance = planned + scale * (scale - 1) * by_block(curvature)
    precision = torch.where(valid, 1 / variance.clamp_min(1e-12), 0.0)
    total = precision.sum(1)
    draws = torch.where(valid, count, 0.0).sum(1)
    safe = total.clamp_min(1e-30)
    ratio = (by_block(squared) * precision**2).sum(1) / safe
    dispersion = ((draws * ratio + PRIOR_DRAWS) / (draws + PRIOR_DRAWS)).clamp_min(1)
    return DesignScore(
        mean=(estimate * precision).sum(1) / safe,
        variance=torch.where(total > 0, dispersion / safe, torch.inf),
        draws=draws,
    )
