"""``irteval fit``: calibrate an item bank from responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from irteval.cli import reading
from irteval.cli.console import Console
from irteval.cli.flags import with_flags


@with_flags
def fit(
    console: Console,
    responses: Annotated[list[Path], typer.Argument(help="Response tables: parquet, CSV, JSON lines.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the bank goes.")],
    response_model: Annotated[Literal["1pl", "2pl"], typer.Option(help="The item response model.")] = "2pl",
    dims: Annotated[int, typer.Option(min=1, metavar="K", help="Dimensions of ability.")] = 1,
    estimator: Annotated[
        Literal["auto", "variational", "grid"],
        typer.Option(help="How it is fitted; auto takes the grid for short tests."),
    ] = "auto",
    priors: Annotated[Literal["on", "off"], typer.Option(help="Hierarchical priors on the items.")] = "on",
    name: Annotated[str | None, typer.Option(help="Of the bank; its folder's name by default.")] = None,
    metric: Annotated[str, typer.Option(help="Name of the score.")] = "score",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a bank that is there.")] = False,
    benchmark: reading.Benchmark = None,
    items: reading.Items = None,
    subjects: reading.Subjects = None,
    trials: reading.Trials = None,
    scale: reading.Scale = "share",
    variant: reading.Variant = None,
) -> None:
    """Calibrate an item bank from the responses that many subjects have given."""
    from irteval.bank import ItemBank
    from irteval.calibrate.fit import fit as fit_bank
    from irteval.report import describe

    ItemBank.check_place(out, overwrite=overwrite)
    with console.steps() as step:
        step(f"reading {', '.join(str(path) for path in responses)}")
        matrix = reading.read(
            console,
            responses,
            benchmark=benchmark,
            items=items,
            subjects=subjects,
            trials=trials,
            scale=scale,
            variant=variant,
        )
        bank = fit_bank(
            matrix,
            response_model=response_model,
            dims=dims,
            estimator=estimator,
            priors=priors == "on",
            device=console.device,
            seed=console.seed,
            metric=metric,
            name=name or out.resolve().name,
            progress=step,
        )
        bank.save(out, overwrite=overwrite)
    report = bank.fit_report.to_json() if bank.fit_report else {}
    console.result({"bank": str(out)} | report, describe.table(describe.calibrated(bank)))
    for warning in report.get("warnings", []):
        console.say(f"warning: {warning}")
