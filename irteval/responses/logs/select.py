"""The records of one metric and one filter a benchmark, or of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.collect import Collected
from irteval.responses.logs.records import NO_FILTER
from irteval.responses.policies.filters import check_filter, default_filter, named_filters
from irteval.responses.policies.metrics import ALL, check_metric, default_metric, listed
from irteval.responses.policies.score_values import State

_Condition: TypeAlias = Callable[[NDArray[np.int8], NDArray[np.float64]], NDArray[np.bool_]]
_NONE = -1


@dataclass(frozen=True)
class Selection:
    """What was selected.

    Attributes:
        row: [L] the record that each observation is of.
        metric: [L] its metric, a position in ``names``; -1 of a record that has none.
        filter: [R] the filter of each record, a position in ``filters``.
        left_out: records left out, by reason.
        notes: what a person should be told.
    """

    row: NDArray[np.int32]
    metric: NDArray[np.int16]
    names: tuple[str, ...]
    filter: NDArray[np.int16]
    filters: tuple[str, ...]
    left_out: dict[str, int]
    notes: tuple[str, ...]


def select(
    records: Collected,
    benchmarks: Sequence[str],
    benchmark_of_run: NDArray[np.int32],
    *,
    metric: str | None,
    filter: str | None,
) -> Selection:
    """The observations of the asked or default metric and filter; every one where both are ``all``.

    A record without any metric, because it failed or was never scored, is an observation without a score.

    Raises:
        InputError: a metric or filter that no log has, a metric that is better when lower, or several filters
            without names.
    """
    if metric is not None and filter is None and "," in metric and metric not in records.scores:
        metric, filter = metric.rsplit(",", 1)  # as lm-eval writes it: acc,none
    check_metric(metric, records.scores)
    filters, filter_of = named_filters(records.filters, records.filter, records.run, len(records.runs))
    check_filter(filter, filters)
    if metric == ALL:
        return _every_metric(records, filters, filter_of, filter)
    return _Selector(records, benchmarks, benchmark_of_run, filters, filter_of, metric, filter).select()


def _every_metric(
    records: Collected, filters: tuple[str, ...], filter_of: NDArray[np.int16], filter: str | None
) -> Selection:
    rows, without = [], np.ones(len(records), dtype=np.bool_)
    for scores in records.scores.values():
        rows.append(np.flatnonzero(scores.states != State.ABSENT))
        without[rows[-1]] = False
    rows.append(np.flatnonzero(without))
    positions = [*range(len(records.scores)), _NONE]
    row = np.concatenate(rows)
    metric = np.repeat(np.array(positions, dtype=np.int16), [len(part) for part in rows])
    order = np.argsort(row, kind="stable")
    row, metric = row[order], metric[order]
    left_out = {}
    if filter not in (None, ALL):
        kept = filter_of[row] == filters.index(str(filter))
        if not kept.all():
            left_out["other_filter"] = int((~kept).sum())
        row, metric = row[kept], metric[kept]
    names = tuple(records.scores)
    return Selection(row.astype(np.int32), metric, names, filter_of, filters, left_out, ())


class _Selector:
    """Selects one metric and one filter a benchmark. A run is of one benchmark, so it counts by run."""

    def __init__(
        self,
        records: Collected,
        benchmarks: Sequence[str],
        benchmark_of_run: NDArray[np.int32],
        filters: tuple[str, ...],
        filter_of: NDArray[np.int16],
        metric: str | None,
        filter: str | None,
    ) -> None:
        self.records, self.benchmarks, self.benchmark_of_run = records, benchmarks, benchmark_of_run
        self.filters, self.filter_of = filters, filter_of
        self.metric, self.filter = metric, filter
        self.names = tuple(records.scores)
        self.titles = [name or "all records" for name in benchmarks]
        self.runs_of: list[list[int]] = [[] for _ in benchmarks]
        for run, b in enumerate(benchmark_of_run.tolist()):
            self.runs_of[b].append(run)
        self.present = self._by_benchmark(self._count(lambda states, _: states != State.ABSENT))
        self.fit = self._fit()
        scored = np.zeros(len(records), dtype=np.int16)
        for scores in records.scores.values():
            scored += (scores.states != State.ABSENT) & (scores.states != State.UNSCORED)
        self.bare = scored == 0
        # Whether a record may have several metrics; in a table with a row a metric it never has.
        self.several = bool((scored > 1).any())
        self.notes: list[str] = []

    def select(self) -> Selection:
        metric_of = np.array([self._metric_of(b) for b in range(len(self.benchmarks))], dtype=np.int16)
        metric = metric_of[self.benchmark_of_run][self.records.run]
        has = self.bare.copy()
        for position, scores in enumerate(self.records.scores.values()):
            has |= (metric == position) & (scores.states != State.ABSENT)
        self._tell_lacking(metric_of, has)
        self._tell_metrics(metric_of)
        kept = self._of_one_filter(has)
        left_out = {"other_metric": int((~has).sum()), "other_filter": int((has & ~kept).sum())}
        rows = np.flatnonzero(kept).astype(np.int32)
        return Selection(
            rows,
            metric[rows],
            self.names,
            self.filter_of,
            self.filters,
            {name: count for name, count in left_out.items() if count},
            tuple(self.notes),
        )

    def _count(self, condition: _Condition) -> NDArray[np.int64]:
        """Records ``[runs, metrics]`` that meet a condition on their state and number."""
        runs = len(self.records.runs)
        columns = [
            np.bincount(self.records.run[condition(scores.states, scores.numbers)], minlength=runs)
            for scores in self.records.scores.values()
        ]
        return np.array(columns, dtype=np.int64).reshape(len(columns), runs).T

    def _by_benchmark(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts ``[runs, …]`` added up over the runs of each benchmark."""
        total = np.zeros((len(self.benchmarks), counts.shape[1]), dtype=np.int64)
        np.add.at(total, self.benchmark_of_run, counts)
        return total

    def _fit(self) -> NDArray[np.bool_]:
        """Metrics ``[benchmarks, metrics]`` that are shares in [0, 1] and better when higher."""
        good = self._count(lambda states, numbers: (states == State.NUMBER) & _in_range(numbers))
        bad = self._count(
            lambda states, numbers: (
                (states == State.UNREADABLE) | ((states == State.NUMBER) & ~_in_range(numbers))
            )
        )
        fit = np.asarray((self._by_benchmark(good) > 0) & (self._by_benchmark(bad) == 0))
        for b in range(len(self.benchmarks)):
            for name in self._lower_is_better(b) & set(self.names):
                fit[b, self.names.index(name)] = False
        return fit

    def _lower_is_better(self, b: int) -> set[str]:
        return {name for run in self.runs_of[b] for name in self.records.runs[run].lower_is_better}

    def _there(self, b: int) -> list[str]:
        return [name for name, count in zip(self.names, self.present[b], strict=True) if count]

    def _metric_of(self, b: int) -> int:
        """The metric of one benchmark, -1 where it has none."""
        there = self._there(b)
        if self.metric is None:
            fit = [name for name, good in zip(self.names, self.fit[b], strict=True) if good]
            chosen = default_metric(there, fit, self._main_metrics(b))
        else:
            chosen = self.metric if self.metric in there else None
            if chosen in self._lower_is_better(b):
                raise InputError(
                    f"{self.titles[b]}: '{chosen}' is better when lower, wanted a score that is better when "
                    "higher",
                    field="metric",
                )
        return _NONE if chosen is None else self.names.index(chosen)

    def _main_metrics(self, b: int) -> tuple[str, ...]:
        """What the harness puts first in this benchmark: names that all its runs have, in order."""
        main = [names for run in self.runs_of[b] if (names := self.records.runs[run].main_metrics)]
        return tuple(name for name in main[0] if all(name in names for names in main)) if main else ()

    def _of_one_filter(self, has: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of these records are of the filter of their benchmark."""
        if self.filter == ALL:
            return has
        size = len(self.filters)
        pair = self.records.run.astype(np.int64) * size + self.filter_of
        runs = len(self.records.runs)
        counts = np.bincount(pair[has], minlength=runs * size).reshape(runs, size)
        scored = np.bincount(pair[has & ~self.bare], minlength=runs * size).reshape(runs, size)
        by_benchmark, scored_by_benchmark = self._by_benchmark(counts), self._by_benchmark(scored)
        chosen = np.full(len(self.benchmarks), _NONE, dtype=np.int16)
        for b, (every, own) in enumerate(zip(by_benchmark, scored_by_benchmark, strict=True)):
            there = [self.filters[j] for j in np.flatnonzero(own if own.any() else every)]
            if there:
                chosen[b] = self._filter_of(b, there)
        kept = has & (self.filter_of == chosen[self.benchmark_of_run][self.records.run])
        if NO_FILTER in self.filters:  # what failed before it was filtered is of every filter
            kept |= has & self.bare & (self.filter_of == self.filters.index(NO_FILTER))
        return np.asarray(kept)

    def _filter_of(self, b: int, there: list[str]) -> int:
        """The filter of one benchmark among those that are there, -1 where the one asked for is not."""
        if self.filter is None:
            chosen = default_filter(there, self.titles[b])
            others = [name for name in there if name != chosen]
            if others:
                self.notes.append(
                    f"{self.titles[b]}: filter '{chosen}' by default, others are {listed(others)} (--filter)"
                )
            return self.filters.index(chosen)
        if self.filter in there:
            return self.filters.index(self.filter)
        self.notes.append(f"{self.titles[b]}: no filter '{self.filter}', has {listed(there)}: left out")
        return _NONE

    def _tell_lacking(self, metric_of: NDArray[np.int16], has: NDArray[np.bool_]) -> None:
        """Say which subjects have no score of the chosen metric in a benchmark that they answered."""
        runs = len(self.records.runs)
        lacking = np.bincount(self.records.run[~has], minlength=runs)
        scored = np.bincount(self.records.run[has & ~self.bare], minlength=runs)
        for b, of_benchmark in enumerate(self.runs_of):
            count = int(lacking[of_benchmark].sum())
            if not count:
                continue
            wanted = self.names[metric_of[b]] if metric_of[b] != _NONE else self.metric
            with_score = {self.records.runs[run].subject for run in of_benchmark if scored[run]}
            without = {self.records.runs[run].subject for run in of_benchmark if lacking[run]} - with_score
            if without:
                others = [name for name in self._there(b) if name != wanted]
                self.notes.append(
                    f"{self.titles[b]}: no '{wanted}' of {listed(sorted(without))} (there is {listed(others)}"
                    "): left out, not filled"
                )
            elif self.several:
                self.notes.append(f"{self.titles[b]}: {count} records have no '{wanted}' and were left out")

    def _tell_metrics(self, metric_of: NDArray[np.int16]) -> None:
        """Say which metric was taken by default, and where none is a score."""
        for b, title in enumerate(self.titles):
            if self.metric is not None or metric_of[b] == _NONE:
                continue
            chosen = self.names[metric_of[b]]
            others = [name for name in self._there(b) if name != chosen]
            if others:
                self.notes.append(
                    f"{title}: metric '{chosen}' by default, others are {listed(others)} (--metric)"
                )
            if not self.fit[b].any():
                self.notes.append(f"{title}: no metric with one share in [0, 1] a record")


def _in_range(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((numbers >= 0) & (numbers <= 1))
