"""Sizes of a test: numbers of items, or shares of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irteval.errors import InputError


def resolve_sizes(
    sizes: Sequence[int | float | str], items: int, note: Callable[[str], None] | None = None
) -> list[int]:
    """Numbers of items, ascending, each once.

    Args:
        sizes: whole numbers (50, ``"50"``) or shares of the items (.05, ``"5%"``).
        items: N; a larger size is capped.
        note: called with a line for each size that is capped.

    Raises:
        InputError: a size that is neither, or not above 0.
    """
    found = set()
    for size in sizes:
        wanted = _count(size, items)
        if wanted > items:
            if note is not None:
                note(f"size {size} is more than the {items:,} items there are: all of them are asked")
            wanted = items
        found.add(wanted)
    return sorted(found)


def _count(size: int | float | str, items: int) -> int:
    text = str(size).strip()
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = float("nan")
    is_share = text.endswith("%") or 0 < value < 1
    if not 0 < value < float("inf") or (is_share and value > 1) or (not is_share and value % 1):
        raise InputError(f"'{size}', wanted a number of items, or a share such as 5% or 0.05", field="size")
    return max(1, round(value * items)) if is_share else int(value)
