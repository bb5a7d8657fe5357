"""``irteval import``: evaluation logs to one table of responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from irteval.cli.console import Console
from irteval.cli.flags import with_flags
from irteval.errors import InputError


@with_flags
def import_(
    console: Console,
    sources: Annotated[list[Path], typer.Argument(help="Logs, and folders of logs.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the table goes: .parquet, .csv or .jsonl.")
    ],
    format: Annotated[
        str, typer.Option(metavar="NAME", help="Of the logs; told from their content by default.")
    ] = "auto",
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The metric to read, or all; one a benchmark by default."),
    ] = None,
    filter: Annotated[
        str | None, typer.Option(metavar="NAME", help="The filter of the answers, or all.")
    ] = None,
    errors: Annotated[
        Literal["missing", "wrong"], typer.Option(help="What answers that failed count as.")
    ] = "missing",
    repeats: Annotated[
        Literal["trials", "mean", "newest", "oldest", "error"] | None,
        typer.Option(
            help="What becomes of a cell observed more than once; trials by default, and with all metrics "
            "and filters every observation is kept."
        ),
    ] = None,
    scale: Annotated[
        Literal["share", "percent"], typer.Option(help="Scores are in [0, 1], or in 0 … 100.")
    ] = "share",
    chance: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Scores were corrected for guessing at this rate: undo it."),
    ] = None,
    items: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The full list of items, one id each.")
    ] = None,
    aliases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of subjects that mean the same.")
    ] = None,
    every_eval_ever: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write them in the schema of Every Eval Ever.")
    ] = None,
) -> None:
    """Turn evaluation logs of any supported format into one table of responses, and check it."""
    from irteval.report import imported
    from irteval.report.findings import findings_table
    from irteval.responses.checks import check_responses
    from irteval.responses.importing import import_logs
    from irteval.responses.logs.write import check_table_place

    check_table_place(out)
    with console.steps() as step:
        result = import_logs(
            sources,
            format=format,
            metric=metric,
            filter=filter,
            errors=errors,
            repeats=repeats,
            scale=scale,
            chance=chance,
            items=items,
            aliases=aliases,
            progress=step,
        )
        result.write(out)
        if every_eval_ever is not None:
            result.write_every_eval_ever(every_eval_ever)
    console.notes(result.notes)
    document = {"out": str(out)} | result.summary | {"notes": list(result.notes)}
    try:
        responses = result.responses()
    except InputError as error:  # several observations a cell were kept, as was asked for
        console.notes([f"not checked: {error}"])
        console.result(document, imported.table(result.summary))
        return
    report = check_responses(responses, console.seed)
    console.result(
        document | {"checks": report.to_json()}, imported.table(result.summary), findings_table(report)
    )
    if not report.usable:
        raise typer.Exit(2)
