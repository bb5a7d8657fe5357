"""A table as its reader hands it over: columns on demand, and where each row stands in its file."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from irteval.errors import InputError

BYTE_ORDER_MARK = codecs.BOM_UTF8
GIT_LFS = b"version https://git-lfs.github.com/"
BLOCK = 2**24


@dataclass(frozen=True)
class Table:
    """A table that is not interpreted yet.

    Attributes:
        file: its path; None for a data frame.
        names: its columns in order; unique.
        rows: how many rows it holds; at least one.
        read: gives the columns of these names as an arrow table.
        line: the line of the file, from 1, on which a row (from 0) begins; for binary files its row number
            from 1; None where it can't be told.
        typed: False where every value is text because the format knows no types.
    """

    file: str | None
    names: tuple[str, ...]
    rows: int
    read: Callable[[Sequence[str]], Any]
    line: Callable[[int], int | None]
    typed: bool = True

    def __post_init__(self) -> None:
        """Refuse a table without rows, or with a column name that repeats."""
        check_names(self.names, self.file)
        if self.rows == 0:
            raise InputError("no rows, wanted at least one response", file=self.file)

    def column(self, name: str) -> Any:
        """One column, an arrow chunked array."""
        return self.read([name]).column(0)

    def error(self, message: str, row: int | None = None, field: str | None = None) -> InputError:
        """The error for a fault in this table, at a row (from 0) and a column where there is one."""
        return InputError(
            message, file=self.file, line=None if row is None else self.line(int(row)), field=field
        )


def check_names(names: Sequence[str], file: str | None, line: int | None = None) -> None:
    """Refuse column names that repeat: in a wide table two items would share an id."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                "the column is there twice, wanted unique names", file=file, line=line, field=name
            )
        seen.add(name)


def in_memory(
    columns: Any, file: str | None, line: Callable[[int], int | None], *, typed: bool = True
) -> Table:
    """A table whose arrow columns are all in memory."""
    return Table(file, tuple(columns.column_names), columns.num_rows, columns.select, line, typed)


def text_of(path: Path) -> bytes:
    """The content of a text file in UTF-8, without its byte-order mark; raises as :func:`check_text`."""
    check_text(path)
    return path.read_bytes().removeprefix(BYTE_ORDER_MARK)


def check_text(path: Path) -> None:
    """Make sure that a file is text in UTF-8, in a pass over it that holds one block at a time.

    Raises:
        InputError: an empty file, a binary one, or one in another encoding, with the line of the first byte
            that is at fault.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, blank = 1, True
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            if line == 1 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise InputError("text in UTF-16, wanted UTF-8", file=str(path), line=1)
            if line == 1 and block.startswith(GIT_LFS):
                raise InputError(
                    "a Git LFS pointer, wanted the file that it stands for", file=str(path), line=1
                )
            if b"\0" in block:
                line += block.count(b"\n", 0, block.index(b"\0"))
                raise InputError("binary content, wanted text in UTF-8", file=str(path), line=line)
            line += _decode(decoder, block, path, line)
            blank = blank and not block.removeprefix(BYTE_ORDER_MARK).strip()
        _decode(decoder, b"", path, line)
    if blank:
        raise InputError("the file is empty, wanted a response table", file=str(path))


def _decode(decoder: codecs.IncrementalDecoder, block: bytes, path: Path, line: int) -> int:
    """Decode a block that begins on a line, and count its line breaks; an empty block ends the file."""
    before = len(decoder.getstate()[0])
    try:
        decoder.decode(block, final=not block)
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, max(0, error.start - before))
        raise InputError(
            "bytes that are not UTF-8, wanted text in UTF-8", file=str(path), line=line
        ) from None
    return block.count(b"\n")


def to_array(values: Any) -> Any:
    """An arrow array of a list or series; values of several types become text."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        texts = [None if _is_missing(value) else str(value) for value in values]
        return pa.array(texts, type=pa.string())


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
