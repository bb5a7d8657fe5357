"""The options of an adaptive test, shared by ``run`` and ``session new``, and what a missed target does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

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
Share: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=LEAST:MOST",
        help="Of the items asked, of a benchmark: 'math=0.2:0.5', 'math=0.2:', '*=0.05:' for each.",
    ),
]
Difference: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="D",
        help="Stop when a difference of D from the rivals, or from another subject tested as closely, would "
        "be found with a power of 80 %.",
    ),
]
Rival: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHO",
        help="Compared with: NAME=SCORE, NAME=LOW:HIGH, the folder of an earlier run, or in a replay a "
        "subject.",
    ),
]
StopRank: TypeAlias = Annotated[
    bool, typer.Option("--stop-rank", help="Stop when it is known to be above or below each rival.")
]

Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Options:
    """The options of an adaptive test, as `irteval.cli.flags.with_flags` takes them."""

    budget: Budget = None
    target: Target = None
    level: Level = 0.95
    batch: Batch = None
    criterion: Criterion = "score"
    errors: Errors = "missing"
    costs: Costs = "ignore"
    share: Share = None
    difference: Difference = None
    rival: Rival = None
    stop_rank: StopRank = False

    def settings(self, seed: int, known: Callable[[str], Interval] | None = None) -> dict[str, Any]:
        """The attributes of `irteval.session.SessionSettings`.

        Args:
            seed: of every draw.
            known: interval of a subject whose responses are recorded; None where there are none.
        """
        return {
            "budget": self.budget,
            "target": self.target,
            "level": self.level,
            "batch": self.batch,
            "criterion": self.criterion,
            "errors": self.errors,
            "costs": self.costs,
            "seed": seed,
            "shares": {name: pair for word in self.share or () for name, pair in [_share(word)]} or None,
            "difference": self.difference,
            "rivals": {
                name: pair for word in self.rival or () for name, pair in self._rivals(word, known).items()
            }
            or None,
            "stop_rank": self.stop_rank,
        }

    def _rivals(self, word: str, known: Callable[[str], Interval] | None) -> dict[str, Interval]:
        """The subjects that one ``--rival`` names."""
        from irteval.scoring import earlier_scores

        name, equals, limits = word.partition("=")
        if equals:
            low, _, high = limits.partition(":")
            return {name: (_number(low, word, "--rival"), _number(high or low, word, "--rival"))}
        if Path(word).exists():
            return earlier_scores(Path(word), self.level)
        if known is not None:
            return {word: known(word)}
        wanted = "wanted NAME=SCORE or the folder of an earlier run"
        raise typer.BadParameter(f"'{word}', {wanted}", param_hint="'--rival'")


def _share(word: str) -> tuple[str, Interval]:
    name, equals, limits = word.rpartition("=")
    least, colon, most = limits.partition(":")
    if not name or not equals or not colon:
        raise typer.BadParameter(f"'{word}', wanted NAME=LEAST:MOST", param_hint="'--share'")
    return name, (_number(least or "0", word, "--share"), _number(most or "1", word, "--share"))


def _number(text: str, word: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' in '{word}', wanted a number", param_hint=f"'{flag}'") from None


def check_target(console: Console, estimates: Sequence[Estimate], target: float | None) -> None:
    """Exit with code 3 where a subject's test has ended and its interval is wider than wanted."""
    if target is None:
        return
    missed = [
        estimate
        for estimate in estimates
        if estimate.stopped in ("budget", "bank_empty", "interrupted") and estimate.half_width > target
    ]
    if missed:
        console.say(
            f"{len(missed)} of {len(estimates)} subjects missed the target of ± {target:g}, "
            f"first '{missed[0].subject}' with ± {missed[0].half_width:.4f}"
        )
        raise typer.Exit(TARGET_MISSED)
