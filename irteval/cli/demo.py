"""``irteval demo``: the whole story on an embedded default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from irteval.cli.console import Console
from irteval.cli.flags import with_flags


@with_flags
def demo(
    console: Console,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the bank, the tables and the plot go.")
    ] = Path("irteval-demo"),
) -> None:
    """Train classifiers of digits, fit a bank, test new ones with 5 % of the items; needs no network."""
    from irteval.demo import run_demo

    with console.steps() as step:
        result = run_demo(out, seed=console.seed, progress=step)
    console.result(result.to_json(), result.table(), result.summary())
