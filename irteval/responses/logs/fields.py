"""Fields of JSON documents that others wrote: of the wanted type, or nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_LARGEST = 1e15


def mapping(value: Any) -> Mapping[str, Any]:
    """An object, empty where it is none."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """An array, empty where it is none."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text or number as text, empty where it is neither."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def number(value: Any) -> float:
    """A count or duration, NaN where it is none or beyond all measure."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if known else math.nan


def plain(value: Any) -> str:
    """A text, or the texts in an array one below the other; empty for all else."""
    if isinstance(value, list):
        return "\n".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
