"""Reader of CSV: comma, semicolon or tab, with or without a byte-order mark; every value stays text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from irteval.errors import InputError
from irteval.responses.read.table import Table, check_names, check_text, in_memory

TEXT = pa.dictionary(pa.int32(), pa.string())
# Rows are parsed in blocks of bytes, and one has to fit: a wide table of 100,000 items has rows of megabytes.
LONGEST_ROW = 2**26


def read_csv(path: Path) -> Table:
    """The table in a CSV file; its first line names the columns.

    Raises:
        InputError: not UTF-8 text, a column name that repeats, or a row of another length than the header,
            each with its line.
    """
    check_text(path)
    marks = "\t" if path.suffix.lower() == ".tsv" else ",;\t"
    delimiter = max(marks, key=lambda mark: _fit(path, mark))
    line, names = next(_rows(path, delimiter), (1, []))
    check_names(names, str(path), line)
    try:
        columns = pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=LONGEST_ROW),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, TEXT)),
        )
    except pa.ArrowInvalid as error:
        raise _fault(path, delimiter, len(names), error) from None
    return in_memory(columns, str(path), partial(_line, path, delimiter), typed=False)


def _fit(path: Path, delimiter: str) -> tuple[bool, int]:
    """How well a delimiter explains the first rows: of one length, above 1, and as long as can be."""
    lengths = [len(row) for _, row in islice(_rows(path, delimiter), 20)]
    return len(set(lengths)) == 1 and lengths[0] > 1, max(lengths, default=0)


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line it begins on; only for the header and for errors.

    They end before a field of more than 131,072 characters, the most that the standard library reads.
    """
    line = 1
    with path.open(encoding="utf-8-sig", newline="") as file, suppress(csv.Error):
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1


def _line(path: Path, delimiter: str, row: int) -> int | None:
    line, _ = next(islice(_rows(path, delimiter), row + 1, None), (None, None))
    return line


def _fault(path: Path, delimiter: str, width: int, error: pa.ArrowInvalid) -> InputError:
    """Why the rows could not be read: mostly one of another length than the header."""
    for line, row in _rows(path, delimiter):
        if len(row) != width:
            found = "1 value" if len(row) == 1 else f"{len(row)} values"
            return InputError(f"{found}, wanted {width} as in the header", file=str(path), line=line)
    return InputError(f"not a readable CSV file: {str(error).splitlines()[0]}", file=str(path))
