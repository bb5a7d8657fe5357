"""Item priors: derivatives are those of the densities, and hyper-parameters are learnt."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from irteval.calibrate.priors import FAR, Difficulty, Flat, Intercept, ItemPrior, Normal

ONE = torch.ones((), dtype=torch.float64)
PRIORS = [
    (Flat(), 1),
    (Intercept(0.3 * ONE, 1.7 * ONE), 1),
    (Difficulty(1.1 * ONE, 0.2 * ONE, -0.4 * ONE, 1.5 * ONE), 1),
    (Normal.default(ONE, 3), 3),
]


def items(dims: int, count: int = 200, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(count, dims + 1, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(("prior", "dims"), PRIORS)
def test_derivatives(prior: ItemPrior, dims: int) -> None:
    x = items(dims).requires_grad_()
    density = prior.log_density(x[:, :-1], x[:, -1])
    gradient = prior.gradient(x[:, :-1], x[:, -1])
    exact = prior.hessian(x[:, :-1], x[:, -1])
    if not density.requires_grad:  # a flat density
        assert not gradient.any()
        assert not exact.any()
        return
    (numeric,) = torch.autograd.grad(density.sum(), x)
    torch.testing.assert_close(gradient, numeric)
    for k in range(dims + 1):
        (row,) = torch.autograd.grad(gradient[:, k].sum(), x, retain_graph=True, allow_unused=True)
        row = torch.zeros_like(x) if row is None else row
        torch.testing.assert_close(exact[:, k], -row)


@pytest.mark.parametrize(("prior", "dims"), PRIORS)
def test_curvature_is_never_negative(prior: ItemPrior, dims: int) -> None:
    x = items(dims)
    values = torch.linalg.eigvalsh(prior.curvature(x[:, :-1], x[:, -1]))
    assert (values > -1e-12).all()


def test_difficulty_learns_its_population() -> None:
    generator = torch.Generator().manual_seed(1)
    a = 1.2 + 0.4 * torch.randn(5000, 1, dtype=torch.float64, generator=generator)
    b = -0.7 + 1.5 * torch.randn(5000, dtype=torch.float64, generator=generator)
    known = torch.zeros(5000, 2, 2, dtype=torch.float64)
    prior = Difficulty.default(ONE)
    for _ in range(50):
        prior = prior.learn(a, -a[:, 0] * b, known)
    assert float(prior.mu) == pytest.approx(1.2, abs=0.03)
    assert float(prior.tau) == pytest.approx(0.16, abs=0.01)
    assert float(prior.bbar) == pytest.approx(-0.7, abs=0.1)
    assert float(prior.t1) == pytest.approx(1.2 * 1.5**2, rel=0.2)


def test_difficulty_stays_in_bounds() -> None:
    slope = torch.full((100, 1), 0.01, dtype=torch.float64)
    prior = Difficulty.default(ONE)
    for _ in range(50):
        intercept = torch.full((100,), 8.0, dtype=torch.float64)
        prior = prior.learn(slope, intercept, torch.zeros(100, 2, 2, dtype=torch.float64))
    assert abs(float(prior.bbar)) <= FAR
    assert float(prior.t1) <= FAR**2


def test_normal_learns_moments_and_uncertainty() -> None:
    x = items(2, 5000, 2) / 2 + torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    uncertain = 0.5 * torch.eye(3, dtype=torch.float64).expand(5000, 3, 3)
    prior = Normal.default(ONE, 2).learn(x[:, :-1], x[:, -1], uncertain)
    torch.testing.assert_close(
        prior.mean, torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64), atol=0.1, rtol=0
    )
    torch.testing.assert_close(prior.variance, 1.5 * torch.eye(3, dtype=torch.float64), atol=0.1, rtol=0)
