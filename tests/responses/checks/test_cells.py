"""Checks that look at every cell: coverage, constants, blocks, contents; dense and sparse alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval import ResponseMatrix, read_responses
from irteval.responses.checks.blocks import blocks
from irteval.responses.checks.constants import constants
from irteval.responses.checks.coverage import coverage
from irteval.responses.checks.duplicate_items import duplicate_items

Draw = Callable[[int, int, int], np.ndarray]
NAN = np.nan


def sparse_of(dense: np.ndarray) -> ResponseMatrix:
    """The same cells in the corner of a matrix that is so large that it is sparse."""
    rows, columns = np.nonzero(~np.isnan(dense))
    subjects, items = ([f"{letter}{i}" for i in range(3000)] for letter in "si")
    return ResponseMatrix.from_cells(subjects, items, rows, columns, dense[rows, columns])


def test_no_answer_is_fatal() -> None:
    (finding,) = coverage(ResponseMatrix.from_dense(np.full((2, 3), NAN)))
    assert finding.severity == "fatal"


def test_subjects_and_items_without_an_answer_and_parts_of_benchmarks() -> None:
    scores = [[1, 0, NAN, 1], [NAN, NAN, NAN, NAN], [1, NAN, NAN, 1]]
    found = coverage(ResponseMatrix.from_dense(scores, benchmarks=["p", "p", "p", "q"]))
    assert [(f.severity, f.subjects.ids, f.items.ids, f.benchmark) for f in found] == [
        ("warning", ("s1",), (), None),
        ("note", (), ("i2",), None),
        ("note", ("s2",), (), "p"),
    ]
    assert found[2].figures == {"least_share": 0.5, "median_share": 0.5}
    assert found[0].what == "1 subject without an answer"


def test_full_coverage_has_no_finding(draw_scores: Draw) -> None:
    assert coverage(ResponseMatrix.from_dense(draw_scores(20, 30, 0))) == []


def test_constant_items_and_subjects(draw_scores: Draw) -> None:
    scores = draw_scores(50, 40, 0)
    scores[:, 3], scores[:, 4] = 0, 1
    scores[5, 20:], scores[6, 20:] = 1, 0
    found = constants(ResponseMatrix.from_dense(scores, benchmarks=["p"] * 20 + ["q"] * 20))
    assert [(f.severity, f.benchmark, f.subjects.ids, f.items.ids) for f in found[:2]] == [
        ("note", None, (), ("i3",)),
        ("note", None, (), ("i4",)),
    ]
    by_place = {(f.benchmark, f.what.split()[2]): f.subjects.ids for f in found[2:]}
    assert "s6" in by_place["q", "failed"]
    assert "s5" in by_place["q", "passed"]


@pytest.mark.parametrize("build", [ResponseMatrix.from_dense, sparse_of])
def test_blocks_without_a_link(build: Callable[[np.ndarray], ResponseMatrix]) -> None:
    scores = np.full((6, 8), NAN)
    scores[:4, :5] = 1
    scores[4:, 5:] = 0
    found = blocks(build(scores))
    assert [(f.subjects.ids, f.items.total) for f in found] == [
        (("s0", "s1", "s2", "s3"), 5),
        (("s4", "s5"), 3),
    ]
    scores[5, 0] = 1
    assert blocks(build(scores)) == []


def test_blocks_of_a_sparse_union(shared: Path) -> None:
    """GDPval, MLE-bench and Cybench share models with the other parts: one block."""
    assert blocks(read_responses(shared / "data" / "bridge_sparse" / "responses.parquet")) == []


def test_items_of_one_content_and_ids_of_two(draw_scores: Draw) -> None:
    scores = draw_scores(30, 6, 0)
    scores[:, 1] = scores[:, 0]
    items = [f"i{j}" for j in range(6)]
    table = pd.DataFrame(
        {"content_hash": ["x", "x", "y", "z", None, None], "native_id": ["1", "2", "3", "3", "4", None]},
        index=items,
    )
    found = duplicate_items(ResponseMatrix.from_dense(scores, items=items, item_table=table))
    assert [(f.items.ids, f.figures) for f in found] == [
        (("i0", "i1"), {"answered_both": 30, "agreement": 1.0}),
        (("i2", "i3"), {}),
    ]
    apart = ResponseMatrix.from_dense(scores, items=items, item_table=table, benchmarks=["p", *"qqrst"])
    assert duplicate_items(apart) == []


def test_without_contents_there_are_no_duplicates(draw_scores: Draw) -> None:
    assert duplicate_items(ResponseMatrix.from_dense(draw_scores(5, 6, 0))) == []
