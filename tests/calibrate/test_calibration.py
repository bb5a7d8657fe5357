"""The choice of estimator, and data at the edge of what can be fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import irteval.calibrate.calibration as calibration
from irteval.calibrate import Calibration, calibrate
from irteval.errors import ConvergenceError, InputError
from irteval.responses import ResponseMatrix, read_responses

EVERY = [("variational", 1), ("variational", 2), ("variational", 4), ("grid", 1)]


def fitted(scores: Any, **options: Any) -> Calibration:
    return calibrate(ResponseMatrix.from_dense(scores), **options)


def coin_flips(subjects: int, items: int, seed: int) -> NDArray[np.int8]:
    return np.random.default_rng(seed).integers(0, 2, (subjects, items)).astype(np.int8)


def assert_finite(found: Calibration) -> None:
    assert found.converged
    for values in (found.parameters.slope, found.parameters.intercept, found.ability_mean):
        assert np.isfinite(values).all()
    assert found.parameters.covariance is not None
    assert np.isfinite(found.parameters.covariance).all()
    variances = found.parameters.covariance.diagonal(axis1=1, axis2=2)
    assert (variances > 0).all()
    assert (np.linalg.eigvalsh(found.ability_covariance) > 0).all()


@pytest.mark.parametrize(("estimator", "dims"), EVERY)
@pytest.mark.parametrize(
    "scores",
    [
        pytest.param(np.ones((20, 30), int), id="every response is 1"),
        pytest.param(np.zeros((20, 30), int), id="every response is 0"),
        pytest.param(coin_flips(2, 30, 0), id="two subjects"),
        pytest.param(coin_flips(30, 1, 0), id="one item"),
        pytest.param(coin_flips(30, 2, 0), id="two items"),
    ],
)
def test_little_data_gives_finite_numbers(scores: NDArray[np.int8], estimator: str, dims: int) -> None:
    assert_finite(fitted(scores, estimator=estimator, dims=dims))


@pytest.mark.parametrize(("estimator", "dims"), EVERY)
def test_constant_items_among_missing_cells(estimator: str, dims: int) -> None:
    rng = np.random.default_rng(1)
    scores = (rng.random((80, 40)) < rng.uniform(0.2, 0.8, (80, 1))).astype(float)
    scores[:, 0], scores[:, 1] = 1, 0
    scores[rng.random(scores.shape) < 0.3] = np.nan
    scores[:, 2] = np.nan
    found = fitted(scores, estimator=estimator, dims=dims)
    assert_finite(found)
    passed, failed = found.parameters.intercept[:2]
    assert passed > found.parameters.intercept[3:].max()
    assert failed < found.parameters.intercept[3:].min()
    assert any("1 items have no answer" in line for line in found.warnings)
    assert any("2 items have the same answer" in line for line in found.warnings)


@pytest.mark.parametrize(("estimator", "dims"), EVERY)
def test_subject_without_answers_is_the_prior(estimator: str, dims: int) -> None:
    scores = coin_flips(60, 40, 2).astype(float)
    scores[7] = np.nan
    found = fitted(scores, estimator=estimator, dims=dims)
    np.testing.assert_allclose(found.ability_mean[7], 0, atol=1e-9)
    np.testing.assert_allclose(found.ability_covariance[7], np.eye(dims), atol=1e-9)


@pytest.mark.parametrize("estimator", ["variational", "grid"])
@pytest.mark.parametrize("seed", range(10))
def test_all_ones_ranks_first_and_all_zeros_last(seed: int, estimator: str) -> None:
    scores = coin_flips(50, 20, seed)
    scores[0], scores[-1] = 1, 0
    found = fitted(scores, estimator=estimator)
    ability = found.ability_mean[:, 0]
    # Coin flips carry no ability: slopes of either sign are left, but the extremes stay the extremes.
    assert ability.argmax() == 0
    assert ability.argmin() == 49


@pytest.mark.parametrize("estimator", ["variational", "grid"])
def test_coin_flip_item(simulate_2pl: Any, estimator: str) -> None:
    truth = simulate_2pl(400, 40, 3)
    scores = truth.scores.copy()
    scores[:, 0] = (np.random.default_rng(4).random(400) < 0.3).astype(np.int8)
    found = fitted(scores, estimator=estimator)
    slope, intercept = found.parameters.slope[0, 0], found.parameters.intercept[0]
    p = 1 / (1 + np.exp(-(slope * np.array([-2, 0, 2]) + intercept)))
    assert ((p > 0.15) & (p < 0.45)).all()
    assert p[1] == pytest.approx(0.3, abs=0.05)


def test_same_seed_same_numbers() -> None:
    scores = coin_flips(60, 80, 5)
    for dims in (1, 3):
        first, second = fitted(scores, dims=dims, seed=1), fitted(scores, dims=dims, seed=1)
        np.testing.assert_array_equal(first.parameters.slope, second.parameters.slope)


def test_estimator_is_chosen_by_size(simulate_2pl: Any) -> None:
    short, long = simulate_2pl(100, 20, 0).scores, simulate_2pl(100, 80, 0).scores
    assert fitted(short).estimator == "grid"
    assert fitted(short).log_likelihood is not None
    assert fitted(short, dims=2).estimator == "variational"
    assert fitted(long).estimator == "variational"
    assert fitted(long).log_likelihood is None
    assert fitted(long, priors=False).estimator == "grid"


def test_both_estimators_agree_on_long_tests(simulate_2pl: Any) -> None:
    truth = simulate_2pl(400, 100, 1)
    grid, normal = (fitted(truth.scores, estimator=name) for name in ("grid", "variational"))
    np.testing.assert_allclose(grid.ability_mean, normal.ability_mean, atol=0.06)
    assert np.sqrt(np.mean((grid.parameters.slope - normal.parameters.slope) ** 2)) < 0.05
    assert grid.parameters.covariance is not None
    assert normal.parameters.covariance is not None
    errors = [np.sqrt(f.parameters.covariance.diagonal(axis1=1, axis2=2)) for f in (grid, normal)]  # type: ignore[union-attr]
    assert np.median(errors[0] / errors[1], axis=0) == pytest.approx([1, 1], abs=0.1)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"response_model": "9pl"}, "response_model"),
        ({"estimator": "magic"}, "estimator"),
        ({"dims": 0}, "dims"),
        ({"dims": 2, "response_model": "1pl"}, "dims"),
        ({"dims": 2, "estimator": "grid"}, "estimator"),
        ({"priors": False, "estimator": "variational"}, "priors"),
        ({"device": "abacus"}, "device"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as raised:
        fitted(coin_flips(10, 10, 0), **options)
    assert raised.value.field == field


def test_one_subject_has_no_scale() -> None:
    with pytest.raises(InputError, match="at least 2"):
        fitted(np.array([[1, 0, 1], [-1, -1, -1]]))


def test_no_convergence_is_an_error(monkeypatch: pytest.MonkeyPatch, simulate_2pl: Any) -> None:
    monkeypatch.setattr(calibration, "ITERATIONS", 2)
    with pytest.raises(ConvergenceError, match="standard errors after 2 iterations"):
        fitted(simulate_2pl(100, 80, 0).scores)


def test_progress_is_told(simulate_2pl: Any) -> None:
    lines: list[str] = []
    found = fitted(simulate_2pl(100, 80, 0).scores, progress=lines.append)
    assert len(lines) == found.iterations
    assert lines[-1].startswith(f"iteration {found.iterations}: ")


def test_opposite_camps_get_a_fit_in_one_dimension_and_are_warned_of() -> None:
    """60 subjects who mostly answer by one constant label: without a limit the slopes run away."""
    rng = np.random.default_rng(0)
    label = rng.random(400) < 0.5
    camp = np.repeat([0.03, 0.97], 30)[:, None] + rng.normal(0, 0.015, (60, 1))
    says_yes = rng.random((60, 400)) < camp
    found = fitted((says_yes == label).astype(float))
    assert found.converged
    assert np.abs(found.parameters.slope).max() < 10
    positive = found.parameters.slope[:, 0] > 0
    assert max(np.mean(positive == label), np.mean(positive != label)) > 0.95


@pytest.mark.parametrize("task", ["rte", "mrpc"])
def test_real_data_of_opposite_camps_converges(shared: Path, task: str) -> None:
    table = shared / "data" / "glue_anchor" / "responses.parquet"
    responses = read_responses(table, benchmark=task)
    weak = np.argsort(responses.subject_means())[:43]
    found = calibrate(responses.take(subjects=np.sort(weak)))
    assert found.converged
    assert np.sqrt((found.parameters.slope**2).mean()) < 3
