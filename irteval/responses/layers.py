"""Layers of a response matrix: arrays ``[N, J]``, dense or sparse, that know which cells are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from irteval.errors import InputError

Layer: TypeAlias = "NDArray[Any] | sparse.csr_array[Any]"


class LayerKind(NamedTuple):
    """Type of a layer and what stands in its dense form where a cell is missing."""

    dtype: type[np.generic]
    missing: float
    lowest: float
    highest: float
    wanted: str


KINDS: Mapping[str, LayerKind] = {
    "trials": LayerKind(np.int32, 0, 1, 2**31 - 1, "a whole number of at least 1"),
    "probability": LayerKind(np.float64, np.nan, 5e-324, 1, "a number in (0, 1]"),
    "step": LayerKind(np.int32, -1, 0, 2**31 - 1, "a whole number of at least 0"),
    "cost": LayerKind(np.float64, np.nan, 0, np.finfo(np.float64).max, "a number of at least 0"),
}

# A matrix of at most so many cells is dense whatever its density: its scores take 32 MB at most.
SMALL = 4_000_000
SPARSE_DENSITY = 0.3


def missing_of(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where scores are missing: NaN of floats, -1 of signed integers."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "i":
        return np.asarray(values == -1)
    return np.zeros(values.shape, dtype=np.bool_)


def compact_scores(values: NDArray[Any]) -> NDArray[Any]:
    """Scores in their smallest type: int8 with -1 missing where all are 0 or 1, else float64 with NaN.

    Args:
        values: shares in [0, 1] of any shape; missing is NaN, or -1 among signed integers.

    Raises:
        InputError: a score outside [0, 1]; the message has the first one.
    """
    if values.dtype.kind not in "biuf":
        raise InputError(f"scores of type {values.dtype}, wanted numbers", field="score")
    if values.dtype.kind == "b":
        return values.astype(np.int8)
    if values.dtype == np.int8 and (values.size == 0 or (values.min() >= -1 and values.max() <= 1)):
        return values
    missing = missing_of(values)
    inside = (values >= 0) & (values <= 1)
    bad = ~(inside | missing)
    if bad.any():
        found = values[tuple(int(axis[0]) for axis in np.nonzero(bad))]
        raise InputError(f"score {found:g}, wanted a share in [0, 1]", field="score")
    if bool((missing | (values == 0) | (values == 1)).all()):
        compact: NDArray[Any] = (values == 1).astype(np.int8)
        compact[missing] = -1
        return compact
    return values.astype(np.float64, copy=False)


def unfit(name: str, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where the layer ``name`` can't hold a value.

    NaN stands for an unknown cost or step, and for an item that was chosen, not drawn with a probability;
    only trials have to be known.
    """
    kind = KINDS[name]
    good = (values >= kind.lowest) & (values <= kind.highest)
    if issubclass(kind.dtype, np.integer):
        good &= values == np.floor(values)
    return ~good if name == "trials" else ~(good | np.isnan(values))


def compact_layer(name: str, values: NDArray[Any], observed: NDArray[np.bool_]) -> NDArray[Any]:
    """The layer ``name`` in its type, with its mark for missing where no response was observed.

    Raises:
        InputError: a value that the layer can't hold where there is a response.
    """
    kind = KINDS[name]
    if values.dtype.kind not in "biuf":
        raise InputError(f"values of type {values.dtype}, wanted numbers", field=name)
    number = values.astype(np.float64)
    bad = observed & unfit(name, number)
    if bad.any():
        found = number[tuple(int(axis[0]) for axis in np.nonzero(bad))]
        raise InputError(f"{found:g}, wanted {kind.wanted}", field=name)
    return np.where(observed & ~np.isnan(number), number, kind.missing).astype(kind.dtype)


def round_to_trials(scores: NDArray[Any], trials: NDArray[np.int32]) -> NDArray[Any]:
    """The share k / n nearest to each score, k = round(score * n); missing cells stay missing."""
    if scores.dtype == np.int8:  # 0 of n and n of n
        return scores
    n = np.maximum(trials, 1)
    return np.asarray(np.rint(scores * n) / n)


class Scatter:
    """Places cells into layers of one layout.

    Args:
        shape: [N, J].
        rows, columns: position of each of the C cells.

    Raises:
        InputError: a position outside the matrix, or a cell that is given twice.
    """

    def __init__(self, shape: tuple[int, int], rows: NDArray[Any], columns: NDArray[Any]) -> None:
        self.shape = shape
        size = shape[0] * shape[1]
        for name, index, length in (("subject", rows, shape[0]), ("item", columns, shape[1])):
            if len(index) and not (index.min() >= 0 and index.max() < length):
                raise InputError(f"a {name} index is outside 0 to {length - 1}", field=name)
        self.sparse = size > SMALL and len(rows) <= SPARSE_DENSITY * size
        if not self.sparse:
            self._flat = rows.astype(np.int64) * shape[1] + columns
            seen = np.zeros(size, dtype=np.bool_)
            seen[self._flat] = True
            distinct = int(np.count_nonzero(seen))
        else:
            # In linear time by rows, then each row by columns; cells given twice are summed into one.
            place: Any = np.arange(len(rows), dtype=np.int32 if len(rows) < 2**31 else np.int64)
            self._order: Any = sparse.coo_array((place, (rows, columns)), shape=shape).tocsr()
            distinct = self._order.nnz
        if distinct < len(rows):
            raise InputError("a cell (subject, item) is given twice, wanted one response a cell")

    def layer(self, values: NDArray[Any], missing: float) -> Layer:
        """The layer of these values, one a cell; its dense form is filled with ``missing``."""
        if not self.sparse:
            dense = np.full(self.shape[0] * self.shape[1], missing, dtype=values.dtype)
            dense[self._flat] = values
            return dense.reshape(self.shape)
        data = values[self._order.data]
        return sparse.csr_array((data, self._order.indices, self._order.indptr), shape=self.shape)
