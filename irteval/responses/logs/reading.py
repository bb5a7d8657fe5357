"""All sources read: every file by the reader that recognises it, each content once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from irteval.errors import InputError
from irteval.responses.logs.collect import Collector
from irteval.responses.logs.reader import LogReader, ReadOptions
from irteval.responses.logs.readers import AUTO, TABLES, reader_named, reader_of
from irteval.responses.logs.records import Run
from irteval.responses.logs.sources import Copies, Found, files, head_of
from irteval.responses.read import READERS as SUFFIXES

_LISTED = 3
# Between two words on what is being read: there may be thousands of small files.
_SECONDS = 1.0


@dataclass
class Reading:
    """What was read, and what was met on the way.

    Attributes:
        options: of the readers, with their notes.
        collector: the records.
        found: files that were not read.
        formats: how many files of each format were read.
        unknown: how many files of a folder are no log.
    """

    options: ReadOptions
    collector: Collector = field(default_factory=Collector)
    found: Found = field(default_factory=Found)
    formats: Counter[str] = field(default_factory=Counter)
    unknown: int = 0

    def notes(self) -> list[str]:
        """What a person should be told."""
        told = [f"{count} {name} file{'s' if count > 1 else ''}" for name, count in self.formats.items()]
        notes = [f"read {', '.join(told)}"]
        if self.unknown:
            notes[0] += f"; {self.unknown} other files hold no responses"
        for copy, first in self.found.copies[:_LISTED]:
            notes.append(f"{copy} equals {first} and counts once")
        if len(self.found.copies) > _LISTED:
            notes.append(f"{len(self.found.copies) - _LISTED} more files equal another one and count once")
        for reason, paths in self.found.skipped.items():
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            notes.append(f"not read: {paths[0]}{more}: {reason}")
        notes += self.options.notes
        if self.collector.empty_answers:
            notes.append(
                f"{self.collector.empty_answers} answers are empty; their scores are those of the harness"
            )
        return notes


def read_logs(
    sources: Sequence[Path], format: str, options: ReadOptions, progress: Callable[[str], None] | None
) -> Reading:
    """The records of all sources.

    Raises:
        InputError: a source that can't be read, a named file that is no log, or no responses in any.
    """
    if not sources:
        raise InputError("no file, wanted at least one log", field="sources")
    chosen = None if format == AUTO else reader_named(format)
    reading, copies, read = Reading(options), Copies(), 0
    first_runs: dict[Path, tuple[Run, ...]] = {}
    told = 0.0
    for path, is_named in files(sources, reading.found):
        head = head_of(path, is_named, reading.found)
        reader = _reader(path, head, is_named, chosen) if head else None
        if reader is None:
            reading.unknown += bool(head)
            continue
        if progress is not None and time.monotonic() - told >= _SECONDS:
            told = time.monotonic()
            progress(f"reading {path}")
        equal = copies.earlier(path)
        for batch in reader.records(path, options):
            if path not in first_runs:
                same = [other for other in equal if _same_subjects(first_runs.get(other, ()), batch.runs)]
                if same:
                    reading.found.copies.append((path, same[0]))
                    break
                first_runs[path] = batch.runs
            reading.collector.add(batch)
            read += len(batch)
        reading.formats[reader.name] += 1
    if not read:
        found = f"no responses in {sum(reading.formats.values())} logs and {reading.unknown} other files"
        raise InputError(found, file=str(sources[0]) if len(sources) == 1 else None)
    return reading


def _same_subjects(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    """Whether files of equal content are of the same subjects: some logs say it by their place only."""
    return len(runs) == len(others) and all(
        run.subject == other.subject
        and run.benchmark == other.benchmark
        and (run.revision == other.revision or not run.revision or not other.revision)
        and (run.weights == other.weights or not run.weights or not other.weights)
        for run, other in zip(runs, others, strict=True)
    )


def _reader(path: Path, head: bytes, is_named: bool, chosen: LogReader | None) -> LogReader | None:
    """The reader of a file; None of a file of a folder that is no log, or none of the chosen format."""
    if chosen is not None:
        return chosen if is_named or chosen.recognises(path, head) else None
    reader = reader_of(path, head)
    if reader is None and is_named and path.suffix.lower() in SUFFIXES:
        return TABLES  # a wide table: any table of numbers could be one, and this one was named
    if reader is None and is_named:
        raise InputError("the format is not recognised: name it with --format", file=str(path))
    return reader
