"""Model-based score: the mixture of hypotheses, and how far inside the calibrated range it stands."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from irteval.calibrate.prediction import Prediction

SCEPTICISM = 5.0  # by so much less are these odds taken where the width of an interval rests on them
GATE = 4.0  # how steeply the odds of "like the calibrated subjects" fall towards the edge of their range


@dataclass(frozen=True)
class SourceRange:
    """Where the calibrated subjects' scores lie, and how much of their spread is ability.

    Attributes:
        low: lowest source score.
        high: 90 % quantile of the source scores.
        reliability: 1 - mean answer noise of the score / variance of the source scores.
        constant_share: share of items that every source subject passed or failed.
    """

    low: float
    high: float
    reliability: float
    constant_share: float

    @property
    def trust(self) -> float:
        """0 where the source is noise (reliability .6 or less), 1 where it is not (.8 or more)."""
        return min(max((self.reliability - 0.6) / 0.2, 0.0), 1.0)

    def beyond(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Probability that a score with this mean and variance is above, or below, the calibrated range."""
        deviation = variance.sqrt()
        above = torch.special.ndtr((mean - self.high) / deviation)
        below = torch.special.ndtr((self.low - mean) / deviation)
        return torch.maximum(above, below)


@dataclass(frozen=True)
class ModelScore:
    """Model-based score of R subjects.

    Attributes:
        mean, variance: of the full score under the mixture, ``[R]``.
        in_range: 1 where the subject is like the calibrated ones, 0 where the model extrapolates, ``[R]``.
        weight: gated probabilities of the hypotheses, ``[R, H]``.
    """

    mean: Tensor
    variance: Tensor
    in_range: Tensor
    weight: Tensor


def mixture_score(
    prediction: Prediction, source: SourceRange, weights: Tensor, answered: Tensor, y: Tensor
) -> ModelScore:
    """Mix the hypotheses by evidence, and gate the one that says "like the calibrated subjects".

    Evidence alone can't tell a subject from just beyond the range: the inside hypothesis shrinks it back and
    fits as well. So its odds are multiplied by the probability, under the others, that the score is inside
    the range, and by the trust in the source, both to the power `GATE`. Shapes as in `Prediction.score`.
    """
    mean, variance = prediction.score(weights, answered, y)
    inside = prediction.inside
    outside = torch.where(inside, -torch.inf, prediction.log_weight).softmax(-1)
    beyond = source.beyond(*_moments(outside, mean, variance))
    gate = GATE * ((1 - beyond) * source.trust).clamp_min(1e-12).log()
    weight = torch.where(inside, prediction.log_weight + gate[:, None], prediction.log_weight).softmax(-1)
    centre, spread = _moments(weight, mean, variance)
    sceptical = (prediction.log_weight - SCEPTICISM * inside).softmax(-1)
    belief = (sceptical * inside).sum(-1) * (1 - source.beyond(centre, spread)) * source.trust
    return ModelScore(centre, spread, ((belief - 0.05) / 0.25).clamp(0, 1), weight)


def _moments(weight: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a mixture, over the last axis."""
    centre = (weight * mean).sum(-1)
    spread = (weight * (variance + (mean - centre[..., None]) ** 2)).sum(-1)
    return centre, spread.clamp_min(1e-12)
