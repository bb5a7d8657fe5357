"""Reader of parquet: columns on demand, text decoded straight into codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from irteval.errors import InputError
from irteval.responses.read.table import Table

# What arrow raises of a damaged file: also where names are no UTF-8, and where notes of pandas are no JSON.
_DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError)


def read_parquet(path: Path) -> Table:
    """The table in a parquet file; its rows are numbered from 1 in messages.

    Raises:
        InputError: an empty file, or one that is not parquet or is cut short.
    """
    if path.stat().st_size == 0:
        raise InputError("the file is empty, wanted a response table", file=str(path))
    try:
        schema = pyarrow.parquet.read_schema(path)
        text = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
        file = pyarrow.parquet.ParquetFile(path, read_dictionary=text)
        names = _names(schema)
    except _DAMAGE as error:
        raise InputError(f"not a readable parquet file: {_reason(error)}", file=str(path)) from None

    def read(names: Sequence[str]) -> pa.Table:
        try:
            columns = file.read(columns=list(names)).select(list(names))
            columns.validate(full=True)  # text that is no UTF-8, codes beyond their dictionary
            _check_length(columns, file.metadata.num_rows)
            return columns
        except _DAMAGE as error:
            raise InputError(f"not a readable parquet file: {_reason(error)}", file=str(path)) from None

    return Table(str(path), names, file.metadata.num_rows, read, lambda row: row + 1)


def _check_length(columns: pa.Table, rows: int) -> None:
    """A damaged directory can give a column other rows than the file has, and it is read without a word."""
    if columns.num_columns and columns.num_rows != rows:
        raise ValueError(f"{columns.num_rows} rows in {', '.join(columns.column_names)}, wanted {rows}")


def _names(schema: pa.Schema) -> tuple[str, ...]:
    """Column names, a pandas index of text first: pandas stores it last, and there it names the rows."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [n for n in stored if isinstance(n, str) and not pa.types.is_integer(schema.field(n).type)]
    return (*index, *(name for name in schema.names if name not in index))


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
