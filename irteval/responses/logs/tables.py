"""Reader of response tables, long and wide: parquet, CSV, JSON lines.

A long table has a row a response; beyond subject, item and score it may say benchmark, metric, filter,
trial, run, time, revision, variant, status, trials and cost. Ids stay as they are. A wide one has the
subject in its first column and an item in every other; it is read where it is named, for any table of
numbers could be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.layers import missing_of
from irteval.responses.logs.parquet_rows import column_names
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import NO_FILTER, STATUS, Records, Run, hex_hashes, moment_of
from irteval.responses.policies.score_values import Scores, State, read_scores
from irteval.responses.read import READERS as TABLES
from irteval.responses.read import open_table
from irteval.responses.read.layout import SUBJECT, find_column, read_cells
from irteval.responses.read.table import Table
from irteval.responses.read.values import Coded, UnreadableError, read_ids, read_numbers, read_texts

_ITEM = ("item", "item_id", "question_id", "instance_id", "sample_id", "id")
_SCORE = ("score", "successes", "correct", "is_correct")
_TEXTS = {
    "benchmark": ("benchmark", "task", "dataset"),
    "revision": ("revision",),
    "variant": ("variant",),
    "harness": ("harness",),
    "run": ("run", "run_id"),
}
_TIME = ("time", "date")
_TRIAL = ("trial", "epoch")
_COUNTS = ("trials", "prompt_hash", "status", "metric", "filter", "cost")
_READ = {alias for aliases in (*_TEXTS.values(), _TIME, _TRIAL, _COUNTS) for alias in aliases}
_STATUSES = STATUS | {"timeout": STATUS["error"]}
_ROLES = 2
# Seconds since 1970 up to the year 9999.
_LAST_MOMENT = 2.5e11


class Tables:
    """Long tables, and wide ones that are named."""

    name = "table"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Tables with columns for at least two of subject, item and score."""
        if path.suffix.lower() not in TABLES:
            return False
        names = column_names(path) if path.suffix.lower() == ".parquet" else _names_in(head)
        return sum(find_column(names, role) is not None for role in (SUBJECT, _ITEM, _SCORE)) >= _ROLES

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, all at once.

        Raises:
            InputError: a table that can't be read, with file, line and column.
        """
        table = open_table(path)
        roles = [find_column(table.names, role) for role in (SUBJECT, _ITEM, _SCORE)]
        if sum(role is not None for role in roles) < _ROLES:
            yield _wide(table)
            return
        for role, name in zip(roles, ("subject", "item", "score"), strict=True):
            if role is None:
                raise table.error(f"no column for the {name} among {', '.join(table.names)}", field=name)
        if aside := [name for name in table.names if name not in roles and not _is_read(name)]:
            options.note(f"{path.name}: left aside {', '.join(aside)}")
        yield _long(table, str(roles[0]), str(roles[1]), str(roles[2]))


def _is_read(name: str) -> bool:
    return name.strip().lower() in _READ


def _names_in(head: bytes) -> tuple[str, ...]:
    """Names of columns in the first line of a CSV or JSON lines file."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    if first.lstrip().startswith("{"):
        return tuple(re.findall(r'"([^"\\]*)"\s*:', first))
    mark = max(",;\t", key=first.count)
    return tuple(name.strip().strip('"') for name in first.split(mark))


def _long(table: Table, subject: str, item: str, score: str) -> Records:
    subjects, items = read_ids(table, subject), read_ids(table, item)
    texts = {name: _texts(table, aliases) for name, aliases in _TEXTS.items()}
    known = {name: coded for name, coded in texts.items() if coded is not None}
    kinds, run = _kinds([subjects, *known.values()])
    filters, status = _texts(table, ("filter",)), _texts(table, ("status",))
    codes = np.zeros(table.rows, dtype=np.int8) if status is None else _status(status)
    scores = _scores(table, score)
    return Records(
        runs=tuple(_run(table, dict(zip(("subject", *known), kind, strict=True))) for kind in kinds),
        run=run,
        native=pa.array(items.texts, pa.string()).take(pa.array(items.codes)),
        line=_lines(table),
        scores=_by_metric(table, {name: _unscored(column, codes) for name, column in scores.items()}),
        status=codes,
        filters=(NO_FILTER,) if filters is None else tuple(name or NO_FILTER for name in filters.texts),
        filter=None if filters is None else filters.codes.astype(np.int16),
        trial=_counts(table, _TRIAL),
        trials=_counts(table, ("trials",), blank=1),
        prompt=_prompt(table),
        cost=_costs(table),
        moment=_moments(table),
    )


def _texts(table: Table, aliases: tuple[str, ...]) -> Coded | None:
    name = find_column(table.names, aliases)
    return None if name is None else read_texts(table, name)


def _kinds(columns: list[Coded]) -> tuple[list[tuple[str, ...]], NDArray[np.int32]]:
    """Distinct rows of several columns of text, and which one each row is."""
    key = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        _, key = np.unique(key * len(column.texts) + column.codes, return_inverse=True)
    first = np.zeros(int(key.max(initial=-1)) + 1, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    kinds = [tuple(column.texts[column.codes[row]] for column in columns) for row in first.tolist()]
    return kinds, key.astype(np.int32)


def _run(table: Table, said: dict[str, str]) -> Run:
    return Run(
        file=table.file or "the table",
        subject=said["subject"],
        benchmark=said.get("benchmark", ""),
        revision=said.get("revision", ""),
        variant=said.get("variant", ""),
        harness=said.get("harness", ""),
        run=said.get("run", ""),
        keeps_ids=True,
    )


def _lines(table: Table) -> NDArray[np.int32]:
    """Lines of the rows; of CSV by counting from the first, for its rows are not looked for one by one."""
    if table.file is not None and table.file.lower().endswith((".jsonl", ".ndjson")):
        return np.fromiter((table.line(row) or 0 for row in range(table.rows)), np.int32, table.rows)
    return np.arange(table.rows, dtype=np.int32) + (table.line(0) or 1)


def _scores(table: Table, name: str) -> dict[str, Scores]:
    """The scores of a column; of one that holds several by name, each as ``column.name``."""
    column = table.column(name)
    if name == "successes":
        return {"score": _shares(table)}
    if not pa.types.is_struct(column.type):
        return {name: _column(column)}
    values = column.combine_chunks()
    return {f"{name}.{key.name}": _column(values.field(key.name)) for key in column.type}


def _column(column: Any) -> Scores:
    """Scores of an arrow column; texts are read once each."""
    if pa.types.is_dictionary(column.type):
        encoded = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        encoded = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
        encoded = encoded.dictionary_encode()
    elif pa.types.is_floating(column.type) and column.null_count == 0:
        numbers = np.asarray(column.to_numpy(), dtype=np.float64)
        states = np.where(np.isnan(numbers), State.MISSING, State.NUMBER).astype(np.int8)
        return Scores(numbers, states)
    else:
        return read_scores(column.to_pylist())
    encoded = encoded.unify_dictionaries()
    if encoded.num_chunks == 0:
        return read_scores([])
    distinct = read_scores([*encoded.chunk(0).dictionary.to_pylist(), None])
    codes = np.concatenate([c.indices.fill_null(-1).to_numpy(zero_copy_only=False) for c in encoded.chunks])
    return Scores(distinct.numbers[codes], distinct.states[codes], distinct.unreadable)


def _shares(table: Table) -> Scores:
    if find_column(table.names, ("trials",)) is None:
        raise table.error("no column for the trials of the successes", field="trials")
    trials = _numbers(table, "trials")
    with np.errstate(divide="ignore", invalid="ignore"):
        return read_scores((_numbers(table, "successes") / trials).tolist())


def _numbers(table: Table, name: str, wanted: str = "a whole number") -> NDArray[np.float64]:
    column = str(find_column(table.names, (name.strip().lower(),)))
    try:
        return np.asarray(read_numbers(table.column(column), wanted), dtype=np.float64)
    except UnreadableError as error:
        raise table.error(error.message, error.position, column) from None


def _counts(table: Table, aliases: tuple[str, ...], blank: int = 0) -> NDArray[np.int32] | None:
    """A column of whole numbers from 1; ``blank`` where there is none."""
    name = find_column(table.names, aliases)
    if name is None:
        return None
    values = _numbers(table, name)
    known = ~np.isnan(values)
    bad = known & ((values != np.floor(values)) | (values < 0) | (values >= 2**31))
    if bad.any():
        row = int(np.argmax(bad))
        raise table.error(f"{values[row]:g}, wanted a whole number", row, name)
    return np.where(known & (values > 0), values, blank).astype(np.int32)


def _by_metric(table: Table, scores: dict[str, Scores]) -> dict[str, Scores]:
    """Scores by the metric that each row names; rows that name none are of the column's own."""
    metrics = _texts(table, ("metric",))
    if metrics is None or len(scores) > 1:
        return scores
    (own,) = scores.values()
    by_name = {}
    for code, name in enumerate(metrics.texts):
        here = metrics.codes == code
        if not name and not (own.states[here] == State.NUMBER).any():
            continue  # a record that was never scored has no metric
        by_name[name or "score"] = Scores(
            np.where(here, own.numbers, np.nan),
            np.where(here, own.states, State.ABSENT).astype(np.int8),
            own.unreadable,
        )
    return by_name


def _unscored(scores: Scores, status: NDArray[np.int8]) -> Scores:
    """Scores that are missing because there never was one are told apart from blank ones."""
    never = (scores.states == State.MISSING) & (status == STATUS["unscored"])
    return scores._replace(states=np.where(never, State.UNSCORED, scores.states).astype(np.int8))


def _status(status: Coded) -> NDArray[np.int8]:
    """Codes of the statuses that are known; what another says is in its score."""
    known = np.array([_STATUSES.get(name.strip().lower(), 0) for name in status.texts], dtype=np.int8)
    return np.asarray(known[status.codes])


def _costs(table: Table) -> NDArray[np.float32] | None:
    if find_column(table.names, ("cost",)) is None:
        return None
    return _numbers(table, "cost", "a number").astype(np.float32)


def _moments(table: Table) -> NDArray[np.float64] | None:
    """When each answer was given; what is no date is unknown, numbers are seconds since 1970."""
    name = find_column(table.names, _TIME)
    if name is None:
        return None
    column = table.column(name)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        moments = _numbers(table, name, "a time")
        return np.where(np.abs(moments) < _LAST_MOMENT, moments, np.nan)
    texts = read_texts(table, name)
    return np.array([moment_of(text) for text in texts.texts], dtype=np.float64)[texts.codes]


def _prompt(table: Table) -> NDArray[np.uint64] | None:
    prompts = _texts(table, ("prompt_hash",))
    return None if prompts is None else hex_hashes(prompts.texts)[prompts.codes]


def _wide(table: Table) -> Records:
    """The observed cells of a wide table."""
    cells, _ = read_cells(table, "share", (), 1)
    observed = np.flatnonzero(~missing_of(cells.scores))
    row = observed // len(cells.sources[0].columns)
    if not len(observed):
        raise InputError("no score in any cell", file=table.file)
    return Records(
        runs=tuple(_run(table, {"subject": name}) for name in cells.subject.texts),
        run=cells.subject.codes[observed].astype(np.int32),
        native=pa.array(cells.item.texts, pa.string()).take(pa.array(cells.item.codes[observed])),
        line=_lines(table)[row],
        scores={"score": read_scores(cells.scores[observed].astype(np.float64).tolist())},
        status=np.zeros(len(observed), dtype=np.int8),
    )
