"""Misaligned ids: planted, and in two public data sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval import ResponseMatrix, read_responses
from irteval.responses.checks.consensus import consensus
from irteval.responses.checks.discovery import discoveries
from irteval.responses.checks.finding import Finding
from irteval.responses.checks.positions import order_by_position, realigned

SETS = 40
Draw = Callable[[int, int, int], np.ndarray]


def warned(findings: list[Finding]) -> set[str]:
    return {name for found in findings if found.severity == "warning" for name in found.subjects.ids}


def a_row_in_the_middle(scores: np.ndarray, rng: np.random.Generator) -> int:
    """Not so weak that it might guess, nor so strong that nothing is left to contradict."""
    means = scores.mean(axis=1)
    return int(rng.choice(np.flatnonzero((means > np.quantile(means, 0.05) + 0.08) & (means < 0.93))))


def test_a_row_with_shuffled_ids_is_found(draw_scores: Draw) -> None:
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        scores = draw_scores(60, 400, 2000 + seed)
        row = a_row_in_the_middle(scores, rng)
        scores[row] = rng.permutation(scores[row])
        found.append(warned(consensus(ResponseMatrix.from_dense(scores))) == {f"s{row}"})
    assert np.mean(found) >= 0.95


def test_an_offset_is_found_and_named(draw_scores: Draw) -> None:
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        scores = draw_scores(60, 400, 3000 + seed)
        row, offset = a_row_in_the_middle(scores, rng), int(rng.integers(1, 6))
        scores[row] = np.roll(scores[row], offset)
        (finding, *_) = consensus(ResponseMatrix.from_dense(scores)) or [None]
        found.append(finding is not None and finding.what.endswith(f"if they were moved back by {offset}"))
    assert np.mean(found) >= 0.95


def test_rows_turned_around_run_against_the_consensus(draw_scores: Draw) -> None:
    scores = draw_scores(60, 200, 1)
    row = int(np.argmin(np.abs(scores.mean(axis=1) - 0.5)))
    scores[row] = 1 - scores[row]
    (finding,) = consensus(ResponseMatrix.from_dense(scores))
    assert finding.what.startswith("answers run against the consensus")
    assert finding.subjects.ids == (f"s{row}",)


def test_the_larger_part_is_the_consensus(draw_scores: Draw) -> None:
    """Two in five rows share another order: they are found, and the others are not."""
    scores = draw_scores(60, 300, 2)
    strong = np.argsort(scores.mean(axis=1))[15:50]
    moved = strong[::2]
    scores[moved] = scores[moved][:, np.random.default_rng(0).permutation(300)]
    found = consensus(ResponseMatrix.from_dense(scores, [f"s{i:02d}" for i in range(60)]))
    assert sum(finding.subjects.total for finding in found) >= 0.9 * len(moved)
    assert {name for finding in found for name in finding.subjects.ids} <= {f"s{i:02d}" for i in moved}


@pytest.mark.parametrize(("subjects", "items"), [(4, 200), (50, 39)])
def test_too_few_to_have_a_consensus(draw_scores: Draw, subjects: int, items: int) -> None:
    scores = draw_scores(subjects, items, 0)
    scores[0] = 1 - scores[0]
    assert consensus(ResponseMatrix.from_dense(scores)) == []


def test_a_row_with_few_answers_is_not_judged(draw_scores: Draw) -> None:
    scores = draw_scores(50, 200, 0)
    scores[0] = 1 - scores[1]
    scores[0, 39:] = np.nan
    assert consensus(ResponseMatrix.from_dense(scores)) == []


def test_the_scrambled_copy_and_the_right_one(shared: Path) -> None:
    """IFEval as published: the rows of two workers do not name the items as those of eight workers do."""
    folder = shared / "data" / "openllm_v2_full"
    scrambled = read_responses(folder / "ifeval_scrambled_as_published.parquet")
    assert scrambled.subject_table is not None
    stride = scrambled.subject_table["gather_stride"]
    found = consensus(scrambled)
    named = {name for finding in found for name in finding.subjects.ids}
    assert set(stride[list(named)]) == {2}
    assert sum(finding.subjects.total for finding in found) == (stride == 2).sum()
    assert found[0].what.endswith("if they were dealt to 2 workers in place of 8")
    right = read_responses(folder / "responses.parquet", benchmark="ifeval")
    assert warned(consensus(right)) == set()


def test_the_misaligned_model_of_eleven_benchmarks(shared: Path) -> None:
    """Its rows do not go with the others on GSM8K, HellaSwag, MATH, MBPP and HumanEval."""
    found = consensus(read_responses(shared / "data" / "psn12" / "responses.parquet"))
    misaligned = {f.benchmark for f in found if f.severity == "warning" and f.subjects.ids == ("llm_03",)}
    assert {"gsm8k", "math", "mbpp", "humaneval"} <= misaligned


def test_the_order_of_positions() -> None:
    matrix = ResponseMatrix.from_dense(np.ones((2, 4)), items=["q10", "q9", "b/2", "b/10"])
    assert order_by_position(matrix, np.arange(4)).tolist() == [2, 3, 1, 0]
    table = pd.DataFrame({"position": [3, 1, 2, 0]}, index=list(matrix.items))
    given = ResponseMatrix.from_dense(np.ones((2, 4)), items=matrix.items, item_table=table)
    assert order_by_position(given, np.array([0, 1, 2])).tolist() == [1, 2, 0]


@pytest.mark.parametrize("stride", [2, 8])
def test_dealing_to_workers_is_recognised(stride: int) -> None:
    rng = np.random.default_rng(stride)
    means = rng.random(300).astype(np.float32)
    answers = (rng.random(300) < means).astype(np.float32)
    dealt = np.concatenate([np.arange(300)[first::stride] for first in range(stride)])
    there, order = np.ones(300, dtype=np.float32), np.arange(300)
    assert realigned(answers[dealt], there, means, order) == f"dealt back to {stride} workers"
    back = np.argsort(dealt)
    assert realigned(answers[back], there, means, order) == f"collected from {stride} workers"
    assert realigned(answers, there, means, order) is None
    assert realigned(rng.permutation(answers), there, means, order) is None


def test_false_discoveries_are_controlled() -> None:
    assert discoveries(np.array([]), 0.1).tolist() == []
    p_values = np.array([0.04, 0.001, 0.5, 0.02])
    assert discoveries(p_values, 0.05).tolist() == [False, True, False, True]
    rng = np.random.default_rng(0)
    any_found = [discoveries(rng.random(30), 0.05).any() for _ in range(2000)]
    assert np.mean(any_found) == pytest.approx(0.05, abs=0.015)
