"""Which item a record is of: keyed by its content where the log has it, else by the log's own id.

Positions are no identity: the same document stands at another place in a subset, a shuffled run or a new
version of a data set. A key is ``benchmark/`` and 16 hexadecimal digits of the content's hash, or the
native id. Documents of one run that share their content stay different items: the k-th of them has ``#k``
at the end of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irteval.responses.logs.collect import Collected


@dataclass(frozen=True)
class Items:
    """J items.

    Attributes:
        benchmarks: names; ``benchmark`` [J] says which one an item is of.
        content: [J] hash of the content; 0 of an item that is known by its native id only.
        natives: ids as the logs have them, an arrow array of text; ``native`` [J] is the one of each item
            that was met first.
        copy: [J] how many documents before it share its content.
    """

    benchmarks: tuple[str, ...]
    benchmark: NDArray[np.int32]
    content: NDArray[np.uint64]
    natives: Any
    native: NDArray[np.int32]
    copy: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.native)

    def native_id(self, j: int) -> str:
        """The id of one item in the log that was read first."""
        return str(self.natives[int(self.native[j])])

    def key(self, j: int) -> str:
        """The id of one item."""
        name = f"{int(self.content[j]):016x}" if self.content[j] else self.native_id(j)
        again = f"#{self.copy[j] + 1}" if self.copy[j] else ""
        benchmark = self.benchmarks[self.benchmark[j]]
        return f"{benchmark}/{name}{again}" if benchmark else f"{name}{again}"


def identify(
    records: Collected, benchmarks: Sequence[str], benchmark_of_run: NDArray[np.int32]
) -> tuple[Items, NDArray[np.int32], NDArray[np.int32], list[str]]:
    """The items of all records.

    Returns:
        The items; which one each record is of [R]; the native id of each record [R], a position in
        ``natives``; and what a person should be told.
    """
    natives, native_code = _codes(records)
    content = records.columns.get("content", np.zeros(len(records), dtype=np.uint64))
    known = content != 0
    benchmark = benchmark_of_run[records.run]
    copy = _copies(records, content, native_code)
    own = np.where(known, content, native_code.astype(np.uint64))
    order = np.lexsort((copy, own, known, benchmark))
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in (copy, own, known, benchmark):
        in_order = column[order]
        new[1:] |= in_order[1:] != in_order[:-1]
    item = np.empty(len(order), dtype=np.int32)
    item[order] = np.cumsum(new) - 1
    first = order[new]
    items = Items(
        tuple(benchmarks),
        benchmark[first],
        content[first],
        natives,
        native_code[first],
        copy[first],
    )
    return items, item, native_code, _notes(records, items, item, native_code, known, benchmark)


def _codes(records: Collected) -> tuple[Any, NDArray[np.int32]]:
    encoded = records.native.combine_chunks().dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int32)


def _copies(records: Collected, content: NDArray[np.uint64], native: NDArray[np.int32]) -> NDArray[np.int32]:
    """How many documents of its run with other native ids come before a record and share its content."""
    copy = np.zeros(len(records), dtype=np.int32)
    if not content.any():
        return copy
    order = np.lexsort((records.line, native, content, records.run))
    run, same, ids = records.run[order], content[order], native[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (run[1:] != run[:-1]) | (same[1:] != same[:-1])
    document = begins.copy()
    document[1:] |= ids[1:] != ids[:-1]
    document &= same != 0
    if int(document.sum()) == int((begins & (same != 0)).sum()):
        return copy
    # Rank the documents of a group by the line on which each first appears.
    starts = np.flatnonzero(document)
    group = np.cumsum(begins)[starts]
    by_line = np.lexsort((records.line[order][starts], group))
    in_order = group[by_line]
    opening = np.flatnonzero(np.diff(in_order, prepend=-1))
    sizes = np.diff(opening, append=len(in_order))
    rank = np.empty(len(starts), dtype=np.int32)
    rank[by_line] = np.arange(len(in_order)) - np.repeat(opening, sizes)
    of_document = np.cumsum(document) - 1
    has = same != 0
    copy[order[has]] = rank[of_document[has]]
    return copy


def _notes(
    records: Collected,
    items: Items,
    item: NDArray[np.int32],
    native: NDArray[np.int32],
    known: NDArray[np.bool_],
    benchmark: NDArray[np.int32],
) -> list[str]:
    notes = []
    for b in np.unique(items.benchmark[items.copy > 0]):
        count = int(((items.benchmark == b) & (items.copy > 0)).sum())
        name = items.benchmarks[b] or "all records"
        notes.append(
            f"{name}: {count} documents share their content with another one and were kept apart (#2 …)"
        )
    pair = item[known].astype(np.int64) * (int(native.max(initial=0)) + 1) + native[known]
    several = (
        int((np.bincount(np.unique(pair) // (int(native.max(initial=0)) + 1)) > 1).sum()) if len(pair) else 0
    )
    if several:
        notes.append(f"{several} items have several native ids: they are one item each by their content")
    with_content, without = set(benchmark[known].tolist()), set(benchmark[~known].tolist())
    for b in sorted(with_content & without):
        count = int((~known & (benchmark == b)).sum())
        notes.append(
            f"{items.benchmarks[b] or 'all records'}: {count} records have no content; they are keyed by "
            "native id and not linked to the others"
        )
    return notes
