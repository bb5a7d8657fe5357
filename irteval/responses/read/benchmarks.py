"""Which benchmark each item belongs to, and the choice of one of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.read.cells import Cells
from irteval.responses.read.side_tables import BENCHMARK
from irteval.responses.read.values import Coded, recode


def resolve_benchmarks(
    cells: Cells, item_table: pd.DataFrame | None, chosen: str | None, notes: list[str]
) -> tuple[Cells, tuple[str, ...] | None]:
    """The cells of the chosen benchmark (all where none is), and the benchmark of each item.

    The responses' own column goes before the one of the items' table. What a person should know is added to
    ``notes``.

    Raises:
        InputError: no benchmark of the chosen name, or an item that is in two benchmarks.
    """
    benchmark = cells.benchmark
    if benchmark is None and item_table is not None and BENCHMARK in item_table:
        benchmark = recode(item_table[BENCHMARK].fillna("").astype(str).tolist(), cells.item.codes)
    if benchmark is None:
        if chosen is not None:
            raise InputError(f"chose '{chosen}', and no table has such a column", field=BENCHMARK)
        return cells, None
    if chosen is not None:
        return _choose(cells, benchmark, chosen, notes)
    of_item = np.zeros(len(cells.item.texts), dtype=np.int32)
    of_item[cells.item.codes] = benchmark.codes
    differs = of_item[cells.item.codes] != benchmark.codes
    if differs.any():
        raise _in_two(cells, benchmark, of_item, int(np.argmax(differs)))
    names = tuple(benchmark.texts[code] for code in of_item)
    if "" in names:
        notes.append(f"benchmark unknown for {names.count('')} of {len(names)} items, so it is left out")
        return cells, None
    return cells, names


def _choose(cells: Cells, benchmark: Coded, chosen: str, notes: list[str]) -> tuple[Cells, tuple[str, ...]]:
    if chosen not in benchmark.texts:
        raise InputError(f"no '{chosen}', wanted one of {', '.join(benchmark.texts)}", field=BENCHMARK)
    part = cells.take(np.flatnonzero(benchmark.codes == benchmark.texts.index(chosen))).trim()
    notes.append(f"benchmark '{chosen}': {len(part.item.texts)} of {len(cells.item.texts)} items")
    return part, (chosen,) * len(part.item.texts)


def _in_two(cells: Cells, benchmark: Coded, of_item: NDArray[np.int32], cell: int) -> InputError:
    source, row, _ = cells.place(cell)
    item = int(cells.item.codes[cell])
    here, elsewhere = (benchmark.texts[code] for code in (benchmark.codes[cell], of_item[item]))
    return source.table.error(
        f"item '{cells.item.texts[item]}' is in '{here}' here and in '{elsewhere}' elsewhere, wanted one "
        "benchmark an id; choose one with --benchmark",
        row,
        BENCHMARK,
    )
