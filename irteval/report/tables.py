"""Small tables for a terminal."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.table import Table

from irteval.estimate.result import Estimate


def estimates_table(
    estimates: Sequence[Estimate], *, truth: Mapping[str, float] | None = None, title: str | None = None
) -> Table:
    """One row an estimate, and below it one for each benchmark of a suite: score, interval, items.

    Args:
        estimates: what to show, in this order.
        truth: the full-benchmark score of subjects where it is known; adds the columns ``true score`` and
            ``covered``.
        title: a line above the table.

    Returns:
        A table for ``rich.console.Console.print``.
    """
    table = Table(box=SIMPLE_HEAD, title=title, show_edge=False, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("subject", no_wrap=True)
    if truth is not None:
        table.add_column("true\nscore", justify="right")
    table.add_column("estimate", justify="right", no_wrap=True)
    table.add_column(_level(estimates), justify="center", no_wrap=True)
    table.add_column("items\nasked", justify="right")
    table.add_column("items\nsaved", justify="right")
    if truth is not None:
        table.add_column("covered", justify="center", no_wrap=True)
    for estimate in estimates:
        table.add_row(*_row(estimate, estimate.subject, truth))
        for group in estimate.groups:
            table.add_row(*_row(group, f"  {group.benchmark}", None if truth is None else {}))
    if any(estimate.extrapolating for estimate in estimates):
        table.caption = "* beyond, or unlike, the calibrated subjects"
    return table


def _level(estimates: Sequence[Estimate]) -> str:
    """Heading of the interval's column; the level is named where all rows share it."""
    levels = {estimate.level for estimate in estimates}
    return f"{100 * levels.pop():g} % interval" if len(levels) == 1 else "interval"


def _row(estimate: Estimate, name: str, truth: Mapping[str, float] | None) -> list[str]:
    low, high = estimate.interval
    cells = [
        f"{estimate.score:.3f}",
        f"{low:.3f} – {high:.3f}",
        f"{estimate.items_asked:,}",
        f"{estimate.items_total - estimate.items_asked:,}",
    ]
    if truth is not None:
        known = truth.get(estimate.subject)
        cells.insert(0, "" if known is None else f"{known:.3f}")
        cells.append("" if known is None else "yes" if low <= known <= high else "no")
    return [f"{name} *" if estimate.extrapolating else name, *cells]


def validation_table(table: pd.DataFrame, level: float) -> Table:
    """Held-out errors, in points of the score: a row a benchmark, split, method and size.

    Args:
        table: of `irteval.validation.validate`.
        level: of the intervals.
    """
    shown = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    suite = len(table["benchmark"].unique()) > 1
    names = (["benchmark"] if suite else []) + ["split", "method"]
    for name in names:
        shown.add_column(name, no_wrap=True)
    heads = ("items", "mean abs.\nerror (SE)", "RMSE", "bias", "Kendall", "Spearman", "pairs\nordered")
    last = (f"coverage of\n{100 * level:g} % (SE)", "width", "effective\nsample")
    for head in (*heads, *last):
        shown.add_column(head, justify="right")
    stops = bool(table["target"].notna().any())
    if stops:
        shown.add_column("Wilson\nitems", justify="right")
        shown.caption = (
            "± h: stopped at this half-width; Wilson items: what a fixed random sample needs for it"
        )
        shown.caption_justify = "left"
    for row in table.to_dict("records"):
        cells = [str(row[name]) for name in names] + _validation_cells(row)
        shown.add_row(*cells, *([_number(row["wilson_items"], ".0f")] if stops else []))
    return shown


def _validation_cells(row: Mapping[Hashable, Any]) -> list[str]:
    asked = f"{row['items']:,.0f}" if pd.isna(row["target"]) else f"± {row['target']:g}: {row['items']:,.0f}"
    points = {name: 100 * row[name] for name in ("mae", "mae_se", "rmse", "bias", "width")}
    coverage = f"{row['coverage']:.3f} ({row['coverage_se']:.3f})"
    return [
        asked,
        f"{points['mae']:.2f} ({points['mae_se']:.2f})",
        f"{points['rmse']:.2f}",
        f"{points['bias']:+.2f}",
        _number(row["kendall"], ".3f"),
        _number(row["spearman"], ".3f"),
        _number(row["decision"], ".3f"),
        "" if pd.isna(row["coverage"]) else coverage,
        _number(points["width"], ".1f"),
        _number(row["effective_sample"], ".2f"),
    ]


def _number(value: float, form: str) -> str:
    return "" if pd.isna(value) else format(value, form)
