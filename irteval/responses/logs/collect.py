"""All records of an import, put together from the batches of its files, before anything is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from irteval.responses.logs.records import Records, Run
from irteval.responses.policies.score_values import Scores, State

# Columns that most logs lack, and what stands for "not known" where only some have them.
_OPTIONAL: dict[str, Any] = {
    "content": np.uint64(0),
    "prompt": np.uint64(0),
    "trial": np.int32(0),
    "trials": np.int32(1),
    "record": np.uint64(0),
    "tokens_in": np.float32(np.nan),
    "tokens_out": np.float32(np.nan),
    "seconds": np.float32(np.nan),
}


@dataclass(frozen=True)
class Collected:
    """R records of many files; columns as in :class:`irteval.responses.logs.records.Records`.

    Attributes:
        columns: the optional columns that some file has.
        scores: by metric, the numbers of all R records; absent ones have that state.
    """

    runs: tuple[Run, ...]
    run: NDArray[np.int32]
    native: Any
    line: NDArray[np.int32]
    status: NDArray[np.int8]
    filters: tuple[str, ...]
    filter: NDArray[np.int16]
    columns: dict[str, NDArray[Any]]
    scores: dict[str, Scores]

    def __len__(self) -> int:
        return len(self.line)


@dataclass
class Collector:
    """Takes batches, and gives all of them as one."""

    runs: dict[Run, int] = field(default_factory=dict)
    filters: dict[str, int] = field(default_factory=dict)
    empty_answers: int = 0
    _parts: list[tuple[Records, NDArray[np.int32], NDArray[np.int16]]] = field(default_factory=list)

    def add(self, records: Records) -> None:
        """Take a batch."""
        runs = np.array([self.runs.setdefault(run, len(self.runs)) for run in records.runs], dtype=np.int32)
        names = [self.filters.setdefault(name, len(self.filters)) for name in records.filters]
        codes = np.array(names, dtype=np.int16)
        local = np.zeros(len(records), dtype=np.int16) if records.filter is None else records.filter
        self._parts.append((records, runs[records.run], codes[local]))
        self.empty_answers += records.empty_answers

    def collected(self) -> Collected:
        """Everything so far; the collector is empty afterwards."""
        parts, self._parts = self._parts, []
        batches = [records for records, _, _ in parts]
        sizes = [len(records) for records in batches]
        columns = {}
        for name, unknown in _OPTIONAL.items():
            if any(getattr(records, name) is not None for records in batches):
                columns[name] = _filled(batches, name, unknown)
        return Collected(
            tuple(self.runs),
            _join([run for _, run, _ in parts], np.int32),
            pa.chunked_array([records.native for records in batches], pa.string()),
            _join([records.line for records in batches], np.int32),
            _join([records.status for records in batches], np.int8),
            tuple(self.filters),
            _join([chosen for _, _, chosen in parts], np.int16),
            columns,
            {name: _metric(batches, sizes, name) for name in _metrics(batches)},
        )


def _metrics(batches: Sequence[Records]) -> list[str]:
    return list(dict.fromkeys(name for records in batches for name in records.scores))


def _metric(batches: Sequence[Records], sizes: Sequence[int], name: str) -> Scores:
    total = sum(sizes)
    numbers = np.full(total, np.nan)
    states = np.full(total, State.ABSENT, dtype=np.int8)
    unreadable = ""
    at = 0
    for records, size in zip(batches, sizes, strict=True):
        scores = records.scores.get(name)
        if scores is not None:
            numbers[at : at + size], states[at : at + size] = scores.numbers, scores.states
            unreadable = unreadable or scores.unreadable
        at += size
    return Scores(numbers, states, unreadable)


def _filled(batches: Sequence[Records], name: str, unknown: Any) -> NDArray[Any]:
    parts = []
    for records in batches:
        values = getattr(records, name)
        parts.append(np.full(len(records), unknown) if values is None else values)
    return np.concatenate(parts)


def _join(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)
