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
    metrics, filters = len(observations.metrics) + 1, len(observations.filters)
    group = observations.items.benchmark[observations.item] * np.int32(metrics)
    group += observations.metric + 1
    group *= np.int32(filters)
    group += observations.filter
    counts = np.bincount(group, minlength=len(observations.items.benchmarks) * metrics * filters)
    return [_benchmark(observations, group == code, int(code)) for code in np.flatnonzero(counts)]


def _benchmark(observations: Observations, here: NDArray[np.bool_], code: int) -> dict[str, Any]:
    rest, filter = divmod(code, len(observations.filters))
    benchmark, metric = divmod(rest, len(observations.metrics) + 1)
    score = observations.score[here]
    scored = ~np.isnan(score)
    return {
        "benchmark": observations.items.benchmarks[benchmark],
        "metric": observations.metrics[metric - 1] if metric else None,
        "filter": observations.filters[filter],
        "subjects": _distinct(observations.subject[here], len(observations.subjects)),
        "items": _distinct(observations.item[here], len(observations.items)),
        "rows": len(score),
        "scored": int(scored.sum()),
        "mean": float(score[scored].mean()) if scored.any() else None,
    }
