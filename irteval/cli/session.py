"""``irteval session``: the adaptive loop by files, for any harness in any language."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irteval.cli import testing
from irteval.cli.console import Console
from irteval.cli.flags import with_flags
from irteval.errors import InputError

if TYPE_CHECKING:
    from irteval.session import Session

app = typer.Typer(help="The adaptive loop by files: new, ask, tell, estimate.")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the session.")]


@app.command("new")
@with_flags
def new(
    console: Console,
    folder: Folder,
    bank: Annotated[Path, typer.Option(metavar="FOLDER", help="The item bank.")],
    options: testing.Options,
    subject: Annotated[str, typer.Option(metavar="ID", help="Who is tested.")] = "subject",
) -> None:
    """Start a session in a folder."""
    from irteval.session import Session

    session = Session.create(folder, bank, subject, **options.settings(console.seed))
    session.close()
    document = {"session": str(folder), "subject": subject, "items_total": len(session.bank)}
    console.result(document, f"session of '{subject}' in {folder}: {len(session.bank):,} items in the bank")


@app.command("ask")
@with_flags
def ask(
    console: Console,
    folder: Folder,
    k: Annotated[int, typer.Option("-k", min=1, help="How many items at most.")] = 16,
) -> None:
    """Print the next items to run as JSON; none when the session has stopped or waits for answers."""
    session = _resume(console, folder)
    items = [{"item": asked.item, "benchmark": asked.benchmark} for asked in session.ask(k)]
    session.close()
    console.document({"items": items, "pending": len(session.pending), "stopped": session.stopped})


@app.command("tell")
@with_flags
def tell(
    console: Console,
    folder: Folder,
    answers: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help='JSON lines {"item", "score" or null, "status", "cost", "tokens"}.'
        ),
    ],
) -> None:
    """Take in what came out of items, in any order."""
    from irteval.journal import read_answers
    from irteval.session import Response

    if answers != "-" and not Path(answers).is_file():
        raise InputError("no such file", file=answers)
    content = sys.stdin.buffer.read() if answers == "-" else Path(answers).read_bytes()
    told = read_answers(content, answers)
    session = _resume(console, folder)
    session.tell(
        {
            answer.item: Response(
                answer.score, answer.trials, answer.status, answer.cost, answer.tokens, answer.time
            )
            for answer in told
        }
    )
    session.close()
    pending = len(session.pending)
    document = {"told": len(told), "pending": pending, "stopped": session.stopped}
    state = f"stopped: {session.stopped}" if session.stopped else f"{pending:,} pending"
    console.result(document, f"{len(told):,} answers told, {state}")


@app.command("estimate")
@with_flags
def estimate(console: Console, folder: Folder) -> None:
    """Estimate the full score from the answers told so far."""
    from irteval.report.tables import estimates_table

    session = _resume(console, folder)
    result = session.write_results()
    session.close()
    console.result({"estimates": [result.to_json()]}, estimates_table([result]))
    console.warnings([result])
    testing.check_target(console, [result], session.settings.target)


def _resume(console: Console, folder: Path) -> Session:
    from irteval.session import Session

    session = Session.resume(folder)
    if session.folder is not None:
        console.notes(session.folder.notes)
    return session
