"""One interval from the model-based and the design-based score.

Inside the calibrated range the model is right and narrow; beyond it only the design can be trusted. The
combination moves from one to the other with the in-range weight w, inflates the model's variance by what
held-out subjects showed, and never claims more than the answers still open allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.special import ndtri
from torch import Tensor

from irteval.estimate.design_based import DesignScore
from irteval.estimate.mixture import ModelScore, SourceRange

INSIDE_MULTIPLIER = 2.0  # half-widths in standard deviations at a level of 95 %
OUTSIDE_MULTIPLIER = 2.1
DESIGN_MULTIPLIER = 2.05


@dataclass(frozen=True)
class Interval:
    """Scores and limits of R subjects, each ``[R]``, clipped to what the open answers allow.

    The score is the model's where that lies within the limits: their centre leans towards the design-based
    score, which makes the interval safe but the estimate noisier.
    """

    score: Tensor
    low: Tensor
    high: Tensor
    half_width: Tensor

    def where(self, condition: Tensor, other: Interval) -> Interval:
        """This interval where the condition ``[R]`` holds, the other one elsewhere."""
        return Interval(
            *(
                torch.where(condition, mine, others)
                for mine, others in (
                    (self.score, other.score),
                    (self.low, other.low),
                    (self.high, other.high),
                    (self.half_width, other.half_width),
                )
            )
        )


def combined_interval(
    model: ModelScore,
    design: DesignScore,
    source: SourceRange,
    asked: Tensor,
    possible: tuple[Tensor, Tensor],
    smallest: float,
    level: float,
) -> Interval:
    """Precision-weighted combination of both scores.

    The model's variance is inflated with the number of answers (what is left then is misfit, not chance) and
    beyond the range, where it also gets a floor for items that no calibrated subject could tell apart, and is
    never less than the model's disagreement with the design shows.

    Args:
        model, design: the two scores of R subjects.
        source: the calibrated range.
        asked: number of answers, ``[R]``.
        possible: lowest and highest full score that the open answers allow, ``[R]`` each.
        smallest: smallest half-width while items are open: half an item's weight.
        level: nominal coverage.
    """
    w = model.in_range
    b = 1 + 0.3 * (asked.clamp_min(1) / 50).log2().clamp_min(0)
    outside = torch.maximum(b, 1.4 * b.sqrt() * (1 + 0.5 * (1 - source.trust)))
    u = source.constant_share
    variance = (w * b + (1 - w) * outside) * model.variance
    variance = variance + (1 - w) * 0.13 * u**2 / (4 + 0.3 * asked * u)
    known = design.variance.isfinite()
    design_variance = torch.where(known, design.variance, 1.0)
    disagreement = ((design.mean - model.mean) ** 2 - design_variance) / 2
    variance = torch.where(known, torch.maximum(variance, disagreement), variance)
    lean = torch.where(known, (1 - w) * variance / (variance + design_variance), 0.0)
    centre = (1 - lean) * model.mean + lean * torch.where(known, design.mean, 0.0)
    spread = (
        (1 - lean) ** 2 * variance
        + lean**2 * design_variance
        + lean * (1 - lean) * (variance * design_variance).sqrt()
    )
    multiplier = w * INSIDE_MULTIPLIER + (1 - w) * OUTSIDE_MULTIPLIER
    half_width = multiplier * spread.sqrt() * _rescale(level)
    return _limits(model.mean, centre, half_width, possible, smallest)


def design_interval(
    design: DesignScore, possible: tuple[Tensor, Tensor], smallest: float, level: float
) -> Interval:
    """The design-based score alone: valid beyond the range, and for a stop on its own width."""
    spread = torch.where(design.variance.isfinite(), design.variance, 1.0).sqrt()
    half_width = DESIGN_MULTIPLIER * spread * _rescale(level)
    return _limits(design.mean, design.mean, half_width, possible, smallest)


def _rescale(level: float) -> float:
    """From the multipliers' level of 95 % to another."""
    return float(ndtri((1 + level) / 2) / ndtri(0.975))


def _limits(
    score: Tensor, centre: Tensor, half_width: Tensor, possible: tuple[Tensor, Tensor], smallest: float
) -> Interval:
    """Clip to the possible range; with open answers that range, and so the interval, has positive width."""
    half_width = half_width.clamp_min(smallest)
    lowest, highest = possible
    centre = torch.minimum(torch.maximum(centre, lowest), highest)
    low = torch.maximum(centre - half_width, lowest)
    high = torch.minimum(centre + half_width, highest)
    return Interval(torch.minimum(torch.maximum(score, low), high), low, high, half_width)
