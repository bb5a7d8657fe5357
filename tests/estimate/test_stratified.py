"""Means over strata, their standard errors, and post-stratification by difficulty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from irteval.estimate.estimator import Sample
from irteval.estimate.mean import Mean
from irteval.estimate.stratified import Stratified, merged, pooled, stratum_moments
from tests.conftest import Simulation


def group(n: int, right: int) -> NDArray[np.float64]:
    return (np.arange(n) < right).astype(float)[None]


def test_two_groups_of_very_different_size() -> None:
    y = np.hstack([group(10, 5), group(1000, 900)])
    mean, squared_error = stratum_moments(y, np.repeat([0, 1], [10, 1000]))
    simple, squared = pooled(mean, squared_error, np.array([1.0, 1.0]))
    assert simple[0] == pytest.approx(0.70)
    assert np.sqrt(squared[0]) == pytest.approx(0.083468, abs=1e-6)
    weighted, squared = pooled(mean, squared_error, np.array([10.0, 1000.0]))
    assert weighted[0] == pytest.approx(0.896040, abs=1e-6)
    assert np.sqrt(squared[0]) == pytest.approx(0.009541, abs=1e-6)


@pytest.mark.parametrize("right", [0, 25])
def test_equal_answers_have_no_error_but_an_interval(right: int) -> None:
    mean, squared_error = stratum_moments(group(25, right), np.zeros(25, int))
    assert (mean[0, 0], squared_error[0, 0]) == (right / 25, 0)
    scores = np.hstack([group(25, right), np.full((1, 975), np.nan)])
    source = np.random.default_rng(0).random((8, 1000)).round()
    found = Stratified().fit(source, np.full(1000, 1e-3)).estimate(Sample(scores), 0.95)
    assert found.high[0] - found.low[0] > 0.05
    assert found.score[0] == pytest.approx(right / 25)


def test_one_answer() -> None:
    scores = np.array([[np.nan, 1.0, np.nan, np.nan]])
    found = Stratified().fit(np.eye(4), np.full(4, 0.25)).estimate(Sample(scores), 0.95)
    assert found.score[0] == 1
    assert found.low[0] < 0.5


def test_a_stratum_without_answers_joins_a_neighbour() -> None:
    stratum = np.array([0, 0, 1, 1, 2, 2, 3])
    asked = np.isin(np.arange(7), [2, 5])
    np.testing.assert_array_equal(merged(stratum, asked), [0, 0, 0, 0, 1, 1, 1])


def test_strata_that_were_drawn_and_weights() -> None:
    stratum = np.array([7, 7, 7, 2, 2, 2])
    scores = np.array([[1, 0, np.nan, 1, np.nan, 1]], dtype=float)
    weights = np.array([0.2, 0.2, 0.2, 0.1, 0.1, 0.2])
    found = Stratified().fit(np.ones((3, 6)), weights).estimate(Sample(scores, stratum=stratum), 0.95)
    assert found.score[0] == pytest.approx(0.6 * 0.5 + 0.4 * 1)


def test_covers_and_beats_the_mean(simulate_2pl: Callable[[int, int, int], Simulation]) -> None:
    scores = simulate_2pl(120, 400, 5).scores.astype(np.float64)
    source, targets, weights = scores[:60], scores[60:120], np.full(400, 1 / 400)
    truth = targets.mean(1)
    error, plain, covered = [], [], []
    for seed in range(100):
        asked = np.random.default_rng(seed).permutation(400)[:50]
        sample = Sample(np.where(np.isin(np.arange(400), asked), targets, np.nan))
        found = Stratified().fit(source, weights).estimate(sample, 0.95)
        error.append(found.score - truth)
        plain.append(Mean().fit(source, weights).estimate(sample, 0.95).score - truth)
        covered.append((found.low <= truth) & (truth <= found.high))
    assert np.square(plain).mean() > 1.05 * np.square(error).mean()
    assert 0.935 < np.mean(covered) < 0.98
