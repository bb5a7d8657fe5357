"""Designs: who is asked what next, and with which inclusion probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from irteval.calibrate.ability_grid import AbilityGrid
from irteval.calibrate.prediction import Prediction
from irteval.select.content import Content
from irteval.select.score_variance import score_variance_batch
from irteval.select.systematic import inclusion_probabilities, systematic_draw

START = 10  # items spread over source difficulty before anything is known
SPREAD = 25  # from here on items are drawn by probability
UNIFORM_SHARE = 0.15  # of the inclusion probability, where the model is trusted
UNIFORM_SHARE_OUTSIDE = 0.5


@dataclass(frozen=True)
class View:
    """What a design may know about R subjects that have been asked equally many items.

    Attributes:
        asked: items asked so far, answered or not.
        frame: whether an item may be asked, ``[R, N]``.
        rest: 1 for an item without an answer, ``[R, N]``.
        pending: numbers of items asked and not answered yet, ``[R, m]``, −1 for none.
        weights: weight of each item in the score, ``[N]``.
        source_mean: share of calibrated subjects who got the item, ``[N]``.
        ability: posterior mean of theta, one dimension, ``[R]``; computed when called.
        posterior: mode ``[R, K]`` and covariance ``[R, K, K]`` of theta under the bank's primary parameters;
            computed when called.
        prediction: predicted answers; computed when called.
        mixed: predictions mixed over hypotheses ``[R, N]`` and in-range weight ``[R]``; computed when called.
        uniform: one random number a subject, ``[R]``.
        cost: what asking each item costs, in units of the mean, ``[N]``; ones where it does not matter.
        content: bounds on the share of each group of items; None where there are none.
    """

    asked: int
    frame: Tensor
    rest: Tensor
    pending: Tensor
    weights: Tensor
    source_mean: Tensor
    ability: Callable[[], Tensor]
    posterior: Callable[[], tuple[Tensor, Tensor]]
    prediction: Callable[[], Prediction]
    mixed: Callable[[], tuple[Tensor, Tensor]]
    uniform: Tensor
    cost: Tensor
    content: Content | None = None

    def inclusion(self, size: Tensor, count: int) -> Tensor:
        """Probabilities proportional to size ``[R, N]`` that sum to ``count``, within bounds."""
        if self.content is None:
            return inclusion_probabilities(size, count)
        return self.content.inclusion(size, count)

    def layout(self, key: Tensor) -> Tensor:
        """The order of a systematic sample: by ``key [R, N]``, within each group where there are bounds."""
        return key if self.content is None else self.content.layout(key)


@dataclass(frozen=True)
class Plan:
    """Items to ask, ``[R, k]``, in the order of asking.

    ``inclusion`` and ``p`` ``[R, N]`` are the inclusion probabilities and frozen predictions of every item
    where the items were drawn by probability, None where they were chosen.
    """

    items: Tensor
    inclusion: Tensor | None = None
    p: Tensor | None = None


class Design(Protocol):
    """Plans the next items of subjects that have been asked equally many."""

    def wanted(self, asked: int, batch: int | None) -> int:
        """Items it asks next after so many; ``batch`` is how many the caller wants between two looks."""
        ...

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """The items it wants, at most ``limit`` (at least 1) of them."""
        ...

    def sizes(self, view: View) -> tuple[Tensor, Tensor]:
        """What inclusion probabilities are proportional to, and the predictions, ``[R, N]`` each."""
        ...


class ScoreDesign:
    """The default: spread, then sharpen, then sample.

    The first 10 items are a systematic sample over source difficulty. Up to 25, each batch is chosen to
    reduce the variance of the score. From then on blocks are drawn with known probabilities, proportional to
    the standard deviation of the predicted answer (the optimum of Neyman allocation) mixed with a uniform
    share: the part of the answers that stays valid when the model does not.

    Where items differ in cost c, batches are chosen by the reduction a unit of cost, and probabilities are
    divided by c. A unit of cost then buys the most information on ability, and the design-based part pays no
    more for its variance than with costs ignored: with sizes σ/c that is Σ σ · Σ σc, as with sizes σ. Sizes
    σ/√c are its optimum (Cochran 1977, Sampling Techniques, section 5.5), but reach a target later, for the
    answers serve both parts.
    """

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        if asked < START:
            return START - asked
        return min(SPREAD - asked, batch or 1) if asked < SPREAD else batch or block_size(asked)

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        count = min(limit, self.wanted(view.asked, batch))
        if not START <= view.asked < SPREAD:
            return draw(view, *self.sizes(view), count)
        return Plan(
            score_variance_batch(
                view.prediction(),
                view.weights,
                view.frame,
                view.rest,
                view.pending,
                count,
                view.cost,
                view.content,
            )
        )

    def sizes(self, view: View) -> tuple[Tensor, Tensor]:
        """See `Design.sizes`."""
        uniform = torch.where(view.frame, view.weights / view.cost, 0.0)
        if view.asked < START:
            return uniform, view.source_mean.expand_as(view.rest)
        p, in_range = view.mixed()
        deviation = (p * (1 - p)).sqrt() * uniform
        share = torch.where(in_range >= 0.5, UNIFORM_SHARE, UNIFORM_SHARE_OUTSIDE)[:, None]
        return (1 - share) * normalised(deviation) + share * normalised(uniform), p


class RandomDesign:
    """The control: every open item with the same probability."""

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        return batch or block_size(asked)

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        return draw(view, *self.sizes(view), min(limit, self.wanted(view.asked, batch)))

    def sizes(self, view: View) -> tuple[Tensor, Tensor]:
        """See `Design.sizes`."""
        return view.frame.double(), view.mixed()[0]


class FisherDesign(RandomDesign):
    """The classical criterion: the items with most Fisher information at the current ability (Lord 1980, ch.
    10).

    Args:
        grid: ranks the items by falling information at every node.
    """

    def __init__(self, grid: AbilityGrid) -> None:
        self.ranking = grid.ranking
        self.nodes = grid.nodes

    def wanted(self, asked: int, batch: int | None) -> int:
        """See `Design.wanted`."""
        return batch or 1

    def plan(self, view: View, limit: int, batch: int | None) -> Plan:
        """See `Design.plan`."""
        count = min(limit, self.wanted(view.asked, batch))
        node = ((view.ability() - self.nodes[0]) / (self.nodes[1] - self.nodes[0])).round().long()
        ranked = self.ranking[node.clamp(0, len(self.nodes) - 1)]
        # Among the first asked + count of a ranking, count are open, unless some can't be asked at all.
        reach = min(view.asked + count, ranked.shape[1])
        is_open = view.frame.gather(1, ranked[:, :reach])
        if bool((is_open.sum(1) < count).any()):
            is_open = view.frame.gather(1, ranked)
        first = is_open.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :count]
        return Plan(ranked.gather(1, first))


def draw(view: View, size: Tensor, p: Tensor, count: int) -> Plan:
    """A systematic sample of ``count`` items with probabilities proportional to size, spread over p."""
    inclusion = view.inclusion(size, count)
    return Plan(systematic_draw(inclusion, view.layout(p), view.uniform, count), inclusion, p)


def normalised(size: Tensor) -> Tensor:
    """Shares that sum to 1 in every row."""
    return size / size.sum(-1, keepdim=True)


def block_size(asked: int) -> int:
    """Items between two looks: blocks end at 25, 37, 50, 75, … 300, 350, … 500, 600, … 1,000, 1,200, …"""
    if asked < SPREAD:
        return SPREAD - asked
    if asked < 50:
        return (37 if asked < 37 else 50) - asked
    for end, width in ((300, 25), (500, 50), (1000, 100)):
        if asked < end:
            return width - asked % width
    return 200 - asked % 200
