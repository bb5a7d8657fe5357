"""Response tables in: parquet, CSV, JSON lines and data frames become a response matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from irteval.errors import InputError
from irteval.responses.matrix import ResponseMatrix
from irteval.responses.read.assemble import assemble
from irteval.responses.read.cells import Scale
from irteval.responses.read.csv_table import read_csv
from irteval.responses.read.frame_table import table_of
from irteval.responses.read.jsonl_table import read_jsonl
from irteval.responses.read.layout import ITEM, SUBJECT
from irteval.responses.read.parquet_table import read_parquet
from irteval.responses.read.side_tables import SideTable, beside, read_side_tables
from irteval.responses.read.table import Table

__all__ = ["open_table", "read_frame", "read_responses"]

FilePath: TypeAlias = str | PathLike[str]

# One reader a format; a new one is a new file and a line here.
READERS: dict[str, Callable[[Path], Table]] = {
    ".parquet": read_parquet,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
}


def read_responses(
    paths: FilePath | Sequence[FilePath],
    *,
    benchmark: str | None = None,
    variant: str | Sequence[str] = (),
    trials: int | None = None,
    scale: Scale = "share",
    items: FilePath | pd.DataFrame | None = None,
    subjects: FilePath | pd.DataFrame | None = None,
) -> ResponseMatrix:
    """Read response tables from one or many files into one matrix.

    A **long** table has columns ``subject`` (or ``model_id``, ``model``, ``subject_id``), ``item`` (or
    ``item_id``, ``question_id``) and ``score``, and may have ``trials``, ``probability``, ``step``, ``cost``,
    ``benchmark`` and ``status``; ``successes`` of ``trials`` may stand for the score. A **wide** one has the
    subject in its first column and an item in every other. Ids are text and never parsed. True and yes are
    1, false and no are 0; blank and NaN are missing. Subjects and items are sorted by id, so the order of
    the rows and columns of a file changes nothing.

    ``items.parquet`` and ``subjects.parquet`` or ``models.parquet`` beside a file are joined by id. What was
    taken for what is told in ``notes``.

    Args:
        paths: parquet, CSV (comma, semicolon or tab) or JSON lines; several are put together.
        benchmark: keep the items of this benchmark only.
        variant: columns of facets crossed with items (prompt template, judge); a score is the mean over them.
        trials: n of a response where the column ``trials`` is blank or not there; 1 where None.
        scale: ``ordinal`` reads ordered categories 0 … C - 1, which become the shares k / (C - 1).
        items, subjects: tables to join in place of those beside the files.

    Raises:
        InputError: a file that can't be read, a column that is missing, a value that is none, or a response
            that is there twice with different scores; with file, line and column.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files = [Path(path) for path in listed]
    if not files:
        raise InputError("no file, wanted at least one response table", field="paths")
    item_files = beside(files, ["items.parquet"]) if items is None else []
    subject_files = beside(files, ["subjects.parquet", "models.parquet"]) if subjects is None else []
    return assemble(
        [open_table(file) for file in files],
        benchmark=benchmark,
        variant=variant,
        trials=trials,
        scale=scale,
        items=_side(items, item_files, ITEM),
        subjects=_side(subjects, subject_files, SUBJECT),
    )


def read_frame(
    frame: pd.DataFrame,
    *,
    benchmark: str | None = None,
    variant: str | Sequence[str] = (),
    trials: int | None = None,
    scale: Scale = "share",
    items: FilePath | pd.DataFrame | None = None,
    subjects: FilePath | pd.DataFrame | None = None,
) -> ResponseMatrix:
    """The matrix in a long or wide data frame; rules and options are those of :func:`read_responses`."""
    return assemble(
        [table_of(frame)],
        benchmark=benchmark,
        variant=variant,
        trials=trials,
        scale=scale,
        items=_side(items, [], ITEM),
        subjects=_side(subjects, [], SUBJECT),
    )


def open_table(path: Path) -> Table:
    """The table in a file, not interpreted yet.

    Raises:
        InputError: no such file, of a format without a reader, or one that can't be read.
    """
    reader = READERS.get(path.suffix.lower())
    if not path.exists():
        raise InputError("no such file", file=str(path))
    if not path.is_file():
        raise InputError("a folder, wanted a file", file=str(path))
    if reader is None:
        raise InputError(f"extension '{path.suffix}', wanted one of {', '.join(READERS)}", file=str(path))
    return reader(path)


def _side(
    named: FilePath | pd.DataFrame | None, found: Sequence[Path], aliases: Sequence[str]
) -> SideTable | None:
    if isinstance(named, pd.DataFrame):
        return read_side_tables([table_of(named)], aliases, given=True)
    if named is not None:
        return read_side_tables([open_table(Path(named))], aliases, given=True)
    return read_side_tables([open_table(path) for path in found], aliases, given=False)
