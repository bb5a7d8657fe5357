"""The options of the live drivers of ``run``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

LIVE = "Live drivers"
COMMAND = "--driver command"
OPENAI = "--driver openai"
HARNESS = "--driver lm-eval and inspect"

MaxSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0, metavar="S", help="Ask nothing more after so long.", rich_help_panel=LIVE),
]
MaxCost: TypeAlias = Annotated[
    float | None, typer.Option(metavar="COST", help="Ask nothing more at this cost.", rich_help_panel=LIVE)
]
MaxTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Ask nothing more at so many tokens.", rich_help_panel=LIVE),
]
Concurrency: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Calls in flight at once.", rich_help_panel=LIVE)
]
Timeout: TypeAlias = Annotated[
    float | None, typer.Option(min=0.1, metavar="S", help="Seconds for one call.", rich_help_panel=LIVE)
]
Command: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="LINE",
        help="What runs items: {ids_file} has one id a line, {out_file} takes JSON lines.",
        rich_help_panel=COMMAND,
    ),
]
Model: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="What the harness calls the model.", rich_help_panel=LIVE)
]
ModelArgs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "-M",
        "--model-arg",
        metavar="KEY=VALUE",
        help="Argument of the model, or member of a request: max_tokens=64.",
        rich_help_panel=LIVE,
    ),
]
Prompts: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON lines: item, prompt or messages, target, and for choices choices.",
        rich_help_panel=OPENAI,
    ),
]
BaseUrl: TypeAlias = Annotated[
    str,
    typer.Option(metavar="URL", help="Of the server.", envvar="OPENAI_BASE_URL", rich_help_panel=OPENAI),
]
Api: TypeAlias = Annotated[
    Literal["chat", "completions"], typer.Option(help="Which of the two.", rich_help_panel=OPENAI)
]
ScoringOption: TypeAlias = Annotated[
    Literal["exact", "regex", "choice", "choice-norm"],
    typer.Option(
        help="The whole answer is a target; its last match of --pattern is; the right choice has the largest "
        "log-likelihood (by its length: choice-norm).",
        rich_help_panel=OPENAI,
    ),
]
Pattern: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Of --scoring regex; a number.", rich_help_panel=OPENAI),
]
Retries: TypeAlias = Annotated[
    int, typer.Option(min=0, metavar="N", help="Of a request, with back-off.", rich_help_panel=OPENAI)
]
Prices: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="IN OUT", help="Of a million tokens; they make the cost of items.", rich_help_panel=OPENAI
    ),
]
Tasks: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Tasks, groups or tags, joined by commas; the bank's benchmarks by default.",
        rich_help_panel=HARNESS,
    ),
]
IncludePath: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Of further lm-eval tasks.", rich_help_panel=HARNESS),
]
TaskArgs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "-T",
        "--task-arg",
        metavar="KEY=VALUE",
        help="How tasks are put: num_fewshot=5, apply_chat_template=true; or arguments of an Inspect task.",
        rich_help_panel=HARNESS,
    ),
]
Metric: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,FILTER]", help="The score; the bank's metric by default.", rich_help_panel=HARNESS
    ),
]
Checkpoints: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="GLOB",
        help="Test each of these as -M pretrained=…, in the order of the numbers in their names.",
        rich_help_panel=HARNESS,
    ),
]
FromPrevious: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--from-previous",
        help="Start each checkpoint from the ability of the one before; safe where they differ.",
        rich_help_panel=HARNESS,
    ),
]


@dataclass(frozen=True)
class Options:
    """The options of the live drivers, as `irteval.cli.flags.with_flags` takes them."""

    max_seconds: MaxSeconds = None
    max_cost: MaxCost = None
    max_tokens: MaxTokens = None
    concurrency: Concurrency = 1
    timeout: Timeout = None
    command: Command = None
    model: Model = None
    model_args: ModelArgs = None
    prompts: Prompts = None
    base_url: BaseUrl = "http://localhost:8000/v1"
    api: Api = "chat"
    scoring: ScoringOption = "exact"
    pattern: Pattern = None
    retries: Retries = 8
    prices: Prices = None
    tasks: Tasks = None
    task_args: TaskArgs = None
    include_path: IncludePath = None
    metric: Metric = None
    checkpoints: Checkpoints = None
    from_previous: FromPrevious = False
