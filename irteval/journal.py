"""The run folder: what was asked and told, kept so that a killed run goes on without asking again.

``run.json`` holds the settings, ``journal.jsonl`` a line a told response, ``asked.jsonl`` a line an asked
item, ``trajectory.parquet`` the estimates on the way and ``estimate.json`` the last ones. Both logs only ever
grow, and a batch is on disk before ``append_told`` returns. A line that a kill tore off is dropped when the
folder is next opened; everything else in the folder is written whole or not at all.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Any, Literal, Self, TypeVar

import numpy as np
import orjson
import pandas as pd
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from irteval.errors import InputError
from irteval.files import append_file, json_bytes, read_json, write_file
from irteval.responses.matrix import ResponseMatrix

FORMAT_VERSION = 1
SETTINGS_FILE = "run.json"
TOLD_FILE = "journal.jsonl"
ASKED_FILE = "asked.jsonl"
TRAJECTORY_FILE = "trajectory.parquet"
ESTIMATES_FILE = "estimate.json"
LOCK_FILE = ".lock"
WORK_FOLDER = "work"  # of drivers that keep files of their own

# Names of settings that hold what opens a service: api_key, hf_token, password; not max_tokens.
_SECRET = re.compile(r"(^|[_-])(key|token|secret|password|authorization|credentials?)$", re.IGNORECASE)

Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Line = TypeVar("Line")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(allow_inf_nan=False))
class _Outcome:
    item: Text
    score: Share | None
    trials: Count | None = None
    cost: float | None = None
    tokens: Count | None = None
    time: str | None = None


@dataclass(frozen=True, kw_only=True, config=ConfigDict(allow_inf_nan=False))
class Answer(_Outcome):
    """What a harness says about one item, checked.

    Attributes:
        item: id.
        score: a share in [0, 1]; None where there is none.
        status: ``ok``, ``error``, ``timeout`` or ``unscored``.
        trials: n, where the score is k of n.
        cost: in the user's unit.
        tokens: that the item took, in and out.
        time: ISO 8601, UTC.
    """

    status: Literal["ok", "error", "timeout", "unscored"] = "ok"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(allow_inf_nan=False))
class JournalLine(_Outcome):
    """One response, or one item that was asked, as the logs keep it: an ``Answer`` with its place in the run.

    Attributes:
        subject: id.
        status: as in ``Answer``; in the log of asked items ``planned`` (the design chose it, nobody has it
            yet) or ``asked`` (it was handed out).
        step: number of the batch that asked the item, from 0; None where it wasn't asked.
        probability: the inclusion probability that the design gave the item; None where it had none.
    """

    subject: Text
    status: Literal["ok", "error", "timeout", "unscored", "planned", "asked"] = "ok"
    step: Count | None = None
    probability: Share | None = None


_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
_JOURNAL_LINE: TypeAdapter[JournalLine] = TypeAdapter(JournalLine)


def now() -> str:
    """The time as the journal writes it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_answers(content: bytes, file: str) -> list[Answer]:
    """The answers in JSON lines ``{"item", "score" or null, "status", "cost"}``; blank lines are skipped.

    Args:
        content: the lines.
        file: their name in an error.

    Raises:
        InputError: a line that is no such object, or a second, different answer to an item; names file, line
            and field.
    """
    answers: dict[str, Answer] = {}
    for number, raw in enumerate(content.split(b"\n"), 1):
        if raw.strip():
            answer = _parse(_ANSWER, raw, file, number)
            if answers.setdefault(answer.item, answer) != answer:
                raise InputError(f"a second answer to '{answer.item}'", file=file, line=number, field="item")
    return list(answers.values())


def whole_lines(content: bytes) -> bytes:
    """JSON lines without a last one that is cut short."""
    last = content.rpartition(b"\n")[2]
    return content[: len(content) - len(last)] if _is_torn(last) else content


class RunFolder:
    """A folder that one process at a time may write to.

    ``create`` makes one and locks it; ``open`` reads one, and locks it when it is entered as a context or
    first written to. The lock dies with its process, however that ends.

    Attributes:
        path: the folder.
        settings: what the run was started with.
        notes: what a person should be told, such as a torn line that was dropped.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.settings = settings
        self.notes: list[str] = []
        self._lock: IO[str] | None = None

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], settings: Mapping[str, Any], *, overwrite: bool = False
    ) -> RunFolder:
        """Make the folder of a new run, locked.

        Args:
            path: a folder that doesn't exist, is empty or, with ``overwrite``, holds an earlier run.
            settings: plain values. Keys and passwords of services come from the environment: a setting by
                such a name is left out.
            overwrite: start anew where there is a run already.

        Raises:
            InputError: the folder holds a run or something else, or another process uses it.
        """
        place = Path(path)
        present = {entry.name for entry in place.iterdir()} if place.is_dir() else set()
        if SETTINGS_FILE in present and not overwrite:
            raise InputError("holds a run already; resume it, or name another folder", file=str(place))
        if others := sorted(present - _RUN_FILES):
            raise InputError(f"holds '{others[0]}', which is no part of a run", file=str(place))
        place.mkdir(parents=True, exist_ok=True)
        folder = cls(place, _without_secrets(settings))
        folder.lock()
        for name in present - {LOCK_FILE, WORK_FOLDER}:
            (place / name).unlink()
        shutil.rmtree(place / WORK_FOLDER, ignore_errors=True)
        document = {"format_version": FORMAT_VERSION, "settings": folder.settings}
        write_file(place / SETTINGS_FILE, json_bytes(document))
        return folder

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """A run that is there already, to read or to go on with.

        Raises:
            InputError: there is no run, or its settings can't be read.
        """
        file = Path(path) / SETTINGS_FILE
        if not file.is_file():
            raise InputError("no such file, so this is no run folder", file=str(file))
        document = read_json(file)
        version = document.get("format_version") if isinstance(document, dict) else None
        if version != FORMAT_VERSION:
            wanted = f"version {version}, this irteval reads version {FORMAT_VERSION}"
            raise InputError(wanted, file=str(file), field="format_version")
        if not isinstance(document.get("settings"), dict):
            raise InputError("wanted an object", file=str(file), field="settings")
        return cls(Path(path), document["settings"])

    @classmethod
    def create_or_resume(cls, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> RunFolder:
        """The folder of a run with these settings: the one that is there, or a new one. Locked.

        Raises:
            InputError: the folder holds a run with other settings, or another process uses it.
        """
        if not (Path(path) / SETTINGS_FILE).is_file():
            return cls.create(path, settings)
        folder = cls.open(path)
        wanted = orjson.loads(json_bytes(_without_secrets(settings)))
        for name in sorted(folder.settings.keys() | wanted.keys()):
            before, after = folder.settings.get(name), wanted.get(name)
            if before != after:
                raise InputError(
                    f"holds a run with {name} {_shown(before)}, now it is {_shown(after)}: "
                    "resume with the same settings, or name another folder",
                    file=str(folder.path),
                    field=name,
                )
        folder.lock()
        return folder

    def lock(self) -> None:
        """Keep every other process from writing to the folder until ``close``.

        Raises:
            InputError: another process has it.
        """
        if self._lock is not None:
            return
        # Left open on purpose: the lock lives as long as the descriptor. "a+" keeps the holder's id in it.
        file = open(self.path / LOCK_FILE, "a+")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise InputError(f"in use by process {holder}", file=str(self.path)) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._lock = file
        self._mend(TOLD_FILE)
        self._mend(ASKED_FILE)

    def close(self) -> None:
        """Let other processes write again."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        """Lock."""
        self.lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Unlock."""
        self.close()

    def append_asked(self, lines: Iterable[JournalLine]) -> None:
        """Log items as asked; on disk when it returns."""
        self._append(ASKED_FILE, lines)

    def append_told(self, lines: Iterable[JournalLine]) -> None:
        """Log a batch of responses; on disk when it returns."""
        self._append(TOLD_FILE, lines)

    def asked(self) -> list[JournalLine]:
        """Every asked item, in the order of asking."""
        return self._read(ASKED_FILE)

    def told(self) -> list[JournalLine]:
        """Every response, in the order of telling.

        Raises:
            InputError: a line that can't be read, other than a last one that was torn; names file and line.
        """
        return self._read(TOLD_FILE)

    def responses(self) -> ResponseMatrix:
        """The told responses as a matrix, the last one of each subject and item.

        Errors and timeouts count as the run's setting ``errors`` says: ``wrong``, or missing. Steps and
        probabilities are layers of the matrix where every response has a step, trials where every one has
        some; a probability is NaN where the item was chosen, not drawn.

        Raises:
            InputError: no response was told yet, or a line can't be read.
        """
        last = {(line.subject, line.item): line for line in self.told()}
        scored = [(line, self._score(line)) for line in last.values()]
        lines = [line for line, score in scored if score is not None]
        if not lines:
            raise InputError("no response was told yet", file=str(self.path / TOLD_FILE))
        subjects = sorted({line.subject for line in lines})
        items = sorted({line.item for line in lines})
        layers = {name: [getattr(line, name) for line in lines] for name in ("trials", "step")}
        layers = {name: values for name, values in layers.items() if None not in values}
        if "step" in layers:
            layers["probability"] = [
                np.nan if line.probability is None else line.probability for line in lines
            ]
        return ResponseMatrix.from_cells(
            subjects,
            items,
            np.searchsorted(subjects, [line.subject for line in lines]),
            np.searchsorted(items, [line.item for line in lines]),
            [score for _, score in scored if score is not None],
            **layers,
        )

    def write_trajectory(self, trajectory: pd.DataFrame) -> None:
        """Replace the table of estimates on the way."""
        self.lock()
        write_file(self.path / TRAJECTORY_FILE, trajectory.to_parquet(index=False))

    def write_estimates(self, document: Any) -> None:
        """Replace the last estimates."""
        self.lock()
        write_file(self.path / ESTIMATES_FILE, json_bytes(document))

    def estimates(self) -> Any:
        """The last estimates as they were written, or None."""
        file = self.path / ESTIMATES_FILE
        return read_json(file) if file.is_file() else None

    def _score(self, line: JournalLine) -> float | None:
        is_lost = line.status in ("error", "timeout")
        return 0.0 if is_lost and self.settings.get("errors") == "wrong" else line.score

    def _append(self, name: str, lines: Iterable[JournalLine]) -> None:
        content = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
        if content:
            self.lock()
            append_file(self.path / name, content)

    def _read(self, name: str) -> list[JournalLine]:
        file = self.path / name
        if not file.is_file():
            return []
        lines = file.read_bytes().split(b"\n")
        if _is_torn(lines[-1]):
            self._note_torn(file)
            lines.pop()
        return [
            _parse(_JOURNAL_LINE, raw, str(file), number)
            for number, raw in enumerate(lines, 1)
            if raw.strip()
        ]

    def _mend(self, name: str) -> None:
        """Cut a torn last line off, so that what is appended starts on a line of its own."""
        file = self.path / name
        content = file.read_bytes() if file.is_file() else b""
        last = content.rpartition(b"\n")[2]
        if _is_torn(last):
            self._note_torn(file)
            os.truncate(file, len(content) - len(last))
        elif last:
            append_file(file, b"\n")

    def _note_torn(self, file: Path) -> None:
        note = f"{file}: its last line was cut short when the run ended, and is dropped"
        if note not in self.notes:
            self.notes.append(note)


_RUN_FILES = {SETTINGS_FILE, TOLD_FILE, ASKED_FILE, TRAJECTORY_FILE, ESTIMATES_FILE, LOCK_FILE, WORK_FOLDER}


def _parse(schema: TypeAdapter[Line], raw: bytes, file: str, line: int) -> Line:
    try:
        return schema.validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else None
        raise InputError(first["msg"], file=file, line=line, field=field) from None


def _is_torn(last: bytes) -> bool:
    """Whether what stands after the last line feed is half a line."""
    if not last.strip():
        return False
    try:
        return not isinstance(orjson.loads(last), dict)
    except orjson.JSONDecodeError:
        return True


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_secrets(inner) for name, inner in value.items() if not _SECRET.search(name)}
    if isinstance(value, list | tuple):
        return [_without_secrets(inner) for inner in value]
    return value


def _shown(value: Any) -> str:
    return "not set" if value is None else str(value)
