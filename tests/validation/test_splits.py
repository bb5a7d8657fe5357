"""Splits: who is on which side, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irteval.errors import InputError
from irteval.responses import ResponseMatrix
from irteval.validation.splits import column, make_split

Simulate = Callable[[int, int, int], tuple[Any, ...]]


@pytest.fixture(scope="module")
def responses(simulate_2pl: Simulate) -> ResponseMatrix:
    return ResponseMatrix.from_dense(simulate_2pl(60, 80, 5)[3])


@given(st.lists(st.integers(0, 9), min_size=8, max_size=60), st.integers(0, 20))
def test_no_family_stands_on_both_sides(families: list[int], seed: int) -> None:
    if len(set(families)) < 2:
        return
    names = [f"f{family}" for family in families]
    matrix = ResponseMatrix.from_dense(np.eye(len(names), 5, dtype=np.int8))
    split = make_split(matrix, "family", seed, families=names)
    source, target = {names[n] for n in split.source}, {names[n] for n in split.target}
    assert source
    assert target
    assert not source & target
    assert len(split.source) + len(split.target) == len(names)


@given(st.lists(st.integers(0, 9), min_size=8, max_size=60))
def test_no_date_stands_on_both_sides(days: list[int]) -> None:
    dates = [f"2026-01-0{day}" for day in days]
    matrix = ResponseMatrix.from_dense(np.eye(len(dates), 5, dtype=np.int8))
    try:
        split = make_split(matrix, "newest", 0, order=dates)
    except InputError:
        assert sum(day == min(days) for day in days) > 0.7 * len(days)
        return
    assert max(dates[n] for n in split.source) < min(dates[n] for n in split.target)


def test_families_make_about_a_quarter(responses: ResponseMatrix) -> None:
    families = [f"f{n // 3}" for n in range(60)]
    targets = {tuple(make_split(responses, "family", seed, families=families).target) for seed in range(5)}
    assert {len(target) for target in targets} == {15}
    assert len(targets) == 5


def test_families_that_cannot_be_split_are_refused(responses: ResponseMatrix) -> None:
    with pytest.raises(InputError, match="every subject is of the family 'x', wanted several"):
        make_split(responses, "family", 0, families=["x"] * 60)
    with pytest.raises(InputError, match="a split by family wants a column"):
        make_split(responses, "family", 0)


def test_a_column_is_text_in_the_order_of_its_values() -> None:
    table = pd.DataFrame({"step": [10, 9, 100], "maker": ["a", None, "b"]}, index=["s0", "s1", "s2"])
    matrix = ResponseMatrix.from_dense(np.eye(3, dtype=np.int8), subject_table=table)
    assert np.argsort(column(matrix, "step", "date")).tolist() == [1, 0, 2]
    with pytest.raises(InputError, match="subject 's1' and 0 others have no 'maker'"):
        column(matrix, "maker", "family")
    with pytest.raises(InputError, match="no column 'date' about the subjects, found columns step, maker"):
        column(matrix, "date", "date")
    with pytest.raises(InputError, match="found no table of subjects"):
        column(ResponseMatrix.from_dense(np.eye(3, dtype=np.int8)), "date", "date")


@pytest.mark.parametrize("kind", ["interpolation", "extrapolation", "newest"])
@pytest.mark.parametrize("seed", range(3))
def test_source_and_target_are_disjoint(responses: ResponseMatrix, kind: str, seed: int) -> None:
    split = make_split(responses, kind, seed)
    assert not set(split.source) & set(split.target)
    assert len(split.source) >= 30
    assert len(split.target) >= 15
    again = make_split(responses, kind, seed)
    np.testing.assert_array_equal(split.target, again.target)
    few = make_split(responses, kind, seed, most_targets=5)
    assert len(few.target) == 5
    assert set(few.target) <= set(split.target)
    np.testing.assert_array_equal(few.source, split.source)


def test_interpolation_is_random(responses: ResponseMatrix) -> None:
    targets = {tuple(make_split(responses, "interpolation", seed).target) for seed in range(5)}
    assert len(targets) == 5
    assert all(len(target) == 15 for target in targets)


def test_extrapolation_goes_from_the_weak_to_the_strong(responses: ResponseMatrix) -> None:
    split, means = make_split(responses, "extrapolation", 0), responses.subject_means()
    assert len(split.source) == 30
    assert len(split.target) == 18
    assert means[split.source].max() <= np.median(means) + 1e-9 <= means[split.target].min() + 1e-9


def test_newest_keeps_equal_dates_on_one_side(responses: ResponseMatrix) -> None:
    dates = [f"2026-{1 + n // 10:02d}-01" for n in np.random.default_rng(0).permutation(60)]
    split = make_split(responses, "newest", 0, order=dates)
    source, target = {dates[n] for n in split.source}, {dates[n] for n in split.target}
    assert max(source) < min(target)
    assert len(split.source) + len(split.target) == 60
    assert len(split.target) == 20  # 15 wanted, and the 5 others of the earliest of their dates
    last = make_split(responses, "newest", 0)
    np.testing.assert_array_equal(last.target, np.arange(45, 60))


def test_splits_that_cannot_be_made_are_refused(responses: ResponseMatrix) -> None:
    with pytest.raises(InputError, match="'sideways', wanted one of"):
        make_split(responses, "sideways", 0)
    with pytest.raises(InputError, match="3 subjects, wanted at least 4"):
        make_split(responses.take(subjects=np.arange(3)), "interpolation", 0)
    with pytest.raises(InputError, match="every subject has the date 2026-01-01, wanted older ones too"):
        make_split(responses, "newest", 0, order=["2026-01-01"] * 60)
