"""Each policy by itself: what it decides, and what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from irteval.errors import InputError
from irteval.responses.logs.records import STATUS, Run
from irteval.responses.policies.chance import undo_correction
from irteval.responses.policies.failures import settle_failures
from irteval.responses.policies.filters import default_filter, named_filters
from irteval.responses.policies.metrics import default_metric, listed
from irteval.responses.policies.preferences import share_preferred
from irteval.responses.policies.prompts import _most_common
from irteval.responses.policies.score_values import State, read_scores
from irteval.responses.policies.subjects import checkpoint_step, subject_names
from irteval.responses.policies.versions import benchmark_names


class TestDefaultMetric:
    def test_what_the_harness_puts_first(self):
        assert default_metric(["acc", "judge"], ["acc", "judge"], ["judge"]) == "judge"

    def test_else_the_list(self):
        assert default_metric(["acc", "acc_norm", "zz"], ["acc", "acc_norm", "zz"], []) == "acc_norm"

    def test_else_the_first_by_name(self):
        assert default_metric(["b", "a"], ["b", "a"], []) == "a"

    def test_never_one_that_is_no_share_where_another_is(self):
        assert default_metric(["acc", "match"], ["match"], ["acc"]) == "match"

    def test_where_none_is_a_share(self):
        assert default_metric(["perplexity", "bits"], [], []) == "bits"
        assert default_metric([], [], []) is None

    def test_names_for_people(self):
        assert listed(["a", "b"]) == "a, b"
        assert listed(list("abcdefgh")) == "a, b, c, d, e and 3 more"


class TestFilters:
    def test_the_list_then_the_name(self):
        assert default_filter(["strict-match", "flexible-extract"], "quiz") == "flexible-extract"
        assert default_filter(["maj@4", "first"], "quiz") == "first"

    def test_a_run_with_one_row_a_document_needs_no_name(self):
        names, filters = named_filters(
            ("#1", "#2"), np.array([0, 0, 1], np.int16), np.array([0, 1, 1], np.int32), 2
        )
        assert [names[code] for code in filters] == ["none", "#1", "#2"]


class TestSubjects:
    def test_a_revision_is_part_of_the_name(self):
        names, notes = subject_names([Run("f", "m", revision="v1"), Run("f", "m")], {})
        assert names == ["m@v1", "m"]
        assert notes == []

    def test_weights_count_where_there_are_several(self):
        runs = [
            Run("f", "m", weights="a" * 40),
            Run("f", "m", weights="b" * 40),
            Run("f", "n", weights="c" * 40),
        ]
        names, notes = subject_names(runs, {})
        assert names == ["m@aaaaaaaa", "m@bbbbbbbb", "n"]
        assert notes == ["'m' was run with 2 different weights: kept apart as m@…"]

    def test_aliases(self):
        runs = [Run("f", "Org/M"), Run("f", "org__m"), Run("f", "other")]
        names, notes = subject_names(runs, {})
        assert names == ["Org/M", "org__m", "other"]
        assert "Org/M, org__m" in notes[0]
        assert subject_names(runs, {"org__m": "Org/M"})[0] == ["Org/M", "Org/M", "other"]

    @pytest.mark.parametrize(
        ("name", "step"),
        [
            ("m@step1000", 1000),
            ("run/checkpoint-250", 250),
            ("m@global_step_7", 7),
            ("m-7b", None),
            ("m@main", None),
        ],
    )
    def test_the_step_of_a_checkpoint(self, name, step):
        assert checkpoint_step(name) == step


def test_versions_of_a_task_are_benchmarks():
    runs = [Run("f", "m", "a", version=v) for v in ("1", "2", "")] + [Run("f", "m", "b", version="1")]
    names, notes = benchmark_names(runs)
    assert names == ["a@1", "a@2", "a@unknown", "b"]
    assert notes == ["a: versions 1, 2, unknown are kept apart as a@…"]


class TestFailures:
    SCORES = np.array([1.0, 0.0, np.nan, np.nan, np.nan])
    STATUS = np.array([STATUS[name] for name in ("ok", "ok", "error", "limit", "unscored")], dtype=np.int8)

    def test_missing(self):
        scores, without, notes = settle_failures(self.SCORES, self.STATUS, "missing")
        assert np.isnan(scores).sum() == 3
        assert without == {"error": 1, "limit": 1, "unscored": 1}
        assert "3 of 5 records have no score" in notes[0]

    def test_wrong(self):
        scores, _, notes = settle_failures(self.SCORES, self.STATUS, "wrong")
        assert scores[2:4].tolist() == [0, 0]
        assert math.isnan(scores[4])
        assert "2 that failed count as wrong" in notes[0]

    def test_nothing_to_say(self):
        assert settle_failures(np.ones(2), np.zeros(2, np.int8), "wrong")[1:] == ({}, [])


def test_a_correction_for_guessing_undone_is_the_share_before_it():
    shares, rate = np.array([0.0, 0.25, 1.0]), 0.25
    assert undo_correction((shares - rate) / (1 - rate), rate) == pytest.approx(shares)
    with pytest.raises(InputError, match=r"wanted a rate in \[0, 1\)"):
        undo_correction(shares, 1.0)


@pytest.mark.parametrize(
    ("preference", "score"),
    [
        (2, 1),
        (1, 0),
        (1.5, 0.5),
        (0, 0.5),
        (1.25, 0.25),
        (None, None),
        (math.nan, None),
        (-1, "preference -1"),
    ],
)
def test_preferences(preference, score):
    assert share_preferred(preference) == score


def test_the_prompt_of_most_answers():
    group = np.array([1, 0, 1, 0, 1, 2], dtype=np.int64)
    value = np.array([7, 3, 9, 5, 9, 4], dtype=np.uint64)
    assert _most_common(group, value).tolist() == [9, 3, 9, 3, 9, 4]


class TestScoreValues:
    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("0,5", 0.5),
            (" 1 ", 1),
            ("TRUE", 1),
            ("no", 0),
            ("C", 1),
            ("I", 0),
            ("P", 0.5),
            ("N", 0),
            ("1e-1", 0.1),
        ],
    )
    def test_texts(self, text, number):
        assert read_scores([text]).numbers.tolist() == [number]

    @pytest.mark.parametrize("text", ["", "nan", "NA", "null", "None"])
    def test_blanks(self, text):
        assert read_scores([text]).states.tolist() == [State.MISSING]

    @pytest.mark.parametrize("value", ["c1", "A", "0x1", "1 of 2", "½"])
    def test_no_score(self, value):
        read = read_scores([value])
        assert (read.states.tolist(), read.unreadable) == ([State.UNREADABLE], value)

    def test_numbers_beyond_any_float(self):
        assert read_scores([10**400, -(10**400)]).numbers.tolist() == [math.inf, -math.inf]

    def test_numbers_in_one_go_and_one_by_one_are_the_same(self):
        values = [0, 1, True, 0.25, math.nan]
        together, apart = read_scores(values), read_scores([*values, "x"])
        assert together.states.tolist() == apart.states.tolist()[:-1]
        assert np.array_equal(together.numbers, apart.numbers[:-1], equal_nan=True)
