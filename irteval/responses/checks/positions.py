"""Does a row fit better when its items stand in another order?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from irteval.responses.matrix import ResponseMatrix

LARGEST_OFFSET = 32
STRIDES = (2, 3, 4, 6, 8, 16, 32)
LEAST_GAIN = 4.5  # standard errors of a correlation; some 120 orders are tried
LEAST_CORRELATION = 0.15


def order_by_position(responses: ResponseMatrix, items: NDArray[np.intp]) -> NDArray[np.intp]:
    """These items from first to last: by ``position`` in the items' table, else by numbers in their ids."""
    table = responses.item_table
    if table is not None and "position" in table and table["position"].dtype.kind in "iuf":
        return np.argsort(table["position"].to_numpy()[items], kind="stable")
    keys = [_natural(responses.items[item]) for item in items]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def realigned(
    scores: NDArray[np.float32],
    observed: NDArray[np.float32],
    consensus: NDArray[np.float32],
    order: NDArray[np.intp],
) -> str | None:
    """The best of some orders in which logs go wrong: offsets, reversal, and dealing out to g workers.

    Args:
        scores, observed: of one row, ``[m]``.
        consensus: mean score of each item over the others, ``[m]``.
        order: the items from first to last.

    Returns:
        In words what was done to the row; None where no order brings a correlation that is .15 or more, and
        4.5 standard errors above the present one (above 0 where that is negative).
    """
    values, there, means = (
        scores[order].astype(np.float64),
        observed[order] > 0,
        consensus[order].astype(np.float64),
    )
    present = _correlation(values, there, means)
    tried = {how: _correlation(values, there, means[index]) for how, index in _orders(len(order))}
    best = max(tried, key=tried.__getitem__)
    gain = (tried[best] - max(present, 0)) * np.sqrt(np.count_nonzero(there))
    return best if tried[best] >= LEAST_CORRELATION and gain >= LEAST_GAIN else None


def _orders(length: int) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """What went wrong, in words, and for each place the item whose answer stands there."""
    places = np.arange(length)
    for offset in range(1, min(LARGEST_OFFSET, length - 1) + 1):
        yield f"moved back by {offset}", (places - offset) % length
        yield f"moved on by {offset}", (places + offset) % length
    yield "read from last to first", places[::-1]
    dealt = {}
    for stride in STRIDES:
        dealt[stride] = np.concatenate([places[first::stride] for first in range(stride)])
        yield f"dealt back to {stride} workers", dealt[stride]
        yield f"collected from {stride} workers", np.argsort(dealt[stride])
    for one, other in permutations(STRIDES, 2):
        yield f"dealt to {one} workers in place of {other}", dealt[other][np.argsort(dealt[one])]


def _correlation(values: NDArray[np.float64], there: NDArray[np.bool_], means: NDArray[np.float64]) -> float:
    x, y = values[there], means[there]
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / max(1e-9, np.sqrt((x @ x) * (y @ y))))


def _natural(text: str) -> list[tuple[int, int, str]]:
    """A key that orders q2 before q10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
