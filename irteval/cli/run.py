"""``irteval run``: test subjects adaptively."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from irteval.cli import reading, testing
from irteval.cli.console import Console
from irteval.cli.flags import with_flags


@with_flags
def run(
    console: Console,
    bank: Annotated[Path, typer.Argument(help="Folder of the item bank.")],
    driver: Annotated[Literal["replay"], typer.Option(help="What answers: replay plays recorded responses.")],
    responses: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Recorded responses, for --driver replay.")
    ] = None,
    subject: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Who is tested; everyone when none is named.")
    ] = None,
    budget: testing.Budget = None,
    target: testing.Target = None,
    level: testing.Level = 0.95,
    batch: testing.Batch = None,
    criterion: testing.Criterion = "score",
    errors: testing.Errors = "missing",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Run folder; a run that is there with these settings goes on."),
    ] = None,
    benchmark: reading.Benchmark = None,
    items: reading.Items = None,
    subjects: reading.Subjects = None,
    trials: reading.Trials = None,
    scale: reading.Scale = "share",
    variant: reading.Variant = None,
) -> None:
    """Test one or many subjects adaptively and estimate their full scores."""
    if not responses:
        raise typer.BadParameter(f"wanted with --driver {driver}", param_hint="'--responses'")
    from irteval.bank import ItemBank
    from irteval.drivers.replay import replay
    from irteval.report.tables import estimates_table

    item_bank = ItemBank.load(bank)
    recorded = reading.read(
        console,
        responses,
        benchmark=benchmark,
        items=items,
        subjects=subjects,
        trials=trials,
        scale=scale,
        variant=variant,
    )
    matched = reading.match(console, item_bank, recorded)
    with console.bar("subjects tested") as progress:
        estimates = replay(
            item_bank,
            matched,
            subjects=subject or None,
            budget=budget,
            target=target,
            level=level,
            batch=batch,
            criterion=criterion,
            errors=errors,
            seed=console.seed,
            device=console.device,
            out=out,
            bank_path=bank,
            progress=progress,
        )
    document = {"estimates": [estimate.to_json() for estimate in estimates]}
    console.result(document, estimates_table(estimates))
    console.warnings(estimates)
    testing.check_target(console, estimates, target)
