"""The options that say how response tables are read: one home for every command that reads some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from irteval.cli.console import Console

if TYPE_CHECKING:
    from irteval.bank import ItemBank
    from irteval.responses import ResponseMatrix

PANEL = "Reading responses"

Benchmark: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this benchmark's items.", rich_help_panel=PANEL)
]
Items: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Table about the items, joined by id.", rich_help_panel=PANEL),
]
Subjects: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Table about the subjects, joined by id.", rich_help_panel=PANEL),
]
Trials: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Each score is a share of N trials.", rich_help_panel=PANEL),
]
Scale: TypeAlias = Annotated[
    Literal["share", "ordinal"],
    typer.Option(help="Scores are shares in [0, 1], or ordered categories 0, 1, 2 …", rich_help_panel=PANEL),
]
Variant: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A facet crossed with items; the score is its mean.", rich_help_panel=PANEL
    ),
]


def read(
    console: Console,
    paths: Sequence[Path],
    *,
    benchmark: str | None,
    items: Path | None,
    subjects: Path | None,
    trials: int | None,
    scale: Literal["share", "ordinal"],
    variant: Sequence[str] | None,
) -> ResponseMatrix:
    """Read response tables and tell what was taken for what."""
    from irteval.responses.read import read_responses

    responses = read_responses(
        paths,
        benchmark=benchmark,
        items=items,
        subjects=subjects,
        trials=trials,
        scale=scale,
        variant=tuple(variant or ()),
    )
    console.notes(responses.notes)
    return responses


def match(console: Console, bank: ItemBank, responses: ResponseMatrix) -> ResponseMatrix:
    """The responses over the bank's items; says how many others were left out."""
    matched = bank.match(responses)
    console.notes(matched.notes[len(responses.notes) :])
    return matched
