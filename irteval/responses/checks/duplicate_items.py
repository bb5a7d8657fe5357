"""Items that are one question by their content, and keys under which two contents go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irteval.responses.checks.finding import LISTED_FINDINGS, Finding, Named, listed
from irteval.responses.matrix import ResponseMatrix

CHECK = "duplicate items"
CONTENT = ("content_hash", "content", "doc_hash", "hash")
ALIAS = ("native_id", "native", "alias", "key")


def duplicate_items(responses: ResponseMatrix) -> list[Finding]:
    """Items of equal content in a benchmark, with how often their answers agree; native ids of two contents.

    Contents are the column ``content_hash`` (or ``content``, ``doc_hash``, ``hash``) of the items' table,
    native ids its ``native_id`` (or ``native``, ``alias``, ``key``). Empty where there are no such columns.
    """
    table = responses.item_table
    content = None if table is None else _column(table, CONTENT)
    if table is None or content is None:
        return []
    benchmark = np.array(responses.benchmarks or [""] * len(responses.items), dtype=object)
    groups = _groups(benchmark, content)
    findings = [
        _duplicate(responses, items, benchmark[items[0]] or None) for items in groups[:LISTED_FINDINGS]
    ]
    if len(groups) > LISTED_FINDINGS:
        what = f"{len(groups) - LISTED_FINDINGS:,} more contents have several items"
        findings.append(Finding(CHECK, "warning", what))
    aliased = []
    alias = _column(table, ALIAS)
    if alias is not None:
        for items in _groups(benchmark, alias):
            contents = set(content[items])
            if len(contents) > 1:
                what = f"one native id, '{alias[items[0]]}', names {len(contents)} contents: versions of the "
                what += "data, or ids by position"
                aliased.append(Finding(CHECK, "warning", what, items=Named.of(responses.items, items)))
    return findings + listed(aliased)


def _column(table: pd.DataFrame, names: tuple[str, ...]) -> NDArray[Any] | None:
    """The first of these columns, as text; blank where missing."""
    name = next((name for name in names if name in table), None)
    return None if name is None else table[name].fillna("").astype(str).to_numpy(dtype=object)


def _groups(benchmark: NDArray[Any], values: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Positions of the items that share a benchmark and a value, where there are several."""
    known = np.flatnonzero(values != "")
    keys = pd.DataFrame({"benchmark": benchmark[known], "value": values[known]})
    code = keys.groupby(["benchmark", "value"], sort=False).ngroup().to_numpy()
    order = np.argsort(code, kind="stable")
    groups = np.split(known[order], np.cumsum(np.bincount(code))[:-1]) if len(code) else []
    return [group for group in groups if len(group) > 1]


def _duplicate(responses: ResponseMatrix, items: NDArray[np.intp], benchmark: str | None) -> Finding:
    answers = responses.take(items=items[:2]).dense()
    both = answers[~np.isnan(answers).any(axis=1)]
    figures: dict[str, float | int | str] = {"answered_both": len(both)}
    if len(both):
        figures["agreement"] = 1 - float(np.abs(both[:, 0] - both[:, 1]).mean())
    return Finding(
        CHECK,
        "warning",
        f"{len(items)} items have one content: a score counts the question {len(items)} times",
        items=Named.of(responses.items, items),
        benchmark=benchmark,
        figures=figures,
    )
