"""Small tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
