from __future__ import annotations

import json
from math import comb

import numpy as np
import pandas as pd
import pytest

from irteval.bank import ItemBank
from irteval.demo import story
from irteval.errors import InputError
from irteval.responses.read import read_responses


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    lines: list[str] = []
    return story.run_demo(folder, progress=lines.append), folder, lines


def test_every_new_subject_is_asked_a_twentieth_of_the_items(told):
    result, _, _ = told
    assert len(result.rows) == 16
    assert {row.estimate.items_asked for row in result.rows} == {45}
    assert {row.estimate.items_total for row in result.rows} == {900}
    assert {row.estimate.stopped for row in result.rows} == {"budget"}


def test_the_estimates_beat_random_items_and_the_intervals_hold(told):
    result, _, _ = told
    assert {len(row.sessions) for row in result.rows} == {10}
    assert result.mean_absolute_error < 0.95 * result.random_mean_absolute_error
    assert result.coverage >= 0.93


def test_the_two_better_classifiers_are_said_to_be_beyond_the_calibrated_ones(told):
    result, _, _ = told
    better = [row for row in result.rows if row.estimate.subject.startswith("better-")]
    assert len(better) == 2
    assert all(row.true_score > result.best_calibrated for row in better)
    assert all(np.mean([e.extrapolating for e in row.sessions]) > 0.5 for row in better)


def test_the_files_hold_what_was_told(told):
    result, folder, _ = told
    assert len(ItemBank.load(folder / "bank").items) == 900
    assert read_responses(folder / "responses.parquet").shape == (200, 900)
    new = read_responses(folder / "new-responses.parquet")
    known = dict(zip(new.subjects, new.subject_means(), strict=True))
    table = pd.read_csv(folder / "table.csv")
    assert list(table["subject"]) == [row.estimate.subject for row in result.rows]
    np.testing.assert_allclose(table["true_score"], [known[subject] for subject in table["subject"]])
    np.testing.assert_allclose(table["score"], [row.estimate.score for row in result.rows])
    assert (folder / "training-curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_json_form_is_plain(told):
    result, _, _ = told
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert len(document["estimates"]) == 16
    assert document["coverage"] == pytest.approx(np.mean([row["coverage"] for row in document["estimates"]]))


def test_each_stage_is_announced(told):
    _, _, lines = told
    assert len(lines) >= 5


def test_a_second_demo_replaces_the_first_and_says_the_same(told, monkeypatch):
    result, folder, _ = told
    monkeypatch.setattr(story, "SESSIONS", 1)
    again = story.run_demo(folder)
    assert [row.estimate for row in again.rows] == [row.estimate for row in result.rows]
    assert len(pd.read_csv(folder / "table.csv")) == 16


def test_the_random_control_is_the_exact_expectation():
    # Two of four items drawn, two right: k = 0, 1, 2 with chances 1, 4, 1 in 6.
    assert story._random_error(0.5, asked=2, total=4) == pytest.approx((0.5 + 0.5) / comb(4, 2))


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no folder to write into"):
        story.run_demo(tmp_path / "file" / "below")
