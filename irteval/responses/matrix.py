"""The response matrix: what each subject got on each item, with missing apart from wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from irteval.errors import InputError
from irteval.responses.layers import (
    KINDS,
    Layer,
    Scatter,
    compact_layer,
    compact_scores,
    missing_of,
    round_to_trials,
)


@dataclass(frozen=True, eq=False, repr=False)
class ResponseMatrix:
    """Responses of N subjects to J items, ``[N, J]``.

    Built by ``read_responses``, ``from_frame``, ``from_dense`` or ``from_cells``, which choose layout and
    type. A **dense** layer is an array ``[N, J]``. A **sparse** one is a CSR array whose stored entries are
    the observed cells, explicit zeros included, with sorted indices. All layers have one layout. Nothing
    here is changed in place: a new matrix is made instead.

    Attributes:
        subjects, items: ids, text, unique.
        scores: shares in [0, 1]. Dense: int8 with -1 for missing where every score is 0 or 1, else float64
            with NaN for missing. Sparse: int8 or float64.
        trials: the number of trials n that a score is the share of, k = score * n; int32, 0 where missing.
            None where every response is a single one.
        probability: inclusion probability of a cell in a designed sample; NaN where missing, or
            where the item was chosen, not drawn.
        step: at which step of the design the cell was asked; int32, -1 where missing.
        cost: what a response cost; NaN where unknown.
        categories: C where the scores stand for ordered categories: category = score * (C - 1).
        benchmarks: the benchmark of each item.
        item_table, subject_table: what else is known, one row an item or subject, indexed by ``items`` and
            ``subjects``.
        notes: what a person should be told about how the table was read.

    Raises:
        InputError: ids that repeat, or shapes that do not fit.
    """

    subjects: tuple[str, ...]
    items: tuple[str, ...]
    scores: Layer
    trials: Layer | None = None
    probability: Layer | None = None
    step: Layer | None = None
    cost: Layer | None = None
    categories: int | None = None
    benchmarks: tuple[str, ...] | None = None
    item_table: pd.DataFrame | None = None
    subject_table: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together."""
        _check_unique("subject", self.subjects)
        _check_unique("item", self.items)
        for name, layer in self._layers().items():
            if layer.shape != self.shape:
                raise InputError(f"shape {list(layer.shape)}, wanted {list(self.shape)}", field=name)
            if sparse.issparse(layer) != self.is_sparse:
                raise InputError("one layout for all layers wanted, dense or sparse", field=name)
        lengths = {"benchmarks": len(self.items), "item_table": len(self.items)}
        for name, length in {**lengths, "subject_table": len(self.subjects)}.items():
            value = getattr(self, name)
            if value is not None and len(value) != length:
                raise InputError(f"{len(value)} rows, wanted {length}", field=name)

    def __repr__(self) -> str:
        """Size and layout; never the cells."""
        layout = "sparse" if self.is_sparse else "dense"
        subjects, items = self.shape
        return f"ResponseMatrix({subjects} subjects, {items} items, {self.cells} cells, {layout})"

    @classmethod
    def from_dense(
        cls,
        scores: ArrayLike,
        subjects: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        *,
        trials: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        step: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        benchmarks: Sequence[str] | None = None,
        **more: Any,
    ) -> ResponseMatrix:
        """A dense matrix from an array ``[N, J]``, rows and columns in the order given.

        Args:
            scores: shares in [0, 1]; missing is NaN, or -1 in an array of integers.
            subjects, items: ids; ``s0``, ``s1`` … and ``i0``, ``i1`` … where not given.
            trials, probability, step, cost: as the attributes, ``[N, J]`` or one number for all cells.
                With trials a score is rounded to the nearest k / n.
            benchmarks: one an item.
            more: other attributes, as they are.

        Raises:
            InputError: a score outside [0, 1], or shapes that do not fit.
        """
        values = np.asarray(scores)
        if values.ndim != 2:
            raise InputError(f"{values.ndim} axes, wanted [subjects, items]", field="scores")
        values = compact_scores(values)
        observed = ~missing_of(values)
        layers: dict[str, Any] = {
            name: compact_layer(name, _spread(name, layer, values.shape), observed)
            for name, layer in _given(trials=trials, probability=probability, step=step, cost=cost).items()
        }
        if "trials" in layers:
            values = compact_scores(round_to_trials(values, layers["trials"]))
        return cls(
            _ids(subjects, "s", values.shape[0]),
            _ids(items, "i", values.shape[1]),
            values,
            benchmarks=None if benchmarks is None else tuple(benchmarks),
            **layers,
            **more,
        )

    @classmethod
    def from_cells(
        cls,
        subjects: Sequence[str],
        items: Sequence[str],
        subject_index: ArrayLike,
        item_index: ArrayLike,
        scores: ArrayLike,
        *,
        trials: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        step: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        benchmarks: Sequence[str] | None = None,
        **more: Any,
    ) -> ResponseMatrix:
        """A matrix from its cells, sparse where at most 30 % of more than 4 million cells are observed.

        Args:
            subjects, items: ids, in the order wanted.
            subject_index, item_index: position of each of the C cells, ``[C]``.
            scores: shares in [0, 1], ``[C]``; a missing one (NaN, or -1 of an integer) is left out.
            trials, probability, step, cost: as the attributes, ``[C]`` or one number for all cells.
                With trials a score is rounded to the nearest k / n.
            benchmarks: one an item.
            more: other attributes, as they are.

        Raises:
            InputError: a cell that is given twice, a score outside [0, 1], or shapes that do not fit.
        """
        values = compact_scores(np.asarray(scores))
        rows, columns = np.asarray(subject_index), np.asarray(item_index)
        if not values.shape == rows.shape == columns.shape or values.ndim != 1:
            raise InputError("subject_index, item_index and scores must have one shape [cells]")
        observed = ~missing_of(values)
        layers: dict[str, Any] = {
            name: compact_layer(name, _spread(name, layer, values.shape), observed)
            for name, layer in _given(trials=trials, probability=probability, step=step, cost=cost).items()
        }
        if "trials" in layers:
            values = compact_scores(round_to_trials(values, layers["trials"]))
        if not observed.all():
            rows, columns, values = rows[observed], columns[observed], values[observed]
            layers = {name: layer[observed] for name, layer in layers.items()}
        scatter = Scatter((len(subjects), len(items)), rows, columns)
        layers = {name: scatter.layer(layer, KINDS[name].missing) for name, layer in layers.items()}
        return cls(
            _ids(subjects, "s", len(subjects)),
            _ids(items, "i", len(items)),
            scatter.layer(values, -1 if values.dtype == np.int8 else np.nan),
            benchmarks=None if benchmarks is None else tuple(benchmarks),
            **layers,
            **more,
        )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, **options: Any) -> ResponseMatrix:
        """A matrix from a long or wide data frame, by the same rules and options as ``read_responses``."""
        from irteval.responses.read import read_frame  # the readers build matrices: they import this module

        return read_frame(frame, **options)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, J)."""
        return len(self.subjects), len(self.items)

    @property
    def is_sparse(self) -> bool:
        """Whether the layers are sparse."""
        return sparse.issparse(self.scores)

    @cached_property
    def cells(self) -> int:
        """How many cells are observed."""
        return int(self.subject_counts().sum())

    @property
    def density(self) -> float:
        """Share of the cells that are observed; 0 of an empty matrix."""
        return self.cells / max(1, len(self.subjects) * len(self.items))

    def rows(self, start: int, stop: int) -> NDArray[np.float64]:
        """Scores of the subjects ``start`` to ``stop``, ``[stop - start, J]``, NaN where missing."""
        block = _dense_rows(self.scores, start, stop, np.nan).astype(np.float64)
        if not self.is_sparse and self.scores.dtype == np.int8:
            block[block < 0] = np.nan
        return block

    def dense(self) -> NDArray[np.float64]:
        """All scores, ``[N, J]``, NaN where missing."""
        return self.rows(0, len(self.subjects))

    def trial_rows(self, start: int, stop: int) -> NDArray[np.int32] | None:
        """Trials of the subjects ``start`` to ``stop``, ``[stop - start, J]``, 0 where missing."""
        return None if self.trials is None else _dense_rows(self.trials, start, stop, 0).astype(np.int32)

    def row(self, subject: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """What one subject answered: item indices in rising order, and the scores there.

        Raises:
            InputError: no such subject.
        """
        if subject not in self._subject_position:
            raise InputError(f"no subject '{subject}' among {len(self.subjects)}", field="subject")
        position = self._subject_position[subject]
        scores = self.rows(position, position + 1)[0]
        index = np.flatnonzero(~np.isnan(scores))
        return index, scores[index]

    def subject_counts(self) -> NDArray[np.int64]:
        """How many items each subject answered, ``[N]``."""
        return self._count(axis=1)

    def item_counts(self) -> NDArray[np.int64]:
        """How many subjects answered each item, ``[J]``."""
        return self._count(axis=0)

    def subject_means(self) -> NDArray[np.float64]:
        """Mean score of each subject over the items it answered, ``[N]``; NaN where it answered none."""
        return self._mean(axis=1)

    def item_means(self) -> NDArray[np.float64]:
        """Mean score of each item over the subjects that answered it, ``[J]``; NaN where none did."""
        return self._mean(axis=0)

    def take(self, subjects: ArrayLike | None = None, items: ArrayLike | None = None) -> ResponseMatrix:
        """The part of these subjects and items, in the order given.

        Args:
            subjects, items: index arrays or boolean masks; None stands for all.
        """
        rows = _positions(subjects, len(self.subjects))
        columns = _positions(items, len(self.items))
        layers: dict[str, Any] = {
            name: _take(layer, None if subjects is None else rows, None if items is None else columns)
            for name, layer in self._layers().items()
        }
        return replace(
            self,
            subjects=tuple(self.subjects[i] for i in rows),
            items=tuple(self.items[j] for j in columns),
            benchmarks=None if self.benchmarks is None else tuple(self.benchmarks[j] for j in columns),
            item_table=None if self.item_table is None else self.item_table.iloc[columns],
            subject_table=None if self.subject_table is None else self.subject_table.iloc[rows],
            **layers,
        )

    def with_items(self, items: Sequence[str]) -> ResponseMatrix:
        """The same subjects over another list of items.

        Items that are not here are missing for every subject, and items that are not in the list are left
        out. ``benchmarks`` is None then where an item is new; its row in ``item_table`` is empty.
        """
        position = {item: j for j, item in enumerate(self.items)}
        source = np.array([position.get(item, -1) for item in items], dtype=np.int64)
        known = bool((source >= 0).all())
        layers: dict[str, Any] = {
            name: _reorder(layer, source, _missing(name, layer)) for name, layer in self._layers().items()
        }
        return replace(
            self,
            items=tuple(items),
            benchmarks=tuple(self.benchmarks[j] for j in source) if self.benchmarks and known else None,
            item_table=None if self.item_table is None else self.item_table.reindex(list(items)),
            **layers,
        )

    def to_frame(self) -> pd.DataFrame:
        """The observed cells as a long table: subject, item, score and the layers that there are."""
        rows, columns = self._observed()
        frame = {
            "subject": np.array(self.subjects, dtype=object)[rows],
            "item": np.array(self.items, dtype=object)[columns],
        }
        for name, layer in self._layers().items():
            column = "score" if name == "scores" else name
            frame[column] = layer.data if sparse.issparse(layer) else layer[rows, columns]
        if self.benchmarks is not None:
            frame["benchmark"] = np.array(self.benchmarks, dtype=object)[columns]
        return pd.DataFrame(frame)

    @cached_property
    def _subject_position(self) -> dict[str, int]:
        return {subject: i for i, subject in enumerate(self.subjects)}

    def _layers(self) -> dict[str, Layer]:
        layers = {name: getattr(self, name) for name in ("scores", *KINDS)}
        return {name: layer for name, layer in layers.items() if layer is not None}

    def _observed(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row and column of each observed cell, row by row."""
        if sparse.issparse(self.scores):
            rows = np.repeat(np.arange(len(self.subjects)), np.diff(self.scores.indptr))
            return rows, self.scores.indices.astype(np.intp)
        rows, columns = np.nonzero(~missing_of(self.scores))
        return rows, columns

    def _count(self, axis: int) -> NDArray[np.int64]:
        if not sparse.issparse(self.scores):
            return np.asarray(np.sum(~missing_of(self.scores), axis=axis, dtype=np.int64))
        if axis == 1:
            return np.diff(self.scores.indptr).astype(np.int64)
        return np.bincount(self.scores.indices, minlength=len(self.items)).astype(np.int64)

    def _mean(self, axis: int) -> NDArray[np.float64]:
        total: Any
        if sparse.issparse(self.scores):
            total = np.asarray(self.scores.sum(axis=axis, dtype=np.float64))
        elif self.scores.dtype == np.int8:
            total = np.sum(self.scores == 1, axis=axis, dtype=np.float64)
        else:
            total = np.nansum(self.scores, axis=axis)
        count = self._count(axis)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _check_unique(what: str, ids: tuple[str, ...]) -> None:
    if len(set(ids)) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        raise InputError(f"{what} id '{repeated}' is there twice, wanted unique ids", field=what)


def _ids(ids: Sequence[str] | None, prefix: str, length: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(length)) if ids is None else tuple(str(i) for i in ids)


def _given(**layers: ArrayLike | None) -> dict[str, ArrayLike]:
    return {name: layer for name, layer in layers.items() if layer is not None}


def _spread(name: str, layer: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    values = np.asarray(layer)
    if values.shape not in ((), shape):
        raise InputError(f"shape {list(values.shape)}, wanted {list(shape)}", field=name)
    return np.broadcast_to(values, shape)


def _missing(name: str, layer: Layer) -> float:
    if name == "scores":
        return -1 if layer.dtype == np.int8 else np.nan
    return KINDS[name].missing


def _positions(chosen: ArrayLike | None, length: int) -> NDArray[np.intp]:
    if chosen is None:
        return np.arange(length)
    index = np.asarray(chosen)
    if index.dtype == np.bool_:
        if index.shape != (length,):
            raise InputError(f"a mask of shape {list(index.shape)}, wanted [{length}]")
        return np.flatnonzero(index)
    return index.astype(np.intp)


def _take(layer: Layer, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None) -> Layer:
    taken = layer if rows is None else layer[rows]
    if columns is None:
        return taken
    if not sparse.issparse(taken):
        return taken[:, columns]
    target = np.full(taken.shape[1], -1, dtype=np.int64)
    target[columns] = np.arange(len(columns))
    return _move_columns(taken, target, len(columns))


def _reorder(layer: Layer, source: NDArray[np.int64], missing: float) -> Layer:
    """The layer whose column j is the old column ``source[j]``, or all missing where that is -1."""
    known = np.flatnonzero(source >= 0)
    if not sparse.issparse(layer):
        dense = np.full((layer.shape[0], len(source)), missing, dtype=layer.dtype)
        dense[:, known] = layer[:, source[known]]
        return dense
    target = np.full(layer.shape[1], -1, dtype=np.int64)
    target[source[known]] = known
    return _move_columns(layer, target, len(source))


def _move_columns(layer: sparse.csr_array[Any], target: NDArray[np.int64], length: int) -> Layer:
    """The CSR layer with column j moved to ``target[j]``, left out where that is -1; zeros stay stored."""
    columns = target[layer.indices]
    kept = columns >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    moved = sparse.csr_array(
        (layer.data[kept], columns[kept], before[layer.indptr]), shape=(layer.shape[0], length)
    )
    moved.sort_indices()
    return moved


def _dense_rows(layer: Layer, start: int, stop: int, missing: float) -> NDArray[Any]:
    if not sparse.issparse(layer):
        return layer[start:stop]
    first, last = layer.indptr[start], layer.indptr[stop]
    block = np.full((stop - start, layer.shape[1]), missing)
    rows = np.repeat(np.arange(stop - start), np.diff(layer.indptr[start : stop + 1]))
    block[rows, layer.indices[first:last]] = layer.data[first:last]
    return block
