"""The response matrix: construction, both layouts, and what is taken from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses import ResponseMatrix, layers


@pytest.fixture
def scores() -> NDArray[np.int8]:
    """0, 1 and missing, with a subject that answered nothing and an item that nobody answered."""
    drawn = np.random.default_rng(1).integers(-1, 2, (30, 12)).astype(np.int8)
    drawn[4] = -1
    drawn[:, 7] = -1
    return drawn


@pytest.fixture
def both(scores: NDArray[np.int8], monkeypatch: pytest.MonkeyPatch) -> tuple[ResponseMatrix, ResponseMatrix]:
    """The same responses dense and sparse, with every layer."""
    rng = np.random.default_rng(2)
    subject, item = rng.permutation(np.argwhere(scores >= 0)).T
    cell = (subject, item)
    trials = rng.integers(1, 9, scores.shape)
    probability = rng.random(scores.shape) * 0.9 + 0.05
    step = rng.integers(0, 5, scores.shape)
    cost = rng.random(scores.shape)
    dense = ResponseMatrix.from_dense(scores, trials=trials, probability=probability, step=step, cost=cost)
    monkeypatch.setattr(layers, "SMALL", 0)
    monkeypatch.setattr(layers, "SPARSE_DENSITY", 1.0)
    sparse = ResponseMatrix.from_cells(
        dense.subjects,
        dense.items,
        subject,
        item,
        scores[cell],
        trials=trials[cell],
        probability=probability[cell],
        step=step[cell],
        cost=cost[cell],
    )
    return dense, sparse


def same(one: ResponseMatrix, other: ResponseMatrix) -> None:
    assert one.subjects == other.subjects
    assert one.items == other.items
    np.testing.assert_array_equal(one.dense(), other.dense())
    for name in ("trials", "probability", "step", "cost"):
        pd.testing.assert_series_equal(one.to_frame()[name], other.to_frame()[name])


def test_layouts_hold_the_same(both: tuple[ResponseMatrix, ResponseMatrix]) -> None:
    dense, sparse = both
    assert (dense.is_sparse, sparse.is_sparse) == (False, True)
    same(dense, sparse)
    assert dense.cells == sparse.cells == sparse.scores.nnz
    assert dense.density == sparse.density
    assert (sparse.scores.data == 0).any(), "a wrong answer is stored, it is not missing"
    np.testing.assert_array_equal(dense.trial_rows(3, 9), sparse.trial_rows(3, 9))
    np.testing.assert_array_equal(dense.rows(3, 9), sparse.rows(3, 9))


def test_means_and_counts_are_over_observed_cells(both: tuple[ResponseMatrix, ResponseMatrix]) -> None:
    for matrix in both:
        full = matrix.dense()
        observed = ~np.isnan(full)
        np.testing.assert_array_equal(matrix.subject_counts(), observed.sum(axis=1))
        np.testing.assert_array_equal(matrix.item_counts(), observed.sum(axis=0))
        np.testing.assert_allclose(matrix.subject_means(), pd.DataFrame(full).mean(axis=1))
        np.testing.assert_allclose(matrix.item_means(), pd.DataFrame(full).mean(axis=0))
        assert np.isnan(matrix.subject_means()[4])
        assert np.isnan(matrix.item_means()[7])


def test_row_of_a_subject(both: tuple[ResponseMatrix, ResponseMatrix]) -> None:
    for matrix in both:
        index, answered = matrix.row("s2")
        np.testing.assert_array_equal(index, np.flatnonzero(~np.isnan(matrix.dense()[2])))
        np.testing.assert_array_equal(answered, matrix.dense()[2, index])
        assert matrix.row("s4")[0].size == 0
        with pytest.raises(InputError, match="no subject 'nobody' among 30"):
            matrix.row("nobody")


def test_take_keeps_the_order_given(both: tuple[ResponseMatrix, ResponseMatrix]) -> None:
    rows, columns = np.array([5, 0, 9]), np.array([7, 3, 1, 11])
    mask = np.arange(30) % 3 == 0
    for matrix in both:
        part = matrix.take(rows, columns)
        assert part.subjects == ("s5", "s0", "s9")
        assert part.items == ("i7", "i3", "i1", "i11")
        np.testing.assert_array_equal(part.dense(), matrix.dense()[np.ix_(rows, columns)])
        np.testing.assert_array_equal(matrix.take(mask).dense(), matrix.dense()[mask])
        assert part.is_sparse == matrix.is_sparse
        with pytest.raises(InputError, match=r"mask of shape \[2\], wanted \[30\]"):
            matrix.take(np.array([True, False]))
    same(both[0].take(rows, columns), both[1].take(rows, columns))


def test_with_items_reorders_and_extends(both: tuple[ResponseMatrix, ResponseMatrix]) -> None:
    for matrix in both:
        wider = matrix.with_items(["i3", "new", "i0"])
        expected = np.column_stack([matrix.dense()[:, 3], np.full(30, np.nan), matrix.dense()[:, 0]])
        np.testing.assert_array_equal(wider.dense(), expected)
        np.testing.assert_array_equal(matrix.with_items(matrix.items).dense(), matrix.dense())
    same(both[0].with_items(["i3", "new", "i0"]), both[1].with_items(["i3", "new", "i0"]))


def test_with_items_and_what_is_known_of_them() -> None:
    table = pd.DataFrame({"topic": ["x", "y"]}, index=["i0", "i1"])
    matrix = ResponseMatrix.from_dense([[1, 0]], benchmarks=["p", "q"], item_table=table)
    assert matrix.with_items(["i1", "i0"]).benchmarks == ("q", "p")
    wider = matrix.with_items(["i1", "i2"])
    assert wider.benchmarks is None
    assert wider.item_table is not None
    assert wider.item_table["topic"].isna().tolist() == [False, True]
    part = matrix.take(items=[1])
    assert part.benchmarks == ("q",)
    assert part.item_table is not None
    assert part.item_table["topic"].tolist() == ["y"]


def test_binary_scores_are_small_and_shares_are_not() -> None:
    assert ResponseMatrix.from_dense([[1.0, np.nan], [0.0, 1.0]]).scores.tolist() == [[1, -1], [0, 1]]
    assert ResponseMatrix.from_dense([[True, False]]).scores.dtype == np.int8
    share = ResponseMatrix.from_dense([[0.25, np.nan]])
    assert share.scores.dtype == np.float64
    assert share.cells == 1


def test_sparse_only_where_large_and_thin() -> None:
    subject = np.repeat(np.arange(2100), 3)
    item = np.tile([0, 7, 2040], 2100)
    ids = [f"s{i}" for i in range(2100)], [f"i{j}" for j in range(2100)]
    thin = ResponseMatrix.from_cells(*ids, subject, item, np.zeros(len(subject)))
    assert thin.is_sparse
    assert thin.cells == 6300
    assert not ResponseMatrix.from_cells(
        ids[0][:9], ids[1][:9], subject[:3], [0, 7, 8], np.zeros(3)
    ).is_sparse


def test_trials_round_a_score_to_k_of_n() -> None:
    matrix = ResponseMatrix.from_dense(np.float32([[0.8, 0.3333, np.nan]]), trials=[[5, 3, 4]])
    assert matrix.rows(0, 1)[0, :2].tolist() == [0.8, 1 / 3]
    trials = matrix.trial_rows(0, 1)
    assert trials is not None
    assert trials.tolist() == [[5, 3, 0]]


@pytest.mark.parametrize("bad", [1.7, -0.1, np.inf, -np.inf])
def test_a_score_outside_the_unit_interval_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match=r"score \S+, wanted a share in \[0, 1\]"):
        ResponseMatrix.from_dense([[0.5, bad]])
    with pytest.raises(InputError, match=r"wanted a share in \[0, 1\]"):
        ResponseMatrix.from_cells(["a"], ["x", "y"], [0, 0], [0, 1], [0.5, bad])


def test_only_minus_one_is_missing_among_integers() -> None:
    assert ResponseMatrix.from_dense(np.array([[1, -1]])).cells == 1
    for wrong in (-2, 2, 999):
        with pytest.raises(InputError, match=f"score {wrong}"):
            ResponseMatrix.from_dense(np.array([[1, wrong]]))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="item id 'x' is there twice"):
        ResponseMatrix.from_dense([[1, 0]], items=["x", "x"])
    with pytest.raises(InputError, match=r"shape \[1, 2\], wanted \[1, 3\]"):
        ResponseMatrix.from_dense([[1, 0]], items=["x", "y", "z"])
    with pytest.raises(InputError, match="given twice"):
        ResponseMatrix.from_cells(["a"], ["x"], [0, 0], [0, 0], [1, 1])
    with pytest.raises(InputError, match="item index is outside 0 to 0"):
        ResponseMatrix.from_cells(["a"], ["x"], [0], [1], [1])
    with pytest.raises(InputError, match="1 axes"):
        ResponseMatrix.from_dense([1, 0])
    with pytest.raises(InputError, match="wanted numbers"):
        ResponseMatrix.from_dense([["banana"]])
    with pytest.raises(InputError, match="0, wanted a whole number of at least 1") as refused:
        ResponseMatrix.from_dense([[1, 0]], trials=[[1, 0]])
    assert refused.value.field == "trials"
    with pytest.raises(InputError, match=r"1.5, wanted a number in \(0, 1\]"):
        ResponseMatrix.from_dense([[1, 0]], probability=1.5)
    with pytest.raises(InputError, match="1 rows, wanted 2"):
        ResponseMatrix.from_dense([[1, 0]], benchmarks=["one"])


def test_empty_matrix_and_repr() -> None:
    empty = ResponseMatrix.from_dense(np.empty((0, 3)))
    assert empty.cells == 0
    assert empty.density == 0
    assert repr(ResponseMatrix.from_dense([[1, -1]])) == "ResponseMatrix(1 subjects, 2 items, 1 cells, dense)"


def test_frame_round_trip(both: tuple[ResponseMatrix, ResponseMatrix]) -> None:
    """Only ids without a single response are lost on the way through a long table."""
    for matrix in both:
        seen = matrix.take(matrix.subject_counts() > 0, matrix.item_counts() > 0)
        back = ResponseMatrix.from_frame(seen.to_frame())
        back = back.take([back.subjects.index(s) for s in seen.subjects]).with_items(seen.items)
        same(back, seen)
