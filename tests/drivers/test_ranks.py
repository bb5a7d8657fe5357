"""Ranks that share a harness out: each item once, all outcomes on the first one, a fault on any is said."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import Any

import pytest

from irteval.drivers.ranks import RankedHarness, Ranks
from irteval.session import ItemReference, Response

ITEMS = [ItemReference(f"i{k}", "b", 0, None) for k in range(7)]


class ThreadRanks(Ranks):
    """Ranks that are threads of one process; queues stand in for the network."""

    def __init__(self, rank: int, down: list[Queue[Any]], up: list[Queue[Any]]) -> None:
        self.rank, self.size, self.down, self.up = rank, len(down), down, up

    def broadcast(self, value: Any) -> Any:
        if self.rank:
            return self.down[self.rank].get(timeout=10)
        for queue in self.down[1:]:
            queue.put(value)
        return value

    def gather(self, value: Any) -> list[Any]:
        if self.rank:
            self.up[self.rank].put(value)
            return []
        return [value] + [queue.get(timeout=10) for queue in self.up[1:]]


class Recorder:
    def __init__(self, fails: str = "") -> None:
        self.asked: list[str] = []
        self.kept: dict[str, Any] = {}
        self.fails = fails

    def recover(self, items: Sequence[ItemReference]) -> dict[str, Response]:
        return {}

    def answer(self, items: Sequence[ItemReference]) -> dict[str, Response]:
        self.asked += [reference.item for reference in items]
        if self.fails in self.asked:
            raise RuntimeError("as told")
        return {reference.item: Response(1.0) for reference in items}

    def records(self, items: Sequence[str]) -> dict[str, Any]:
        return dict.fromkeys(items, "row")

    def keep(self, records: dict[str, Any]) -> None:
        self.kept |= records

    def stop(self) -> None:
        pass


def together(fails: str, batches: list[list[ItemReference]]) -> tuple[list[Recorder], list[Any]]:
    """Three ranks; what rank 0 gets for each batch."""
    down, up = ([Queue() for _ in range(3)] for _ in range(2))
    recorders = [Recorder(fails) for _ in range(3)]
    harnesses = [RankedHarness(recorders[r], ThreadRanks(r, down, up)) for r in range(3)]
    with ThreadPoolExecutor(3) as pool:
        served = [pool.submit(harness.serve) for harness in harnesses[1:]]
        try:
            found = [harnesses[0].answer(batch) for batch in batches]
        finally:
            harnesses[0].finish()
            for future in served:
                future.result(timeout=10)
    return recorders, found


def test_each_item_is_answered_once_and_the_first_rank_has_it_all() -> None:
    recorders, found = together("", [ITEMS[:5], ITEMS[5:]])
    assert [list(outcomes) for outcomes in found] == [[f"i{k}" for k in range(5)], ["i5", "i6"]]
    assert [recorder.asked for recorder in recorders] == [["i0", "i3", "i5"], ["i1", "i4", "i6"], ["i2"]]
    assert set(recorders[0].kept) == {"i1", "i4", "i6", "i2"}


@pytest.mark.parametrize("item", ["i0", "i1", "i2"])
def test_what_any_rank_raises_the_first_one_raises_and_all_end(item: str) -> None:
    with pytest.raises(RuntimeError, match="as told"):
        together(item, [ITEMS])
