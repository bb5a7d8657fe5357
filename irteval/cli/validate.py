"""``irteval validate``: error and coverage on held-out subjects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from irteval.cli import reading, testing
from irteval.cli.console import Console
from irteval.cli.flags import with_flags
from irteval.errors import InputError


@with_flags
def validate(
    console: Console,
    responses: Annotated[list[Path], typer.Argument(help="Response tables: parquet, CSV, JSON lines.")],
    size: Annotated[
        list[str], typer.Option(metavar="N", help="Items asked: a number, or a share such as 5%; repeatable.")
    ],
    split: Annotated[
        list[str],
        typer.Option(
            metavar="NAME", help="interpolation, extrapolation, newest or family; repeatable, or with commas."
        ),
    ] = ["interpolation"],  # noqa: B006 (typer reads it, nobody changes it)
    methods: Annotated[
        list[str], typer.Option(metavar="NAME", help="Methods to compare; repeatable, or with commas.")
    ] = ["auto", "random"],  # noqa: B006
    target: Annotated[
        list[float] | None,
        typer.Option(metavar="WIDTH", help="Also run adaptive methods to this half-width; repeatable."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Seeds of each split and method.")] = 5,
    level: testing.Level = 0.95,
    date: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of the subjects' table, for newest; else the order of ids."),
    ] = None,
    family: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of the subjects' table, for the split by family.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as there are cores by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Plot of error and coverage against size.")
    ] = None,
    benchmark: reading.Benchmark = None,
    items: reading.Items = None,
    subjects: reading.Subjects = None,
    trials: reading.Trials = None,
    scale: reading.Scale = "share",
    variant: reading.Variant = None,
) -> None:
    """Measure error, rank agreement, coverage and width on subjects that no fit has seen."""
    from irteval.report.tables import validation_table
    from irteval.validation import validate as validate_responses
    from irteval.validation.splits import column

    if out is not None and not out.resolve().parent.is_dir():
        raise InputError("no such folder", file=str(out.parent))
    splits = _names(split)
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
    if len(set(matrix.benchmarks or ())) > 1:
        console.say("note: each benchmark is validated apart; --benchmark picks one")
    if "newest" in splits and date is None:
        console.say("note: newest goes by the order of ids; --date names a column of the subjects' table")
    with console.bar("fits") as progress:
        table = validate_responses(
            matrix,
            sizes=_names(size),
            methods=_names(methods),
            splits=splits,
            repeats=repeats,
            seed=console.seed,
            level=level,
            order=None if date is None else column(matrix, date, "date"),
            families=None if family is None else column(matrix, family, "family"),
            half_widths=target or (),
            jobs=jobs or os.cpu_count() or 1,
            note=lambda line: console.say(f"note: {line}"),
            progress=progress,
        )
    if out is not None:
        from irteval.report.plots import save_png, validation_curves

        save_png(validation_curves(table, level), out)
        console.say(f"plot in {out}")
    rows = [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
    console.result({"rows": rows}, validation_table(table, level))


def _names(values: Sequence[str]) -> list[str]:
    """The values of a flag that may be repeated and may hold several between commas, each once."""
    parts = [part.strip() for value in values for part in value.split(",")]
    return list(dict.fromkeys(part for part in parts if part))


def _plain(value: Any) -> Any:
    """A cell as JSON has it; null for what is not defined."""
    import pandas as pd

    return None if pd.isna(value) else value
