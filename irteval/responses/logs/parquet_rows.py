"""Rows of a parquet file as plain values, a batch at a time: memory holds a batch, never the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from irteval.errors import InputError

_ROWS = 1024


def column_names(path: Path) -> tuple[str, ...]:
    """The columns of a parquet file; none of a file that is not one."""
    try:
        return tuple(pyarrow.parquet.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return ()


def parquet_rows(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number, from 1, and values of every row; only of columns whose top-level name is ``wanted``.

    Raises:
        InputError: the file is no parquet file or is damaged.
    """
    try:
        file = pyarrow.parquet.ParquetFile(path)
        columns = [name for name in file.schema_arrow.names if wanted(name)]
        number = 0
        for batch in file.iter_batches(_ROWS, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield number, row
        if columns and number != file.metadata.num_rows:
            raise ValueError(f"{number} rows, wanted {file.metadata.num_rows}")
    except (pa.ArrowException, OSError, ValueError, OverflowError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"not a readable parquet file: {reason}", file=str(path)) from None
