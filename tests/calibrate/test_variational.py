"""The variational estimator: recovery on the raw scale, several dimensions, awkward data, real data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from irteval.calibrate import calibrate
from irteval.responses import ResponseMatrix, read_responses
from tests.conftest import Simulation

Simulate = Callable[[int, int, int], Simulation]


def rmse(difference: NDArray[np.float64]) -> float:
    return float(np.sqrt((difference**2).mean()))


def test_recovers_raw_parameters(simulate_2pl: Simulate) -> None:
    errors = []
    for seed in range(6):
        truth = simulate_2pl(500, 1000, seed)
        found = calibrate(ResponseMatrix.from_dense(truth.scores))
        slope = found.parameters.slope[:, 0]
        assert found.parameters.covariance is not None
        sure = np.abs(slope) > 2 * np.sqrt(found.parameters.covariance[:, 0, 0])
        b = rmse((found.parameters.difficulty - truth.b)[sure])
        errors.append((b, rmse(slope - truth.a), rmse(found.ability_mean[:, 0] - truth.theta)))
    median = np.median(errors, axis=0)
    assert median[0] <= 0.19
    assert median[1] <= 0.155
    assert median[2] <= 0.08


@pytest.mark.parametrize(("subjects", "items"), [(500, 60), (500, 300), (500, 3000), (50, 1000), (2000, 100)])
def test_scale_holds(simulate_2pl: Simulate, subjects: int, items: int) -> None:
    slopes, difficulties, abilities = [], [], []
    for seed in range(3):
        truth = simulate_2pl(subjects, items, seed)
        found = calibrate(ResponseMatrix.from_dense(truth.scores), estimator="variational")
        slope = found.parameters.slope[:, 0]
        assert found.parameters.covariance is not None
        sure = np.abs(slope) > 2 * np.sqrt(found.parameters.covariance[:, 0, 0])
        slopes.append(slope.mean() / truth.a.mean())
        difficulties.append(np.polyfit(truth.b[sure], found.parameters.difficulty[sure], 1)[0])
        abilities.append(np.polyfit(found.ability_mean[:, 0], truth.theta, 1)[0])
    # With 50 subjects the difficulties are shrunk towards their mean: that is the prior's doing, no drift.
    for ratios in (slopes, abilities, *([difficulties] if subjects >= 500 else [])):
        allowed = max(0.02, 2 * float(np.std(ratios, ddof=1)) / np.sqrt(3))
        assert abs(np.mean(ratios) - 1) <= allowed + (0.03 if subjects < 500 else 0.0)


def test_posterior_population_is_standard(simulate_2pl: Simulate) -> None:
    found = calibrate(ResponseMatrix.from_dense(simulate_2pl(300, 80, 0).scores))
    mean, variance = found.ability_mean[:, 0], found.ability_covariance[:, 0, 0]
    assert mean.mean() == pytest.approx(0, abs=0.01)
    assert (mean**2 + variance).mean() == pytest.approx(1, abs=0.02)


def test_half_of_the_cells_missing(simulate_2pl: Simulate) -> None:
    truth = simulate_2pl(500, 400, 1)
    scores = truth.scores.copy()
    scores[np.random.default_rng(2).random(scores.shape) < 0.5] = -1
    whole = calibrate(ResponseMatrix.from_dense(truth.scores))
    half = calibrate(ResponseMatrix.from_dense(scores))
    for fits in (lambda f: f.parameters.slope[:, 0] - truth.a, lambda f: f.ability_mean[:, 0] - truth.theta):
        assert rmse(fits(half)) <= 1.5 * rmse(fits(whole))


def test_one_parameter_model(simulate_2pl: Simulate) -> None:
    rng = np.random.default_rng(0)
    truth = simulate_2pl(500, 100, 0)
    p = 1 / (1 + np.exp(-1.3 * (truth.theta[:, None] - truth.b)))
    scores = (rng.random(p.shape) < p).astype(np.int8)
    found = calibrate(ResponseMatrix.from_dense(scores), response_model="1pl", estimator="variational")
    slope = found.parameters.slope[:, 0]
    assert np.ptp(slope) < 1e-12
    assert slope[0] == pytest.approx(1.3, abs=0.06)
    assert rmse(found.parameters.difficulty - truth.b) < 0.12
    assert found.parameters.covariance is not None
    assert np.isnan(found.parameters.covariance[:, 0, 0]).all()
    assert np.isfinite(found.parameters.covariance[:, 1, 1]).all()


@pytest.mark.parametrize("dims", [2, 4])
def test_recovers_several_signed_dimensions(dims: int) -> None:
    rng = np.random.default_rng(3)
    theta = rng.standard_normal((600, dims))
    slope = 0.7 * rng.standard_normal((300, dims)) + np.eye(dims)[0]
    intercept = rng.standard_normal(300)
    p = 1 / (1 + np.exp(-(theta @ slope.T + intercept)))
    scores = (rng.random(p.shape) < p).astype(np.int8)
    found = calibrate(ResponseMatrix.from_dense(scores), dims=dims)
    # Loadings are known up to a rotation: compare after the one that fits best.
    left, _, right = np.linalg.svd(found.parameters.slope.T @ slope)
    rotated = found.parameters.slope @ left @ right
    congruence = (rotated * slope).sum(0) / np.linalg.norm(rotated, axis=0) / np.linalg.norm(slope, axis=0)
    assert congruence.min() > 0.95
    assert rotated.std() == pytest.approx(slope.std(), rel=0.05)
    clear = np.abs(slope) > 0.6
    assert (np.sign(rotated) == np.sign(slope))[clear].mean() > 0.99
    # Identification: orthogonal columns in falling order, each with a positive sum.
    products = found.parameters.slope.T @ found.parameters.slope
    assert np.abs(products - np.diag(products.diagonal())).max() < 1e-6 * products.max()
    assert (np.diff(products.diagonal()) < 0).all()
    assert (found.parameters.slope.sum(0) > 0).all()


def test_negative_slopes_keep_their_sign(simulate_2pl: Simulate) -> None:
    truth = simulate_2pl(300, 200, 4)
    scores = truth.scores.copy()
    scores[:, :30] = 1 - scores[:, :30]
    plain = calibrate(ResponseMatrix.from_dense(truth.scores)).parameters
    turned = calibrate(ResponseMatrix.from_dense(scores)).parameters
    assert (turned.slope[:30, 0] < 0).mean() > 0.95
    assert np.corrcoef(turned.slope[30:, 0], plain.slope[30:, 0])[0, 1] > 0.98
    assert np.corrcoef(turned.slope[:30, 0], plain.slope[:30, 0])[0, 1] < -0.9


def test_trials_are_that_many_answers(simulate_2pl: Simulate) -> None:
    rng = np.random.default_rng(5)
    truth = simulate_2pl(200, 120, 5)
    p = 1 / (1 + np.exp(-truth.a * (truth.theta[:, None] - truth.b)))
    counts = rng.binomial(10, p)
    many = calibrate(ResponseMatrix.from_dense(counts / 10, trials=10))
    one = calibrate(ResponseMatrix.from_dense(truth.scores))
    assert rmse(many.parameters.slope[:, 0] - truth.a) < 0.5 * rmse(one.parameters.slope[:, 0] - truth.a)
    assert rmse(many.ability_mean[:, 0] - truth.theta) < 0.5 * rmse(one.ability_mean[:, 0] - truth.theta)


def test_fractional_scores(simulate_2pl: Simulate) -> None:
    truth = simulate_2pl(200, 120, 6)
    p = 1 / (1 + np.exp(-truth.a * (truth.theta[:, None] - truth.b)))
    found = calibrate(ResponseMatrix.from_dense(p))
    assert np.corrcoef(found.parameters.slope[:, 0], truth.a)[0, 1] > 0.95
    assert np.corrcoef(found.ability_mean[:, 0], truth.theta)[0, 1] > 0.995


def test_perfect_subjects_leave_the_scale_alone(simulate_2pl: Simulate) -> None:
    truth = simulate_2pl(300, 200, 7)
    extremes = np.repeat([[1], [0]], [5, 6], axis=0) * np.ones(200, int)
    plain = calibrate(ResponseMatrix.from_dense(truth.scores))
    mixed = calibrate(ResponseMatrix.from_dense(np.vstack([truth.scores, extremes])))
    assert np.isfinite(mixed.ability_mean).all()
    assert mixed.ability_mean[300:305].min() > mixed.ability_mean[:300].max()
    ratio = np.median(mixed.parameters.slope) / np.median(plain.parameters.slope)
    assert ratio == pytest.approx(1, abs=0.06)


def test_order_of_rows_and_columns_changes_nothing(simulate_2pl: Simulate) -> None:
    truth = simulate_2pl(120, 200, 8)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(120), rng.permutation(200)
    for dims in (1, 2):
        plain = calibrate(ResponseMatrix.from_dense(truth.scores), dims=dims)
        shuffled = calibrate(ResponseMatrix.from_dense(truth.scores[rows][:, columns]), dims=dims)
        np.testing.assert_allclose(shuffled.parameters.slope, plain.parameters.slope[columns], atol=1e-8)
        np.testing.assert_allclose(
            shuffled.parameters.intercept, plain.parameters.intercept[columns], atol=1e-8
        )
        np.testing.assert_allclose(shuffled.ability_mean, plain.ability_mean[rows], atol=1e-8)


def test_same_numbers_at_any_number_of_threads(simulate_2pl: Simulate) -> None:
    responses = ResponseMatrix.from_dense(simulate_2pl(600, 2000, 9).scores)
    threads = torch.get_num_threads()
    fits = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            fits.append(calibrate(responses, dims=2))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.parameters.slope, fits[0].parameters.slope)
        np.testing.assert_array_equal(fit.ability_mean, fits[0].ability_mean)


@pytest.mark.parametrize("dims", [1, 2, 4])
@pytest.mark.parametrize(
    "folder", ["swebench_verified", "gso", "terminalbench", "bridge_sparse", "alpaca_eval2"]
)
def test_converges_on_real_data(shared: Path, folder: str, dims: int) -> None:
    trials = 5 if folder == "terminalbench" else None
    responses = read_responses(shared / "data" / folder / "responses.parquet", trials=trials)
    found = calibrate(responses, dims=dims, estimator="variational")
    assert found.converged
    assert np.abs(found.parameters.slope).max() < 20
    assert np.abs(found.parameters.intercept).max() < 30
    # Strong subjects are strong: the first dimension follows the mean score.
    assert np.corrcoef(found.ability_mean[:, 0], responses.subject_means())[0, 1] > 0.6
