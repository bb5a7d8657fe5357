"""Reader of OLMES and olmo-eval predictions: ``task-NNN-<task>-predictions.jsonl``, one line a document.

Keys of a line: ``doc_id`` (a position), ``native_id``, ``metrics`` (a value by name), ``model_output``,
``task_hash``, ``model_hash``, ``label``. The questions are in another file, so items are keyed by their
native id, which is the data set's own. ``…-metrics.json`` beside it names the model, the task and its main
metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from irteval.errors import InputError
from irteval.files import read_json
from irteval.responses.logs.fields import mapping, sequence, text
from irteval.responses.logs.json_lines import objects
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run

_NAME = re.compile(r"^(?:task-\d+-)?(?P<task>.+?)(?:_[0-9a-f]{6})?-predictions\.jsonl$")
_KEYS = (b'"native_id"', b'"metrics"')


class Olmes:
    """Predictions of OLMES, one task and one subject a file."""

    name = "olmes"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Files named ``…-predictions.jsonl``, and lines with ``doc_id``, ``native_id`` and ``metrics``."""
        if path.suffix != ".jsonl":
            return False
        first = head.split(b"\n", 1)[0].lstrip(b"\xef\xbb\xbf \t")
        is_line = first.startswith(b'{"doc_id"') and all(key in first for key in _KEYS)
        return is_line or _NAME.match(path.name) is not None

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a line that is no prediction.
        """
        runs: dict[tuple[str, str], Run] = {}
        builder = RecordBuilder(str(path))
        about = _metrics_file(path)
        for number, row in objects(path):
            if not isinstance(row.get("metrics"), dict) or "doc_id" not in row:
                raise InputError("no prediction: wanted doc_id and metrics", file=str(path), line=number)
            hashes = text(row.get("task_hash")), text(row.get("model_hash"))
            native = row.get("native_id")
            outputs = [mapping(output).get("continuation") for output in sequence(row.get("model_output"))]
            builder.add(
                runs.get(hashes) or runs.setdefault(hashes, _run(path, about, *hashes)),
                native if isinstance(native, str | int) and not isinstance(native, bool) else row["doc_id"],
                number,
                row["metrics"],
                status="ok" if row["metrics"] else "unscored",
                empty=bool(outputs) and all(output == "" for output in outputs),
            )
            yield from builder.full()
        yield from builder.flush()


def _metrics_file(path: Path) -> Mapping[str, Any]:
    beside = path.with_name(path.name.replace("-predictions.jsonl", "-metrics.json"))
    return mapping(read_json(beside)) if beside != path and beside.is_file() else {}


def _run(path: Path, about: Mapping[str, Any], task_hash: str, model_hash: str) -> Run:
    match = _NAME.match(path.name)
    model = mapping(about.get("model_config"))
    task = mapping(about.get("task_config"))
    shots = task.get("num_shots")
    primary = text(mapping(about.get("task_config")).get("primary_metric"))
    return Run(
        file=str(path),
        subject=text(model.get("model")) or path.resolve().parent.name,
        benchmark=text(about.get("task_name")) or (match["task"] if match else path.stem),
        revision=text(model.get("revision")),
        weights=model_hash,
        version=task_hash,
        variant=f"shots={shots}" if isinstance(shots, int) and shots > 0 else "",
        harness="olmes",
        time=text(about.get("current_date")),
        main_metrics=(primary,) if primary else (),
    )
