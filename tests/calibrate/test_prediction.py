"""Predicted answers and scores against sums, integrals and draws written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit
from torch import Tensor

from irteval.bank import ItemBank
from irteval.calibrate.hypotheses import INSIDE, SHIFTED, WIDE, HypothesisSet
from irteval.calibrate.prediction import Prediction, predict
from irteval.calibrate.source import difficulty_bins
from irteval.irt.parameters import ItemParameters


class Case(NamedTuple):
    """Predictions for three subjects with 0, 12 and 50 answers to 50 items, by two fits."""

    prediction: Prediction
    fits: tuple[HypothesisSet, HypothesisSet]
    y: Tensor
    answered: Tensor


def two_dimensional(parameters: ItemParameters) -> ItemParameters:
    """The same items with a second, weak dimension and uncertain parameters."""
    rng = np.random.default_rng(5)
    slope = np.hstack([parameters.slope, 0.3 * rng.standard_normal(parameters.slope.shape)])
    covariance = np.broadcast_to(0.05 * np.eye(3), (parameters.items, 3, 3))
    return ItemParameters(slope, parameters.intercept, covariance)


@pytest.fixture
def case(known_bank: Callable[..., ItemBank]) -> Case:
    parameters = known_bank(50).parameters
    bins = difficulty_bins(expit(parameters.intercept))
    fits = (
        HypothesisSet.build(parameters, bins, np.zeros(50, int), None, (INSIDE, SHIFTED, WIDE)),
        HypothesisSet.build(
            two_dimensional(parameters), bins, np.zeros(50, int), None, (INSIDE, SHIFTED, WIDE)
        ),
    )
    y = torch.as_tensor(np.random.default_rng(1).integers(0, 2, (3, 50)).astype(np.float64))
    answered = torch.zeros(3, 50).double()
    answered[1, 5:17] = answered[2] = 1
    prediction = predict(fits, torch.arange(50).expand(3, -1), y, answered)
    return Case(prediction, fits, y, answered)


def test_shapes_weights_and_the_inside_hypotheses(case: Case) -> None:
    assert case.prediction.probability.shape == (3, 6, 50)
    assert case.prediction.inside.tolist() == [True, False, False, True, False, False]
    torch.testing.assert_close(case.prediction.weight.sum(-1), torch.ones(3).double())
    # Without an answer the hypotheses keep their prior odds.
    odds = torch.tensor([INSIDE.log_odds, SHIFTED.log_odds, WIDE.log_odds] * 2).double()
    torch.testing.assert_close(case.prediction.weight[0], odds.softmax(-1))


def test_probability_integrates_over_the_posterior(case: Case) -> None:
    nodes, weights = hermegauss(40)
    posterior = case.fits[0].posterior(torch.arange(50).expand(3, -1), case.y, case.answered)
    for s in range(3):
        for t in range(3):
            mean = (posterior.mean[s, t] @ case.fits[0].features.T + case.fits[0].offset).numpy()
            f = case.fits[0].features
            sd = ((f @ posterior.covariance[s, t]) * f).sum(-1).sqrt().numpy()
            exact = expit(mean[:, None] + sd[:, None] * nodes) @ weights / weights.sum()
            np.testing.assert_allclose(case.prediction.probability[s, t], exact, atol=0.015)


def test_item_uncertainty_pulls_predictions_towards_one_half(known_bank: Callable[..., ItemBank]) -> None:
    known = known_bank(50).parameters
    uncertain = ItemParameters(known.slope, known.intercept, np.broadcast_to(np.eye(2), (50, 2, 2)))
    sure, unsure = (
        predict(
            (HypothesisSet.build(p, np.zeros(50, int), np.zeros(50, int), None, (INSIDE,)),),
            torch.zeros(1, 0, dtype=torch.long),
            torch.zeros(1, 0).double(),
            torch.zeros(1, 0).double(),
        ).probability[0, 0]
        for p in (known, uncertain)
    )
    assert bool(((unsure - 0.5).abs() < (sure - 0.5).abs()).all())


def test_gradient_is_the_written_out_sum(case: Case) -> None:
    weights = torch.linspace(0, 1, 50).double()
    rest = 1 - case.answered
    for fit, gradient, kappa, p in zip(
        case.fits,
        case.prediction.gradient(weights, rest),
        case.prediction.kappa,
        case.prediction.split(case.prediction.probability),
        strict=True,
    ):
        expected = sum(
            weights[i] * rest[1, i] * p[1, 2, i] * (1 - p[1, 2, i]) * kappa[1, 2, i] * fit.features[i]
            for i in range(50)
        )
        torch.testing.assert_close(gradient[1, 2], expected)


def test_score_counts_answers_as_they_are(case: Case) -> None:
    weights = torch.full((50,), 1 / 50).double()
    mean, variance = case.prediction.score(weights, case.answered, case.y)
    torch.testing.assert_close(mean[2], case.y[2].mean().expand(6))
    torch.testing.assert_close(variance[2], torch.zeros(6).double())
    torch.testing.assert_close(mean[0], case.prediction.probability[0].mean(-1))
    part = (
        case.y[1, 5:17].sum() + case.prediction.probability[1][:, [*range(5), *range(17, 50)]].sum(-1)
    ) / 50
    torch.testing.assert_close(mean[1], part)


def test_score_variance_matches_draws(case: Case) -> None:
    weights = torch.full((50,), 1 / 50).double()
    mean, variance = case.prediction.score(weights, case.answered, case.y)
    fit, rng = case.fits[0], np.random.default_rng(0)
    posterior = fit.posterior(torch.arange(50).expand(3, -1), case.y, case.answered)
    # The score is the less linear in the coefficients the wider the hypothesis.
    for t, tolerance in ((0, 0.1), (1, 0.25)):
        beta = rng.multivariate_normal(
            posterior.mean[1, t].numpy(), posterior.covariance[1, t].numpy(), 20_000
        )
        p = expit(beta @ fit.features.numpy().T + fit.offset.numpy())
        y = np.where(case.answered[1] > 0, case.y[1], rng.random(p.shape) < p)
        assert y.mean(1).mean() == pytest.approx(mean[1, t].item(), abs=0.01)
        assert y.mean(1).std() == pytest.approx(variance[1, t].item() ** 0.5, rel=tolerance)


def test_order_and_padding_of_answers_change_nothing(case: Case) -> None:
    order = torch.as_tensor(np.random.default_rng(2).permutation(50))
    shuffled = predict(case.fits, order.expand(3, -1), case.y[:, order], case.answered[:, order])
    torch.testing.assert_close(shuffled.probability, case.prediction.probability, atol=1e-9, rtol=0)
    only = order[case.answered[1, order] > 0]
    alone = predict(case.fits, only[None], case.y[1, only][None], torch.ones(1, len(only)).double())
    torch.testing.assert_close(alone.probability[0], case.prediction.probability[1], atol=1e-9, rtol=0)
    torch.testing.assert_close(alone.log_weight[0], case.prediction.log_weight[1], atol=1e-9, rtol=0)


def test_answers_themselves_are_chance() -> None:
    # Items that no ability moves: what is left of the variance is that of the answers.
    parameters = ItemParameters(np.zeros(20), np.linspace(-2, 2, 20))
    fit = HypothesisSet.build(parameters, np.zeros(20, int), np.zeros(20, int), None, (INSIDE,))
    empty = torch.zeros(1, 0).double()
    prediction = predict((fit,), torch.zeros(1, 0, dtype=torch.long), empty, empty)
    weights = torch.linspace(1, 2, 20).double() / 30
    mean, variance = prediction.score(weights, torch.zeros(1, 20).double(), torch.zeros(1, 20).double())
    p = expit(np.linspace(-2, 2, 20))
    assert mean.item() == pytest.approx((weights.numpy() * p).sum(), abs=1e-6)
    assert variance.item() == pytest.approx((weights.numpy() ** 2 * p * (1 - p)).sum(), rel=1e-5)
