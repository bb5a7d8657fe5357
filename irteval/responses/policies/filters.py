"""Which filter of the answers is read: one a benchmark, asked for or by a stated default.

A filter makes an answer of what a language model wrote, and several may be logged for the same document.
The default is the first of ``FILTERS`` that is there, else the first by name. Logs of older versions of
lm-eval have a row a filter and no names: the k-th row of a document has the filter ``#k``, and one has to
be chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.records import NO_FILTER
from irteval.responses.policies.metrics import ALL, listed

FILTERS = (NO_FILTER, "flexible-extract", "strict-match")
_FIRST, _NUMBERED = "#1", "#"


def check_filter(filter: str | None, known: Collection[str]) -> None:
    """Refuse a filter that no log has.

    Raises:
        InputError: with the filters that are there.
    """
    if filter not in (None, ALL) and filter not in known:
        raise InputError(f"no filter '{filter}', wanted one of {listed(sorted(known))}", field="filter")


def default_filter(there: Sequence[str], benchmark: str) -> str:
    """The filter of a benchmark where none is asked for.

    Raises:
        InputError: there are several without names.
    """
    if len(there) > 1 and any(name.startswith(_NUMBERED) for name in there):
        raise InputError(
            f"{benchmark}: {len(there)} rows a document and no names of filters, as in logs of older versions"
            f": choose one of {listed(there)} with --filter",
            field="filter",
        )
    return next((name for name in FILTERS if name in there), min(there))


def named_filters(
    names: tuple[str, ...], filter: NDArray[np.int16], run: NDArray[np.int32], runs: int
) -> tuple[tuple[str, ...], NDArray[np.int16]]:
    """Filters by name; one that has no name and needs none, because a document has one row, is ``none``.

    Args:
        names: of the filters.
        filter: [R] which one each record is of.
        run: [R] which run it belongs to.
        runs: how many there are.
    """
    if _FIRST not in names:
        return names, filter
    first = names.index(_FIRST)
    later = [j for j, name in enumerate(names) if name.startswith(_NUMBERED) and j != first]
    several = np.zeros(runs, dtype=np.bool_)
    several[run[np.isin(filter, later)]] = True
    with_none = names if NO_FILTER in names else (*names, NO_FILTER)
    single = (filter == first) & ~several[run]
    return with_none, np.where(single, with_none.index(NO_FILTER), filter).astype(np.int16)
