"""What a log says, as columns: who was asked what in which run, and what it scored by each metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.policies.score_values import Scores, State, read_scores

# A record's own status; a score that is there makes it "ok".
STATUSES = ("ok", "error", "limit", "unscored", "missing", "non_scalar", "unreadable", "out_of_range")
STATUS = {name: code for code, name in enumerate(STATUSES)}

NO_FILTER = "none"
# Small enough that what is kept until it is a batch stays in the cache.
BATCH = 4096
# Lengths in hexadecimal digits of a hash, and of its first 64 bits.
_SHA256, _HEAD = 64, 16


@dataclass(frozen=True)
class Run:
    """What is the same for all records of one subject on one benchmark in one run of a harness.

    Attributes:
        file: where it was read.
        subject: name of the language model as the log gives it.
        benchmark: task; empty where the log names none.
        revision: of the subject, as asked for; empty for the default one.
        weights: hash of what was loaded, where the log has one.
        version: of the task or its data.
        variant: prompt, few-shot, chat template, language, perturbation: ``name=value`` joined by ``;``.
        harness: name and version.
        run: the harness's id of the run, or its date.
        time: when it began, ISO 8601.
        main_metrics: what the harness itself puts first, best first.
        lower_is_better: metrics that are better when lower.
        keeps_ids: the items' ids are keys as they stand, for they are those of a table.
    """

    file: str
    subject: str
    benchmark: str = ""
    revision: str = ""
    weights: str = ""
    version: str = ""
    variant: str = ""
    harness: str = ""
    run: str = ""
    time: str = ""
    main_metrics: tuple[str, ...] = ()
    lower_is_better: frozenset[str] = frozenset()
    keeps_ids: bool = False


@dataclass(frozen=True)
class Records:
    """R records of one file, as columns.

    Attributes: runs: what the records belong to; ``run`` [R] says which each one does. native: ids of the
        items as the log has them, an arrow array of text. line: of the file, from 1; for a parquet file or
        an archive, the number of the row or sample. scores: by name of the metric. filters: of the answer,
        by name; ``filter`` [R] says which one made each record. status: [R] codes of ``STATUSES``. content:
        [R] hash of the item's content; 0 where the log has none. prompt: [R] hash of what was sent; 0 where
        unknown. trial: [R] number of the repetition within the run, from 1; 0 where the log does not say.
        trials: [R] n of a score that is a share of n trials. record: [R] hash of an id that the harness
        gave this one answer; 0 where there is none. tokens_in, tokens_out, seconds, cost: [R], NaN where
        unknown. moment: [R] when the answer was given, in seconds since 1970 (UTC), NaN where only the
        run's time is known. empty_answers: how many answers were the empty text.
    """

    runs: tuple[Run, ...]
    run: NDArray[np.int32]
    native: Any
    line: NDArray[np.int32]
    scores: Mapping[str, Scores]
    status: NDArray[np.int8]
    filters: tuple[str, ...] = (NO_FILTER,)
    filter: NDArray[np.int16] | None = None
    content: NDArray[np.uint64] | None = None
    prompt: NDArray[np.uint64] | None = None
    trial: NDArray[np.int32] | None = None
    trials: NDArray[np.int32] | None = None
    record: NDArray[np.uint64] | None = None
    tokens_in: NDArray[np.float32] | None = None
    tokens_out: NDArray[np.float32] | None = None
    seconds: NDArray[np.float32] | None = None
    cost: NDArray[np.float32] | None = None
    moment: NDArray[np.float64] | None = None
    empty_answers: int = 0

    def __len__(self) -> int:
        return len(self.line)


def content_hash(*parts: Any) -> int:
    """64 bits of what an item asks, never 0; texts are compared without outer and repeated white space."""
    digest = blake2b(digest_size=8)
    for part in parts:
        digest.update(" ".join(str(part).split()).encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return int.from_bytes(digest.digest(), "big") or 1


def hex_hash(text: Any) -> int:
    """The first 64 bits of a hash that the log gives in hexadecimal; another text is hashed itself."""
    if not isinstance(text, str) or not text:
        return 0
    try:
        number = int(text[:16], 16) if len(text) >= 16 else 0
    except ValueError:
        number = 0
    return number if number > 0 else content_hash(text)


def hex_hashes(texts: Sequence[Any]) -> NDArray[np.uint64]:
    """:func:`hex_hash` of a column, in one go where all are SHA-256."""
    try:
        joined = "".join(texts).encode("ascii")
        if set(map(len, texts)) == {_SHA256}:
            heads = np.frombuffer(joined, dtype=np.uint8).reshape(-1, _SHA256)[:, :_HEAD].tobytes()
            hashes = np.frombuffer(bytes.fromhex(heads.decode()), dtype=">u8").astype(np.uint64)
            if len(hashes) == len(texts) and hashes.all():
                return hashes
    except (TypeError, ValueError):
        pass
    return np.array([hex_hash(text) for text in texts], dtype=np.uint64)


def moment_of(text: str) -> float:
    """A date and time in ISO 8601 as seconds since 1970, in UTC where it has no zone; NaN of another text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def native_ids(values: Sequence[Any], file: str, lines: Sequence[int]) -> Any:
    """Ids as an arrow array of text; whole numbers are written out, nothing is parsed.

    Raises:
        InputError: an id that is neither text nor a whole number.
    """
    kinds = set(map(type, values))
    try:
        if kinds <= {int}:
            return pa.array(values, pa.int64()).cast(pa.string())
        if kinds <= {int, str}:
            return pa.array([str(value) for value in values], pa.string())
    except (OverflowError, UnicodeEncodeError):
        pass
    for value, line in zip(values, lines, strict=True):
        if isinstance(value, bool) or not isinstance(value, str | int):
            found = "no id" if value is None else f"an id of type {type(value).__name__}"
            raise InputError(f"{found}, wanted text or a whole number", file=file, line=line)
    return pa.array([str(value).encode("utf-8", "replace").decode() for value in values], pa.string())


@dataclass
class RecordBuilder:
    """Collects records one by one and hands them over as columns."""

    file: str
    _runs: dict[Run, int] = field(default_factory=dict)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _scores: list[Mapping[str, Any]] = field(default_factory=list)
    _filters: dict[str, int] = field(default_factory=dict)
    _empty: int = 0

    def add(
        self,
        run: Run,
        native: Any,
        line: int,
        scores: Mapping[str, Any],
        *,
        status: str = "ok",
        filter: str = NO_FILTER,
        content: int = 0,
        prompt: int = 0,
        trial: int = 0,
        trials: int = 1,
        record: int = 0,
        tokens_in: float = np.nan,
        tokens_out: float = np.nan,
        seconds: float = np.nan,
        empty: bool = False,
    ) -> None:
        """Take one record; a score that holds several by name becomes ``metric.name`` each."""
        self._rows.append(
            (
                self._runs.setdefault(run, len(self._runs)),
                native,
                line,
                STATUS[status],
                self._filters.setdefault(filter, len(self._filters)),
                content,
                prompt,
                trial,
                trials,
                record,
                tokens_in,
                tokens_out,
                seconds,
            )
        )
        self._scores.append(flat_scores(scores))
        self._empty += empty

    def __len__(self) -> int:
        return len(self._rows)

    def full(self) -> Iterator[Records]:
        """The records so far where there are enough for a batch."""
        if len(self._rows) >= BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[Records]:
        """The records since the last flush, if any."""
        if not self._rows:
            return
        run, native, line, status, chosen, content, prompt, trial, trials, record, *cost = zip(
            *self._rows, strict=True
        )
        tokens_in, tokens_out, seconds = (_known(np.array(values, dtype=np.float32)) for values in cost)
        repeated = np.array(trials, dtype=np.int32)
        yield Records(
            runs=tuple(self._runs),
            run=np.array(run, dtype=np.int32),
            native=native_ids(native, self.file, line),
            line=np.array(line, dtype=np.int32),
            scores=score_columns(self._scores),
            status=np.array(status, dtype=np.int8),
            filters=tuple(self._filters),
            filter=np.array(chosen, dtype=np.int16),
            content=_used(np.array(content, dtype=np.uint64)),
            prompt=_used(np.array(prompt, dtype=np.uint64)),
            trial=_used(np.array(trial, dtype=np.int32)),
            trials=repeated if (repeated != 1).any() else None,
            record=_used(np.array(record, dtype=np.uint64)),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            seconds=seconds,
            empty_answers=self._empty,
        )
        self._rows, self._scores, self._runs, self._filters, self._empty = [], [], {}, {}, 0


def flat_scores(scores: Mapping[str, Any]) -> Mapping[str, Any]:
    """Scores by metric, those that hold several by name spread out as ``metric.name``."""
    if not any(isinstance(value, dict) for value in scores.values()):
        return scores
    flat: dict[str, Any] = {}
    for name, value in scores.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


def score_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Scores]:
    """Scores of R records by metric; a record that lacks a metric is absent there."""
    absent = object()
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        column = [row.get(name, absent) for row in rows]
        has = np.array([value is not absent for value in column])
        scores = read_scores([value for value in column if value is not absent])
        if has.all():
            columns[name] = scores
            continue
        numbers = np.full(len(rows), np.nan)
        states = np.full(len(rows), State.ABSENT, dtype=np.int8)
        numbers[has], states[has] = scores.numbers, scores.states
        columns[name] = Scores(numbers, states, scores.unreadable)
    return columns


def _known(values: NDArray[np.float32]) -> NDArray[np.float32] | None:
    return None if np.isnan(values).all() else values


def _used(values: NDArray[Any]) -> NDArray[Any] | None:
    return values if values.any() else None
