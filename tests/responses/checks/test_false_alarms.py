"""Clean data raise no alarm, in at most 1 % of data sets a check; and a sample says that it is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from irteval import ResponseMatrix, check_responses
from irteval.responses.checks import sample

SETS = 60
# Statements of what is there, not suspicions: true of clean data as well.
STATED = {"coverage", "constant answers"}


@pytest.mark.parametrize(
    ("subjects", "items", "missing"), [(10, 60, 0), (30, 100, 0), (60, 150, 0.3), (200, 60, 0)]
)
def test_clean_data_raise_no_alarm(
    draw_scores: Callable[..., np.ndarray], subjects: int, items: int, missing: float
) -> None:
    alarms: Counter[str] = Counter()
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        scores = draw_scores(subjects, items, 1000 + seed)
        scores[rng.random(scores.shape) < missing] = np.nan
        ids = [f"s{i}" for i in range(subjects)]
        table = pd.DataFrame({"harness_version": rng.choice(["1.0", "1.1"], subjects)}, index=ids)
        benchmarks = [f"b{j % 2}" for j in range(items)] if seed % 2 else None
        responses = ResponseMatrix.from_dense(scores, ids, subject_table=table, benchmarks=benchmarks)
        alarms.update({finding.check for finding in check_responses(responses).findings} - STATED)
    # One of 60 is not above 1 %: P(more than one | 1 %) = .12, and the seeds are fixed.
    assert all(count <= 1 for count in alarms.values()), alarms


def test_a_sample_is_drawn_and_said(
    draw_scores: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "MOST", 100)
    monkeypatch.setattr("irteval.responses.checks.report.MOST", 100)
    responses = ResponseMatrix.from_dense(draw_scores(120, 300, 0))
    answers = sample.sample_answers(responses, seed=3, most_subjects=50)
    assert answers.scores.shape == (50, 100)
    assert (np.diff(answers.items) > 0).all()
    np.testing.assert_array_equal(answers.scores, responses.dense()[np.ix_(answers.subjects, answers.items)])
    notes = [finding.what for finding in check_responses(responses).findings if finding.check == "sample"]
    assert notes == [
        "patterns and pairs were looked for among 100 of 120 subjects and 100 of 300 items, drawn at random"
    ]
