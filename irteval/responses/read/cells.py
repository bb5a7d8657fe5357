"""Cells of one or many tables before they are a matrix, and how repeats of a cell are settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.layers import KINDS, missing_of
from irteval.responses.read.table import Table
from irteval.responses.read.values import Coded, merge, recode

Scale: TypeAlias = Literal["share", "ordinal"]


class Source(NamedTuple):
    """A table that cells came from: ``size`` cells row by row, one for each of ``columns`` in a row.

    ``aside`` are columns that were not read.
    """

    table: Table
    size: int
    columns: tuple[str, ...]
    aside: tuple[str, ...]


@dataclass(frozen=True)
class Cells:
    """Responses, one a cell, ``[C]``; missing ones are NaN, or -1 of integers.

    Attributes:
        subject, item: who answered what.
        scores: shares, or categories of an ordinal scale.
        layers: trials, probability, step, cost where there are such columns.
        benchmark: of the cell's item, where there is such a column.
        facets: variant columns by name.
        sources: the tables, in the order of their cells.
        scale: whether scores are shares or categories.
        origin: position of each cell in the sources; None where all are here.
    """

    subject: Coded
    item: Coded
    scores: NDArray[Any]
    layers: Mapping[str, NDArray[Any]]
    benchmark: Coded | None
    facets: Mapping[str, Coded]
    sources: tuple[Source, ...]
    scale: Scale
    origin: NDArray[np.int64] | None = None

    def take(self, index: NDArray[np.int64]) -> Cells:
        """The cells at these positions; ids that have no cell any more stay."""
        return replace(
            self,
            subject=self.subject._replace(codes=self.subject.codes[index]),
            item=self.item._replace(codes=self.item.codes[index]),
            scores=self.scores[index],
            layers={name: layer[index] for name, layer in self.layers.items()},
            benchmark=self.benchmark and self.benchmark._replace(codes=self.benchmark.codes[index]),
            facets={name: facet._replace(codes=facet.codes[index]) for name, facet in self.facets.items()},
            origin=index if self.origin is None else self.origin[index],
        )

    def trim(self) -> Cells:
        """The same cells without the ids that none of them has."""
        return replace(
            self,
            subject=recode(*self.subject),
            item=recode(*self.item),
            benchmark=self.benchmark and recode(*self.benchmark),
            facets={name: recode(*facet) for name, facet in self.facets.items()},
        )

    def place(self, cell: int) -> tuple[Source, int, str]:
        """The table, row and column that a cell came from."""
        position = int(cell if self.origin is None else self.origin[cell])
        for source in self.sources:
            if position < source.size:
                break
            position -= source.size
        row, column = divmod(position, len(source.columns))
        return source, row, source.columns[column]


def concatenate(parts: Sequence[Cells], trials: int) -> Cells:
    """The cells of several tables.

    Where only some have a column for trials or cost, the others have ``trials`` of them and an unknown cost.

    Raises:
        InputError: tables of different scales, or a column for benchmark, probability or step that only some
            of them have.
    """
    if len(parts) == 1:
        return parts[0]
    if len({part.scale for part in parts}) > 1:
        raise InputError("categories in some tables and shares in others, wanted one scale", field="score")
    for name in ("benchmark", "probability", "step"):
        has = [part.benchmark is not None if name == "benchmark" else name in part.layers for part in parts]
        if any(has) and not all(has):
            table = parts[has.index(False)].sources[0].table
            raise table.error("no such column, wanted one as in the other tables", field=name)
    names = [name for name in KINDS if any(name in part.layers for part in parts)]
    benchmarks = [part.benchmark for part in parts if part.benchmark is not None]
    otherwise = {"trials": float(trials), "cost": np.nan}
    return Cells(
        merge([part.subject for part in parts]),
        merge([part.item for part in parts]),
        join_scores([part.scores for part in parts]),
        {
            name: np.concatenate(
                [
                    part.layers[name] if name in part.layers else np.full(len(part.scores), otherwise[name])
                    for part in parts
                ]
            )
            for name in names
        },
        merge(benchmarks) if benchmarks else None,
        {name: merge([part.facets[name] for part in parts]) for name in parts[0].facets},
        tuple(source for part in parts for source in part.sources),
        parts[0].scale,
    )


def join_scores(scores: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Scores of one or several types, one below the other: int8 where all are, else float64 with NaN."""
    if all(part.dtype == np.int8 for part in scores):
        return np.concatenate(scores)
    return np.concatenate([np.where(missing_of(part), np.nan, part.astype(np.float64)) for part in scores])


def collapse_repeats(cells: Cells) -> tuple[Cells, int]:
    """One cell for each (subject, item) and variant, and how many equal repeats were dropped.

    Repeats are equal where all but their cost is; the cheapest is kept.

    Raises:
        InputError: a cell that is there twice with different scores; both places are named, and the columns
            in which the two rows differ.
    """
    key = _cell_key(cells)
    for facet in cells.facets.values():
        key = key * len(facet.texts) + facet.codes
    if _all_different(key):
        return cells, 0
    order = np.lexsort((cells.layers.get("cost", np.zeros(len(key))), key))
    repeats = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    earlier, later = order[repeats], order[repeats + 1]
    for name, layer in {"score": cells.scores, **cells.layers}.items():
        differs = (layer[earlier] != layer[later]) & ~(missing_of(layer[earlier]) & missing_of(layer[later]))
        if name != "cost" and differs.any():
            pair = int(np.argmax(differs))
            raise _unequal(cells, name, layer, *sorted((int(earlier[pair]), int(later[pair]))))
    kept = np.ones(len(key), dtype=np.bool_)
    kept[later] = False
    return cells.take(np.flatnonzero(kept)), len(later)


def average_variants(cells: Cells) -> Cells:
    """One cell for each (subject, item): its mean over variants, weighted by their trials, which add up."""
    key = _cell_key(cells)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    weight = cells.layers.get("trials", np.ones(len(key)))[order].astype(np.float64)
    total = np.add.reduceat(weight, starts)

    def mean(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.add.reduceat(values[order] * weight, starts) / total

    layers = {name: total if name == "trials" else mean(layer) for name, layer in cells.layers.items()}
    return replace(cells.take(order[starts]), scores=mean(cells.scores), layers=layers)


def _cell_key(cells: Cells) -> NDArray[np.int64]:
    key = cells.subject.codes.astype(np.int64)
    key *= len(cells.item.texts)  # in place: at 50 million cells every copy is 400 MB
    key += cells.item.codes
    return key


def _all_different(key: NDArray[np.int64]) -> bool:
    """Whether no value repeats, in linear time where the values are dense."""
    if len(key) == 0:
        return True
    top = int(key.max()) + 1
    if top <= 8 * len(key) + 1_000_000:
        seen = np.zeros(top, dtype=np.bool_)
        seen[key] = True
        return int(np.count_nonzero(seen)) == len(key)
    in_order = np.sort(key)
    return bool((in_order[1:] > in_order[:-1]).all())


def _unequal(cells: Cells, name: str, layer: NDArray[Any], earlier: int, later: int) -> InputError:
    subject = cells.subject.texts[cells.subject.codes[earlier]]
    item = cells.item.texts[cells.item.codes[earlier]]
    first, first_row, _ = cells.place(earlier)
    second, second_row, column = cells.place(later)
    where = f"line {first.table.line(first_row)}"
    if first.table is not second.table and first.table.file is not None:
        where = f"{first.table.file} {where}"
    message = (
        f"subject '{subject}' and item '{item}' have {name} {layer[later]:g} here and {layer[earlier]:g} in "
        f"{where}, wanted one response"
    )
    differing = [
        aside
        for aside in second.aside
        if aside in first.aside and _text(first, first_row, aside) != _text(second, second_row, aside)
    ]
    if differing:
        column_name = differing[0] if len(differing) == 1 else "COLUMN"
        message += (
            f"; the rows differ in {', '.join(differing)}: keep one kind of row, or name a facet that scores "
            f"are averaged over with --variant {column_name}"
        )
    return second.table.error(message, second_row, column)


def _text(source: Source, row: int, name: str) -> str:
    return str(source.table.column(name)[row].as_py())
