"""Reader of Inspect logs: ``.eval`` archives, finished or not, and ``.json``.

An archive has ``header.json`` (written last: where it is missing the run was not finished),
``summaries.json``, and while it runs ``_journal/start.json`` and ``_journal/summaries/N.json``. The
summaries hold all that is needed: id, epoch, input, target, scores by scorer, error, limit, usage and
times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irteval.errors import InputError
from irteval.responses.logs.archive import Archive
from irteval.responses.logs.fields import mapping, number, text
from irteval.responses.logs.json_lines import parse
from irteval.responses.logs.json_stream import object_members
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run, content_hash

_PART = re.compile(r"^_journal/summaries/(\d{1,12})\.json$")
_SAMPLE = re.compile(r"^samples/.*\.json$")
# Summaries keep this much of a text, full logs all of it: only what both have may tell items apart.
_KEPT = 5000
_ASIDE = ("reductions", "stats", "plan")


class InspectLog:
    """Logs of Inspect, one task and one subject each."""

    name = "inspect"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Archives named ``.eval``, and JSON objects with ``version``, ``status`` and ``eval``."""
        if path.suffix == ".eval":
            return True
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        return path.suffix == ".json" and start.startswith(b"{") and b'"status"' in head and b'"eval"' in head

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a damaged archive or document, or one that is no log of Inspect.
        """
        yield from _from_archive(path, options) if path.suffix == ".eval" else _from_document(path, options)


def _from_archive(path: Path, options: ReadOptions) -> Iterator[Records]:
    with Archive(path) as archive:
        names = set(archive.names)
        start = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if start is None:
            raise InputError("no header.json, wanted a log of Inspect", file=str(path))
        header = mapping(parse(archive.read(start), f"{path}:{start}"))
        finished = start == "header.json"
        log = _Log(path, header, options, finished=finished)
        parts = ["summaries.json"] if "summaries.json" in names else _journal(archive.names)
        parts = parts or [name for name in archive.names if _SAMPLE.match(name)]
        for part in parts:
            where = f"{path}:{part}"
            samples = parse(archive.read(part), where)
            if isinstance(samples, dict):
                samples = [samples]
            if not isinstance(samples, list):
                raise InputError("a JSON value, wanted an array of samples", file=where)
            for sample in samples:
                log.add(sample)
                yield from log.builder.full()
        yield from log.flush()


def _journal(names: Sequence[str]) -> list[str]:
    found = [(int(match[1]), name) for name in names if (match := _PART.match(name))]
    return [name for _, name in sorted(found)]


def _from_document(path: Path, options: ReadOptions) -> Iterator[Records]:
    """A document is streamed: what precedes its samples says what they belong to."""
    header: dict[str, Any] = {}
    log: _Log | None = None
    for name, _, value in object_members(path, {"samples"}, skipped=_ASIDE):
        if name != "samples":
            header[name] = value
            continue
        log = log or _Log(path, header, options, finished=True)
        log.add(value)
        yield from log.builder.full()
    if log is None:
        log = _Log(path, header, options, finished=True)
    yield from log.flush()


class _Log:
    """One log: its samples become records of one run."""

    def __init__(
        self, path: Path, header: Mapping[str, Any], options: ReadOptions, *, finished: bool
    ) -> None:
        self._path = path
        self.builder = RecordBuilder(str(path))
        self._number = 0
        self._run = _run(path, header)
        status = str(header.get("status", "started"))
        if not finished or status != "success":
            planned = mapping(mapping(header.get("eval")).get("dataset")).get("samples")
            options.note(
                f"{path.name}: status '{status}'{'' if finished else ', not finished'}: its samples count, "
                f"of {planned if isinstance(planned, int) else 'an unknown number of'} planned"
            )

    def flush(self) -> Iterator[Records]:
        yield from self.builder.flush()

    def add(self, sample: Any) -> None:
        """Take a sample, or its summary.

        Raises:
            InputError: it has no id, or its epoch is no number.
        """
        self._number += 1
        file = str(self._path)
        if not isinstance(sample, dict) or "id" not in sample:
            raise InputError("a sample without an id", file=file, line=self._number)
        epoch = sample.get("epoch", 1)
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 < epoch < 2**31:
            raise InputError(f"'{epoch}', wanted a whole number", file=file, line=self._number, field="epoch")
        usage = [part for part in mapping(sample.get("model_usage")).values() if isinstance(part, dict)]
        scores = _scores(sample.get("scores"))
        self.builder.add(
            self._run,
            sample["id"],
            self._number,
            scores,
            status=_status(sample, scores),
            content=sample_content(sample),
            trial=epoch,
            record=content_hash(sample["uuid"]) if isinstance(sample.get("uuid"), str) else 0,
            tokens_in=_total(usage, "input_tokens"),
            tokens_out=_total(usage, "output_tokens"),
            seconds=number(sample.get("total_time")),
            empty=_is_empty(sample.get("scores")),
        )


def _run(path: Path, header: Mapping[str, Any]) -> Run:
    spec = mapping(header.get("eval"))
    if not isinstance(spec.get("model"), str) or not isinstance(spec.get("task"), str):
        raise InputError("no task and model under 'eval', wanted a log of Inspect", file=str(path))
    arguments = mapping(spec.get("model_args"))
    config = mapping(spec.get("model_generate_config"))
    shown = {"system": config.get("system_message"), "effort": config.get("reasoning_effort")}
    facets = [
        f"{name}={content_hash(value):016x}"[: len(name) + 9]
        for name, value in shown.items()
        if value is not None
    ]
    return Run(
        file=str(path),
        subject=spec["model"],
        benchmark=spec["task"],
        revision=text(arguments.get("revision")),
        version=text(spec.get("task_version")),
        variant=";".join(facets),
        harness=f"inspect {text(mapping(spec.get('packages')).get('inspect_ai'))}".strip(),
        run=text(spec.get("run_id")) or text(spec.get("eval_id")),
        time=text(spec.get("created")),
        main_metrics=_main(spec, header),
    )


def _main(spec: Mapping[str, Any], header: Mapping[str, Any]) -> tuple[str, ...]:
    """The headline scorer, then the others in their order."""
    headline = mapping(mapping(header.get("results")).get("headline"))
    names = [headline.get("scorer")]
    scorers = spec.get("scorers")
    names += [mapping(scorer).get("name") for scorer in (scorers if isinstance(scorers, list) else [])]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _scores(given: Any) -> dict[str, Any]:
    """Values by scorer; a value of several becomes ``scorer.name`` each, a list is not one number."""
    return {
        str(name): score.get("value") if isinstance(score, dict) else score
        for name, score in mapping(given).items()
    }


def _status(sample: Mapping[str, Any], scores: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return "error"
    if scores:
        return "ok"
    return "limit" if sample.get("limit") else "unscored"


def sample_content(sample: Mapping[str, Any]) -> int:
    """What was asked: input, target and choices; an id of text is part of it, a number counts positions."""
    texts = [_plain(sample.get("input")), _plain(sample.get("target")), _plain(sample.get("choices"))]
    if not texts[0]:
        return 0
    own = sample["id"] if isinstance(sample["id"], str) else ""
    return content_hash(own, *(part[:_KEPT] for part in texts))


def _plain(value: Any, depth: int = 4) -> str:
    """The text of an input: of messages their roles and texts, without the ids that differ in every run."""
    if isinstance(value, str):
        return value[:_KEPT]
    if value is None or depth == 0:
        return ""
    if isinstance(value, dict):
        value = [value[name] for name in ("role", "content", "text") if name in value]
    if isinstance(value, list):
        return "\n".join(_plain(part, depth - 1) for part in value)
    return str(value)


def _is_empty(scores: Any) -> bool:
    answers = [score.get("answer") for score in mapping(scores).values() if isinstance(score, dict)]
    return bool(answers) and all(answer == "" for answer in answers)


def _total(usage: Sequence[Mapping[str, Any]], name: str) -> float:
    return sum(number(part.get(name)) for part in usage) if usage else np.nan
