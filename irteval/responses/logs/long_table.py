"""The long table of an import: one row an observation, a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from irteval.responses.logs.observations import Observations
from irteval.responses.logs.records import STATUSES
from irteval.responses.policies.subjects import checkpoint_step

ROWS = 65_536
_TEXT = pa.string()


class LongTable:
    """Columns of a response table, and what is known beyond it.

    ``subject``, ``item``, ``score``, ``benchmark``, ``variant``, ``metric``, ``filter``, ``status``,
    ``native_id``, ``trials``, ``content_hash``, ``prompt_hash``, ``revision``, ``checkpoint_step``,
    ``trial``, ``score_kind``, ``tokens_in``, ``tokens_out``, ``seconds``, ``cost``, ``time``, ``run``,
    ``harness``, ``source``, ``line``. A column of which nothing is known is left out, but for the first
    nine.
    """

    def __init__(self, observations: Observations) -> None:
        self.observations = observations

    def __len__(self) -> int:
        return len(self.observations)

    def parts(self) -> Iterator[pa.Table]:
        """The rows in order, 65,536 at a time; at least one part, which may be empty."""
        for start in range(0, max(len(self), 1), ROWS):
            yield self._part(slice(start, start + ROWS))

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.concat_tables(self.parts(), promote_options="permissive")

    def _part(self, rows: slice) -> pa.Table:
        columns = {name: make(rows) for name, make in self._columns.items()}
        return pa.table(columns)

    @cached_property
    def _columns(self) -> dict[str, Callable[[slice], Any]]:
        observed = self.observations
        runs, items, known = observed.runs, observed.items, observed.columns
        benchmark = items.benchmark[observed.item] if len(items) else np.empty(0, dtype=np.int32)
        steps = [checkpoint_step(f"{run.subject}@{run.revision}") for run in runs]
        columns: dict[str, Callable[[slice], Any]] = {
            "subject": _coded(observed.subjects, observed.subject),
            "item": lambda rows: pa.array([items.key(j) for j in observed.item[rows].tolist()], _TEXT),
            "score": _numbers(observed.score),
            "benchmark": _coded(items.benchmarks, benchmark),
            "variant": _coded(observed.variants, observed.variant),
            "metric": _coded(observed.metrics, observed.metric),
            "filter": _coded(observed.filters, observed.filter),
            "status": _coded(STATUSES, observed.status),
            "native_id": lambda rows: items.natives.take(pa.array(observed.record[rows])),
        }
        if "trials" in known and (known["trials"] > 1).any():
            columns["trials"] = _numbers(known["trials"])
        if items.content.any():
            columns["content_hash"] = lambda rows: _hex(items.content[observed.item[rows]])
        if "prompt" in known:
            columns["prompt_hash"] = lambda rows: _hex(known["prompt"][rows])
        if any(run.revision for run in runs):
            columns["revision"] = _coded([run.revision for run in runs], observed.run)
        if any(step is not None for step in steps):
            columns["checkpoint_step"] = lambda rows: pa.array(steps, pa.int64()).take(
                pa.array(observed.run[rows])
            )
        if "trial" in known:
            columns["trial"] = lambda rows: _numbers_above_zero(known["trial"][rows])
        columns["score_kind"] = _coded(("binary", "share"), self._kind(benchmark))
        for name in ("tokens_in", "tokens_out", "seconds", "cost"):
            if name in known:
                columns[name] = _numbers(known[name])
        if "moment" in known or any(run.time for run in runs):
            columns["time"] = self._times
        for name, attribute in (("run", "run"), ("harness", "harness"), ("source", "file")):
            texts = [getattr(run, attribute) for run in runs]
            if any(texts):
                columns[name] = _coded(texts, observed.run)
        columns["line"] = _numbers(observed.line)
        return columns

    def _times(self, rows: slice) -> Any:
        """The time of each answer, else of its run."""
        observed = self.observations
        times = _coded([run.time for run in observed.runs], observed.run)(rows)
        if "moment" not in observed.columns:
            return times
        moments = observed.columns["moment"][rows]
        own = [None if np.isnan(m) else datetime.fromtimestamp(m, UTC).isoformat() for m in moments.tolist()]
        return pc.coalesce(pa.array(own, _TEXT), times)

    def _kind(self, benchmark: NDArray[np.int32]) -> NDArray[np.int8]:
        """[L] 0 where all scores of the metric on the benchmark are 0 or 1, else 1."""
        observed = self.observations
        metrics = len(observed.metrics) + 1
        pair = benchmark * metrics + observed.metric + 1
        with np.errstate(invalid="ignore"):
            between = (observed.score > 0) & (observed.score < 1)
        if "trials" in observed.columns:
            between &= observed.columns["trials"] == 1
        share = np.zeros(max(len(observed.items.benchmarks), 1) * metrics, dtype=np.int8)
        share[pair[between]] = 1
        return np.asarray(share[pair])


def _coded(texts: Any, codes: NDArray[Any]) -> Callable[[slice], Any]:
    """A column of texts by code; an empty text or a code of -1 is null."""
    values = pa.array([text or None for text in texts], _TEXT)

    def column(rows: slice) -> Any:
        chosen = codes[rows].astype(np.int32)
        return values.take(pa.array(chosen, mask=chosen < 0))

    return column


def _numbers(values: NDArray[Any]) -> Callable[[slice], Any]:
    """A column of numbers; NaN is null."""
    return lambda rows: pa.array(values[rows], from_pandas=True)


def _numbers_above_zero(values: NDArray[Any]) -> Any:
    return pa.array(values, mask=values == 0)


def _hex(values: NDArray[np.uint64]) -> Any:
    return pa.array([f"{value:016x}" if value else None for value in values.tolist()], _TEXT)
