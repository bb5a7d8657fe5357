"""AIPW: the paper's formula, its interval, and what missing cells and weights do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from irteval.estimate.aipw import Aipw
from irteval.estimate.estimator import Sample
from tests.conftest import Simulation

ITEMS = 200
EQUAL = np.full(ITEMS, 1 / ITEMS)


@pytest.fixture(scope="module")
def scores(simulate_2pl: Callable[[int, int, int], Simulation]) -> NDArray[np.float64]:
    """60 source subjects, then 200 targets."""
    return simulate_2pl(260, ITEMS, 5).scores.astype(np.float64)


def sampled(targets: NDArray[np.float64], size: int, seed: int = 0) -> NDArray[np.float64]:
    asked = np.random.default_rng(seed).permutation(ITEMS)[:size]
    return np.where(np.isin(np.arange(ITEMS), asked), targets, np.nan)


def test_is_the_papers_formula_for_each_target(scores: NDArray[np.float64]) -> None:
    sample = sampled(scores[60:70], 30)
    sample[8:] = sampled(scores[68:70], 30, seed=1)
    found = Aipw().fit(scores[:60], EQUAL).estimate(Sample(sample), 0.95)
    for target, score in zip(sample, found.score, strict=True):
        asked = ~np.isnan(target)
        ridge = Ridge(alpha=10).fit(scores[:60, asked].T, target[asked])
        seen, unseen = ridge.predict(scores[:60, asked].T), ridge.predict(scores[:60, ~asked].T)
        correction = (unseen.mean() - seen.mean()) / (1 + asked.sum() / (~asked).sum())
        assert score == pytest.approx(target[asked].mean() + correction, abs=1e-10)


def test_leave_one_out_residuals_are_those_of_refits(scores: NDArray[np.float64]) -> None:
    sample = sampled(scores[60:61], 20)
    asked = np.flatnonzero(~np.isnan(sample[0]))
    found = Aipw().fit(scores[:60], EQUAL).estimate(Sample(sample), 0.95)
    errors = []
    for item in asked:
        others = asked[asked != item]
        ridge = Ridge(alpha=10).fit(scores[:60, others].T, sample[0, others])
        errors.append(sample[0, item] - ridge.predict(scores[:60, [item]].T)[0])
    n, z = 20 * 199 / 180, 1.959964
    half_width = z / (1 + z**2 / n) * np.sqrt(np.mean(np.square(errors)) / n + z**2 / (4 * n**2))
    assert (found.high - found.low)[0] / 2 == pytest.approx(half_width, rel=1e-5)


def test_covers_and_beats_the_mean(scores: NDArray[np.float64]) -> None:
    targets = scores[60:]
    truth = targets.mean(1)
    error, plain, covered = [], [], []
    for seed in range(20):
        sample = sampled(targets, 50, seed)
        found = Aipw().fit(scores[:60], EQUAL).estimate(Sample(sample), 0.95)
        error.append(found.score - truth)
        plain.append(np.nanmean(sample, 1) - truth)
        covered.append((found.low <= truth) & (truth <= found.high))
    assert np.square(plain).mean() > 1.05 * np.square(error).mean()
    assert 0.93 < np.mean(covered) < 0.995


@pytest.mark.parametrize("size", [1, 2, 25])
def test_equal_answers_leave_an_interval(scores: NDArray[np.float64], size: int) -> None:
    sample = np.where(np.isnan(sampled(scores[60:61], size)), np.nan, 1.0)
    found = Aipw().fit(scores[:60], EQUAL).estimate(Sample(sample), 0.95)
    assert found.score[0] == pytest.approx(1)
    assert found.low[0] < 0.97
    assert found.high[0] == pytest.approx(1)


def test_weights_count(scores: NDArray[np.float64]) -> None:
    targets = scores[60:]
    weights = np.where(np.arange(ITEMS) < 40, 0.5 / 40, 0.5 / 160)
    estimator = Aipw().fit(scores[:60], weights)
    everything = estimator.estimate(Sample(targets), 0.95)
    np.testing.assert_allclose(everything.score, targets @ weights)
    error = np.array(
        [
            estimator.estimate(Sample(sampled(targets, 60, seed)), 0.95).score - targets @ weights
            for seed in range(10)
        ]
    )
    assert abs(error.mean()) < 0.01


def test_missing_source_cells(
    scores: NDArray[np.float64],
    with_missing: Callable[[NDArray[np.int8], float, int], NDArray[np.int8]],
) -> None:
    source = with_missing(scores[:60].astype(np.int8), 0.2, 0)
    source = np.where(source < 0, np.nan, source)
    sample = Sample(sampled(scores[60:], 50))
    found = Aipw().fit(source, EQUAL).estimate(sample, 0.95).score
    complete = Aipw().fit(scores[:60], EQUAL).estimate(sample, 0.95).score
    assert np.abs(found - complete).mean() < 0.02
