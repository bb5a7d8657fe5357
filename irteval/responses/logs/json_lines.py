"""JSON lines, read in blocks: memory holds a block, never the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from irteval.errors import InputError

# Small enough that a block stays in the cache while its lines are parsed.
BLOCK = 2**17
LONGEST_LINE = 2**28
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def lines(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, a block of them at a time, blank ones included.

    Raises:
        InputError: text in UTF-16, or a line of more than 256 MiB.
    """
    with open(path, "rb") as file:
        start = file.read(3)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError("text in UTF-16, wanted UTF-8", file=str(path), line=1)
        pending = [] if start == BYTE_ORDER_MARK else [start]
        size = 0
        while block := file.read(BLOCK):
            if b"\n" not in block:
                pending.append(block)
                size += len(block)
                if size > LONGEST_LINE:
                    raise InputError("a line of more than 256 MiB, wanted a JSON object", file=str(path))
                continue
            found = (b"".join(pending) + block).split(b"\n")
            last = found.pop()
            pending, size = [last], len(last)
            yield found
        if (rest := b"".join(pending)).strip():
            yield [rest]


def parse_line(text: bytes, path: Path, line: int) -> dict[str, Any]:
    """The object in one line; NaN and infinities are read, which strict JSON has not.

    Raises:
        InputError: the line holds no JSON, more than one value, or another value than an object.
    """
    value = parse(text, str(path), line)
    if not isinstance(value, dict):
        raise InputError("a JSON value, wanted an object", file=str(path), line=line)
    return value


def parse(text: bytes, file: str, line: int | None = None) -> Any:
    """The JSON value in these bytes.

    Raises:
        InputError: there is none, or it is nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if b"NaN" in text or b"Infinity" in text:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                value = None
            if value is not None and is_text(value):
                return value
        at = line if line is not None else error.lineno
        raise InputError(f"not JSON: {error.msg}", file=file, line=at) from None


def is_text(value: Any) -> bool:
    """Whether all texts in a JSON value can be written: escapes may spell half a character."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not blank."""
    number = 0
    for block in lines(path):
        for text in block:
            number += 1
            if text and not text.isspace():
                yield number, parse_line(text, path, number)
