"""When a test has said enough: a half-width, a difference that would be found, a rank that is settled.

A stop on a *width* looks at variances and never at the answers' agreement, so the interval at the stop keeps
its coverage (Chow & Robbins 1965, On the asymptotic theory of fixed-width sequential confidence intervals).
The minimum detectable difference is a width in other words.

A stop on a *rank* looks at the score itself, again and again: an interval made for one look would be wrong
more often than it says. It is widened to one that holds at all looks together, by the normal mixture of
Robbins (1970, Statistical methods related to the law of the iterated logarithm, section 2), which holds for
an asymptotically normal estimate too (Waudby-Smith et al. 2024, Time-uniform central limit theory and
asymptotic confidence sequences, theorem 2.2). With information v = 1 / SE², in units of that at the start,

    half-width = SE √((1 + 1/v) log((1 + v) / α²)),

about 1.6 times that of a single look. Of several rivals each gets an equal share of α (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from scipy.special import ndtri
from torch import Tensor

from irteval.errors import InputError
from irteval.estimate.interval import Interval

Reason: TypeAlias = Literal["target", "difference", "rank"]

POWER = 0.8  # chance of finding the minimum detectable difference
START_ERROR = 0.1  # standard error at which the widened interval begins: 25 answers, half of them right


@dataclass(frozen=True)
class Rival:
    """A subject whose full score is known, up to an interval.

    Attributes:
        name: its id.
        low, high: the interval, at the level of the test; equal where the score is exact.
    """

    name: str
    low: float
    high: float

    @property
    def score(self) -> float:
        """The middle of the interval."""
        return (self.low + self.high) / 2

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Goal:
    """What a test is to reach.

    Attributes:
        level: of the interval.
        target: its half-width.
        difference: smallest difference of two full scores that would be found, at that level with a power
            of 80 %: from the rivals, or where there are none, from another subject tested as closely.
        rivals: subjects to be told apart from.
        rank: whether to stop once the subject is known to be above or below each rival.

    Raises:
        InputError: a rival's own interval is too wide for the difference.
    """

    level: float
    target: float | None = None
    difference: float | None = None
    rivals: tuple[Rival, ...] = ()
    rank: bool = False

    def __post_init__(self) -> None:
        if self.difference is not None:
            self._detecting(self.difference)

    @property
    def width(self) -> float:
        """The half-width that is small enough; 0 where the goal is no width."""
        return max(self.target or 0.0, 0.0 if self.difference is None else self._detecting(self.difference))

    def _detecting(self, difference: float) -> float:
        """The half-width at which ``(z_level + z_power) SE`` of a difference is ``difference``."""
        z = float(ndtri((1 + self.level) / 2))
        both = difference * z / (z + float(ndtri(POWER)))
        if not self.rivals:
            return both / 2**0.5
        widest = max(self.rivals, key=lambda rival: rival.half_width)
        if widest.half_width >= both:
            raise InputError(
                f"{difference:g} can't be found: the score of '{widest.name}' is only known to "
                f"± {widest.half_width:.4f}, wanted less than ± {both:.4f}",
                field="difference",
            )
        return float((both**2 - widest.half_width**2) ** 0.5)

    def reached(self, half_width: float) -> Reason:
        """Which of the widths a half-width satisfies, at a stop on one."""
        return "target" if self.target is not None and half_width <= self.target else "difference"

    def settled(self, interval: Interval, subjects: Sequence[str]) -> Tensor:
        """Whether each of R subjects is known to be above or below every rival but itself, ``[R]``."""
        factor = self.widening(interval.half_width)
        centre = (interval.low + interval.high) / 2
        apart = torch.ones_like(centre, dtype=torch.bool)
        compared = torch.zeros_like(apart)
        for rival in self.rivals:
            other = torch.tensor([name != rival.name for name in subjects], device=centre.device)
            both = factor * (interval.half_width**2 + rival.half_width**2).sqrt()
            apart &= ((centre - rival.score).abs() > both) | ~other
            compared |= other
        return apart & compared

    def widening(self, half_width: Tensor) -> Tensor:
        """By how much an interval must be wider to hold at all looks and for all rivals, ``[R]``."""
        z = float(ndtri((1 + self.level) / 2))
        alpha = (1 - self.level) / max(len(self.rivals), 1)
        v = (START_ERROR * z / half_width.clamp_min(1e-9)) ** 2
        return ((1 + 1 / v) * ((1 + v) / alpha**2).log()).sqrt() / z


def widened(interval: Interval, factor: Tensor, possible: tuple[Tensor, Tensor]) -> Interval:
    """An interval that is ``factor`` times as wide, clipped to what the open answers allow."""
    centre, half_width = (interval.low + interval.high) / 2, factor * interval.half_width
    low = torch.maximum(centre - half_width, possible[0])
    high = torch.minimum(centre + half_width, possible[1])
    wide = Interval(interval.score, low, high, half_width)
    return wide.where(factor > 1, interval)
