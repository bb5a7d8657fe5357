"""A command of the user's own answers the items: files of ids in, JSON lines of answers out.

Made for harnesses in any language, and for benchmarks of agents whose items run for hours. Every call has a
folder of its own in the run folder's ``work/``, so that nothing that was answered is lost with the process:
a command that outlives it is waited for, and what it wrote is read, before anything is run again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from irteval.drivers.live import Outcomes
from irteval.errors import InputError
from irteval.files import write_file
from irteval.journal import read_answers, whole_lines
from irteval.session import ItemReference, Response, Status

IDS_FILE, OUT_FILE, LOG_FILE, ALIVE_FILE = "ids.txt", "out.jsonl", "log.txt", ".alive"
PLACES = {"{ids_file}": IDS_FILE, "{out_file}": OUT_FILE}
SECONDS_BETWEEN_LOOKS = 0.2
LAST_WORDS = 300  # characters of a failing command's output that are shown

log = logging.getLogger(__name__)


class CommandHarness:
    """Runs a command for each batch of items.

    ``{ids_file}`` in the command stands for a file with one item id a line, ``{out_file}`` for the file of
    JSON lines ``{"item", "score", "status", "cost", "tokens"}`` that the command writes. No shell sees the
    command: it is split into words as a shell would, and a place in a word becomes a path, whatever
    characters that has. A command that needs a shell is ``sh -c '…'``.

    A command that fails, or doesn't answer an item, leaves it with the outcome ``error``; one that takes
    longer than ``timeout`` is ended, and its open items have the outcome ``timeout``.

    Args:
        command: to run.
        folder: for the files of the calls.
        timeout: seconds a call.

    Raises:
        InputError: a command that can't be split, or lacks one of the places.
    """

    def __init__(self, command: str, folder: Path, timeout: float | None = None) -> None:
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"{error}: {command}", field="command") from None
        if missing := [place for place in PLACES if not any(place in word for word in self.words)]:
            raise InputError(f"no {missing[0]} in: {command}", field="command")
        self.folder = folder
        self.timeout = timeout
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._stopping = False

    def recover(self, items: Sequence[ItemReference]) -> Outcomes:
        """What earlier calls wrote; calls that are still running are waited for."""
        wanted = {reference.item for reference in items}
        found: dict[str, Response] = {}
        for call in sorted(path for path in self.folder.glob("*") if path.is_dir()):
            asked = set(_lines(call / IDS_FILE))
            if wanted.isdisjoint(asked):
                continue
            with open(call / ALIVE_FILE, "a") as alive:
                if not _try_lock(alive):
                    log.warning("%s is still running, waiting for it", call)
                    fcntl.flock(alive, fcntl.LOCK_EX)
            answers = _read(call / OUT_FILE, asked, ended=False)
            found |= {item: answer for item, answer in answers.items() if item in wanted}
        return found

    def answer(self, items: Sequence[ItemReference]) -> Outcomes:
        """Run the command on these items."""
        asked = [reference.item for reference in items]
        call = self._new_call(asked)
        words = [_filled(word, call) for word in self.words]
        status, reason = self._run(words, call)
        try:
            answers = _read(call / OUT_FILE, set(asked), ended=reason is None)
        except InputError as error:
            if reason is None:
                raise
            answers, reason = {}, f"{reason}; {error}"
        lost = [item for item in asked if item not in answers]
        if lost:
            log.warning("%s: %s", call, reason or f"no answer to {len(lost)} of {len(asked)} items")
        return answers | {item: Response(None, status=status) for item in lost}

    def stop(self) -> None:
        """End the commands that are running, and what they started."""
        with self._lock:
            self._stopping = True
            for group in self._running:
                _kill(group)

    def _new_call(self, asked: Sequence[str]) -> Path:
        if odd := [item for item in asked if "\n" in item or "\r" in item]:
            raise InputError(f"{odd[0]!r} has a line break, wanted ids of one line", field="item")
        with self._lock:
            last = max((int(path.name) for path in self.folder.glob("*") if path.name.isdigit()), default=-1)
            call = self.folder / f"{last + 1:06d}"
            call.mkdir(parents=True)
        write_file(call / IDS_FILE, "".join(f"{item}\n" for item in asked).encode())
        return call

    def _run(self, words: Sequence[str], call: Path) -> tuple[Status, str | None]:
        """Run to the end; the outcome of items without an answer, and what went wrong."""
        with open(call / ALIVE_FILE, "a") as alive, open(call / LOG_FILE, "ab") as output:
            # Inherited by the command: the lock lives as long as it does, even where this process doesn't.
            fcntl.flock(alive, fcntl.LOCK_EX)
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=[alive.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(
                    f"can't run {shlex.quote(words[0])}: {error.strerror}", field="command"
                ) from None
            with self._lock:
                self._running.add(process.pid)
                if self._stopping:
                    _kill(process.pid)
            try:
                code = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                _kill(process.pid)
                process.wait()
                return "timeout", f"the command took longer than {self.timeout:g} s and was ended"
            finally:
                with self._lock:
                    self._running.discard(process.pid)
        return "error", f"the command ended with code {code}: {_tail(call / LOG_FILE)}" if code else None


def _filled(word: str, call: Path) -> str:
    for place, name in PLACES.items():
        word = word.replace(place, str((call / name).resolve()))
    return word


def _read(file: Path, asked: set[str], *, ended: bool) -> dict[str, Response]:
    """The answers in a call's file; none where there is no file. Of a call that did not end by itself, a
    last line may be cut short.

    Raises:
        InputError: a line that is no answer, or an answer to an item that the call wasn't asked.
    """
    if not file.is_file():
        return {}
    content = file.read_bytes() if ended else whole_lines(file.read_bytes())
    answers = {answer.item: answer for answer in read_answers(content, str(file))}
    if strangers := answers.keys() - asked:
        raise InputError(
            f"an answer to '{min(strangers)}', which was not asked", file=str(file), field="item"
        )
    return {
        item: Response(a.score, a.trials, a.status, a.cost, a.tokens, a.time) for item, a in answers.items()
    }


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n") if file.is_file() else []


def _tail(file: Path) -> str:
    return " ".join(file.read_text(errors="replace").split())[-LAST_WORDS:]


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _kill(group: int) -> None:
    """End a command and what it started: politely, then for good."""
    try:
        os.killpg(group, signal.SIGTERM)
        time.sleep(SECONDS_BETWEEN_LOOKS)
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
