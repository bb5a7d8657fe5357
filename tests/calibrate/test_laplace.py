"""The Gaussian posterior of logistic coefficients against quadrature, a general optimiser and extremes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from torch import Tensor

from irteval.calibrate.laplace import LaplacePosterior, laplace


class Problem(NamedTuple):
    """Arguments of `laplace` for S subjects."""

    features: Tensor
    offset: Tensor
    y: Tensor
    weight: Tensor
    prior_mean: Tensor
    prior_precision: Tensor

    def solve(self) -> LaplacePosterior:
        return laplace(*self)

    def gradient(self, beta: Tensor) -> Tensor:
        """Of the log posterior, ``[S, T, P]``."""
        p = torch.sigmoid(beta @ self.features.mT + self.offset[:, None])
        data = (self.weight[:, None] * (self.y[:, None] - p)) @ self.features
        return data - self.prior_precision * (beta - self.prior_mean)


def one_ability(right: int, wrong: int, a: float = 1.0, b: float = 0.0) -> Problem:
    """One subject with prior N(0, 1) on identical items."""
    n = right + wrong
    y = torch.cat([torch.ones(right), torch.zeros(wrong)]).double()[None]
    return Problem(
        torch.full((1, n, 1), a, dtype=torch.float64),
        torch.full((1, n), -a * b, dtype=torch.float64),
        y,
        torch.ones_like(y),
        torch.zeros(1, 1, dtype=torch.float64),
        torch.ones(1, 1, dtype=torch.float64),
    )


def drawn(seed: int, subjects: int = 3, n: int = 40, size: int = 3, spread: float = 1.0) -> Problem:
    """Random features, offsets, answers and padding under two priors."""
    rng = np.random.default_rng(seed)
    return Problem(
        torch.as_tensor(spread * rng.standard_normal((subjects, n, size))),
        torch.as_tensor(2 * spread * rng.standard_normal((subjects, n))),
        torch.as_tensor(rng.integers(0, 2, (subjects, n)).astype(np.float64)),
        torch.as_tensor((rng.random((subjects, n)) < 0.8).astype(np.float64)),
        torch.as_tensor(rng.standard_normal((2, size))),
        torch.as_tensor(np.array([[1.0] * size, [0.0625] * size])),
    )


@pytest.mark.parametrize(
    ("right", "a", "mode"), [(1, 1, 0.4010), (1, 2, 0.5213), (1, 4, 0.4914), (10, 1, 1.6336), (20, 1, 2.1281)]
)
def test_mode_of_an_all_right_subject_is_the_published_map(right: int, a: float, mode: float) -> None:
    assert one_ability(right, 0, a).solve().mean.item() == pytest.approx(mode, abs=1e-4)
    assert one_ability(0, right, a).solve().mean.item() == pytest.approx(-mode, abs=1e-4)


@pytest.mark.parametrize(
    ("right", "wrong", "a", "b"), [(30, 20, 1.0, 0.3), (50, 10, 0.7, -1.0), (20, 20, 2.0, 1.0)]
)
def test_moments_and_evidence_match_quadrature(right: int, wrong: int, a: float, b: float) -> None:
    posterior = one_ability(right, wrong, a, b).solve()

    def log_joint(theta: float) -> float:
        eta = a * (theta - b)
        prior = -(theta**2) / 2 - np.log(2 * np.pi) / 2
        return float(right * log_expit(eta) + wrong * log_expit(-eta) + prior)

    top = log_joint(posterior.mean.item())
    total, mean, square = (
        quad(lambda t, k=k: t**k * np.exp(log_joint(t) - top), -8, 8, epsabs=1e-12)[0] for k in range(3)
    )
    sd = np.sqrt(square / total - (mean / total) ** 2)
    assert posterior.log_evidence.item() == pytest.approx(top + np.log(total), abs=0.02)
    assert posterior.mean.item() == pytest.approx(mean / total, abs=0.1 * sd)
    assert posterior.covariance.item() ** 0.5 == pytest.approx(sd, rel=0.05)


def test_agrees_with_a_general_optimiser() -> None:
    problem = drawn(1)
    posterior = problem.solve()
    for s in range(3):
        x, o, y, weight = (v[s].numpy() for v in problem[:4])
        for t in range(2):
            mean, precision = problem.prior_mean[t].numpy(), problem.prior_precision[t].numpy()

            def loss(beta: np.ndarray, x=x, o=o, y=y, weight=weight, mean=mean, precision=precision) -> float:
                eta = x @ beta + o
                fit = (weight * (y * log_expit(eta) + (1 - y) * log_expit(-eta))).sum()
                return float(-fit + (precision * (beta - mean) ** 2).sum() / 2)

            found = minimize(loss, np.zeros(3), tol=1e-12)
            np.testing.assert_allclose(posterior.mean[s, t], found.x, atol=1e-4)
            p = expit(x @ found.x + o)
            hessian = (x.T * (weight * p * (1 - p))) @ x + np.diag(precision)
            np.testing.assert_allclose(
                posterior.covariance[s, t], np.linalg.inv(hessian), rtol=1e-3, atol=1e-6
            )
            evidence = -found.fun + np.log(precision).sum() / 2 - np.linalg.slogdet(hessian)[1] / 2
            assert posterior.log_evidence[s, t].item() == pytest.approx(evidence, abs=1e-6)


def test_without_answers_the_prior_comes_back() -> None:
    problem = drawn(2)
    for nothing in (problem._replace(weight=torch.zeros_like(problem.weight)), drawn(2, n=0)):
        posterior = nothing.solve()
        torch.testing.assert_close(posterior.mean, nothing.prior_mean.expand(3, -1, -1))
        torch.testing.assert_close(posterior.covariance[1, 1], torch.diag(1 / nothing.prior_precision[1]))
        torch.testing.assert_close(posterior.log_evidence, torch.zeros(3, 2, dtype=torch.float64))


def test_padding_says_nothing() -> None:
    problem = drawn(3)
    padded = problem._replace(
        features=torch.where(problem.weight[..., None] > 0, problem.features, 5.0),
        y=torch.where(problem.weight > 0, problem.y, 1.0),
    )
    torch.testing.assert_close(padded.solve().mean, problem.solve().mean)


def test_a_share_counts_as_that_many_answers() -> None:
    share = one_ability(1, 0)._replace(y=torch.full((1, 1), 0.5, dtype=torch.float64))
    assert share.solve().mean.item() == pytest.approx(0, abs=1e-9)
    many = one_ability(40, 0)._replace(y=torch.full((1, 40), 0.75, dtype=torch.float64))
    assert many.solve().mean.item() == pytest.approx(one_ability(30, 10).solve().mean.item(), abs=1e-6)


def test_a_huge_precision_fixes_a_coefficient_and_costs_no_evidence() -> None:
    problem = drawn(4)
    fixed = problem._replace(
        prior_mean=torch.tensor([[0.0, 0.3, 0.0]]).double(),
        prior_precision=torch.tensor([[1.0, 1e8, 1.0]]).double(),
    )
    without = Problem(
        problem.features[..., [0, 2]],
        problem.offset + 0.3 * problem.features[..., 1],
        problem.y,
        problem.weight,
        torch.zeros(1, 2).double(),
        torch.ones(1, 2).double(),
    )
    torch.testing.assert_close(
        fixed.solve().mean[..., 1], torch.full((3, 1), 0.3).double(), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(fixed.solve().log_evidence, without.solve().log_evidence, atol=1e-4, rtol=0)


@pytest.mark.parametrize("a", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("n", [1, 100, 10_000])
def test_all_right_and_all_wrong_are_finite(a: float, n: int) -> None:
    for problem in (one_ability(n, 0, a), one_ability(0, n, a), one_ability(n, 0, -a)):
        posterior = problem.solve()
        assert all(bool(value.isfinite().all()) for value in vars(posterior).values())
        assert posterior.covariance.item() > 0
        assert problem.gradient(posterior.mean).abs().max() < 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_steep_items_do_not_throw_newton_to_and_fro(seed: int) -> None:
    problem = drawn(seed, n=50, size=4, spread=5.0)
    assert problem.gradient(problem.solve().mean).abs().max() < 1e-4


def test_scale_is_a_fixed_point() -> None:
    problem = drawn(5)

    def scale(beta: Tensor) -> Tensor:
        return (1 + 0.1 * (beta**2).sum(-1, keepdim=True)).rsqrt().expand(-1, -1, 40)

    posterior = laplace(*problem, scale=scale)
    s = scale(posterior.mean)
    p = torch.sigmoid(s * (posterior.mean @ problem.features.mT + problem.offset[:, None]))
    data = (s * problem.weight[:, None] * (problem.y[:, None] - p)) @ problem.features
    gradient = data - problem.prior_precision * (posterior.mean - problem.prior_mean)
    assert gradient.abs().max() < 1e-4
