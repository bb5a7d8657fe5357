"""The options of an adaptive test, shared by ``run`` and ``session new``, and what a missed target does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from irteval.cli.console import Console

if TYPE_CHECKING:
    from irteval.estimate.result import Estimate

TARGET_MISSED = 3

Budget: TypeAlias = Annotated[
    int | None, typer.Option(min=1, metavar="ITEMS", help="Most items to ask; the whole bank by default.")
]
Target: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="WIDTH", help="Stop at this half-width of the interval: 0.04 is 4 points."),
]
Level: TypeAlias = Annotated[float, typer.Option(help="Coverage of the interval.")]
Batch: TypeAlias = Annotated[
    int | None, typer.Option(min=1, metavar="ITEMS", help="Items asked at once; grows along by default.")
]
Criterion: TypeAlias = Annotated[
    Literal[
        "score",
        "random",
        "fisher",
        "kl",
        "d-optimal",
        "posterior-variance",
        "stratified",
        "balanced",
        "pps",
        "faq",
    ],
    typer.Option(
        help="How items are picked: for the full score; for ability (fisher, kl, d-optimal); where the "
        "answer is least certain; or drawn with known probabilities (random, stratified, balanced, pps, faq)."
    ),
]
Errors: TypeAlias = Annotated[
    Literal["missing", "wrong"], typer.Option(help="What an item that failed to run counts as.")
]
Costs: TypeAlias = Annotated[
    Literal["ignore", "bank"],
    typer.Option(help="Whether the choice of items allows for what each costs by the bank."),
]


def check_target(console: Console, estimates: Sequence[Estimate], target: float | None) -> None:
    """Exit with code 3 where a subject's test has ended and its interval is wider than wanted."""
    if target is None:
        return
    missed = [
        estimate
        for estimate in estimates
        if estimate.stopped not in (None, "target") and estimate.half_width > target
    ]
    if missed:
        console.say(
            f"{len(missed)} of {len(estimates)} subjects missed the target of ± {target:g}, "
            f"first '{missed[0].subject}' with ± {missed[0].half_width:.4f}"
        )
        raise typer.Exit(TARGET_MISSED)
