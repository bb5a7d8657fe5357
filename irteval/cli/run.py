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
    responses: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Recorded responses, for --driver replay.")
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Who is tested; of a replay everyone when none is named."),
    ] = None,
    budget: testing.Budget = None,
    target: testing.Target = None,
    level: testing.Level = 0.95,
    batch: testing.Batch = None,
    criterion: testing.Criterion = "score",
    errors: testing.Errors = "missing",
    costs: testing.Costs = "ignore",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Run folder; a run that is there with these settings goes on."),
    ] = None,
    max_seconds: driving.MaxSeconds = None,
    max_cost: driving.MaxCost = None,
    max_tokens: driving.MaxTokens = None,
    concurrency: driving.Concurrency = 1,
    timeout: driving.Timeout = None,
    command: driving.Command = None,
    model: driving.Model = None,
    model_args: driving.ModelArgs = None,
    prompts: driving.Prompts = None,
    base_url: driving.BaseUrl = "http://localhost:8000/v1",
    api: driving.Api = "chat",
    scoring: driving.ScoringOption = "exact",
    pattern: driving.Pattern = None,
    retries: driving.Retries = 8,
    prices: driving.Prices = None,
    tasks: driving.Tasks = None,
    task_args: driving.TaskArgs = None,
    include_path: driving.IncludePath = None,
    metric: driving.Metric = None,
    checkpoints: driving.Checkpoints = None,
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
    settings = {
        "budget": budget,
        "target": target,
        "level": level,
        "batch": batch,
        "criterion": criterion,
        "errors": errors,
        "costs": costs,
        "seed": console.seed,
    }
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
        estimates = _replay(console, item_bank, bank, recorded, subject, out, settings)
    else:
        estimates = live.DRIVERS[driver](
            console,
            live.Live(
                bank=item_bank,
                bank_path=bank,
                out=out,
                settings=settings | {"max_cost": max_cost, "max_tokens": max_tokens},
                at_once=batch,
                concurrency=concurrency,
                max_seconds=max_seconds,
                driver=driver,
                options={
                    "subject": subject,
                    "timeout": timeout,
                    "command": command,
                    "model": model,
                    "model_args": model_args,
                    "prompts": prompts,
                    "base_url": base_url,
                    "api": api,
                    "scoring": scoring,
                    "pattern": pattern,
                    "retries": retries,
                    "prices": prices,
                    "tasks": tasks,
                    "task_args": task_args,
                    "include_path": include_path,
                    "metric": metric,
                    "checkpoints": checkpoints,
                },
            ),
        )
    document = {"estimates": [estimate.to_json() for estimate in estimates]}
    console.result(document, estimates_table(estimates))
    console.warnings(estimates)
    testing.check_target(console, estimates, target)


def _replay(
    console: Console,
    bank: ItemBank,
    path: Path,
    recorded: Any,
    subjects: Sequence[str] | None,
    out: Path | None,
    settings: dict[str, Any],
) -> list[Estimate]:
    from irteval.drivers.replay import replay

    matched = reading.match(console, bank, recorded)
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
