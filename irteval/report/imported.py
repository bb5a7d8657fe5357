"""What an import read, as a small table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

_COUNTS = ("subjects", "items", "rows", "scored")


def table(summary: Mapping[str, Any]) -> Table:
    """One row a benchmark, metric and filter, for ``rich.console.Console.print``.

    Args:
        summary: of :class:`irteval.responses.importing.ImportedLogs`.
    """
    shown = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    shown.caption_justify = "left"
    shown.caption = (
        f"{summary['subjects']:,} subjects, {summary['items']:,} items, {summary['cells']:,} cells, "
        f"{summary['rows']:,} rows"
    )
    for name in ("benchmark", "metric", "filter"):
        shown.add_column(name)
    for name in (*_COUNTS, "mean"):
        shown.add_column(name, justify="right")
    for row in summary["benchmarks"]:
        counts = [f"{row[name]:,}" for name in _COUNTS]
        mean = "" if row["mean"] is None else f"{row['mean']:.4f}"
        shown.add_row(row["benchmark"], row["metric"] or "", row["filter"], *counts, mean)
    return shown
