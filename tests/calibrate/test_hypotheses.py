"""Hypotheses about a new subject: their features, their priors, and which of them the answers favour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import expit

from irteval.bank import ItemBank
from irteval.calibrate.hypotheses import BEYOND, FIXED, INSIDE, SHIFTED, WIDE, HypothesisSet
from irteval.calibrate.source import difficulty_bins
from irteval.irt.parameters import ItemParameters


@pytest.fixture
def parameters() -> ItemParameters:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((60, 3, 3)) * 0.3
    return ItemParameters(
        slope=rng.standard_normal((60, 2)),
        intercept=rng.standard_normal(60),
        covariance=root @ root.transpose(0, 2, 1),
    )


def bins_of(parameters: ItemParameters) -> np.ndarray:
    return difficulty_bins(expit(parameters.intercept))


def test_features_are_ability_shift_difficulty_bins_benchmarks_and_beyond(parameters: ItemParameters) -> None:
    bins, benchmark, beyond = bins_of(parameters), np.arange(60) % 3, np.linspace(-1, 1, 60)
    built = HypothesisSet.build(parameters, bins, benchmark, beyond, (INSIDE, BEYOND))
    features = built.features.numpy()
    assert features.shape == (60, 2 + 1 + 1 + 5 + 3 + 1)
    np.testing.assert_array_equal(features[:, :2], parameters.slope)
    np.testing.assert_array_equal(features[:, 2], 1)
    np.testing.assert_allclose(features[:, 3], parameters.intercept - parameters.intercept.mean())
    np.testing.assert_array_equal(features[:, 4:9].argmax(1), bins)
    np.testing.assert_array_equal(features[:, 9:12].argmax(1), benchmark)
    np.testing.assert_array_equal(features[:, 4:12].sum(1), 2)
    np.testing.assert_array_equal(features[:, 12], beyond)
    deviations = built.prior_precision.numpy() ** -0.5
    expected = [1.5, 1.5, 2, 0.25] + [0.35] * 5 + [0.35] * 3 + [1]
    np.testing.assert_allclose(deviations[1], expected, rtol=1e-6)
    np.testing.assert_array_equal(built.prior_precision[0, 2:], FIXED)
    np.testing.assert_array_equal(built.prior_precision[0, :2], 1)
    np.testing.assert_array_equal(built.prior_mean[:, -1], [0, 1])
    np.testing.assert_array_equal(built.prior_mean[:, :-1], 0)


def test_one_benchmark_and_no_direction_need_no_columns(parameters: ItemParameters) -> None:
    built = HypothesisSet.build(
        parameters, bins_of(parameters), np.zeros(60, int), None, (INSIDE, SHIFTED, WIDE)
    )
    assert built.features.shape == (60, 2 + 1 + 1 + 5)


def test_kappa_is_the_attenuation_by_item_uncertainty(parameters: ItemParameters) -> None:
    built = HypothesisSet.build(parameters, bins_of(parameters), np.zeros(60, int), None, (INSIDE, WIDE))
    beta = torch.as_tensor(np.random.default_rng(1).standard_normal((4, 2, 9)))
    kappa = built.kappa(beta, built.item_covariance)
    assert parameters.covariance is not None
    for s, t, i in ((0, 0, 0), (3, 1, 59), (2, 0, 17)):
        z = np.append(beta[s, t, :2].numpy(), 1)
        assert kappa[s, t, i].item() == pytest.approx(
            (1 + np.pi / 8 * z @ parameters.covariance[i] @ z) ** -0.5
        )
    few = torch.tensor([[3, 5], [0, 1], [2, 2], [59, 7]])
    torch.testing.assert_close(built.kappa(beta, built.item_covariance[few])[3, 1], kappa[3, 1, few[3]])


def test_a_parameter_that_was_fixed_has_no_uncertainty() -> None:
    covariance = np.full((4, 2, 2), np.nan)
    covariance[:, 1, 1] = 0.04
    fixed_slope = ItemParameters(np.ones(4), np.zeros(4), covariance, response_model="1pl")
    built = HypothesisSet.build(fixed_slope, np.zeros(4, int), np.zeros(4, int), None, (INSIDE,))
    kappa = built.kappa(torch.full((1, 1, 4), 3.0).double(), built.item_covariance)
    torch.testing.assert_close(kappa, torch.full((1, 1, 4), (1 + np.pi / 8 * 0.04) ** -0.5).double())


def test_inside_is_the_map_of_the_response_model() -> None:
    built = HypothesisSet.build(
        ItemParameters(np.ones(20), np.zeros(20)), np.zeros(20, int), np.zeros(20, int), None, (INSIDE, WIDE)
    )
    y = torch.ones(2, 20).double()
    weight = torch.zeros_like(y)
    weight[0, :10] = weight[1, :1] = 1
    posterior = built.posterior(torch.arange(20).expand(2, -1), y, weight)
    np.testing.assert_allclose(posterior.mean[:, 0, 0], [1.6336, 0.4010], atol=1e-3)
    np.testing.assert_allclose(posterior.mean[:, 0, 1:], 0, atol=1e-6)


def test_answers_tell_an_ordinary_subject_from_a_strange_one(known_bank: Callable[..., ItemBank]) -> None:
    parameters = known_bank(200).parameters
    built = HypothesisSet.build(
        parameters,
        difficulty_bins(expit(parameters.intercept)),
        np.zeros(200, int),
        None,
        (INSIDE, SHIFTED, WIDE),
    )
    rng = np.random.default_rng(0)
    ordinary = expit(parameters.slope[:, 0] * 0.5 + parameters.intercept)
    # Difficulty the wrong way round: nobody in the calibrated population does that.
    strange = expit(-2 * parameters.intercept)
    y = torch.as_tensor((rng.random((2, 200)) < np.stack([ordinary, strange])).astype(np.float64))
    posterior = built.posterior(torch.arange(200).expand(2, -1), y, torch.ones_like(y))
    weight = (built.log_odds + posterior.log_evidence).softmax(-1)
    assert weight[0, 0] > 0.7
    assert weight[1, 0] < 1e-6
    assert posterior.mean[1, 2, 2] < -0.5  # wide: a negative slope on difficulty
