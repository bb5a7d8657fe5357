"""From evaluation logs to one long table of responses: read, name, choose, settle, and tell what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.collect import Collected, Collector
from irteval.responses.logs.item_list import read_aliases, read_item_list
from irteval.responses.logs.items import Items, identify
from irteval.responses.logs.long_table import LongTable
from irteval.responses.logs.observations import Observations
from irteval.responses.logs.reader import ItemList, LogReader, ReadOptions
from irteval.responses.logs.readers import AUTO, reader_named, reader_of
from irteval.responses.logs.records import STATUS, STATUSES
from irteval.responses.logs.sources import Copies, Found, files, head_of
from irteval.responses.logs.write import write_table
from irteval.responses.matrix import ResponseMatrix
from irteval.responses.policies.chance import undo_correction
from irteval.responses.policies.failures import Errors, settle_failures
from irteval.responses.policies.metrics import ALL, Selection, select
from irteval.responses.policies.repeats import Repeats, settle_repeats
from irteval.responses.policies.score_values import State
from irteval.responses.policies.subjects import subject_names
from irteval.responses.policies.versions import benchmark_names
from irteval.responses.read import read_frame

FilePath: TypeAlias = str | PathLike[str]
Scale: TypeAlias = Literal["share", "percent"]

_SLACK = 1e-9
_LISTED = 3
# What a score that is no number is called in the table.
_STATUS_OF_STATE = {
    State.ABSENT: STATUS["unscored"],
    State.MISSING: STATUS["missing"],
    State.NOT_SCALAR: STATUS["non_scalar"],
    State.NEEDS_KEY: STATUS["non_scalar"],
    State.UNREADABLE: STATUS["unreadable"],
    State.UNSCORED: STATUS["unscored"],
}


@dataclass(frozen=True)
class ImportedLogs:
    """The responses in evaluation logs.

    Attributes:
        table: one row an observation.
        summary: what was read and what each policy did, as plain values.
        notes: what a person should be told, a line each.
    """

    table: LongTable
    summary: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The long table as a data frame."""
        frame: pd.DataFrame = self.table.table().to_pandas()
        return frame

    def responses(self, **options: Any) -> ResponseMatrix:
        """The table as a response matrix; options are those of :func:`irteval.read_responses`."""
        return read_frame(self.frame, **options)

    def write(self, path: FilePath) -> None:
        """Write the table: parquet, CSV or JSON lines by the extension, whole or not at all.

        Raises:
            InputError: another extension.
            OSError: the disk is full or the place can't be written.
        """
        write_table(Path(path), self.table.parts())


def import_logs(
    sources: FilePath | Sequence[FilePath],
    *,
    format: str = AUTO,
    metric: str | None = None,
    filter: str | None = None,
    errors: Errors = "missing",
    repeats: Repeats | None = None,
    scale: Scale = "share",
    chance: float | None = None,
    items: FilePath | None = None,
    aliases: FilePath | None = None,
    progress: Callable[[str], None] | None = None,
) -> ImportedLogs:
    """Read evaluation logs of any supported format into one long table of responses.

    Args:
        sources: files and folders; folders are walked.
        format: of the files; by default each file's is told from its name and content.
        metric: the one to read, or ``all``; by default one a benchmark, which is said.
        filter: of the answers, likewise.
        errors: whether answers that failed are missing or wrong.
        repeats: what becomes of a cell that was observed more than once; ``trials`` by default, and with
            ``metric`` and ``filter`` both ``all`` every observation stays.
        scale: ``percent`` reads scores of 0 to 100.
        chance: the scores were corrected for guessing at this rate, which is undone.
        items: a file with the full list of items.
        aliases: a file of names of subjects that mean the same.
        progress: is told each file that is read.

    Raises: InputError: a source that is not there or can't be read, no responses in any, or a choice that
        the logs
            leave no answer to; with file and line.
    """
    _check_choices(errors, repeats, scale)
    listed = [sources] if isinstance(sources, str | PathLike) else list(sources)
    item_list = read_item_list(items) if items is not None else None
    named = read_aliases(aliases) if aliases is not None else {}
    reading = _read([Path(source) for source in listed], format, ReadOptions(item_list, metric), progress)
    records = reading.collector.collected()
    if not len(records):
        raise InputError(
            "no responses in any known log"
            + (f" ({reading.unknown} files of other kinds)" if reading.unknown else ""),
            file=str(listed[0]) if len(listed) == 1 else None,
        )
    subjects, about_subjects = subject_names(records.runs, named)
    benchmarks, about_versions = benchmark_names(records.runs)
    names, benchmark_of_run = _codes(benchmarks)
    keyed, item, native, about_items = identify(records, names, benchmark_of_run)
    selection = select(records, names, benchmark_of_run, metric=metric, filter=filter)
    observations = _observations(records, keyed, item, native, selection, subjects)
    observations, about_scores = _scores(records, selection, observations, metric, scale, chance)
    everything = metric == ALL and filter == ALL
    score, without, about_failures = settle_failures(observations.score, observations.status, errors)
    observations = replace(observations, score=score)
    policy: Repeats | None = repeats or (None if everything else "trials")
    observations, repeated, about_repeats = settle_repeats(observations, policy)
    about_list, listing = _compare(item_list, observations)
    notes = [
        *reading.notes(),
        *about_subjects,
        *about_versions,
        *about_items,
        *selection.notes,
        *about_scores,
        *([about_failures] if about_failures else []),
        *about_repeats,
        *about_list,
    ]
    summary = {
        **_size(observations, listing),
        "formats": dict(reading.formats),
        "benchmarks": _benchmarks(observations),
        "policies": {
            "metric": metric or "default",
            "filter": filter or "default",
            "left_out": selection.counts,
            "repeats": {"policy": policy or "kept", **vars(repeated)},
            "errors": {"policy": errors, "without_score": without},
            "scale": scale,
            "chance": chance,
            "empty_answers": reading.collector.empty_answers,
            "file_copies": len(reading.found.copies),
        },
    }
    return ImportedLogs(LongTable(observations), summary, tuple(notes))


def _check_choices(errors: str, repeats: str | None, scale: str) -> None:
    for name, value, known in (
        ("errors", errors, ("missing", "wrong")),
        ("repeats", repeats, (None, "trials", "mean", "newest", "oldest", "error")),
        ("scale", scale, ("share", "percent")),
    ):
        if value not in known:
            raise InputError(f"'{value}', wanted one of {', '.join(k for k in known if k)}", field=name)


@dataclass
class _Reading:
    options: ReadOptions
    collector: Collector = field(default_factory=Collector)
    found: Found = field(default_factory=Found)
    formats: Counter[str] = field(default_factory=Counter)
    unknown: int = 0

    def notes(self) -> list[str]:
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


def _read(
    sources: Sequence[Path], format: str, options: ReadOptions, progress: Callable[[str], None] | None
) -> _Reading:
    chosen: LogReader | None = None if format == AUTO else reader_named(format)
    if not sources:
        raise InputError("no file, wanted at least one log", field="sources")
    reading, copies = _Reading(options), Copies()
    for path, is_named in files(sources, reading.found):
        head = head_of(path, is_named, reading.found)
        if not head:
            continue
        reader = chosen if chosen is not None and (is_named or chosen.recognises(path, head)) else None
        if chosen is None:
            reader = reader_of(path, head)
        if reader is None and is_named:
            raise InputError(
                "no known log: its format is not recognised, name it with --format", file=str(path)
            )
        if reader is None:
            reading.unknown += 1
            continue
        if (first := copies.earlier(path)) is not None:
            reading.found.copies.append((path, first))
            continue
        if progress is not None:
            progress(f"reading {path}")
        for batch in reader.records(path, options):
            reading.collector.add(batch)
        reading.formats[reader.name] += 1
    return reading


def _codes(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Distinct names in order, and which one each is."""
    distinct = sorted(set(names))
    position = {name: k for k, name in enumerate(distinct)}
    return tuple(distinct), np.array([position[name] for name in names], dtype=np.int32)


def _observations(
    records: Collected,
    items: Items,
    item: NDArray[np.int32],
    native: NDArray[np.int32],
    selection: Selection,
    subjects: Sequence[str],
) -> Observations:
    """The chosen rows; their scores are still as the log has them."""
    row = selection.row
    run = records.run[row]
    subject_names, subject_of_run = _codes(subjects)
    variants, variant_of_run = _codes([r.variant for r in records.runs])
    score, status = np.full(len(row), np.nan), np.array(records.status[row])
    for position, scores in enumerate(records.scores.values()):
        here = selection.metric == position
        score[here] = scores.numbers[row[here]]
        state = scores.states[row[here]]
        own = status[here]
        for known, code in _STATUS_OF_STATE.items():
            own[(state == known) & (own == STATUS["ok"])] = code
        # A score that is there counts, whatever else happened to the answer.
        own[state == State.NUMBER] = STATUS["ok"]
        status[here] = own
    status[(selection.metric < 0) & (status == STATUS["ok"])] = STATUS["unscored"]
    return Observations(
        subject_names,
        subject_of_run[run],
        items,
        item[row],
        variants,
        variant_of_run[run],
        selection.names,
        selection.metric,
        selection.filters,
        selection.filter[row],
        records.runs,
        run,
        score,
        status,
        native[row],
        records.line[row],
        {name: column[row] for name, column in records.columns.items() if name != "content"},
    )


def _scores(
    records: Collected,
    selection: Selection,
    observations: Observations,
    metric: str | None,
    scale: Scale,
    chance: float | None,
) -> tuple[Observations, list[str]]:
    """Scores as shares in [0, 1]; what is none is refused, or with every metric marked and counted.

    Raises:
        InputError: a score of the chosen metric that is text or beyond [0, 1], with its place.
    """
    score, status, notes = observations.score, observations.status, []
    if scale == "percent":
        score = score / 100
        notes.append("scores are percentages: read as hundredths")
    if chance is not None:
        score = undo_correction(score, chance)
        notes.append(f"scores were corrected for guessing at rate {chance:g}: undone")
    with np.errstate(invalid="ignore"):
        beyond = (score < -_SLACK) | (score > 1 + _SLACK)
    if metric != ALL:
        _refuse(records, selection, observations, score, beyond)
    elif beyond.any():
        status = np.where(beyond, STATUS["out_of_range"], status).astype(np.int8)
        score = np.where(beyond, np.nan, score)
        notes.append(f"{int(beyond.sum())} values are no shares in [0, 1] and have no score")
    lists = int((status == STATUS["non_scalar"]).sum())
    if lists:
        notes.append(f"{lists} values are lists or objects, not one number, and have no score")
    return replace(observations, score=np.clip(score, 0, 1), status=status), notes


def _refuse(
    records: Collected,
    selection: Selection,
    observations: Observations,
    score: NDArray[np.float64],
    beyond: NDArray[np.bool_],
) -> None:
    unreadable = observations.status == STATUS["unreadable"]
    bad = np.flatnonzero(beyond | unreadable)
    if not len(bad):
        return
    position = int(bad[0])
    name = selection.names[selection.metric[position]]
    file, line = observations.place(position)
    if unreadable[position]:
        found = f"'{records.scores[name].unreadable}'"
        wanted = "a number, a truth value or a grade C, I, P, N"
    else:
        found, wanted = f"score {score[position]:g}", "a share in [0, 1]"
        here = observations.metric == observations.metric[position]
        low, high = np.nanmin(score[here]), np.nanmax(score[here])
        if low >= 0 and 1 < high <= 100:
            wanted += "; percentages are read with --scale percent"
        elif low < 0 and high <= 1:
            wanted += "; a correction for guessing is undone with --chance RATE"
    raise InputError(f"{found}, wanted {wanted}", file=file, line=line, field=name)


def _compare(items: ItemList | None, observations: Observations) -> tuple[list[str], dict[str, int]]:
    """How the items of the logs and of the full list agree."""
    if items is None:
        return [], {}
    used = [int(j) for j in np.unique(observations.item)]
    names = [(observations.items.native_id(j), observations.items.key(j)) for j in used]
    met, listed = {name for pair in names for name in pair}, set(items.ids)
    without = sum(name not in met for name in items.ids)
    unlisted = sum(listed.isdisjoint(pair) for pair in names)
    counts = {"listed": len(items.ids), "listed_without_response": without, "not_listed": unlisted}
    notes = []
    if without:
        notes.append(f"{items.name}: {without} of {len(items.ids)} listed items have no response")
    if unlisted:
        notes.append(f"{items.name}: {unlisted} items of the logs are not in the list")
    return notes, counts


def _size(observations: Observations, listing: dict[str, int]) -> dict[str, Any]:
    used = np.unique(observations.item)
    pair = observations.subject.astype(np.int64) * max(len(observations.items), 1) + observations.item
    return {
        "rows": len(observations),
        "cells": len(np.unique(pair)),
        "subjects": len(np.unique(observations.subject)),
        "items": listing.get("listed", len(used)) + listing.get("not_listed", 0),
        "items_without_response": listing.get("listed_without_response", 0),
        "scored": int((~np.isnan(observations.score)).sum()),
        "statuses": {
            STATUSES[code]: int(count)
            for code, count in zip(*np.unique(observations.status, return_counts=True), strict=True)
        },
    }


def _benchmarks(observations: Observations) -> list[dict[str, Any]]:
    """For each benchmark, metric and filter: subjects, items, scored rows and their mean."""
    metrics, filters = len(observations.metrics) + 1, len(observations.filters)
    benchmark = observations.items.benchmark[observations.item].astype(np.int64)
    group = (benchmark * metrics + observations.metric + 1) * filters + observations.filter
    rows = []
    for code in np.unique(group):
        here = np.flatnonzero(group == code)
        rest, filter = divmod(int(code), filters)
        b, metric = divmod(rest, metrics)
        score = observations.score[here]
        scored = ~np.isnan(score)
        rows.append(
            {
                "benchmark": observations.items.benchmarks[b],
                "metric": observations.metrics[metric - 1] if metric else None,
                "filter": observations.filters[filter],
                "subjects": len(np.unique(observations.subject[here])),
                "items": len(np.unique(observations.item[here])),
                "rows": len(here),
                "scored": int(scored.sum()),
                "mean": float(score[scored].mean()) if scored.any() else None,
            }
        )
    return rows
