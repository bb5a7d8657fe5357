"""Where output goes: results to stdout, remarks to stderr; with ``--json`` one document alone to stdout."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import rich.console
from rich.markup import escape

from irteval.errors import IrtevalError
from irteval.files import json_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from irteval.estimate.result import Estimate

FORMAT_VERSION = 1
SECONDS_BETWEEN_LINES = 5.0
WIDTH_WITHOUT_TERMINAL = 160


class Console:
    """The output of one command.

    Attributes:
        command: its name, such as ``session new``.
        as_json: one JSON document on stdout, and what people read on stderr.
        quiet: no progress and no remarks.
        debug: a traceback with an unexpected error.
        seed, device: of the computation; they are flags of every command.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self.command = ""
        self.as_json = as_json
        self.quiet = False
        self.debug = False
        self.seed = 0
        self.device = "auto"

    def result(self, content: dict[str, Any], *shown: RenderableType) -> None:
        """The command's result: ``content`` as JSON, or ``shown`` for people."""
        if self.as_json:
            self.document(content)
            return
        console = _console(sys.stdout)
        for part in shown:
            console.print(part)

    def document(self, content: dict[str, Any]) -> None:
        """A JSON document on stdout, headed by its version and the command."""
        head = {"format_version": FORMAT_VERSION, "command": self.command}
        _write_json(head | content)

    def say(self, text: str) -> None:
        """A remark for people."""
        if not self.quiet:
            _console(sys.stderr).print(escape(text), highlight=False, soft_wrap=True)

    def notes(self, notes: Sequence[str]) -> None:
        """What a person should be told, a line each."""
        for note in notes:
            self.say(f"note: {note}")

    def warnings(self, estimates: Sequence[Estimate]) -> None:
        """The warnings of estimates, each text once."""
        counts = Counter(warning for estimate in estimates for warning in estimate.warnings)
        for warning, count in counts.items():
            who = f"{count} of {len(estimates)} subjects: " if len(estimates) > 1 else ""
            self.say(f"warning: {who}{warning}")

    def fail(self, error: IrtevalError) -> int:
        """Report an error and return the exit code."""
        if self.as_json:
            _write_json({"error": error.to_json()})
        _console(sys.stderr).print(
            f"[red]error:[/] {escape(_one_line(str(error)))}", highlight=False, soft_wrap=True
        )
        return error.exit_code

    @contextmanager
    def steps(self) -> Iterator[Callable[[str], None]]:
        """Show what is being done, a text a step: beside a spinner on a terminal, else as plain lines."""
        console = _console(sys.stderr)
        if self.quiet or not console.is_terminal:
            yield self.say
            return
        with console.status("") as status:
            yield lambda text: status.update(escape(text))

    @contextmanager
    def bar(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show progress as done of all: a bar on a terminal, else a plain line every few seconds."""
        console = _console(sys.stderr)
        if self.quiet or not console.is_terminal:
            yield self._plain_bar(what)
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(what, total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)

    def _plain_bar(self, what: str) -> Callable[[int, int], None]:
        last = time.monotonic()

        def show(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                self.say(f"{what}: {done:,} of {total:,}")

        return show


def _console(stream: Any) -> rich.console.Console:
    width = None if stream.isatty() else WIDTH_WITHOUT_TERMINAL
    return rich.console.Console(file=stream, width=width)


def _write_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json_bytes(document).decode())
    sys.stdout.flush()


def _one_line(text: str) -> str:
    return " ".join(text.split())
