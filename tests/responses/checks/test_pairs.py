"""Near-duplicate subjects and items: planted, and known ones in public data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from irteval import ResponseMatrix, read_responses
from irteval.responses.checks.margins import expected_scores
from irteval.responses.checks.pairs import alike_groups
from irteval.responses.checks.similar_items import similar_items
from irteval.responses.checks.similar_subjects import similar_subjects

SETS = 40
Draw = Callable[[int, int, int], np.ndarray]


def changed(answers: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(answers.shape) < share, 1 - answers, answers)


def test_a_second_upload_is_found(draw_scores: Draw) -> None:
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        scores = draw_scores(60, 400, 4000 + seed)
        means = scores.mean(axis=1)
        row = int(rng.choice(np.flatnonzero((means > 0.15) & (means < 0.85))))
        scores = np.vstack([scores, changed(scores[row], 0.03, rng)])
        groups = [set(f.subjects.ids) for f in similar_subjects(ResponseMatrix.from_dense(scores))]
        found.append(groups == [{f"s{row}", "s60"}])
    assert np.mean(found) >= 0.95


def test_an_item_under_two_ids_is_found(draw_scores: Draw) -> None:
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        scores = draw_scores(400, 60, 5000 + seed)
        means = scores.mean(axis=0)
        column = int(rng.choice(np.flatnonzero((means > 0.2) & (means < 0.8))))
        scores = np.column_stack([scores, changed(scores[:, column], 0.02, rng)])
        groups = [set(f.items.ids) for f in similar_items(ResponseMatrix.from_dense(scores))]
        found.append(groups == [{f"i{column}", "i60"}])
    assert np.mean(found) >= 0.95


def test_pairs_are_found_where_cells_are_missing_and_across_blocks_of_rows(draw_scores: Draw) -> None:
    rng = np.random.default_rng(0)
    scores = draw_scores(1200, 300, 0)
    row = int(np.argmin(np.abs(scores[:900].mean(axis=1) - 0.5)))
    scores[1100] = scores[1150] = scores[row]
    scores[rng.random(scores.shape) < 0.3] = np.nan
    (finding,) = similar_subjects(ResponseMatrix.from_dense(scores))
    assert set(finding.subjects.ids) == {f"s{row}", "s1100", "s1150"}
    assert finding.figures["agreement"] == 1


def test_equal_rows_that_tell_little_are_no_pair(draw_scores: Draw) -> None:
    """A dozen answers agree by chance, and two subjects that pass everything agree by their accuracy."""
    few = draw_scores(30, 12, 0)
    few[1] = few[0]
    assert similar_subjects(ResponseMatrix.from_dense(few)) == []
    strong = draw_scores(30, 300, 0)
    strong[:2] = 1
    strong[:2, 7] = 0
    assert similar_subjects(ResponseMatrix.from_dense(strong)) == []


def test_one_row_has_no_pair() -> None:
    scores = np.ones((1, 5), dtype=np.float32)
    assert alike_groups(scores, scores, scores / 2, 0.5) == []


def test_expected_scores_have_the_margins(draw_scores: Draw) -> None:
    rng = np.random.default_rng(1)
    scores = draw_scores(80, 120, 1).astype(np.float32)
    observed = (rng.random(scores.shape) < 0.7).astype(np.float32)
    scores *= observed
    expected = expected_scores(scores, observed) * observed
    np.testing.assert_allclose(expected.sum(axis=1), scores.sum(axis=1), atol=0.6)
    np.testing.assert_allclose(expected.sum(axis=0), scores.sum(axis=0), atol=0.6)


def test_the_resubmission_of_swe_bench_verified(shared: Path) -> None:
    found = similar_subjects(read_responses(shared / "data" / "swebench_verified" / "responses.parquet"))
    assert [set(finding.subjects.ids) for finding in found] == [
        {
            "20241128_SWE-Fixer_Qwen2.5-7b-retriever_Qwen2.5-72b-editor_20241128",
            "20250306_SWE-Fixer_Qwen2.5-7b-retriever_Qwen2.5-72b-editor",
        }
    ]


def test_equal_rows_of_the_open_llm_leaderboard(shared: Path) -> None:
    responses = read_responses(shared / "data" / "openllm_v2_full" / "responses.parquet", benchmark="ifeval")
    groups = [set(finding.subjects.ids) for finding in similar_subjects(responses)]
    assert {"NLPark/Shi-Ci-Robin-Test_3AD80", "OpenBuddy/openbuddy-nemotron-70b-v23.2-131k"} in groups
