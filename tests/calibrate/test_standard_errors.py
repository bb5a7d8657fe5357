"""Standard errors: against finite differences of the likelihood, published intervals, and by coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from irteval.calibrate import calibrate
from irteval.calibrate.blocks import Blocks
from irteval.calibrate.grid import PatternBlocks, fit_grid
from irteval.calibrate.priors import Difficulty, Flat
from irteval.calibrate.standard_errors import grid_covariance, normal_covariance
from irteval.calibrate.variational import fit_variational
from irteval.responses import ResponseMatrix
from tests.calibrate.test_grid import law_school
from tests.conftest import Simulation

Simulate = Callable[[int, int, int], Simulation]
CPU = torch.device("cpu")


def log_likelihood(scores: NDArray[np.float64], a: NDArray[np.float64], d: NDArray[np.float64]) -> float:
    nodes = np.linspace(-7, 7, 141)
    log_prior = -(nodes**2) / 2 - logsumexp(-(nodes**2) / 2)
    eta = nodes[:, None] * a + d
    joint = scores @ log_expit(eta).T + (1 - scores) @ log_expit(-eta).T + log_prior
    return float(logsumexp(joint, 1).sum())


def hessian(function: Callable[[NDArray[np.float64]], float], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Second derivatives by central differences."""
    steps = 1e-3 * np.eye(len(at))
    return np.array(
        [
            [
                sum(s * t * function(at + s * u + t * v) for s in (-1, 1) for t in (-1, 1)) / 4e-6
                for u in steps
            ]
            for v in steps
        ]
    )


def test_grid_covariance_is_the_inverse_of_the_observed_information() -> None:
    scores = law_school("lsat7")
    found = calibrate(ResponseMatrix.from_dense(scores), priors=False).parameters
    at = np.concatenate([found.slope[:, 0], found.intercept])
    inverse = np.linalg.inv(-hessian(lambda x: log_likelihood(scores, x[:5], x[5:]), at))
    assert found.covariance is not None
    for j in range(5):
        block = inverse[np.ix_([j, 5 + j], [j, 5 + j])]
        np.testing.assert_allclose(found.covariance[j], block, rtol=1e-3)


def test_common_slope_covariance_is_the_inverse_of_the_observed_information() -> None:
    scores = law_school("lsat6")
    found = calibrate(ResponseMatrix.from_dense(scores), response_model="1pl", priors=False).parameters
    at = np.concatenate([found.slope[0], found.intercept])
    inverse = np.linalg.inv(-hessian(lambda x: log_likelihood(scores, np.full(5, x[0]), x[1:]), at))
    assert found.covariance is not None
    np.testing.assert_allclose(found.covariance[:, 1, 1], inverse.diagonal()[1:], rtol=1e-3)
    assert np.isnan(found.covariance[:, 0]).all()


def test_published_intervals_of_the_slopes() -> None:
    # LSAT-7, 95 %: R package mirt, observed information by Richardson extrapolation.
    lower, upper = [0.641, 0.750, 1.078, 0.502, 0.440], [1.335, 1.412, 2.334, 1.028, 1.032]
    found = calibrate(ResponseMatrix.from_dense(law_school("lsat7")), priors=False).parameters
    assert found.covariance is not None
    half_width = 1.96 * np.sqrt(found.covariance[:, 0, 0])
    np.testing.assert_allclose(found.slope[:, 0] - half_width, lower, atol=0.01)
    np.testing.assert_allclose(found.slope[:, 0] + half_width, upper, atol=0.01)


def test_normal_posteriors_come_close_to_the_grid_and_closer_than_known_abilities(
    simulate_2pl: Simulate,
) -> None:
    blocks = Blocks(ResponseMatrix.from_dense(simulate_2pl(2000, 50, 0).scores), CPU)
    prior = Difficulty.default(torch.zeros(()))
    normal = fit_variational(blocks, 1, prior, tolerance=0.01, max_iterations=200)
    exact = fit_grid(blocks, prior, tolerance=1e-5, max_iterations=1000)
    truth = grid_covariance(PatternBlocks(blocks), exact, False)
    close = normal_covariance(normal.cells, normal.posterior, normal.scale_subjects, slice(0, 2))
    known = normal.posterior.item_covariance

    def error(covariance: torch.Tensor) -> NDArray[np.float64]:
        ratio = (covariance.diagonal(dim1=1, dim2=2) / truth.diagonal(dim1=1, dim2=2)).sqrt()
        return np.abs(ratio.median(0)[0].numpy() - 1)

    assert (error(close) < 0.04).all()
    assert (error(known) > 0.07).all()


def coverage(simulate: Simulate, shape: tuple[int, int], seeds: int, **options: str) -> NDArray[np.float64]:
    """Share of 95 % intervals of a, d and, where a is clearly not zero, b that hold."""
    hits = []
    for seed in range(seeds):
        truth = simulate(*shape, seed)
        found = calibrate(ResponseMatrix.from_dense(truth.scores), **options).parameters  # type: ignore[arg-type]
        assert found.covariance is not None
        a, d = found.slope[:, 0], found.intercept
        spread = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
        by_b = np.stack([d / a**2, -1 / a], 1)
        spread_b = np.sqrt(np.einsum("jp,jpq,jq->j", by_b, found.covariance, by_b))
        miss = np.abs([(a - truth.a) / spread[:, 0], (d + truth.a * truth.b) / spread[:, 1]])
        miss_b = np.abs((-d / a - truth.b) / spread_b)[a > 2 * spread[:, 0]]
        hits.append([*(miss < 1.96).mean(1), (miss_b < 1.96).mean()])
    return np.mean(hits, axis=0)


@pytest.mark.parametrize(
    ("shape", "seeds", "options"),
    [
        ((500, 300), 4, {}),
        ((1000, 60), 12, {}),
        ((1000, 30), 20, {"estimator": "grid"}),
        ((300, 100), 8, {"estimator": "grid"}),
    ],
)
def test_intervals_hold(
    simulate_2pl: Simulate, shape: tuple[int, int], seeds: int, options: dict[str, str]
) -> None:
    found = coverage(simulate_2pl, shape, seeds, **options)
    assert (found > 0.925).all(), found
    assert (found < 0.98).all(), found


def test_items_without_answers_keep_a_wide_finite_covariance(simulate_2pl: Simulate) -> None:
    scores = simulate_2pl(100, 20, 1).scores
    scores[:, 3] = -1
    scores[:, 4] = 1
    found = calibrate(ResponseMatrix.from_dense(scores)).parameters.covariance
    assert found is not None
    assert np.isfinite(found).all()
    assert (np.linalg.eigvalsh(found) > 0).all()
    assert found[3, 1, 1] > 4 * np.median(found[:, 1, 1])


def test_a_direction_that_nothing_determines_is_wide_not_certain() -> None:
    # Slope and intercept of a single item can't be told apart.
    blocks = Blocks(ResponseMatrix.from_dense(law_school("lsat6")[:, :1]), CPU)
    fit = fit_grid(blocks, Flat(), tolerance=1e-5, max_iterations=1000)
    covariance = grid_covariance(PatternBlocks(blocks), fit, False)
    assert torch.isfinite(covariance).all()
    assert covariance[0, 0, 0] > 100
