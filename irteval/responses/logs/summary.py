"""What an import holds, as plain values: sizes, and scores by benchmark, metric and filter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from irteval.responses.logs.observations import Observations
from irteval.responses.logs.reader import ItemList
from irteval.responses.logs.records import STATUSES


def compare_items(items: ItemList | None, observations: Observations) -> tuple[dict[str, int], list[str]]:
    """How the items of the logs and of the full list agree, and what a person should be told."""
    if items is None:
        return {}, []
    used = np.flatnonzero(np.bincount(observations.item, minlength=len(observations.items))).tolist()
    names = [(observations.items.native_id(j), observations.items.key(j)) for j in used]
    met, listed = {name for pair in names for name in pair}, set(items.ids)
    without = sum(name not in met for name in items.ids)
    unlisted = sum(listed.isdisjoint(pair) for pair in names)
    notes = []
    if without:
        notes.append(f"{items.name}: {without} of {len(items.ids)} listed items have no response")
    if unlisted:
        notes.append(f"{items.name}: {unlisted} items of the logs are not in the list")
    counts = {"listed": len(items.ids), "listed_without_response": without, "not_listed": unlisted}
    return counts, notes


def describe(observations: Observations, listing: dict[str, int]) -> dict[str, Any]:
    """Sizes, statuses, and a row for each benchmark, metric and filter.

    Args:
        observations: what was read.
        listing: counts of :func:`compare_items`.
    """
    items = _distinct(observations.item, len(observations.items))
    statuses = np.bincount(observations.status, minlength=len(STATUSES)).tolist()
    return {
        "rows": len(observations),
        "cells": _cells(observations),
        "subjects": _distinct(observations.subject, len(observations.subjects)),
        "items": listing.get("listed", items) + listing.get("not_listed", 0),
        "items_without_response": listing.get("listed_without_response", 0),
        "scored": int(np.count_nonzero(~np.isnan(observations.score))),
        "statuses": {name: count for name, count in zip(STATUSES, statuses, strict=True) if count},
        "benchmarks": _benchmarks(observations),
    }


def _distinct(codes: NDArray[np.int32], size: int) -> int:
    return int(np.count_nonzero(np.bincount(codes, minlength=size)))


def _cells(observations: Observations) -> int:
    """How many pairs of subject and item there are."""
    pair = observations.subject.astype(np.int64) * max(len(observations.items), 1) + observations.item
    pair.sort()
    return int(np.count_nonzero(np.diff(pair))) + bool(len(pair))


def _benchmarks(observations: Observations) -> list[dict[str, Any]]:
    """A row for each benchmark, metric and filter that is there."""
    metrics, filters = len(observations.metrics) + 1, len(observations.filters)
    group = observations.items.benchmark[observations.item] * np.int32(metrics)
    group += observations.metric + 1
    group *= np.int32(filters)
    group += observations.filter
    size = len(observations.items.benchmarks) * metrics * filters
    rows = np.bincount(group, minlength=size)
    known = ~np.isnan(observations.score)
    scored = np.bincount(group[known], minlength=size)
    total = np.bincount(group[known], weights=observations.score[known], minlength=size)
    subjects = _distinct_in(group, observations.subject, size, len(observations.subjects))
    items = _distinct_in(group, observations.item, size, len(observations.items))
    return [
        {
            "benchmark": observations.items.benchmarks[code // filters // metrics],
            "metric": observations.metrics[metric - 1] if (metric := code // filters % metrics) else None,
            "filter": observations.filters[code % filters],
            "subjects": int(subjects[code]),
            "items": int(items[code]),
            "rows": int(rows[code]),
            "scored": int(scored[code]),
            "mean": float(total[code] / scored[code]) if scored[code] else None,
        }
        for code in np.flatnonzero(rows).tolist()
    ]


def _distinct_in(
    group: NDArray[np.int32], codes: NDArray[np.int32], groups: int, size: int
) -> NDArray[np.int64]:
    """How many distinct codes each group has."""
    pair = group.astype(np.int64) * max(size, 1) + codes
    pair.sort()
    first = np.ones(len(pair), dtype=np.bool_)
    first[1:] = pair[1:] != pair[:-1]
    return np.bincount(pair[first] // max(size, 1), minlength=groups)
