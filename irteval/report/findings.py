"""What the checks of responses found, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from irteval.responses.checks import CheckReport
from irteval.responses.checks.finding import Named, Severity

STYLES: Mapping[Severity, str] = {"fatal": "bold red", "warning": "yellow", "note": ""}


def findings_table(report: CheckReport) -> Table:
    """One row a finding, the gravest first: what was found, and whom it concerns."""
    table = Table(box=SIMPLE_HEAD, title="Checks", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("severity", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("finding", overflow="fold", ratio=3)
    table.add_column("concerns", overflow="fold", ratio=2)
    for finding in report.findings:
        place = "" if finding.benchmark is None else f"{finding.benchmark}: "
        concerned = [_text(finding.subjects, "subject"), _text(finding.items, "item")]
        table.add_row(
            Text(finding.severity, STYLES[finding.severity]),
            finding.check,
            Text(place + finding.what),
            Text("; ".join(text for text in concerned if text)),
        )
    if not report.findings:
        table.add_row("", ", ".join(report.checks), "nothing found", "")
    return table


def _text(named: Named, what: str) -> str:
    """The first ids, and how many more there are."""
    if not named.total:
        return ""
    first = ", ".join(named.ids[:2])
    more = named.total - len(named.ids[:2])
    return f"{what} {first}" if not more else f"{what}s {first} and {more:,} more"
