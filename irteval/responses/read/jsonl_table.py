"""Reader of JSON lines: one object a line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from irteval.errors import InputError
from irteval.responses.read.table import Table, in_memory, text_of, to_array


def read_jsonl(path: Path) -> Table:
    """The table in a file of JSON objects; a key that a line lacks is missing there.

    Raises:
        InputError: not UTF-8 text, or a line that is not a JSON object.
    """
    lines: list[int] = []
    objects: list[dict[str, Any]] = []
    for number, text in enumerate(text_of(path).split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InputError(f"not JSON: {error.msg}", file=str(path), line=number) from None
        if not isinstance(value, dict):
            raise InputError("a JSON value, wanted an object", file=str(path), line=number)
        lines.append(number)
        objects.append(value)
    names = list(dict.fromkeys(name for value in objects for name in value))
    columns = pa.table({name: to_array([value.get(name) for value in objects]) for name in names})
    return in_memory(columns, str(path), partial(list.__getitem__, lines))
