"""Tables beside the responses: what else is known of items and subjects, joined by id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irteval.errors import InputError
from irteval.responses.read.layout import find_column
from irteval.responses.read.table import Table
from irteval.responses.read.values import read_ids

BENCHMARK = "benchmark"


class SideTable(NamedTuple):
    """Rows by id, in no order yet; ``given`` where a person named the table, which then has to fit."""

    name: str
    rows: pd.DataFrame
    given: bool


def beside(paths: Sequence[Path], names: Sequence[str]) -> list[Path]:
    """In the folder of each response file, the first of these files that is there."""
    folders = dict.fromkeys(path.parent for path in paths)
    there = [[folder / name for name in names if (folder / name).is_file()] for folder in folders]
    return [found[0] for found in there if found]


def read_side_tables(tables: Sequence[Table], aliases: Sequence[str], given: bool) -> SideTable | None:
    """One side table of all these, rows that are wholly equal once; None of no table.

    Raises:
        InputError: no column of ids.
    """
    if not tables:
        return None
    name = " and ".join(table.file or "the table" for table in tables)
    rows = pd.concat([_rows(table, aliases) for table in tables])
    if not rows.index.is_unique:
        rows = rows[~rows.reset_index().astype(str).duplicated().to_numpy()]
    return SideTable(name, rows, given)


def _rows(table: Table, aliases: Sequence[str]) -> pd.DataFrame:
    column = find_column(table.names, aliases)
    if column is None:
        raise table.error(f"no column of ids, wanted one of {', '.join(aliases)}", field=aliases[0])
    ids = read_ids(table, column)
    others = [name for name in table.names if name != column]
    rows: pd.DataFrame = table.read(others).to_pandas() if others else pd.DataFrame(index=range(table.rows))
    for name in rows.columns:
        if isinstance(rows[name].dtype, pd.CategoricalDtype):
            rows[name] = rows[name].astype(object)
        if not table.typed and name != BENCHMARK:
            rows[name] = _numbers_where_all_are(rows[name])
    rows.index = pd.Index(np.array(ids.texts, dtype=object)[ids.codes], name=aliases[0])
    return rows


def _numbers_where_all_are(texts: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(texts.replace("", None))
    except ValueError:
        return texts


def join(side: SideTable, ids: Sequence[str], benchmark: str | None) -> tuple[pd.DataFrame | None, str]:
    """The rows for these ids in their order, empty where an id is unknown, and what to tell.

    A table that was found beside the responses and has several rows for an id is not joined.

    Raises:
        InputError: a table that was named has several rows for an id, or knows none of the ids.
    """
    rows = side.rows
    if benchmark is not None and BENCHMARK in rows and not rows.index.is_unique:
        rows = rows[rows[BENCHMARK] == benchmark]
    rows = rows[rows.index.isin(list(ids))]
    problem = None
    if not rows.index.is_unique:
        problem = f"several rows for '{rows.index[rows.index.duplicated()][0]}', wanted one an id"
    elif len(rows) == 0:
        problem = f"none of the {len(ids)} ids in the responses"
    if problem is not None:
        if side.given:
            raise InputError(problem, file=side.name, field=str(side.rows.index.name))
        return None, f"{side.name}: not joined: {problem}"
    return rows.reindex(list(ids)), f"{side.name}: joined by {rows.index.name} ({len(rows)} of {len(ids)})"
