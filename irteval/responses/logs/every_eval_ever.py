"""Every Eval Ever: reader of ``{uuid}_samples.jsonl``, and writer of both files of its schema.

A line is one sample of one evaluation of one model: ``evaluation_id``, ``model_id``, ``evaluation_name``,
``sample_id``, ``sample_hash`` (of the input and its references), ``evaluation`` (``score``,
``is_correct``), ``error``, ``token_usage``, ``performance``. ``{uuid}.json`` beside it describes the
evaluation as a whole. What is written has no texts: ``input`` and ``output`` are there because the schema
wants them, and are empty.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from irteval import __version__
from irteval.errors import InputError
from irteval.files import json_bytes, write_file
from irteval.responses.logs.fields import mapping, number, sequence, text
from irteval.responses.logs.json_lines import objects
from irteval.responses.logs.observations import Observations
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run, content_hash, hex_hash

SCHEMA = "0.2.1"
_KEYS = (b'"evaluation_id"', b'"evaluation_name"', b'"sample_id"')


class EveryEvalEver:
    """Instance-level results in the schema of Every Eval Ever."""

    name = "every-eval-ever"

    def recognises(self, path: Path, head: bytes) -> bool:
        """JSON lines with ``evaluation_id``, ``evaluation_name`` and ``sample_id``."""
        return path.suffix == ".jsonl" and all(key in head for key in _KEYS)

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a line that is no sample.
        """
        runs: dict[tuple[str, str, str], Run] = {}
        builder = RecordBuilder(str(path))
        for line, row in objects(path):
            names = tuple(text(row.get(name)) for name in ("evaluation_id", "model_id", "evaluation_name"))
            if len(names) != 3 or not all(names[1:]) or "sample_id" not in row:
                raise InputError(
                    "no sample: wanted model_id, evaluation_name and sample_id", file=str(path), line=line
                )
            evaluation = mapping(row.get("evaluation"))
            usage, speed = mapping(row.get("token_usage")), mapping(row.get("performance"))
            scores = {name: evaluation[name] for name in ("score", "is_correct") if name in evaluation}
            failed = bool(row.get("error"))
            builder.add(
                runs.get(names) or runs.setdefault(names, _run(path, names)),
                row["sample_id"],
                line,
                {} if failed else scores,
                status="error" if failed else "ok" if scores else "unscored",
                content=hex_hash(row.get("sample_hash")) or _content(mapping(row.get("input"))),
                tokens_in=number(usage.get("input_tokens")),
                tokens_out=number(usage.get("output_tokens")),
                seconds=number(speed.get("latency_ms")) / 1000,
                empty=_is_empty(sequence(mapping(row.get("output")).get("raw"))),
            )
            yield from builder.full()
        yield from builder.flush()


def write_every_eval_ever(folder: Path, observations: Observations) -> list[Path]:
    """Write observations into a folder, two files for each subject, benchmark, metric and filter.

    Observations without a score are written with an ``error``, which says their status.

    Returns:
        The files of samples.

    Raises:
        OSError: the place can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    benchmark = observations.items.benchmark[observations.item].astype(np.int64)
    group = observations.subject.astype(np.int64)
    for codes, size in (
        (benchmark, len(observations.items.benchmarks)),
        (observations.metric + 1, len(observations.metrics) + 1),
        (observations.filter, len(observations.filters)),
    ):
        group = group * size + codes
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return [_write_group(folder, observations, rows) for rows in np.split(order, starts[1:])]


def _write_group(folder: Path, observations: Observations, rows: NDArray[np.int64]) -> Path:
    first = int(rows[0])
    subject = observations.subjects[observations.subject_of_run[observations.run[first]]]
    benchmark = observations.items.benchmarks[observations.items.benchmark[observations.item[first]]]
    code = int(observations.metric[first])
    metric = observations.metrics[code] if code >= 0 else "none"
    chosen = observations.filters[observations.filter[first]]
    run = observations.runs[observations.run[first]]
    name = str(uuid.uuid5(uuid.NAMESPACE_URL, "\n".join((subject, benchmark, metric, chosen, run.run))))
    evaluation = f"{benchmark or 'unnamed'}/{subject}/{run.time or run.run or name}"
    lines = [_sample(observations, int(row), evaluation, subject, benchmark or "unnamed") for row in rows]
    scores = observations.score[rows]
    about = _about(evaluation, subject, benchmark or "unnamed", f"{metric}, filter {chosen}", run, scores)
    path = folder / f"{name}_samples.jsonl"
    write_file(path, b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))
    write_file(folder / f"{name}.json", json_bytes(about))
    return path


def _sample(
    observations: Observations, row: int, evaluation: str, subject: str, benchmark: str
) -> dict[str, Any]:
    item = int(observations.item[row])
    score = float(observations.score[row])
    known = not np.isnan(score)
    content = int(observations.items.content[item])
    return {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "model_id": subject,
        "evaluation_name": benchmark,
        "sample_id": str(observations.items.natives[int(observations.record[row])]),
        "sample_hash": f"{content:016x}" if content else None,
        "interaction_type": "single_turn",
        "input": {"raw": "", "reference": []},
        "output": {"raw": []},
        "answer_attribution": [],
        "evaluation": {"score": score if known else 0.0, "is_correct": known and score == 1},
        "error": None if known else "no score",
        "metadata": {"item": observations.items.key(item)},
    }


def _about(
    evaluation: str, subject: str, benchmark: str, metric: str, run: Run, scores: NDArray[np.float64]
) -> dict[str, Any]:
    known = scores[~np.isnan(scores)]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "retrieved_timestamp": run.time or "unknown",
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": run.harness or "unknown", "version": "unknown"},
        "model_info": {"name": subject, "id": subject},
        "evaluation_results": [
            {
                "evaluation_name": benchmark,
                "source_data": {"dataset_name": benchmark, "source_type": "other"},
                "metric_config": {
                    "evaluation_description": metric,
                    "lower_is_better": False,
                    "score_type": "continuous",
                    "min_score": 0,
                    "max_score": 1,
                },
                "score_details": {
                    "score": float(known.mean()) if known.size else 0.0,
                    "details": {"scored": str(known.size), "written_by": f"irteval {__version__}"},
                },
            }
        ],
    }


def _run(path: Path, names: tuple[str, ...]) -> Run:
    evaluation, subject, benchmark = names
    return Run(
        file=str(path),
        subject=subject,
        benchmark="" if benchmark == "unnamed" else benchmark,
        harness="every-eval-ever",
        run=evaluation,
        time=evaluation.rsplit("/", 1)[-1],
        main_metrics=("score",),
    )


def _content(given: Mapping[str, Any]) -> int:
    raw = given.get("raw")
    references = [part for part in sequence(given.get("reference")) if isinstance(part, str)]
    return content_hash(raw, *references) if isinstance(raw, str) and raw else 0


def _is_empty(answers: list[Any]) -> bool:
    return bool(answers) and all(answer == "" for answer in answers)
