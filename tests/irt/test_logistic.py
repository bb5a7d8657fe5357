"""The logistic response model against reference values, finite differences and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit
from torch import Tensor

from irteval.irt.logistic import (
    NARROW,
    derivatives,
    expected_probability,
    information,
    linear_predictor,
    log_likelihood,
    probability,
)


def tensor(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def test_reference_values_of_a_3pl() -> None:
    theta, slope, lower = tensor([[-10.0], [0.0], [1.0]]), tensor([[1.5]]), tensor([0.25])
    p = probability(linear_predictor(theta, slope, tensor([0.0])), lower)
    assert p[:, 0].tolist() == pytest.approx([0.25, 0.625, 0.863181], abs=1e-6)
    at = tensor([[-3.0], [0.0], [1.0], [3.0], [6.0]])
    found = information(at, slope, tensor([0.0]), lower)
    assert found[:, 0].tolist() == pytest.approx([0.00078, 0.3375, 0.238387, 0.018286, 0.000208], abs=5e-6)


def test_reference_values_of_a_2pl() -> None:
    assert float(probability(tensor(-1.0))) == pytest.approx(0.268941, abs=1e-6)
    scaled = tensor([[1.7]])
    eta = linear_predictor(tensor([[1.0]]), scaled, tensor([0.0]))
    assert float(probability(eta)) == pytest.approx(0.845535, abs=1e-6)
    assert float(information(tensor([[0.0]]), scaled, tensor([0.0]))) == pytest.approx(0.7225)
    slope = tensor([0.9875, 1.0808, 1.7075, 0.7650, 0.7357])[:, None]
    intercept = tensor([1.8559, 0.8080, 1.8052, 0.4860, 1.8545])
    found = information(tensor([[0.0], [-1.0]]), slope, intercept)
    expected = [[0.1140, 0.2491, 0.3536, 0.1380, 0.0633], [0.2031, 0.2867, 0.7271, 0.1435, 0.1005]]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("asymptotes", [(None, None), (0.2, None), (None, 0.9), (0.2, 0.9)])
def test_derivative_is_that_of_the_log_likelihood(asymptotes: tuple[float | None, float | None]) -> None:
    lower, upper = (None if bound is None else tensor(bound) for bound in asymptotes)
    for y in (0.0, 0.3, 1.0):
        eta = torch.linspace(-6, 6, 25, dtype=torch.float64).requires_grad_()
        log_likelihood(eta, tensor(y), lower, upper).sum().backward()
        first, fisher = derivatives(eta.detach(), tensor(y), lower, upper)
        assert eta.grad is not None
        np.testing.assert_allclose(first.numpy(), eta.grad.numpy(), rtol=1e-9, atol=1e-12)
        assert (fisher > 0).all()


@pytest.mark.parametrize("asymptotes", [(None, None), (0.0, 1.0), (0.2, 1.0), (0.2, 0.9)])
def test_tails_stay_finite(asymptotes: tuple[float | None, float | None]) -> None:
    lower, upper = (None if bound is None else tensor(bound) for bound in asymptotes)
    eta = tensor([-1000.0, -800.0, -40.0, 40.0, 800.0, 1000.0])
    for y in (0.0, 1.0):
        assert torch.isfinite(log_likelihood(eta, tensor(y), lower, upper)).all()
        assert all(torch.isfinite(part).all() for part in derivatives(eta, tensor(y), lower, upper))


def test_log_likelihood_in_the_tails_is_relative() -> None:
    assert float(log_likelihood(tensor(-50.0), tensor(1.0))) == pytest.approx(-50.0)
    assert float(log_likelihood(tensor(50.0), tensor(1.0))) == pytest.approx(-np.exp(-50.0), rel=1e-12)
    fisher = derivatives(tensor(50.0), tensor(1.0))[1]
    assert float(fisher) == pytest.approx(np.exp(-50.0), rel=1e-12)


@pytest.mark.parametrize(
    ("variance", "wide", "tolerance"), [(0.2, False, 1e-4), (NARROW, False, 1e-3), (4.0, True, 3e-3)]
)
def test_expectations_against_fine_quadrature(variance: float, wide: bool, tolerance: float) -> None:
    mean = torch.linspace(-5, 5, 41, dtype=torch.float64)
    first, second = expected_probability(mean, torch.full_like(mean, variance), wide)
    nodes, weights = hermegauss(101)
    p = expit(mean.numpy()[:, None] + np.sqrt(variance) * nodes)
    weights = weights / weights.sum()
    np.testing.assert_allclose(first.numpy(), p @ weights, atol=tolerance)
    np.testing.assert_allclose(second.numpy(), (p * (1 - p)) @ weights, atol=tolerance)
