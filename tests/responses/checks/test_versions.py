"""Jumps between versions of a harness."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from irteval import ResponseMatrix
from irteval.responses.checks.versions import versions

SETS = 40
Draw = Callable[[int, int, int], np.ndarray]


def matrix(scores: np.ndarray, level: np.ndarray, benchmarks: list[str] | None = None) -> ResponseMatrix:
    ids = [f"s{i}" for i in range(len(scores))]
    table = pd.DataFrame({"harness_version": level, "size": 7.0}, index=ids)
    return ResponseMatrix.from_dense(scores, ids, subject_table=table, benchmarks=benchmarks)


def test_a_benchmark_that_a_version_scores_lower_is_found(draw_scores: Draw) -> None:
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        scores, level = draw_scores(60, 150, 6000 + seed), rng.permutation(np.repeat(["1.0", "1.1"], 30))
        lost = (rng.random(scores.shape) < 0.3) & (level == "1.1")[:, None]
        lost[:, 50:] = False
        scores[lost] = 0
        findings = versions(matrix(scores, level, ["p"] * 50 + ["q"] * 100))
        found.append(any(f.benchmark == "p" and "harness_version 1.1" in f.what for f in findings))
    assert np.mean(found) >= 0.95


def test_items_that_a_filter_broke_are_found(draw_scores: Draw) -> None:
    scores, level = draw_scores(80, 100, 0), np.repeat(["1.0", "1.1"], 40)
    scores[40:, [3, 17]] = 0
    scores[:40, [3, 17]] = 1
    findings = versions(matrix(scores, level))
    assert all({"i3", "i17"} <= set(finding.items.ids) for finding in findings)
    assert len(findings) == 2  # as seen from either version


def test_versions_of_few_subjects_and_no_versions(draw_scores: Draw) -> None:
    scores = draw_scores(20, 50, 0)
    assert versions(matrix(scores, np.array(["1.0"] * 17 + ["1.1"] * 3))) == []
    assert versions(ResponseMatrix.from_dense(scores)) == []
