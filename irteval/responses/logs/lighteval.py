"""Reader of lighteval's details: ``details/<org>/<name>/<date>/details_<task|shots>_<date>.parquet``.

A row is a document, with the columns ``doc`` (``query``, ``choices``, ``gold_index``, ``id``, a position, and
``task_name``), ``metric`` (a value by name) and ``model_response``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irteval.errors import InputError
from irteval.responses.logs.fields import mapping, plain, sequence, text
from irteval.responses.logs.parquet_rows import column_names, parquet_rows
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run, content_hash

DETAILS = re.compile(r"^details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d+)\.parquet$")


class Lighteval:
    """Details of lighteval since 0.10; older ones have the columns of the Open LLM Leaderboard."""

    name = "lighteval"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Parquet files with the columns ``doc`` and ``metric``."""
        return head.startswith(b"PAR1") and {"doc", "metric"} <= set(column_names(path))

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a damaged file, or a document without an id.
        """
        runs: dict[str, Run] = {}
        builder = RecordBuilder(str(path))
        for number, row in parquet_rows(path, {"doc", "metric", "model_response"}.__contains__):
            doc, scores = mapping(row.get("doc")), mapping(row.get("metric"))
            if not isinstance(doc.get("id"), str | int):
                raise InputError("a document without an id", file=str(path), line=number)
            task = text(doc.get("task_name"))
            answers = sequence(mapping(row.get("model_response")).get("text"))
            builder.add(
                runs.get(task) or runs.setdefault(task, details_run(path, task, self.name)),
                doc["id"],
                number,
                scores,
                status="ok" if scores else "unscored",
                content=_content(doc),
                empty=bool(answers) and all(answer == "" for answer in answers),
            )
            yield from builder.full()
        yield from builder.flush()


def details_run(path: Path, task: str, harness: str) -> Run:
    """The run of a file of details, from its name and the folders it is in."""
    match = DETAILS.match(path.name)
    date = match["date"] if match else ""
    folders = path.resolve().parent.parts
    if "details" in folders:
        inside = folders[len(folders) - folders[::-1].index("details") :]
        subject = "/".join(part for part in inside if part != date) or path.stem
    else:
        named = [part for part in folders if part.startswith("details_")]
        subject = named[-1].removeprefix("details_") if named else folders[-1]
        subject = subject.replace("__", "/", 1)
    return Run(
        file=str(path),
        subject=subject,
        benchmark=task or (match["task"] if match else path.stem),
        harness=harness,
        run=date,
        time=re.sub(r"T(\d\d)-(\d\d)-", r"T\1:\2:", date),
    )


def _content(doc: Any) -> int:
    gold = doc.get("gold_index")
    return content_hash(plain(doc.get("query")), plain(doc.get("choices")), gold) if doc.get("query") else 0
