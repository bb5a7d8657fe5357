"""Content constraints: at least and at most a share of each group of items.

After n items a batch of k may, and must, take of group g between ``⌊low_g (n + k)⌋ - n_g`` and
``⌈high_g (n + k)⌉ - n_g`` items, n_g being those asked so far: flexible content balancing (Cheng, Chang & Yi
2007, Two-phase item selection procedure for flexible content balancing in CAT), by shares in place of counts,
because a session that stops on its own has no length that is known ahead. So the shares hold after every
batch, to an item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import Tensor

from irteval.errors import InputError
from irteval.select.systematic import inclusion_probabilities

HALVINGS = 60  # of the interval in which the common factor of the groups lies


@dataclass(frozen=True)
class ContentBounds:
    """Least and greatest share of each of G groups.

    Attributes:
        group: number of each item's group, ``[N]``.
        low, high: shares of the items asked, ``[G]``.
    """

    group: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(
        cls, benchmarks: Sequence[str], shares: Mapping[str, Sequence[float]], device: torch.device
    ) -> ContentBounds:
        """Bounds on benchmarks.

        Args:
            benchmarks: of each item.
            shares: name to least and greatest share of the items asked. A name with ``*`` holds for each
                benchmark that it matches; a later line goes before an earlier one.
            device: where tensors live.

        Raises:
            InputError: a name that matches nothing, a share outside [0, 1], least shares that sum to more
                than 1 or greatest ones to less.
        """
        names, group = np.unique(np.asarray(benchmarks, dtype=str), return_inverse=True)
        low, high = np.zeros(len(names)), np.ones(len(names))
        for name, (least, most) in shares.items():
            found = [fnmatchcase(known, name) for known in names]
            if not any(found):
                known = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
                raise InputError(f"the bank has no benchmark '{name}', wanted one of {known}", field="share")
            if not 0 <= least <= most <= 1:
                wanted = "wanted 0 <= least <= most <= 1"
                raise InputError(f"{least:g}:{most:g} of '{name}', {wanted}", field="share")
            low[found], high[found] = least, most
        for total, limit, what in ((low.sum(), 1, "at most"), (-high.sum(), -1, "at least")):
            if total > limit + 1e-9:
                side = "least" if limit > 0 else "greatest"
                raise InputError(f"the {side} shares sum to {abs(total):g}, wanted {what} 1", field="share")
        return cls(
            torch.as_tensor(group, dtype=torch.long, device=device),
            torch.as_tensor(low, device=device),
            torch.as_tensor(high, device=device),
        )

    def after(self, asked: Tensor) -> Content:
        """The bounds for subjects who were asked these items, ``[R, N]``."""
        count = torch.zeros(len(asked), len(self.low), dtype=torch.float64, device=asked.device)
        return Content(self, count.index_add_(1, self.group, asked.double()))


@dataclass(frozen=True)
class Content:
    """What a batch may take of each of G groups, for R subjects.

    Where lower bounds ask for more than a batch has, those furthest behind come first; where groups that may
    still be asked have too few open items, the others may exceed their share.

    Attributes:
        bounds: on the shares of G groups.
        asked: items asked of each group so far, ``[R, G]``.
    """

    bounds: ContentBounds
    asked: Tensor

    def limits(self, frame: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Fewest and most items of each group in a batch of ``count``, ``[R, G]``, whole numbers.

        Args:
            frame: whether an item may be asked, ``[R, N]``.
            count: items of the batch, at most those in any row of the frame.
        """
        open_items = self.by_group(frame.double())
        after = self.asked.sum(1, keepdim=True) + count
        # A share such as .29 of 100 must not round down to 28.
        low = (self.bounds.low * after + 1e-9).floor() - self.asked
        high = (self.bounds.high * after - 1e-9).ceil() - self.asked
        low = torch.minimum(low.clamp_min(0), open_items)
        high = torch.minimum(torch.maximum(high, low), open_items)
        return _first(low, self.bounds.low * after - self.asked, count), _widened(high, open_items, count)

    def by_group(self, values: Tensor) -> Tensor:
        """Sums of values ``[R, N]`` over each group, ``[R, G]``."""
        total = values.new_zeros(len(values), len(self.bounds.low))
        return total.index_add_(1, self.bounds.group, values)

    def inclusion(self, size: Tensor, count: int) -> Tensor:
        """Inclusion probabilities proportional to size within each group, whose sums keep to the bounds.

        Groups get what they would without bounds, times a common factor, held to the bounds.

        Args:
            size: positive for items that may be drawn, 0 for others, ``[R, N]``.
            count: items to draw, at most the number of positive sizes in every row.
        """
        free = inclusion_probabilities(size, count)
        low, high = self.limits(size > 0, count)
        total = _held(self.by_group(free), low, high, count)
        inclusion = torch.zeros_like(free)
        for g in range(len(self.bounds.low)):
            own = self.bounds.group == g
            inclusion[:, own] = inclusion_probabilities(size[:, own], total[:, g, None])
        return inclusion

    def layout(self, key: Tensor) -> Tensor:
        """A key that sorts by group, and within one by ``key [R, N]``, up and down by turns.

        A systematic sample along it takes of each group its sum of probabilities, rounded up or down.
        """
        rank = key.argsort(dim=-1, stable=True).argsort(dim=-1).to(key) / (2 * key.shape[-1])
        group = self.bounds.group
        return group + torch.where(group % 2 == 0, rank, 0.5 - rank)


class Quota:
    """What a batch that is chosen item by item may still take.

    Args:
        content: the constraints.
        frame: whether an item may be asked, ``[R, N]``.
        count: items of the batch.
    """

    def __init__(self, content: Content, frame: Tensor, count: int) -> None:
        self.group, self.left = content.bounds.group, count
        self.low, self.high = content.limits(frame, count)

    def allowed(self, frame: Tensor) -> Tensor:
        """The part of the frame that the next item may come from."""
        owed = self.low.sum(1, keepdim=True) >= self.left
        return frame & (torch.where(owed, self.low, self.high) > 0)[:, self.group]

    def take(self, items: Tensor) -> None:
        """Count one item a row, ``[R]``."""
        groups = self.group[items][:, None]
        one = torch.ones_like(groups, dtype=self.low.dtype)
        self.low = self.low.scatter_add(1, groups, -one).clamp_min(0)
        self.high = self.high.scatter_add(1, groups, -one)
        self.left -= 1


def _first(low: Tensor, behind: Tensor, count: int) -> Tensor:
    """Lower bounds that sum to ``count`` at most: those furthest behind first."""
    order = behind.masked_fill(low < 1, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    wanted = low.gather(1, order)
    before = wanted.cumsum(1) - wanted
    granted = torch.minimum(wanted, (count - before).clamp_min(0))
    return torch.zeros_like(low).scatter(1, order, granted)


def _widened(high: Tensor, open_items: Tensor, count: int) -> Tensor:
    """Upper bounds that sum to ``count`` at least: the groups with most open items give way first."""
    room = open_items - high
    lacking = (count - high.sum(1, keepdim=True)).clamp_min(0)
    order = room.argsort(dim=-1, descending=True, stable=True)
    offered = room.gather(1, order)
    before = offered.cumsum(1) - offered
    given = torch.minimum(offered, (lacking - before).clamp_min(0))
    return high + torch.zeros_like(high).scatter(1, order, given)


def _held(total: Tensor, low: Tensor, high: Tensor, count: int) -> Tensor:
    """``min(max(f total, low), high)`` with the factor f at which each row sums to ``count``."""
    total = total.clamp_min(1e-9)
    least = torch.zeros_like(total[:, :1])
    most = (high / total).amax(1, keepdim=True)
    for _ in range(HALVINGS):
        factor = (least + most) / 2
        over = (factor * total).clamp(low, high).sum(1, keepdim=True) > count
        least, most = torch.where(over, least, factor), torch.where(over, factor, most)
    held = ((least + most) / 2 * total).clamp(low, high)
    # What the halvings leave goes where there is room.
    error = count - held.sum(1, keepdim=True)
    room = torch.where(error > 0, high - held, held - low)
    return held + error * room / room.sum(1, keepdim=True).clamp_min(1e-12)
