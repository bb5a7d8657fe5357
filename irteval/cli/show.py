"""``irteval show``: what a response table, a bank or a run folder holds, and checks of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from irteval.cli import reading
from irteval.cli.console import Console
from irteval.cli.flags import with_flags


@with_flags
def show(
    console: Console,
    path: Annotated[Path, typer.Argument(help="A response table, a bank's folder, or a run folder.")],
    benchmark: reading.Benchmark = None,
    items: reading.Items = None,
    subjects: reading.Subjects = None,
    trials: reading.Trials = None,
    scale: reading.Scale = "share",
    variant: reading.Variant = None,
) -> None:
    """Say what a response table, a bank or a run folder holds, and check responses for what breaks logs."""
    from irteval.report import describe
    from irteval.report.findings import findings_table
    from irteval.report.tables import estimates_table
    from irteval.responses.checks import CheckReport, check_responses

    report: CheckReport | None = None

    if path.is_dir() and describe.is_run(path):
        content = describe.run(path)
    elif path.is_dir():
        content = describe.bank(path)
    else:
        matrix = reading.read(
            console,
            [path],
            benchmark=benchmark,
            items=items,
            subjects=subjects,
            trials=trials,
            scale=scale,
            variant=variant,
        )
        report = check_responses(matrix, console.seed)
        content = describe.responses(matrix) | {"checks": report.to_json()}
    shown = [describe.table(content)]
    if report is not None:
        shown.append(findings_table(report))
    if content.get("estimates"):
        shown.append(estimates_table(describe.estimates(content)))
    console.result({"path": str(path)} | content, *shown)
    if report is not None and not report.usable:
        raise typer.Exit(2)
