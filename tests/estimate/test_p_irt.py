"""p-IRT and gp-IRT: their formulas, their gain, and what lambda does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from irteval.calibrate.ability import ability
from irteval.estimate.estimator import Sample, ScoreEstimator
from irteval.estimate.p_irt import GpIrt, PIrt, p_irt
from irteval.irt.parameters import ItemParameters
from tests.conftest import Simulation

ITEMS = 200
EQUAL = np.full(ITEMS, 1 / ITEMS)


@pytest.fixture(scope="module")
def scores(simulate_2pl: Callable[[int, int, int], Simulation]) -> NDArray[np.float64]:
    """80 source subjects, then 120 targets."""
    return simulate_2pl(200, ITEMS, 5).scores.astype(np.float64)


def asked(size: int, seed: int) -> NDArray[np.bool_]:
    return np.isin(np.arange(ITEMS), np.random.default_rng(seed).permutation(ITEMS)[:size])


def test_open_answers_are_expected_ones() -> None:
    parameters = ItemParameters(np.array([1.0, 2.0, 0.5]), np.array([0.0, 1.0, -1.0]))
    sample = np.array([[1.0, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    weights = np.array([0.5, 0.3, 0.2])
    score, variance = p_irt(parameters, Sample(sample), weights)
    posterior = ability(parameters, sample[:1])
    p = expit(parameters.slope[:, 0] * posterior.mean[0, 0] + parameters.intercept)
    assert score[0] == pytest.approx(0.5 + weights[1:] @ p[1:])
    slope = (weights * p * (1 - p) * parameters.slope[:, 0])[1:].sum()
    expected = (weights**2 * p * (1 - p))[1:].sum() + (slope * posterior.sd[0, 0]) ** 2
    assert variance[0] == pytest.approx(expected)
    assert np.isnan(score[1])


@pytest.mark.parametrize("make", [PIrt, GpIrt])
def test_covers_and_beats_the_mean(make: Callable[[], ScoreEstimator], scores: NDArray[np.float64]) -> None:
    estimator = make().fit(scores[:80], EQUAL)
    targets, truth = scores[80:], scores[80:].mean(1)
    error, plain, covered = [], [], []
    for seed in range(5):
        sample = Sample(np.where(asked(40, seed), targets, np.nan))
        found = estimator.estimate(sample, 0.95)
        error.append(found.score - truth)
        plain.append(np.nanmean(sample.scores, axis=1) - truth)
        covered.append((found.low <= truth) & (truth <= found.high))
    assert np.square(plain).mean() > 1.3 * np.square(error).mean()
    assert 0.9 < np.mean(covered) < 0.995


def test_gp_irt_leans_to_the_mean_where_the_model_is_wrong(scores: NDArray[np.float64]) -> None:
    rng = np.random.default_rng(0)
    unrelated = np.where(rng.random((200, 1)) < 0.5, scores[rng.permutation(200)], 1 - scores)
    right, wrong = (
        [
            np.abs(found.estimate(Sample(sample), 0.95).score - np.nanmean(sample, axis=1)).mean()
            for found in (PIrt().fit(data[:80], EQUAL), GpIrt().fit(data[:80], EQUAL))
        ]
        for data in (scores, unrelated)
        for sample in [np.where(asked(60, 1), data[80:], np.nan)]
    )
    assert right[1] < right[0]
    assert wrong[1] < wrong[0]


def test_everything_asked_is_the_score_itself(scores: NDArray[np.float64]) -> None:
    for make in (PIrt, GpIrt):
        found = make().fit(scores[:80], EQUAL).estimate(Sample(scores[80:]), 0.95)
        for values in (found.score, found.low, found.high):
            np.testing.assert_allclose(values, scores[80:].mean(1), atol=1e-9)
