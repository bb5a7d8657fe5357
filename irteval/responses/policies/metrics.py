"""Which metric and which filter are read: one of each a benchmark, asked for or by a stated default.

The default metric of a benchmark is, among those whose scores are all shares in [0, 1] that are better when
higher, what the harness itself puts first (the headline scorer of Inspect, the main metric of a HELM
schema), else the first of ``METRICS`` that is there, else the first by name. The default filter is the
first of ``FILTERS``, else the first by name. A subject that lacks the chosen one has no score there:
nothing is filled in from another metric or filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.collect import Collected
from irteval.responses.logs.records import NO_FILTER
from irteval.responses.policies.score_values import State

ALL = "all"
METRICS = (
    "acc_norm",
    "acc",
    "exact_match",
    "em",
    "quasi_exact_match",
    "prompt_level_strict_acc",
    "pass@1",
    "resolved",
    "score",
    "is_correct",
    "preference",
    "f1",
)
FILTERS = (NO_FILTER, "flexible-extract", "strict-match")
# A file without names for its filters: the k-th row of a document has the filter #k.
_FIRST, _NUMBERED = "#1", "#"
_LISTED = 5
_Condition: TypeAlias = Callable[[NDArray[np.int8], NDArray[np.float64]], NDArray[np.bool_]]


@dataclass(frozen=True)
class Selection:
    """What was chosen.

    Attributes:
        row: [L] the record that each long row is of.
        metric: [L] its metric, a position in ``names``; -1 of a record that has none.
        filter: [R] the filter of each record, a position in ``filters``.
        of_benchmark: metric and filter by benchmark.
        counts: records left aside, by reason.
        notes: what a person should be told.
    """

    row: NDArray[np.int32]
    metric: NDArray[np.int16]
    names: tuple[str, ...]
    filter: NDArray[np.int16]
    filters: tuple[str, ...]
    of_benchmark: dict[str, tuple[str, str]]
    counts: dict[str, int]
    notes: tuple[str, ...]


def select(
    records: Collected,
    benchmarks: Sequence[str],
    benchmark_of_run: NDArray[np.int32],
    *,
    metric: str | None,
    filter: str | None,
) -> Selection:
    """The rows of one metric and one filter a benchmark, or of all where that is ``all``.

    Raises: InputError: a metric or filter that no file has, a metric that is better when lower, or several
        filters
            without names.
    """
    if metric is not None and filter is None and "," in metric and metric not in records.scores:
        metric, filter = metric.rsplit(",", 1)  # as lm-eval writes it: acc,none
    return _Chooser(records, benchmarks, benchmark_of_run[records.run], metric, filter).select()


class _Chooser:
    def __init__(
        self,
        records: Collected,
        benchmarks: Sequence[str],
        benchmark: NDArray[np.int32],
        metric: str | None,
        filter: str | None,
    ) -> None:
        self.records, self.benchmarks, self.benchmark = records, benchmarks, benchmark
        self.metric, self.filter = metric, filter
        self.names = tuple(records.scores)
        self.filters, self.filter_of = _named_filters(records)
        self.notes: list[str] = []
        self.counts = {"other_metric": 0, "other_filter": 0}
        self.present = self._count(lambda states, _: states != State.ABSENT)
        self.fit = self._fit()
        scored = np.zeros(len(records), dtype=np.int16)
        for scores in records.scores.values():
            scored += (scores.states != State.ABSENT) & (scores.states != State.UNSCORED)
        self.bare = scored == 0
        # Whether a record may have several metrics; in a table with a row a metric it never has.
        self.several = bool((scored > 1).any())

    def select(self) -> Selection:
        self._check_names()
        if self.metric == ALL:
            rows, metrics = self._every_metric()
            chosen: dict[str, tuple[str, str]] = {}
            if self.filter not in (None, ALL):
                kept = self.filter_of[rows] == self.filters.index(str(self.filter))
                self.counts["other_filter"] = int((~kept).sum())
                rows, metrics = rows[kept], metrics[kept]
        else:
            rows, metrics, chosen = self._one_metric()
        return Selection(
            rows.astype(np.int32),
            metrics,
            self.names,
            self.filter_of,
            self.filters,
            chosen,
            {name: count for name, count in self.counts.items() if count},
            tuple(self.notes),
        )

    def _check_names(self) -> None:
        if self.metric not in (None, ALL, *self.names):
            inner = [name for name in self.names if name.startswith(f"{self.metric}.")]
            if inner:
                message = f"'{self.metric}' holds several values by name, wanted one of {_list(inner)}"
            else:
                message = f"no metric '{self.metric}', wanted one of {_list(sorted(self.names))}"
            raise InputError(message, field="metric")
        if self.filter not in (None, ALL, *self.filters):
            raise InputError(
                f"no filter '{self.filter}', wanted one of {_list(sorted(self.filters))}", field="filter"
            )

    def _count(self, condition: _Condition) -> NDArray[np.int64]:
        """Records ``[benchmarks, metrics]`` that meet a condition on their state and value."""
        size = len(self.benchmarks)
        counts = [
            np.bincount(self.benchmark[condition(scores.states, scores.numbers)], minlength=size)
            for scores in self.records.scores.values()
        ]
        return np.array(counts, dtype=np.int64).reshape(len(counts), size).T

    def _fit(self) -> NDArray[np.bool_]:
        """Metrics ``[benchmarks, metrics]`` that are shares in [0, 1] and better when higher."""
        good = self._count(lambda states, numbers: (states == State.NUMBER) & _in_range(numbers))
        bad = self._count(
            lambda states, numbers: (
                (states == State.UNREADABLE) | ((states == State.NUMBER) & ~_in_range(numbers))
            )
        )
        fit = np.asarray((good > 0) & (bad == 0))
        for b, inverted in enumerate(self._inverted()):
            for name in inverted & set(self.names):
                fit[b, self.names.index(name)] = False
        return fit

    def _inverted(self) -> list[set[str]]:
        inverted: list[set[str]] = [set() for _ in self.benchmarks]
        for b, run in self._runs():
            inverted[b] |= self.records.runs[run].lower_is_better
        return inverted

    def _runs(self) -> list[tuple[int, int]]:
        """Benchmark and run, each pair once."""
        runs = max(len(self.records.runs), 1)
        counts = np.bincount(self.records.run, minlength=runs)
        first = np.empty(runs, dtype=np.int64)
        first[self.records.run[::-1]] = np.arange(len(self.records) - 1, -1, -1)
        return [(int(self.benchmark[first[run]]), int(run)) for run in np.flatnonzero(counts)]

    def _every_metric(self) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
        rows, metrics = [], []
        for position, scores in enumerate(self.records.scores.values()):
            found = np.flatnonzero(scores.states != State.ABSENT)
            rows.append(found)
            metrics.append(np.full(len(found), position, dtype=np.int16))
        without = np.ones(len(self.records), dtype=np.bool_)
        for found in rows:
            without[found] = False
        rows.append(np.flatnonzero(without))
        metrics.append(np.full(len(rows[-1]), -1, dtype=np.int16))
        row, metric = np.concatenate(rows), np.concatenate(metrics)
        order = np.argsort(row, kind="stable")
        return row[order], metric[order]

    def _one_metric(self) -> tuple[NDArray[np.int64], NDArray[np.int16], dict[str, tuple[str, str]]]:
        metric_of = np.full(len(self.benchmarks), -1, dtype=np.int16)
        for b in range(len(self.benchmarks)):
            metric_of[b] = self._metric_of(b)
        metric = metric_of[self.benchmark]
        has = self.bare.copy()
        for position, scores in enumerate(self.records.scores.values()):
            has |= (metric == position) & (scores.states != State.ABSENT)
        self._tell_lacking(metric_of, has)
        self.counts["other_metric"] = int((~has).sum())
        kept, filter_of = self._one_filter(has)
        self.counts["other_filter"] = int((has & ~kept).sum())
        self._refuse_inverted(metric_of)
        chosen = {
            name: (self.names[metric_of[b]] if metric_of[b] >= 0 else "", filter_of[b])
            for b, name in enumerate(self.benchmarks)
        }
        self._tell_choice(metric_of, chosen)
        rows = np.flatnonzero(kept)
        return rows, metric[rows], chosen

    def _metric_of(self, b: int) -> int:
        """The metric of one benchmark, -1 where it has none."""
        there = [name for j, name in enumerate(self.names) if self.present[b, j]]
        if self.metric is not None:
            return self.names.index(self.metric) if self.metric in there else -1
        fit = [name for j, name in enumerate(self.names) if self.fit[b, j]]
        for name in (*self._main_metrics(b), *METRICS, *sorted(fit)):
            if name in fit:
                return self.names.index(name)
        return self.names.index(min(there)) if there else -1

    def _main_metrics(self, b: int) -> tuple[str, ...]:
        """What the harness puts first in this benchmark: names that all its runs have, in order."""
        main = [self.records.runs[run].main_metrics for _, run in self._runs_of().get(b, ())]
        main = [names for names in main if names]
        return tuple(name for name in main[0] if all(name in names for names in main)) if main else ()

    def _runs_of(self) -> dict[int, list[tuple[int, int]]]:
        if not hasattr(self, "_by_benchmark"):
            self._by_benchmark: dict[int, list[tuple[int, int]]] = {}
            for b, run in self._runs():
                self._by_benchmark.setdefault(b, []).append((b, run))
        return self._by_benchmark

    def _one_filter(self, has: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], list[str]]:
        """Records of the chosen filter, and which one that is in each benchmark."""
        if self.filter == ALL:
            return has, [ALL] * len(self.benchmarks)
        size = len(self.filters)
        pair = self.benchmark.astype(np.int64) * size + self.filter_of
        counts = np.bincount(pair[has & ~self.bare], minlength=len(self.benchmarks) * size).reshape(-1, size)
        bare_counts = np.bincount(pair[has], minlength=len(self.benchmarks) * size).reshape(-1, size)
        chosen = np.full(len(self.benchmarks), -1, dtype=np.int64)
        for b, name in enumerate(self.benchmarks):
            there = [
                self.filters[j] for j in np.flatnonzero(counts[b] if counts[b].any() else bare_counts[b])
            ]
            if not there:
                continue
            if self.filter is None:
                chosen[b] = self.filters.index(_default_filter(there, name))
            elif self.filter in there:
                chosen[b] = self.filters.index(self.filter)
            else:
                self.notes.append(f"{_title(name)}: no filter '{self.filter}', has {_list(there)}: left out")
        kept = has & (self.filter_of == chosen[self.benchmark])
        if NO_FILTER in self.filters:
            kept |= has & self.bare & (self.filter_of == self.filters.index(NO_FILTER))
        return kept, [self.filters[code] if code >= 0 else "" for code in chosen]

    def _refuse_inverted(self, metric_of: NDArray[np.int16]) -> None:
        for b, inverted in enumerate(self._inverted()):
            if self.metric is not None and metric_of[b] >= 0 and self.metric in inverted:
                raise InputError(
                    f"{_title(self.benchmarks[b])}: '{self.metric}' is better when lower, wanted a score "
                    "that is better when higher",
                    field="metric",
                )

    def _tell_lacking(self, metric_of: NDArray[np.int16], has: NDArray[np.bool_]) -> None:
        """Say which subjects have no score of the chosen metric in a benchmark that they answered."""
        lacking = ~has
        if not lacking.any():
            return
        runs = len(self.records.runs)
        pair = self.benchmark.astype(np.int64) * runs + self.records.run
        some = np.unique(pair[has & ~self.bare])
        for b, name in enumerate(self.benchmarks):
            wanted = self.names[metric_of[b]] if metric_of[b] >= 0 else self.metric
            mine = np.unique(self.records.run[lacking & (self.benchmark == b)])
            if not len(mine):
                continue
            scored = {self.records.runs[int(code % runs)].subject for code in some if code // runs == b}
            without = sorted({self.records.runs[run].subject for run in mine} - scored)
            have = [n for j, n in enumerate(self.names) if self.present[b, j] and n != wanted]
            if without:
                self.notes.append(
                    f"{_title(name)}: no '{wanted}' of {_list(without)} (there is {_list(have)}): left out, "
                    "not filled"
                )
            elif self.several:
                count = int((lacking & (self.benchmark == b)).sum())
                self.notes.append(f"{_title(name)}: {count} records have no '{wanted}' and were left out")

    def _tell_choice(self, metric_of: NDArray[np.int16], chosen: dict[str, tuple[str, str]]) -> None:
        for b, name in enumerate(self.benchmarks):
            others = [n for j, n in enumerate(self.names) if self.present[b, j] and j != metric_of[b]]
            if self.metric is None and others and metric_of[b] >= 0:
                self.notes.append(
                    f"{_title(name)}: metric '{chosen[name][0]}' by default, others are {_list(others)} "
                    "(--metric)"
                )
            if self.metric is None and metric_of[b] >= 0 and not self.fit[b].any():
                self.notes.append(f"{_title(name)}: no metric with one share in [0, 1] a record")
            here = self.benchmark == b
            used = np.unique(self.filter_of[here & ~self.bare]).tolist()
            left = [self.filters[j] for j in used if self.filters[j] != chosen[name][1]]
            if self.filter is None and left:
                self.notes.append(
                    f"{_title(name)}: filter '{chosen[name][1]}' by default, others are {_list(left)} "
                    "(--filter)"
                )


def _named_filters(records: Collected) -> tuple[tuple[str, ...], NDArray[np.int16]]:
    """Filters by name; what has no name and needs none, because a document has one row, is ``none``."""
    if _FIRST not in records.filters:
        return records.filters, records.filter
    first = records.filters.index(_FIRST)
    later = [j for j, name in enumerate(records.filters) if name.startswith(_NUMBERED) and j != first]
    several = np.zeros(len(records.runs), dtype=np.bool_)
    several[records.run[np.isin(records.filter, later)]] = True
    names = list(records.filters)
    if NO_FILTER not in names:
        names.append(NO_FILTER)
    single = (records.filter == first) & ~several[records.run]
    return tuple(names), np.where(single, names.index(NO_FILTER), records.filter).astype(np.int16)


def _default_filter(there: Sequence[str], benchmark: str) -> str:
    if len(there) > 1 and any(name.startswith(_NUMBERED) for name in there):
        raise InputError(
            f"{_title(benchmark)}: {len(there)} rows a document and no names of filters, as in logs of older "
            f"versions: choose one of {_list(there)} with --filter",
            field="filter",
        )
    return next((name for name in FILTERS if name in there), min(there))


def _in_range(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((numbers >= 0) & (numbers <= 1))


def _title(benchmark: str) -> str:
    return benchmark or "all records"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return f"{shown} and {len(names) - _LISTED} more" if len(names) > _LISTED else shown
