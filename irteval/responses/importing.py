"""From evaluation logs to one long table of responses: read, name, choose, settle, and tell what was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from irteval.errors import InputError
from irteval.responses.logs.choose import Scale, choose
from irteval.responses.logs.every_eval_ever import write_every_eval_ever
from irteval.responses.logs.item_list import read_aliases, read_item_list
from irteval.responses.logs.long_table import LongTable
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.readers import AUTO
from irteval.responses.logs.reading import read_logs
from irteval.responses.logs.summary import compare_items, describe
from irteval.responses.logs.write import write_table
from irteval.responses.matrix import ResponseMatrix
from irteval.responses.policies.failures import Errors, settle_failures
from irteval.responses.policies.metrics import ALL
from irteval.responses.policies.prompts import differing_prompts
from irteval.responses.policies.repeats import Repeats, settle_repeats
from irteval.responses.read import read_frame

FilePath: TypeAlias = str | PathLike[str]


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

    def write_every_eval_ever(self, folder: FilePath) -> list[Path]:
        """Write the responses in the schema of Every Eval Ever, two files for each subject and benchmark.

        Returns:
            The files of samples.

        Raises:
            OSError: the place can't be written.
        """
        return write_every_eval_ever(Path(folder), self.table.observations)


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
        progress: is told what is being read, at most once a second.

    Raises: InputError: a source that is not there or can't be read, no responses in any, or a choice that
        the logs
            leave no answer to; with file and line.
    """
    _check_choices(errors, repeats, scale)
    listed = [sources] if isinstance(sources, str | PathLike) else list(sources)
    options = ReadOptions(None if items is None else read_item_list(items), metric)
    named = {} if aliases is None else read_aliases(aliases)
    reading = read_logs([Path(source) for source in listed], format, options, progress)
    observations, choice = choose(
        reading.collector.collected(), metric=metric, filter=filter, scale=scale, chance=chance, aliases=named
    )
    about_prompts = differing_prompts(observations)
    score, without, about_failures = settle_failures(observations.score, observations.status, errors)
    policy: Repeats | None = repeats
    if repeats is None and not (metric == ALL and filter == ALL):
        policy = "trials"
    observations, repeated, about_repeats = settle_repeats(replace(observations, score=score), policy)
    listing, about_items = compare_items(options.items, observations)
    policies = {
        "metric": metric or "default",
        "filter": filter or "default",
        "left_out": choice.left_out,
        "repeats": {"policy": policy or "kept", **vars(repeated)},
        "errors": {"policy": errors, "without_score": without},
        "scale": scale,
        "chance": chance,
        "empty_answers": reading.collector.empty_answers,
        "file_copies": len(reading.found.copies),
    }
    summary = {**describe(observations, listing), "formats": dict(reading.formats), "policies": policies}
    notes = (*reading.notes(), *choice.notes, *about_prompts, *about_failures, *about_repeats, *about_items)
    return ImportedLogs(LongTable(observations), summary, notes)


def _check_choices(errors: str, repeats: str | None, scale: str) -> None:
    for name, value, known in (
        ("errors", errors, ("missing", "wrong")),
        ("repeats", repeats, (None, "trials", "mean", "newest", "oldest", "error")),
        ("scale", scale, ("share", "percent")),
    ):
        if value not in known:
            raise InputError(f"'{value}', wanted one of {', '.join(k for k in known if k)}", field=name)
