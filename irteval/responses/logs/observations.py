"""Observations: one score of one subject on one item by one metric, before and after repeats are settled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irteval.responses.logs.items import Items
from irteval.responses.logs.records import Run


@dataclass(frozen=True)
class Observations:
    """L observations; every column has a code into the names beside it.

    Attributes:
        item, metric, filter: [L] what was observed; a metric of -1 is none.
        run: [L] where, which says whose and in which variant: ``subject_of_run`` and ``variant_of_run``.
        score: [L], NaN where there is none, and ``status`` [L] says why.
        record: [L] which record of the import it is, a position in the items' ``natives``.
        line: [L] of the run's file.
        columns: prompt, trial, trials, record, tokens_in, tokens_out, seconds, cost, moment where known.
    """

    subjects: tuple[str, ...]
    subject_of_run: NDArray[np.int32]
    items: Items
    item: NDArray[np.int32]
    variants: tuple[str, ...]
    variant_of_run: NDArray[np.int32]
    metrics: tuple[str, ...]
    metric: NDArray[np.int16]
    filters: tuple[str, ...]
    filter: NDArray[np.int16]
    runs: tuple[Run, ...]
    run: NDArray[np.int32]
    score: NDArray[np.float64]
    status: NDArray[np.int8]
    record: NDArray[np.int32]
    line: NDArray[np.int32]
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.score)

    @property
    def subject(self) -> NDArray[np.int32]:
        """[L] who was observed."""
        return self.subject_of_run[self.run]

    @property
    def variant(self) -> NDArray[np.int32]:
        """[L] in which variant."""
        return self.variant_of_run[self.run]

    def take(self, index: NDArray[np.int64]) -> Observations:
        """The observations at these positions."""
        return replace(
            self,
            item=self.item[index],
            metric=self.metric[index],
            filter=self.filter[index],
            run=self.run[index],
            score=self.score[index],
            status=self.status[index],
            record=self.record[index],
            line=self.line[index],
            columns={name: column[index] for name, column in self.columns.items()},
        )

    def cells(self) -> NDArray[np.int64]:
        """[L] a number for the cell (subject, item, variant, metric, filter), the same of the same cell."""
        key = self.subject.astype(np.int64)
        for codes, size in (
            (self.variant, len(self.variants)),
            (self.metric + 1, len(self.metrics) + 1),
            (self.filter, len(self.filters)),
            (self.item, len(self.items)),
        ):
            key = key * max(size, 1) + codes
        return key

    def place(self, position: int) -> tuple[str, int]:
        """File and line of an observation."""
        return self.runs[self.run[position]].file, int(self.line[position])

    def name(self, position: int) -> str:
        """An observation's subject and item, for people."""
        item = self.items.key(int(self.item[position]))
        return f"subject '{self.subjects[self.subject_of_run[self.run[position]]]}' and item '{item}'"
