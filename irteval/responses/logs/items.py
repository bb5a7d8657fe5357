"""Which item a record is of: keyed by its content where the log has it, else by the log's own id.

Positions are no identity: the same document stands at another place in a subset, a shuffled run or a new
version of a data set. A key is ``benchmark/`` and 16 hexadecimal digits of the content's hash, or the native
id. Documents of one run that share their content stay different items: the k-th of them has ``#k`` at the end
of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from irteval.responses.logs.collect import Collected

# An odd number whose multiples differ in all bits (2⁶⁴ divided by the golden ratio).
_MIX = 0x9E3779B97F4A7C15
_ROWS = 65_536


@dataclass(frozen=True)
class Items:
    """J items.

    Attributes:
        benchmarks: names; ``benchmark`` [J] says which one an item is of.
        content: [J] hash of the content; 0 of an item that is known by its native id only.
        natives: ids as the logs have them, a chunked arrow array of text, one a record; ``first`` [J] is the
            record in which each item was met first.
        copy: [J] how many documents before it share its content.
        plain: [J] whether the native id is the key as it stands: one of a table that no other benchmark uses.
    """

    benchmarks: tuple[str, ...]
    benchmark: NDArray[np.int32]
    content: NDArray[np.uint64]
    natives: Any
    first: NDArray[np.int32]
    copy: NDArray[np.int32]
    plain: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    def native_id(self, j: int) -> str:
        """The id of one item in the log that was read first."""
        return str(self.natives[int(self.first[j])])

    def key(self, j: int) -> str:
        """The id of one item."""
        name = f"{int(self.content[j]):016x}" if self.content[j] else self.native_id(j)
        again = f"#{self.copy[j] + 1}" if self.copy[j] else ""
        benchmark = self.benchmarks[self.benchmark[j]]
        return f"{benchmark}/{name}{again}" if benchmark and not self.plain[j] else f"{name}{again}"


def identify(
    records: Collected, benchmarks: Sequence[str], benchmark_of_run: NDArray[np.int32]
) -> tuple[Items, NDArray[np.int32], list[str]]:
    """The items of all records, which one each record is of [R], and what a person should be told."""
    natives = records.native
    content = records.columns.get("content", np.zeros(len(records), dtype=np.uint64))
    known = content != 0
    benchmark = benchmark_of_run[records.run]
    copy = _copies(records, natives, content)
    own = content if known.all() else np.where(known, content, _codes(natives).astype(np.uint64))
    item, first = _ranked([own, *(column for column in (known, benchmark, copy) if _varies(column))])
    plain = _plain(records, first, own[first], known[first])
    items = Items(tuple(benchmarks), benchmark[first], content[first], natives, first, copy[first], plain)
    return items, item, _notes(records, items, item, known, benchmark)


def _varies(column: NDArray[Any]) -> bool:
    return len(column) > 0 and bool((column != column[0]).any())


def _ranked(keys: list[NDArray[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Which distinct combination of the keys each row has, in order, and a first row of each."""
    order = np.lexsort(keys).astype(np.int32)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for key in keys:
        in_order = key[order]
        new[1:] |= in_order[1:] != in_order[:-1]
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.cumsum(new, dtype=np.int32) - 1
    return rank, order[new]


def _plain(
    records: Collected, first: NDArray[np.int32], own: NDArray[np.uint64], known: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which items are known by the id of a table that is used in one benchmark only."""
    of_table = np.array([run.keeps_ids for run in records.runs], dtype=np.bool_)[records.run[first]]
    of_table &= ~known
    if of_table.any():
        codes = own[of_table].astype(np.int64)
        of_table[of_table] = np.bincount(codes)[codes] == 1
    return of_table


def _codes(natives: Any) -> NDArray[np.int32]:
    """Which distinct id each record has."""
    chunks = natives.dictionary_encode().unify_dictionaries().chunks
    codes = [chunk.indices.to_numpy() for chunk in chunks]
    return np.concatenate(codes).astype(np.int32) if codes else np.empty(0, dtype=np.int32)


def _copies(records: Collected, natives: Any, content: NDArray[np.uint64]) -> NDArray[np.int32]:
    """How many documents of its run with other native ids come before a record and share its content."""
    copy = np.zeros(len(records), dtype=np.int32)
    if not content.any() or not _repeats(records, content):
        return copy
    native = _codes(natives)
    order = np.lexsort((records.line, native, content, records.run))
    run, hashes, ids = records.run[order], content[order], native[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (run[1:] != run[:-1]) | (hashes[1:] != hashes[:-1])
    document = begins.copy()
    document[1:] |= ids[1:] != ids[:-1]
    # Rank the documents of a group by the line on which each first appears.
    starts = np.flatnonzero(document)
    of_group = np.cumsum(begins)[starts]
    by_line = np.lexsort((records.line[order][starts], of_group))
    groups = of_group[by_line]
    opening = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(opening, append=len(groups))
    rank = np.empty(len(starts), dtype=np.int32)
    rank[by_line] = np.arange(len(groups)) - np.repeat(opening, sizes)
    copy[order] = rank[np.cumsum(document) - 1]
    copy[content == 0] = 0
    return copy


def _repeats(records: Collected, content: NDArray[np.uint64]) -> bool:
    """Whether a content is there twice in one run and filter; wrongly so with a chance of 2⁻⁶⁴ a pair."""
    group = records.run.astype(np.uint64) * np.uint64(len(records.filters))
    group += records.filter.astype(np.uint64)
    group *= np.uint64(_MIX)
    group ^= content
    group = group[content != 0]
    group.sort()
    return bool((group[1:] == group[:-1]).any())


def _notes(
    records: Collected,
    items: Items,
    item: NDArray[np.int32],
    known: NDArray[np.bool_],
    benchmark: NDArray[np.int32],
) -> list[str]:
    notes = []
    again = np.bincount(items.benchmark[items.copy > 0], minlength=len(items.benchmarks))
    for b in np.flatnonzero(again):
        notes.append(
            f"{items.benchmarks[b] or 'all records'}: {again[b]} documents share their content with another "
            "one and were kept apart (#2 …)"
        )
    if several := _with_several_ids(items, item):
        notes.append(f"{several} items have several native ids: they are one item each by their content")
    if known.all():
        return notes
    with_content = np.bincount(benchmark[known], minlength=len(items.benchmarks))
    without = np.bincount(benchmark[~known], minlength=len(items.benchmarks))
    for b in np.flatnonzero(with_content * without):
        notes.append(
            f"{items.benchmarks[b] or 'all records'}: {without[b]} records have no content; they are keyed "
            "by native id and not linked to the others"
        )
    return notes


def _with_several_ids(items: Items, item: NDArray[np.int32]) -> int:
    """How many items that are known by content go by more than one native id."""
    if len(items) == len(item):
        return 0
    several = np.zeros(len(items), dtype=np.bool_)
    for start in range(0, len(item), _ROWS):
        here = item[start : start + _ROWS]
        native, first = items.natives.slice(start, _ROWS), items.natives.take(pa.array(items.first[here]))
        several[here[~pc.equal(native, first).to_numpy()]] = True
    return int(np.count_nonzero(several & (items.content != 0)))
