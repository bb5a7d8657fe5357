"""The long table as a file: parquet, CSV or JSON lines by its extension, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from irteval.errors import InputError
from irteval.files import replace_file


def _write_parquet(parts: Iterable[pa.Table], file: IO[bytes]) -> None:
    writer = None
    for part in parts:
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(file, part.schema, compression="zstd")
        writer.write_table(part.cast(writer.schema))
    if writer is not None:
        writer.close()


def _write_csv(parts: Iterable[pa.Table], file: IO[bytes]) -> None:
    for number, part in enumerate(parts):
        options = pyarrow.csv.WriteOptions(include_header=number == 0)
        pyarrow.csv.write_csv(part, file, options)


def _write_jsonl(parts: Iterable[pa.Table], file: IO[bytes]) -> None:
    for part in parts:
        for row in part.to_pylist():
            known: dict[str, Any] = {name: value for name, value in row.items() if value is not None}
            known.setdefault("score", None)
            file.write(orjson.dumps(known, option=orjson.OPT_APPEND_NEWLINE))


# A new format is a function and a line here.
WRITERS: dict[str, Callable[[Iterable[pa.Table], IO[bytes]], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}


def check_table_place(path: Path) -> None:
    """Check, before long work, that a table can be written under this name.

    Raises:
        InputError: an extension without a writer, or a folder.
    """
    if path.suffix.lower() not in WRITERS:
        raise InputError(f"extension '{path.suffix}', wanted one of {', '.join(WRITERS)}", file=str(path))
    if path.is_dir():
        raise InputError("a folder of this name exists, wanted a file", file=str(path))
    if not path.resolve().parent.is_dir():
        raise InputError("no such folder", file=str(path.parent))


def write_table(path: Path, parts: Iterable[pa.Table]) -> None:
    """Write the parts of a table, one below the other, as the extension says.

    Raises:
        InputError: an extension without a writer.
        OSError: the disk is full or the place can't be written; what was there stays as it was.
    """
    check_table_place(path)
    with replace_file(path) as file:
        WRITERS[path.suffix.lower()](parts, file)
