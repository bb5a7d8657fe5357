"""``irteval run``: test subjects adaptively."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from irteval.cli import driving, live, reading, testing
from irteval.cli.console import Console
from irteval.cli.flags import with_flags

if TYPE_CHECKING:
    from irteval.bank import ItemBank
    from irteval.estimate.result import Estimate


@with_flags
def run(
    console: Console,
    bank: Annotated[Path, typer.Argument(help="Folder of the item bank.")],
    driver: Annotated[
        Literal["replay", "command", "openai", "lm-eval", "inspect"],
        typer.Option(
            help="What answers: recorded responses (replay), a command of yours, an OpenAI-compatible "
            "server, or a model in a harness."
        ),
    ],
    test: testing.Options,
    live_options: driving.Options,
    responses: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Recorded responses, for --driver replay.")
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Who is tested; of a replay everyone when none is named."),
    ] = None,
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
    if driver == "replay" and not responses:
        raise typer.BadParameter("wanted with --driver replay", param_hint="'--responses'")
    from irteval.bank import ItemBank
    from irteval.report.tables import estimates_table

    item_bank = ItemBank.load(bank)
    if driver == "replay":
        recorded = reading.read(
            console,
            responses or [],
            benchmark=benchmark,
            items=items,
            subjects=subjects,
            trials=trials,
            scale=scale,
            variant=variant,
        )
        estimates = _replay(console, item_bank, bank, recorded, subject, out, test)
    else:
        estimates = live.DRIVERS[driver](
            console,
            live.Live(
                bank=item_bank,
                bank_path=bank,
                out=out,
                settings=test.settings(console.seed)
                | {"max_cost": live_options.max_cost, "max_tokens": live_options.max_tokens},
                at_once=test.batch,
                subjects=subject,
                driver=driver,
                options=live_options,
            ),
        )
    document = {"estimates": [estimate.to_json() for estimate in estimates]}
    console.result(document, estimates_table(estimates))
    console.warnings(estimates)
    testing.check_target(console, estimates, test.target)


def _replay(
    console: Console,
    bank: ItemBank,
    path: Path,
    recorded: Any,
    subjects: Sequence[str] | None,
    out: Path | None,
    test: testing.Options,
) -> list[Estimate]:
    from irteval.drivers.replay import replay
    from irteval.scoring import recorded_score

    matched = reading.match(console, bank, recorded)
    settings = test.settings(console.seed, lambda name: recorded_score(bank, matched, name, test.level))
    with console.bar("subjects tested") as progress:
        return replay(
            bank,
            matched,
            subjects=subjects or None,
            device=console.device,
            out=out,
            bank_path=path,
            progress=progress,
            **settings,
        )
