"""Factorized active querying: its parts against direct formulas, its coverage and its gain."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit

from irteval.errors import InputError
from irteval.estimate.faq import Faq, assimilated, martingale_mean, variance_gain

ITEMS, TARGETS = 300, 150


@pytest.fixture(scope="module")
def low_rank() -> NDArray[np.float64]:
    """Answers of 120 source subjects and 150 targets with two factors."""
    rng = np.random.default_rng(0)
    factors, loadings = rng.standard_normal((270, 2)), rng.normal([1.0, 0.0], 1.0, (ITEMS, 2))
    p = expit(1.5 * factors @ loadings.T + 1.5 * rng.standard_normal(ITEMS))
    return (rng.random(p.shape) < p).astype(float)


def test_a_step_is_the_inverse_of_the_precision_with_one_more_answer() -> None:
    generator = torch.Generator().manual_seed(0)
    slope = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    root = torch.randn(3, 2, 2, generator=generator, dtype=torch.float64)
    covariance = root @ root.mT + torch.eye(2)
    curvature, residual = torch.tensor([0.25, 0.1, 0.2]).double(), torch.tensor([0.5, -0.9, 0.7]).double()
    mean, after = assimilated(torch.zeros(3, 2).double(), covariance, slope, residual, curvature)
    precision = covariance.inverse() + curvature[:, None, None] * slope[:, :, None] * slope[:, None, :]
    torch.testing.assert_close(after, precision.inverse())
    torch.testing.assert_close(mean, (after @ slope[:, :, None])[:, :, 0] * residual[:, None])


def test_the_gain_is_what_the_step_takes_off() -> None:
    generator = torch.Generator().manual_seed(0)
    slope = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    curvature = torch.rand(1, 6, generator=generator, dtype=torch.float64) / 4
    weights, covariance = torch.full((1, 6), 1 / 6).double(), torch.eye(2).double()[None] * 2
    gradient = (weights * curvature) @ slope
    gain = variance_gain(slope, weights, curvature, covariance)
    for item in range(6):
        _, after = assimilated(
            torch.zeros(1, 2).double(), covariance, slope[[item]], torch.zeros(1).double(), curvature[:, item]
        )
        taken = gradient @ (covariance - after)[0] @ gradient.mT
        assert gain[0, item] == pytest.approx(float(taken))


def test_the_variance_is_that_of_the_corrections() -> None:
    corrections = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    score, error = martingale_mean(torch.full((50, 4), 0.5).double(), corrections)
    torch.testing.assert_close(score, 0.5 + corrections.mean(0))
    torch.testing.assert_close(error, corrections.std(0) / 50**0.5)
    assert martingale_mean(torch.ones(1, 4), torch.ones(1, 4))[1].isinf().all()


def test_covers_and_is_worth_more_than_uniform_draws(low_rank: NDArray[np.float64]) -> None:
    source, targets = low_rank[:120], low_rank[120:]
    truth = targets.mean(1)
    found = Faq().run(source, targets, [30, 90], 0, 0.95)
    for size, scores in zip([30, 90], found, strict=True):
        error = scores.score - truth
        uniform = (truth * (1 - truth) / size).mean()  # draws with replacement, as these
        assert uniform > 1.3 * np.square(error).mean()
        assert abs(error.mean()) < 0.015
        assert ((scores.low <= truth) & (truth <= scores.high)).mean() > 0.89


def test_is_unbiased_beyond_the_source(low_rank: NDArray[np.float64]) -> None:
    targets = np.tile((np.arange(ITEMS) % 10 > 0).astype(float), (TARGETS, 1))
    (found,) = Faq(dims=2).run(1 - low_rank[:120], targets, [60], 0, 0.95)
    assert found.score.mean() == pytest.approx(0.9, abs=0.02)
    assert ((found.low <= 0.9) & (found.high >= 0.9)).mean() > 0.85


def test_weights_and_cells_that_are_not_recorded(low_rank: NDArray[np.float64]) -> None:
    targets = low_rank[120:].copy()
    targets[:, ::3] = np.nan
    weights = np.where(np.arange(ITEMS) < 60, 4.0, 1.0)
    share = np.where(np.isnan(targets), 0, weights)
    truth = (share * np.nan_to_num(targets)).sum(1) / share.sum(1)
    (found,) = Faq(dims=2, gamma=0.5).run(low_rank[:120], targets, [60], 1, 0.95, weights)
    assert abs((found.score - truth).mean()) < 0.015
    assert ((found.low <= truth) & (truth <= found.high)).mean() > 0.89


def test_one_draw_and_no_answers(low_rank: NDArray[np.float64]) -> None:
    (found,) = Faq(dims=2).run(low_rank[:120], low_rank[120:], [1], 0, 0.95)
    assert (found.low == 0).all()
    assert (found.high == 1).all()
    with pytest.raises(InputError, match="without answers"):
        Faq(dims=2).run(low_rank[:120], np.full((1, ITEMS), np.nan), [1], 0, 0.95)
