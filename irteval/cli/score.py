"""``irteval score``: full scores from whichever items were answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from irteval.cli import reading, testing
from irteval.cli.console import Console
from irteval.cli.flags import with_flags


@with_flags
def score(
    console: Console,
    bank: Annotated[Path, typer.Argument(help="Folder of the item bank.")],
    responses: Annotated[list[Path], typer.Argument(help="Response tables, or one run folder.")],
    level: testing.Level = 0.95,
    benchmark: reading.Benchmark = None,
    items: reading.Items = None,
    subjects: reading.Subjects = None,
    trials: reading.Trials = None,
    scale: reading.Scale = "share",
    variant: reading.Variant = None,
) -> None:
    """Estimate the full score of each subject from whichever items it answered."""
    from irteval.bank import ItemBank
    from irteval.journal import RunFolder
    from irteval.report.tables import estimates_table
    from irteval.scoring import score as score_responses

    item_bank = ItemBank.load(bank)
    if len(responses) == 1 and responses[0].is_dir():
        run = RunFolder.open(responses[0])
        answered = run.responses()
        console.notes(run.notes)
    else:
        answered = reading.read(
            console,
            responses,
            benchmark=benchmark,
            items=items,
            subjects=subjects,
            trials=trials,
            scale=scale,
            variant=variant,
        )
    matched = reading.match(console, item_bank, answered)
    estimates = score_responses(item_bank, matched, level=level, device=console.device)
    document = {"estimates": [estimate.to_json() for estimate in estimates]}
    console.result(document, estimates_table(estimates))
    console.warnings(estimates)
