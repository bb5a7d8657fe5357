"""Reader of lm-eval's sample logs: ``samples_<task>_<date>.jsonl``, one line a document and filter.

Keys of a line: ``doc_id`` (a position, wrong where the samples were chosen in another order), ``doc``,
``target``, ``arguments``, ``resps``, ``filtered_resps``, and since 0.4.2 ``filter``, ``metrics`` (names),
``doc_hash``, ``prompt_hash``; each metric has its own key. In older logs every other key is a metric, and
the rows of several filters follow one another without a name: there the k-th row of a document is given the
filter ``#k``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.json_lines import lines, parse
from irteval.responses.logs.json_stream import array_elements
from irteval.responses.logs.lm_eval_results import run_of
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import (
    BATCH,
    NO_FILTER,
    STATUS,
    RecordBuilder,
    Records,
    Run,
    flat_scores,
    hex_hash,
    hex_hashes,
    native_ids,
    score_columns,
)
from irteval.responses.policies.score_values import Scores, State, read_scores

_HEAD = re.compile(rb'^\s*\[?\s*\{\s*"doc_id"\s*:\s*("[^"]*"|-?\d+)\s*,\s*"(?!native_id")')
_OWN = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    }
)
_KEYS = ("doc_id", "filter", "doc_hash", "prompt_hash")
_EMPTY = [[""]]
# What `--predict_only` writes in place of a score.
_NO_SCORE = "bypass"


class LmEval:
    """Sample logs of lm-eval, new and old; also those of the Open LLM Leaderboard v2."""

    name = "lm-eval"

    def recognises(self, path: Path, head: bytes) -> bool:
        """JSON lines, or an array, of objects that begin with ``doc_id``; in any order in ``samples_*``."""
        start = head.removeprefix(b"\xef\xbb\xbf")
        if path.suffix not in (".jsonl", ".json"):
            return False
        named = (
            path.name.startswith("samples_") and start.lstrip()[:1] in (b"{", b"[") and b'"doc_id"' in start
        )
        return named or _HEAD.match(start) is not None

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a line that is no JSON object, or no sample of lm-eval.
        """
        batch = _Batch(path, run_of(path, self.name))
        if _is_array(path):
            for number, record in array_elements(path):
                batch.add_slowly(record, number)
                yield from batch.others.full()
            yield from batch.others.flush()
        else:
            yield from _read_lines(path, batch)


def _is_array(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def _read_lines(path: Path, batch: _Batch) -> Iterator[Records]:
    """The hot loop: a line costs one parse and one pick of its keys, and leaves no object behind."""
    number, loads, resps = 0, orjson.loads, _EMPTY
    pick, names, take, aside = itemgetter(*_KEYS), None, batch.values.extend, batch.aside.append
    for block in lines(path):
        for text in block:
            number += 1
            try:
                record = loads(text)
            except orjson.JSONDecodeError:
                if not text or text.isspace():
                    aside(number)
                    continue
                record = parse(text, str(path), number)
            try:
                if record["metrics"] != names:
                    names = batch.set_names(record["metrics"])
                    pick = itemgetter(*_KEYS, *names)
                take(pick(record))
                if record.get("resps") == resps:
                    batch.empty += 1
            except (KeyError, TypeError):
                aside(number)
                batch.add_slowly(record, number)
        yield from batch.full(number)
    yield from batch.flush(number)


@dataclass
class _Batch:
    """Values of rows that all have the keys of the first one, and beside them the rows that have not.

    ``values`` holds one row after the other; ``aside`` the lines since the last flush that are not in it.
    """

    path: Path
    run: Run
    values: list[Any] = field(default_factory=list)
    aside: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    empty: int = 0
    flushed: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.others = RecordBuilder(str(self.path))

    def set_names(self, names: Any) -> list[str]:
        """Take these metrics for the whole file.

        Raises:
            KeyError: others were taken already, or they are no names.
        """
        if self.names or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise KeyError
        self.names = names
        return names

    def full(self, number: int) -> Iterator[Records]:
        """The rows up to a line, where there are enough for a batch."""
        if number - self.flushed >= BATCH:
            yield from self.flush(number)

    def flush(self, number: int) -> Iterator[Records]:
        """The rows since the last flush, up to a line."""
        yield from self.others.flush()
        line = np.delete(
            np.arange(self.flushed + 1, number + 1), np.array(self.aside, dtype=np.int64) - self.flushed - 1
        )
        self.flushed = number
        self.aside.clear()
        if not self.values:
            return
        width = len(_KEYS) + len(self.names)
        doc, chosen, content, prompt, *metrics = (self.values[k::width] for k in range(width))
        filters, filter = self._filters(chosen, line)
        yield Records(
            runs=(self.run,),
            run=np.zeros(len(line), dtype=np.int32),
            native=native_ids(doc, str(self.path), line.tolist()),
            line=line.astype(np.int32),
            scores=self._scores(metrics),
            status=np.full(len(line), STATUS["ok"], dtype=np.int8),
            filters=filters,
            filter=filter,
            content=hex_hashes(content),
            prompt=hex_hashes(prompt),
            empty_answers=self.empty,
        )
        self.values.clear()
        self.empty = 0

    def _filters(
        self, chosen: Sequence[Any], line: NDArray[np.int64]
    ) -> tuple[tuple[str, ...], NDArray[np.int16]]:
        if set(map(type, chosen)) != {str}:
            bad = next(k for k, name in enumerate(chosen) if not isinstance(name, str))
            raise InputError("not text", file=str(self.path), line=int(line[bad]), field="filter")
        if chosen.count(chosen[0]) == len(chosen):
            return (chosen[0],), np.zeros(len(chosen), dtype=np.int16)
        codes = {name: code for code, name in enumerate(dict.fromkeys(chosen))}
        return tuple(codes), np.array(list(map(codes.__getitem__, chosen)), dtype=np.int16)

    def _scores(self, columns: Sequence[Sequence[Any]]) -> dict[str, Scores]:
        scores = {name: read_scores(column) for name, column in zip(self.names, columns, strict=True)}
        if any((column.states == State.NEEDS_KEY).any() for column in scores.values()):
            rows = [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]
            scores = score_columns([flat_scores(row) for row in rows])
        if _NO_SCORE in scores:
            values = scores[_NO_SCORE].numbers
            states = np.full(len(values), State.UNSCORED, dtype=np.int8)
            scores[_NO_SCORE] = Scores(np.full(len(values), np.nan), states)
        return scores

    def add_slowly(self, record: Any, number: int) -> None:
        """Take a row of any form.

        Raises:
            InputError: it is no sample of lm-eval.
        """
        file = str(self.path)
        if not isinstance(record, dict):
            raise InputError("a JSON value, wanted an object", file=file, line=number)
        if "doc_id" not in record or len(_OWN & record.keys()) == 1:
            raise InputError("no sample of lm-eval: wanted doc_id and doc or resps", file=file, line=number)
        named = record.get("metrics")
        names = named if isinstance(named, list) else [name for name in record if name not in _OWN]
        chosen = record.get("filter")
        if chosen is None:
            self.seen[str(record["doc_id"])] += 1
            chosen = f"#{self.seen[str(record['doc_id'])]}"
        elif not isinstance(chosen, str):
            raise InputError("not text", file=file, line=number, field="filter")
        scores = {name: record[name] for name in names if isinstance(name, str) and name in record}
        bypassed = set(scores) == {_NO_SCORE}
        self.others.add(
            self.run,
            record["doc_id"],
            number,
            {_NO_SCORE: None} if bypassed else scores,
            status="unscored" if bypassed or not scores else "ok",
            filter=chosen or NO_FILTER,
            content=hex_hash(record.get("doc_hash")) or _doc_hash(record.get("doc")),
            prompt=hex_hash(record.get("prompt_hash")),
            empty=record.get("resps") == _EMPTY,
        )


def _doc_hash(doc: Any) -> int:
    """What newer versions of lm-eval write as ``doc_hash``; 0 of a log without documents."""
    if doc is None:
        return 0
    text = json.dumps(doc, indent=2, ensure_ascii=False)
    return hex_hash(sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
