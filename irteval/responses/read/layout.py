"""Long or wide: which column of a table holds what, and the cells that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from irteval.responses.layers import KINDS, compact_scores, missing_of, unfit
from irteval.responses.read.cells import Cells, Scale, Source, join_scores
from irteval.responses.read.table import Table
from irteval.responses.read.values import (
    Coded,
    UnreadableError,
    read_ids,
    read_numbers,
    read_texts,
    recode,
)

# The first name is ours, the others are accepted for it.
SUBJECT = ("subject", "model_id", "model", "subject_id")
ITEM = ("item", "item_id", "question_id")
PLAIN = ("score", "category", "successes", "benchmark", "status", "time", *KINDS)

WANTED = {
    "share": "a share in [0, 1], true or false, or blank for missing",
    "ordinal": "an ordered category, a number of at least 0, or blank for missing",
}


def find_column(names: Sequence[str], aliases: Sequence[str]) -> str | None:
    """The column that goes by one of these names, in their order, whatever its case and outer spaces."""
    plain = {name.strip().lower(): name for name in reversed(names)}
    return next((plain[alias] for alias in aliases if alias in plain), None)


def read_cells(table: Table, scale: Scale, variant: Sequence[str], trials: int) -> tuple[Cells, str]:
    """The cells of a table, and a note on how it was read.

    A table is long where it has columns for at least two of subject, item and score, else wide: its first
    column the subject, every other one an item.

    Args:
        table: what a reader found.
        scale: of its column ``score``; a column ``category`` is ordinal whatever this is.
        variant: columns of facets.
        trials: of a response where the column ``trials`` is blank.

    Raises:
        InputError: a column that is missing, or a value that can't be read, with its line and column.
    """
    columns = {name: find_column(table.names, [name]) for name in PLAIN}
    columns["subject"] = find_column(table.names, SUBJECT)
    columns["item"] = find_column(table.names, ITEM)
    found = {role: name for role, name in columns.items() if name is not None}
    has_score = "score" in found or "category" in found or {"successes", "trials"} <= found.keys()
    if ("subject" in found) + ("item" in found) + has_score >= 2:
        return _read_long(table, found, scale, variant, trials)
    return _read_wide(table, scale, variant)


def _read_long(
    table: Table, found: dict[str, str], scale: Scale, variant: Sequence[str], trials: int
) -> tuple[Cells, str]:
    for role, aliases in (("subject", SUBJECT), ("item", ITEM)):
        if role not in found:
            listed = ", ".join(table.names)
            raise table.error(
                f"no column for the {role} among {listed}; wanted one of {', '.join(aliases)}", field=role
            )
    for name in variant:
        if name not in table.names:
            raise table.error(f"no column for the variant among {', '.join(table.names)}", field=name)
    scores, scale, score_column = _read_scores(table, found, scale)
    observed = ~missing_of(scores)
    layers = {
        name: _read_layer(table, name, found[name], observed, blank=trials if name == "trials" else np.nan)
        for name in KINDS
        if name in found
    }
    aside = tuple(name for name in table.names if name not in {*found.values(), *variant})
    cells = Cells(
        read_ids(table, found["subject"]),
        read_ids(table, found["item"]),
        scores,
        layers,
        read_texts(table, found["benchmark"]) if "benchmark" in found else None,
        {name: read_texts(table, name) for name in variant},
        (Source(table, table.rows, (score_column,), aside),),
        scale,
    )
    return cells, _long_note(table, found, aside)


def _read_scores(table: Table, found: dict[str, str], scale: Scale) -> tuple[NDArray[Any], Scale, str]:
    """Scores of a long table, their scale, and the column they are from."""
    if "score" in found or "category" in found:
        name = found["score"] if "score" in found else found["category"]
        scale = scale if "score" in found else "ordinal"
        try:
            return _scores(table.column(name), scale), scale, name
        except UnreadableError as error:
            raise table.error(error.message, error.position, name) from None
    if not {"successes", "trials"} <= found.keys():
        raise table.error(f"no column for the score among {', '.join(table.names)}", field="score")
    successes = _read_plain(table, found["successes"], "a whole number")
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = successes / _read_plain(table, found["trials"], "a whole number")
    try:
        _check(shares, "share")
    except UnreadableError as error:
        raise table.error(error.message, error.position, found["successes"]) from None
    return shares, scale, found["successes"]


def _scores(column: Any, scale: Scale) -> NDArray[Any]:
    """Scores in an arrow column: int8 with -1 for missing where shares are 0 and 1 only, else float64."""
    values = read_numbers(column, WANTED[scale])
    _check(values, scale)
    return compact_scores(values) if scale == "share" else values.astype(np.float64, copy=False)


def _check(values: NDArray[Any], scale: Scale) -> None:
    highest = 1.0 if scale == "share" else np.finfo(np.float64).max
    bad = (values < 0) | (values > highest)
    if bad.any():
        position = int(np.argmax(bad))
        hint = "; ordered categories are read with --scale ordinal" if scale == "share" else ""
        raise UnreadableError(f"score {values[position]:g}, wanted {WANTED[scale]}{hint}", position)


def _read_plain(table: Table, name: str, wanted: str) -> NDArray[np.float64]:
    try:
        return np.asarray(read_numbers(table.column(name), wanted), dtype=np.float64)
    except UnreadableError as error:
        raise table.error(error.message, error.position, name) from None


def _read_layer(
    table: Table, name: str, column: str, observed: NDArray[np.bool_], blank: float
) -> NDArray[np.float64]:
    values = _read_plain(table, column, KINDS[name].wanted)
    values = np.where(np.isnan(values), blank, values)
    bad = observed & unfit(name, values)
    if bad.any():
        row = int(np.argmax(bad))
        raise table.error(f"{values[row]:g}, wanted {KINDS[name].wanted}", row, column)
    return values


def _read_wide(table: Table, scale: Scale, variant: Sequence[str]) -> tuple[Cells, str]:
    subject, *items = table.names
    if not items:
        raise table.error(
            f"one column, '{subject}'; wanted subject, item and score, or the subject and a column an item"
        )
    if variant:
        raise table.error("a wide table has no variant columns, wanted a long one", field=variant[0])
    subjects = read_ids(table, subject)
    order = recode(items, np.arange(len(items), dtype=np.int32))
    cells = Cells(
        Coded(subjects.texts, np.repeat(subjects.codes, len(items))),
        Coded(order.texts, np.tile(order.codes, table.rows)),
        _read_block(table, items, scale).reshape(-1),
        {},
        None,
        {},
        (Source(table, table.rows * len(items), tuple(items), ()),),
        scale,
    )
    note = f"wide table of {table.rows} rows, subject in '{subject}', {len(items)} items"
    return cells, _located(table, note)


def _read_block(table: Table, items: Sequence[str], scale: Scale) -> NDArray[Any]:
    """Scores ``[rows, items]``; columns of one type are read in one go, for there may be very many."""
    by_type: dict[Any, list[int]] = {}
    columns = table.read(items).columns
    for j, column in enumerate(columns):
        by_type.setdefault(column.type, []).append(j)
    blocks = []
    for kind, members in by_type.items():
        stacked = pa.chunked_array([chunk for j in members for chunk in columns[j].chunks], kind)
        try:
            blocks.append(_scores(stacked, scale).reshape(len(members), table.rows))
        except UnreadableError as error:
            member, row = divmod(error.position or 0, table.rows)
            raise table.error(
                error.message, None if error.position is None else row, items[members[member]]
            ) from None
    back = np.argsort(np.concatenate(list(by_type.values())))
    return join_scores(blocks)[back].T


def _long_note(table: Table, found: dict[str, str], aside: tuple[str, ...]) -> str:
    parts = [f"long table of {table.rows} rows"]
    renamed = [f"{found[role]} as {role}" for role in ("subject", "item") if found[role] != role]
    if renamed:
        parts.append(f"read {' and '.join(renamed)}")
    if aside:
        parts.append(f"left aside {', '.join(aside)}")
    if "status" in found:
        counts = pc.value_counts(table.column(found["status"])).to_pylist()
        others = {str(c["values"]): c["counts"] for c in counts if c["values"] not in ("ok", "", None)}
        if others:
            listed = ", ".join(f"{count} {status}" for status, count in sorted(others.items()))
            parts.append(f"status not ok: {listed} (missing only where there is no score)")
    return _located(table, "; ".join(parts))


def _located(table: Table, note: str) -> str:
    return note if table.file is None else f"{table.file}: {note}"
