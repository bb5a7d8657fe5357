"""All records of an import, put together from the batches of its files, before anything is chosen."""

from __future__ import annotations

from dataclasses import dataclass
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
    "cost": np.float32(np.nan),
    "moment": np.float64(np.nan),
}
_GROWTH = 1.125


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


class _Column:
    """A column that grows where it stands, for there may be little memory; gaps are filled with one value."""

    def __init__(self, filler: Any, kind: Any) -> None:
        self._filler = filler
        self._values = np.empty(0, dtype=kind)
        self._size = 0

    def put(self, at: int, values: NDArray[Any]) -> None:
        """Values of the records from ``at`` on; those before that have none are filled."""
        self._grow(at + len(values))
        self._values[self._size : at] = self._filler
        self._values[at : at + len(values)] = values
        self._size = at + len(values)

    def whole(self, size: int) -> NDArray[Any]:
        """The column up to a size."""
        self._grow(size)
        self._values[self._size : size] = self._filler
        self._values.resize(size, refcheck=False)
        return self._values

    def _grow(self, size: int) -> None:
        if size > len(self._values):
            self._values.resize(max(size, int(_GROWTH * len(self._values))), refcheck=False)


class Collector:
    """Takes batches, and gives all of them as one."""

    def __init__(self) -> None:
        self.runs: dict[Run, int] = {}
        self.filters: dict[str, int] = {}
        self.empty_answers = 0
        self._size = 0
        self._native: list[Any] = []
        self._columns = {
            "run": _Column(0, np.int32),
            "line": _Column(0, np.int32),
            "status": _Column(0, np.int8),
            "filter": _Column(0, np.int16),
        }
        self._optional: dict[str, _Column] = {}
        self._numbers: dict[str, _Column] = {}
        self._states: dict[str, _Column] = {}
        self._unreadable: dict[str, str] = {}

    def add(self, records: Records) -> None:
        """Take a batch."""
        at = self._size
        runs = np.array([self.runs.setdefault(run, len(self.runs)) for run in records.runs], dtype=np.int32)
        names = [self.filters.setdefault(name, len(self.filters)) for name in records.filters]
        codes = np.array(names, dtype=np.int16)
        local = np.zeros(len(records), dtype=np.int16) if records.filter is None else records.filter
        self._columns["run"].put(at, runs[records.run])
        self._columns["line"].put(at, records.line)
        self._columns["status"].put(at, records.status)
        self._columns["filter"].put(at, codes[local])
        self._native.append(records.native)
        for name, unknown in _OPTIONAL.items():
            values = getattr(records, name)
            if values is not None:
                self._optional.setdefault(name, _Column(unknown, unknown.dtype)).put(at, values)
        for name, scores in records.scores.items():
            self._numbers.setdefault(name, _Column(np.nan, np.float64)).put(at, scores.numbers)
            self._states.setdefault(name, _Column(State.ABSENT, np.int8)).put(at, scores.states)
            self._unreadable[name] = self._unreadable.get(name) or scores.unreadable
        self.empty_answers += records.empty_answers
        self._size += len(records)

    def collected(self) -> Collected:
        """Everything so far; the collector is empty afterwards."""
        columns = {name: column.whole(self._size) for name, column in self._columns.items()}
        native, self._native = pa.chunked_array(self._native, pa.string()), []
        return Collected(
            tuple(self.runs),
            columns["run"],
            native,
            columns["line"],
            columns["status"],
            tuple(self.filters),
            columns["filter"],
            {name: column.whole(self._size) for name, column in self._optional.items()},
            {
                name: Scores(
                    column.whole(self._size), self._states[name].whole(self._size), self._unreadable[name]
                )
                for name, column in self._numbers.items()
            },
        )
