"""What the scorer keeps of the calibrated subjects: weights, bins, scores, and the direction beyond."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from irteval.bank import ItemBank
from irteval.calibrate import calibrate
from irteval.calibrate.source import (
    beyond_direction,
    difficulty_bins,
    implied_score_model,
    item_weights,
    logistic_equivalent,
    score_model,
    smoothed_means,
)
from irteval.irt.parameters import ItemParameters
from irteval.responses import ResponseMatrix

Simulate = Callable[[int, int, int], tuple[NDArray[np.float64], ...]]


def test_one_benchmark_is_the_plain_mean() -> None:
    names, weights = item_weights(["b"] * 4)
    assert names == ("b",)
    np.testing.assert_allclose(weights, np.full((1, 4), 0.25))


def test_a_suite_is_the_mean_of_its_benchmarks() -> None:
    names, weights = item_weights(["z", "a", "z", "z"])
    assert names == ("total", "a", "z")
    np.testing.assert_allclose(
        weights, [[1 / 6, 1 / 2, 1 / 6, 1 / 6], [0, 1, 0, 0], [1 / 3, 0, 1 / 3, 1 / 3]]
    )


def test_bins_are_quantiles_and_ties_stay_together() -> None:
    bins = difficulty_bins(np.linspace(0, 1, 100))
    np.testing.assert_array_equal(np.bincount(bins), [20] * 5)
    assert (np.diff(bins) >= 0).all()
    tied = difficulty_bins(np.array([0.01] * 70 + [0.5] * 30))
    assert len(set(tied[:70])) == len(set(tied[70:])) == 1
    assert len(set(difficulty_bins(np.full(9, 0.3)))) == 1


def test_smoothed_means_stay_inside_and_know_missing_from_wrong() -> None:
    scores = np.array([[1, 0, np.nan, np.nan], [1, 0, 1, np.nan], [1, 0, np.nan, np.nan]])
    np.testing.assert_allclose(
        smoothed_means(ResponseMatrix.from_dense(scores)), [3.5 / 4, 0.5 / 4, 1.5 / 2, 0.5]
    )


def test_source_scores_are_full_scores(simulate_2pl: Simulate) -> None:
    scores = simulate_2pl(40, 60, 0)[3].astype(np.float64)
    scores[:, 0], scores[:, 1] = 1, 0
    scores[0, 2:], scores[1, 2:] = 1, 0  # no other item is constant
    benchmarks = ["a"] * 20 + ["b"] * 40
    responses = ResponseMatrix.from_dense(scores, benchmarks=benchmarks)
    model = score_model(responses, {"k1": calibrate(responses, estimator="variational")}, benchmarks, 0)
    a, b = scores[:, :20].mean(1), scores[:, 20:].mean(1)
    np.testing.assert_allclose(model.source["a"].scores, np.sort(a))
    np.testing.assert_allclose(model.source["total"].scores, np.sort((a + b) / 2))
    assert model.source["a"].constant_share == pytest.approx(0.1)
    assert model.source["b"].constant_share == 0
    assert model.source["total"].constant_share == pytest.approx(0.05)
    assert model.fits == ["k1"]


def test_missing_source_cells_are_predicted(simulate_2pl: Simulate) -> None:
    _, _, b, scores = simulate_2pl(60, 100, 1)
    easy = np.argsort(b)
    holes = scores.astype(np.float64)
    holes[:30, easy[50:]] = np.nan  # half of the subjects saw the easy half alone
    responses = ResponseMatrix.from_dense(holes)
    model = score_model(responses, {"k1": calibrate(responses, estimator="variational")}, ["x"] * 100, 0)
    truth = np.sort(scores.mean(1))
    assert np.nanmean(holes[:30]) - scores[:30].mean() > 0.15  # what taking the mean would do
    assert abs(np.mean(model.source["x"].scores) - truth.mean()) < 0.02


def test_reliability_is_the_share_of_variance_that_is_ability(simulate_2pl: Simulate) -> None:
    theta, a, b, scores = simulate_2pl(80, 60, 2)
    responses = ResponseMatrix.from_dense(scores)
    model = score_model(responses, {"k1": calibrate(responses, estimator="variational")}, ["x"] * 60, 0)
    p = expit(a * (theta[:, None] - b))
    truth = 1 - (p * (1 - p)).mean() / 60 / scores.mean(1).var(ddof=1)
    assert model.source["x"].reliability == pytest.approx(truth, abs=0.03)
    coins = ResponseMatrix.from_dense(np.random.default_rng(0).integers(0, 2, (80, 60)).astype(np.int8))
    noise = score_model(coins, {"k1": calibrate(coins, estimator="variational")}, ["x"] * 60, 0)
    assert noise.source["x"].reliability < 0.4


def test_implied_model_is_that_of_a_normal_population() -> None:
    rng = np.random.default_rng(0)
    parameters = ItemParameters(rng.lognormal(0, 0.3, 50), rng.standard_normal(50), lower=np.full(50, 0.2))
    model = implied_score_model(parameters, ["x"] * 50, "3pl")
    p = 0.2 + 0.8 * expit(rng.standard_normal((20_000, 1)) * parameters.slope[:, 0] + parameters.intercept)
    np.testing.assert_allclose(model.source_mean, p.mean(0), atol=0.01)
    assert np.quantile(model.source["x"].scores, 0.9) == pytest.approx(np.quantile(p.mean(1), 0.9), abs=0.01)
    assert model.source["x"].reliability == 1.0  # expected scores: no answer noise to distrust
    assert model.fits == ["3pl"]
    assert model.beyond is None


def test_the_direction_beyond_is_learnt_from_the_strong(known_bank: Callable[..., ItemBank]) -> None:
    parameters = known_bank(150).parameters
    hard = parameters.intercept < 0
    theta = np.concatenate([np.linspace(-2, 0, 60), np.linspace(0.5, 1, 30)])

    def direction(gain: float) -> NDArray[np.float64]:
        eta = theta[:, None] * parameters.slope[:, 0] + parameters.intercept
        eta[60:] += gain * hard  # the strong gain on the hard items
        answers = (np.random.default_rng(0).random(eta.shape) < expit(eta)).astype(np.int8)
        responses = ResponseMatrix.from_dense(answers)
        fitted = calibrate(responses, estimator="variational")
        found = beyond_direction(responses, fitted, responses.subject_means(), responses.item_means(), 0)
        assert found is not None
        assert np.abs(found).max() <= 4
        few = responses.take(subjects=np.arange(11))
        assert beyond_direction(few, fitted, few.subject_means(), few.item_means(), 0) is None
        return found

    plain, lifted = direction(0), direction(1.5)
    assert (lifted - plain)[hard].mean() > (lifted - plain)[~hard].mean() + 0.5


def test_logistic_equivalent_follows_the_curve_of_an_item_with_a_guessing_floor() -> None:
    parameters = ItemParameters(
        slope=np.array([1.0, 2.0]), intercept=np.array([0.0, -1.0]), lower=np.array([0.25, 0.1])
    )
    near = logistic_equivalent(parameters)
    theta = np.linspace(-2, 2, 9)[:, None]
    wanted = parameters.lower + (1 - parameters.lower) * expit(
        theta * parameters.slope[:, 0] + parameters.intercept
    )
    found = expit(theta * near.slope[:, 0] + near.intercept)
    assert np.abs(found - wanted).max() < 0.1
    plain = ItemParameters(slope=np.ones(2), intercept=np.zeros(2))
    assert logistic_equivalent(plain) is plain
