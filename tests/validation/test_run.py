"""Validation as a whole: the default against the control, rows, seeds, processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from irteval.errors import InputError
from irteval.responses import ResponseMatrix
from irteval.validation import held_out_scores, validate

Simulate = Callable[[int, int, int], tuple[Any, ...]]


@pytest.fixture(scope="module")
def responses(simulate_2pl: Simulate) -> ResponseMatrix:
    return ResponseMatrix.from_dense(simulate_2pl(60, 80, 5)[3])


def test_validate_prefers_the_default_and_its_intervals_hold(simulate_2pl: Simulate) -> None:
    covered, rows = [], []
    for seed in range(3):
        responses = ResponseMatrix.from_dense(simulate_2pl(60, 80, seed)[3])
        table = validate(responses, sizes=(15, 30), repeats=1, seed=seed, share=0.4)
        table = table.set_index(["method", "size"])
        rows.append(table)
        covered.append(table["coverage"]["auto"].mean())
    assert np.mean(covered) >= 0.92
    for size in (15, 30):
        auto, random = (
            np.mean([t.loc[(method, size), "mae"] for t in rows]) for method in ("auto", "random")
        )
        assert auto < 0.85 * random
        assert np.mean([t.loc[("auto", size), "effective_sample"] for t in rows]) > 1.2
    narrower = [t.loc[("auto", 30), "width"] < t.loc[("random", 30), "width"] for t in rows]
    assert sum(narrower) >= 2


def test_rows_come_in_the_order_asked_for(responses: ResponseMatrix) -> None:
    done: list[tuple[int, int]] = []
    table = validate(
        responses,
        sizes=("25%", 12),
        methods=("random",),
        splits=("interpolation", "newest"),
        repeats=2,
        progress=lambda number, total: done.append((number, total)),
    )
    assert table[["split", "method", "size"]].to_numpy().tolist() == [
        ["interpolation", "random", 12],
        ["interpolation", "random", 20],
        ["newest", "random", 12],
        ["newest", "random", 20],
    ]
    assert done == [(1, 3), (2, 3), (3, 3)]  # the newest are the same in every repeat: one fit


def test_seeds_reproduce_and_processes_change_nothing(responses: ResponseMatrix) -> None:
    small = responses.take(subjects=np.arange(24), items=np.arange(24))
    tables = [validate(small, sizes=(8,), repeats=2, half_widths=(0.15,), jobs=jobs) for jobs in (1, 2)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    stopped = tables[0].dropna(subset="target")
    assert stopped["method"].tolist() == ["auto"]
    assert stopped["wilson_items"].between(1, 24).all()


def test_targets_are_there_to_be_paired(responses: ResponseMatrix) -> None:
    details = held_out_scores(
        responses, sizes=(12,), methods=("random",), splits=("interpolation",), repeats=3, seed=7
    )
    assert sorted(details["seed"].unique()) == [7, 8, 9]
    assert len(details) == 3 * 15
    truth = dict(zip(responses.subjects, responses.subject_means(), strict=True))
    np.testing.assert_allclose(details["truth"], [truth[name] for name in details["subject"]])


def test_benchmarks_are_validated_apart(responses: ResponseMatrix) -> None:
    scores = responses.dense()
    scores[:10, :30] = np.nan
    suite = ResponseMatrix.from_dense(scores, benchmarks=["a"] * 30 + ["b"] * 50)
    table = validate(suite, sizes=("50%",), methods=("random",), repeats=1)
    assert table[["benchmark", "size"]].to_numpy().tolist() == [["a", 15], ["b", 25]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ("magic",)}, "'magic', wanted one of auto, random"),
        ({"splits": ("sideways",)}, "'sideways', wanted one of interpolation"),
        ({"repeats": 0}, "0, wanted at least 1"),
        ({"half_widths": (4,)}, "4, wanted a half-width between 0 and 1"),
    ],
)
def test_what_is_unknown_is_refused(
    responses: ResponseMatrix, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        validate(responses, **settings)
