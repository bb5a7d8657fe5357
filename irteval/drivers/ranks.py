"""Several processes answer together, under ``torchrun``: rank 0 decides, every rank runs its share.

The first rank has the session, the run folder and the files; the others serve it. Of a batch rank r of W
answers items r, r + W, r + 2 W …, and the first one puts the outcomes together: what is asked, told and
estimated is what one process would ask, tell and estimate.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

from irteval.drivers.live import Outcomes
from irteval.session import ItemReference

WAIT = 52  # weeks that a rank waits for the others, as lm-eval's own


class SharedHarness(Protocol):
    """A harness whose records of items can move to another process."""

    def recover(self, items: Sequence[ItemReference]) -> Outcomes:
        """As in `irteval.drivers.live.Harness`."""
        ...

    def answer(self, items: Sequence[ItemReference]) -> Outcomes:
        """As in `irteval.drivers.live.Harness`."""
        ...

    def stop(self) -> None:
        """As in `irteval.drivers.live.Harness`."""
        ...

    def records(self, items: Sequence[str]) -> dict[str, Any]:
        """What is kept of these items beside their outcomes."""
        ...

    def keep(self, records: dict[str, Any]) -> None:
        """Keep what another process has of its items."""
        ...


class Ranks:
    """The processes that ``torchrun`` started.

    Attributes:
        rank: number of this one.
        size: how many there are; 1 without ``torchrun``.
    """

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self._group: Any = None

    def join(self) -> None:
        """Meet the other ranks; after the language model, which may choose how they talk, is loaded."""
        from datetime import timedelta

        import torch.distributed as dist

        wait = timedelta(weeks=WAIT)
        if not dist.is_initialized():
            dist.init_process_group("gloo", timeout=wait)
        # Ids and outcomes are no tensors on a GPU.
        self._group = dist.new_group(backend="gloo", timeout=wait)

    def broadcast(self, value: Any) -> Any:
        """The first rank's value, on every rank."""
        import torch.distributed as dist

        box = [value]
        dist.broadcast_object_list(box, src=0, group=self._group)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value in their order, on the first rank; nothing on the others."""
        import torch.distributed as dist

        found = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, found, dst=0, group=self._group)
        return found or []


class RankedHarness:
    """A harness on the first rank that shares its items out; on the other ranks, call ``serve``.

    Args:
        harness: of this rank.
        ranks: that have met.
    """

    def __init__(self, harness: SharedHarness, ranks: Ranks) -> None:
        self.harness, self.ranks = harness, ranks

    def recover(self, items: Sequence[ItemReference]) -> Outcomes:
        """See `irteval.drivers.live.Harness`; the first rank keeps what all have answered."""
        return self.harness.recover(items)

    def answer(self, items: Sequence[ItemReference]) -> Outcomes:
        """Answer together; what a rank raises is raised here."""
        parts = self._round(self.ranks.broadcast(list(items)))
        for part in parts:
            if isinstance(part, BaseException):
                raise part
        for _, records in parts[1:]:
            self.harness.keep(records)
        found = {item: outcome for outcomes, _ in parts for item, outcome in outcomes.items()}
        return {reference.item: found[reference.item] for reference in items}

    def serve(self) -> None:
        """Answer this rank's share until the first rank is done."""
        while (items := self.ranks.broadcast(None)) is not None:
            self._round(items)

    def stop(self) -> None:
        """See `irteval.drivers.live.Harness`."""
        self.harness.stop()

    def finish(self) -> None:
        """Let the other ranks end."""
        self.ranks.broadcast(None)

    def _round(self, items: Sequence[ItemReference]) -> list[Any]:
        own = items[self.ranks.rank :: self.ranks.size]
        found: Any
        try:
            outcomes = dict(self.harness.answer(own)) if own else {}
            found = outcomes, self.harness.records(list(outcomes)) if self.ranks.rank else {}
        except Exception as error:  # whatever it is, the first rank is the one to say it
            found = error
        return self.ranks.gather(found)
