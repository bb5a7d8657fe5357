"""The grid estimator: published fits, recovery, awkward data, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from irteval.calibrate import Calibration, calibrate
from irteval.calibrate.ability import ability
from irteval.calibrate.blocks import Blocks
from irteval.calibrate.grid import PatternBlocks
from irteval.errors import ConvergenceError, InputError
from irteval.responses import ResponseMatrix, read_responses
from tests.conftest import Simulation

Simulate = Callable[[int, int, int], Simulation]

# How many of 1,000 people gave each pattern of answers, 00000 to 11111 (Bock and Lieberman 1970).
FREQUENCIES = {
    "lsat6": "3 6 2 11 1 1 3 4 1 8 0 16 0 3 2 15 10 29 14 81 3 28 15 80 16 56 21 173 11 61 28 298",
    "lsat7": "12 19 1 7 3 19 3 17 10 5 3 7 7 23 8 28 7 39 11 34 14 51 15 90 6 25 7 35 18 136 32 308",
}
TWO_PARAMETERS = {
    "lsat6": (
        [0.8257, 0.7227, 0.8909, 0.6884, 0.6569],
        [2.7732, 0.9902, 0.2491, 1.2848, 2.0533],
        [-3.3588, -1.3701, -0.2797, -1.8664, -3.1259],
        -2466.653,
    ),
    "lsat7": (
        [0.9875, 1.0808, 1.7075, 0.7650, 0.7357],
        [1.8559, 0.8080, 1.8052, 0.4860, 1.8545],
        [-1.8793, -0.7475, -1.0572, -0.6353, -2.5208],
        -2658.805,
    ),
}
ONE_PARAMETER = {
    "lsat6": (0.7551, [2.7300, 0.9986, 0.2399, 1.3065, 2.0994], -2466.938),
    "lsat7": (1.0113, [1.8683, 0.7910, 1.4610, 0.5215, 1.9930], -2664.901),
}
# EAP and SD of people with these answers, and of one without any.
PEOPLE = {
    "lsat6": {
        "11111": (0.6456, 0.8590),
        "00000": (-1.8968, 0.8013),
        "1111?": (0.6033, 0.8679),
        "1????": (0.0595, 0.9792),
        "?????": (0.0, 1.0),
    },
    "lsat7": {
        "11111": (0.7272, 0.8009),
        "00000": (-1.8698, 0.6927),
        "1111?": (0.6837, 0.8075),
        "1????": (0.1492, 0.9489),
        "11110": (0.2821, 0.7553),
        "10000": (-1.4137, 0.6695),
        "?????": (0.0, 1.0),
    },
}


def people(patterns: list[str]) -> NDArray[np.float64]:
    return np.array([[np.nan if answer == "?" else float(answer) for answer in row] for row in patterns])


def law_school(name: str) -> NDArray[np.float64]:
    """The 1,000 people's answers to the five items of a Law School Admission Test section, ``[1000, 5]``."""
    patterns = people([f"{number:05b}" for number in range(32)])
    return np.repeat(patterns, [int(count) for count in FREQUENCIES[name].split()], axis=0)


def maximum_likelihood(scores: NDArray[np.float64], response_model: str = "2pl") -> Calibration:
    return calibrate(ResponseMatrix.from_dense(scores), response_model=response_model, priors=False)


@pytest.mark.parametrize("name", ["lsat6", "lsat7"])
def test_published_two_parameter_fit(name: str) -> None:
    slope, intercept, difficulty, log_likelihood = TWO_PARAMETERS[name]
    found = maximum_likelihood(law_school(name))
    assert found.estimator == "grid"
    np.testing.assert_allclose(found.parameters.slope[:, 0], slope, atol=1e-3)
    np.testing.assert_allclose(found.parameters.intercept, intercept, atol=1e-3)
    np.testing.assert_allclose(found.parameters.difficulty, difficulty, atol=2e-3)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-3)


@pytest.mark.parametrize("name", ["lsat6", "lsat7"])
def test_published_common_slope_fit(name: str) -> None:
    slope, intercept, log_likelihood = ONE_PARAMETER[name]
    found = maximum_likelihood(law_school(name), "1pl")
    np.testing.assert_allclose(found.parameters.slope[:, 0], slope, atol=1e-3)
    np.testing.assert_allclose(found.parameters.intercept, intercept, atol=1e-3)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-3)


@pytest.mark.parametrize("name", ["lsat6", "lsat7"])
def test_published_abilities(name: str) -> None:
    found = ability(maximum_likelihood(law_school(name)).parameters, people(list(PEOPLE[name])))
    expected = np.array(list(PEOPLE[name].values()))
    np.testing.assert_allclose(found.mean[:, 0], expected[:, 0], atol=5e-4)
    np.testing.assert_allclose(found.sd[:, 0], expected[:, 1], atol=5e-4)


def test_abilities_of_the_calibrated_are_those_of_anybody() -> None:
    scores = law_school("lsat7")
    found = maximum_likelihood(scores)
    again = ability(found.parameters, scores)
    np.testing.assert_allclose(found.ability_mean, again.mean, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(found.ability_covariance[:, :, 0]), again.sd, atol=1e-8)
    assert found.log_likelihood == pytest.approx(again.log_marginal.sum(), abs=1e-6)


def test_a_reversed_item_has_its_sign_reversed() -> None:
    scores = law_school("lsat7")
    scores[:, 2] = 1 - scores[:, 2]
    found = maximum_likelihood(scores)
    sign = np.array([1, 1, -1, 1, 1])
    slope, intercept, _, log_likelihood = TWO_PARAMETERS["lsat7"]
    np.testing.assert_allclose(found.parameters.slope[:, 0], sign * slope, atol=1e-3)
    np.testing.assert_allclose(found.parameters.intercept, sign * intercept, atol=1e-3)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "slope", "intercept", "log_likelihood"),
    [
        ("lsat6", *TWO_PARAMETERS["lsat6"][:2], -2466.653),
        ("lsat7", *TWO_PARAMETERS["lsat7"][:2], -2658.805),
        ("slf", [1.197, 0.714, 1.530, 2.549, 0.923], [-2.353, 0.796, 0.992, -0.669, -1.097], -4129.184),
        ("deayala", [1.245, 2.023, 1.573, 1.567, 0.996], [2.585, 0.996, 0.394, -0.416, -0.551], -55198.496),
    ],
)
def test_classic_data(
    shared: Path, name: str, slope: list[float], intercept: list[float], log_likelihood: float
) -> None:
    responses = read_responses(shared / "data" / "human_classic" / f"{name}.parquet")
    found = calibrate(responses, priors=False)
    np.testing.assert_allclose(found.parameters.slope[:, 0], slope, atol=2e-3)
    np.testing.assert_allclose(found.parameters.intercept, intercept, atol=2e-3)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-3)


def answers_of_kind(kind: str) -> tuple[ResponseMatrix, NDArray[np.float64], NDArray[np.float64]]:
    """Responses of 300 subjects to 6 items, and the weight of right and of wrong answers of each cell."""
    rng = np.random.default_rng(3)
    a, d = rng.uniform(0.6, 1.8, 6), rng.normal(0, 1, 6)
    p = expit(rng.standard_normal((300, 1)) * a + d)
    if kind == "trials":
        trials = rng.integers(1, 8, p.shape)
        right = rng.binomial(trials, p)
        return ResponseMatrix.from_dense(right / trials, trials=trials), right, trials - right
    right = rng.beta(2 * p, 2 * (1 - p)) if kind == "shares" else (rng.random(p.shape) < p).astype(float)
    right[rng.random(p.shape) < 0.3] = np.nan
    return ResponseMatrix.from_dense(right), np.nan_to_num(right), np.nan_to_num(1 - right)


@pytest.mark.parametrize("kind", ["missing", "shares", "trials"])
def test_is_the_maximum_that_a_general_optimiser_finds(kind: str) -> None:
    responses, right, wrong = answers_of_kind(kind)
    nodes = np.linspace(-6, 6, 121)
    log_prior = -(nodes**2) / 2 - logsumexp(-(nodes**2) / 2)

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        a, d = values.reshape(2, -1)
        eta = nodes[:, None] * a + d
        joint = right @ log_expit(eta).T + wrong @ log_expit(-eta).T + log_prior
        total = logsumexp(joint, 1)
        mass = np.exp(joint - total[:, None])
        residual = right.T @ mass - ((right + wrong).T @ mass) * expit(eta).T
        return -float(total.sum()), -np.concatenate([residual @ nodes, residual.sum(1)])

    oracle = minimize(loss, np.repeat([1.0, 0.0], 6), jac=True, tol=1e-10)
    found = calibrate(responses, priors=False)
    np.testing.assert_allclose(found.parameters.slope[:, 0], oracle.x[:6], atol=1e-3)
    np.testing.assert_allclose(found.parameters.intercept, oracle.x[6:], atol=1e-3)
    assert found.log_likelihood == pytest.approx(-oracle.fun, abs=1e-4)


@pytest.mark.parametrize("priors", [True, False])
def test_recovers_raw_parameters(simulate_2pl: Simulate, priors: bool) -> None:
    slopes, difficulties, abilities = [], [], []
    for seed in range(6):
        truth = simulate_2pl(1000, 30, seed)
        found = calibrate(ResponseMatrix.from_dense(truth.scores), priors=priors)
        assert found.estimator == "grid"
        slope = found.parameters.slope[:, 0]
        slopes.append(slope.mean() / truth.a.mean())
        difficulties.append(np.polyfit(truth.b, found.parameters.difficulty, 1)[0])
        abilities.append(np.polyfit(found.ability_mean[:, 0], truth.theta, 1)[0])
        assert np.sqrt(((slope - truth.a) ** 2).mean()) < 0.16
        assert np.sqrt(((found.ability_mean[:, 0] - truth.theta) ** 2).mean()) < 0.45
        mean, variance = found.ability_mean[:, 0], found.ability_covariance[:, 0, 0]
        # With priors, rows of equal answers stay out of the moments that set the scale.
        assert mean.mean() == pytest.approx(0, abs=0.02 if priors else 1e-4)
        assert (mean**2 + variance).mean() == pytest.approx(1, abs=0.02 if priors else 1e-4)
    for ratios in (slopes, difficulties, abilities):
        allowed = max(0.02, 2 * float(np.std(ratios, ddof=1)) / np.sqrt(6))
        assert abs(np.mean(ratios) - 1) <= allowed


def test_agrees_with_the_variational_estimator_on_a_long_test(simulate_2pl: Simulate) -> None:
    responses = ResponseMatrix.from_dense(simulate_2pl(300, 200, 1).scores)
    exact, normal = (calibrate(responses, estimator=name) for name in ("grid", "variational"))
    slope = exact.parameters.slope[:, 0]
    assert np.polyfit(slope, normal.parameters.slope[:, 0], 1)[0] == pytest.approx(1, abs=0.03)
    np.testing.assert_allclose(normal.ability_mean, exact.ability_mean, atol=0.1)


def test_few_items_go_to_the_grid_and_many_to_the_variational_estimator(simulate_2pl: Simulate) -> None:
    scores = simulate_2pl(100, 50, 0).scores
    assert calibrate(ResponseMatrix.from_dense(scores[:, :49])).estimator == "grid"
    assert calibrate(ResponseMatrix.from_dense(scores)).estimator == "variational"
    assert calibrate(ResponseMatrix.from_dense(scores[:, :49]), dims=2).estimator == "variational"


@pytest.mark.parametrize("response_model", ["1pl", "2pl"])
def test_constant_items_and_perfect_subjects_are_finite(simulate_2pl: Simulate, response_model: str) -> None:
    scores = simulate_2pl(60, 12, 2).scores
    scores[:, 0], scores[:, 1] = 1, 0
    scores[np.random.default_rng(0).random(scores.shape) < 0.2] = -1
    scores[0], scores[1], scores[2] = 1, 0, -1
    scores[1, 0], scores[0, 1] = -1, -1
    found = calibrate(ResponseMatrix.from_dense(scores), response_model=response_model)
    assert np.isfinite(found.parameters.slope).all()
    assert np.abs(found.parameters.intercept).max() < 10
    assert found.ability_mean[2, 0] == pytest.approx(0, abs=1e-9)
    assert found.ability_covariance[2, 0, 0] == pytest.approx(1, abs=1e-6)
    assert found.ability_mean[:, 0].argmax() == 0
    assert found.ability_mean[:, 0].argmin() == 1
    assert any("same answer" in warning for warning in found.warnings)


@pytest.mark.parametrize("seed", range(10))
def test_perfect_subjects_rank_first_and_last_among_coin_flips(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 2, (50, 20)).astype(np.int8)
    scores[7], scores[8] = 1, 0
    found = calibrate(ResponseMatrix.from_dense(scores)).ability_mean[:, 0]
    assert (found.argmax(), found.argmin()) == (7, 8)


def test_order_of_rows_and_columns_changes_nothing(simulate_2pl: Simulate) -> None:
    scores = simulate_2pl(200, 15, 4).scores
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(200), rng.permutation(15)
    plain = calibrate(ResponseMatrix.from_dense(scores))
    shuffled = calibrate(ResponseMatrix.from_dense(scores[rows][:, columns]))
    np.testing.assert_allclose(shuffled.parameters.slope, plain.parameters.slope[columns], atol=1e-8)
    np.testing.assert_allclose(shuffled.parameters.intercept, plain.parameters.intercept[columns], atol=1e-8)
    np.testing.assert_allclose(shuffled.ability_mean, plain.ability_mean[rows], atol=1e-8)


def test_rows_of_equal_answers_are_taken_once() -> None:
    scores = law_school("lsat6")
    blocks = Blocks(ResponseMatrix.from_dense(scores), torch.device("cpu"))
    (patterns,) = PatternBlocks(blocks)
    assert len(patterns.count) == 30  # two of the 32 patterns never occur
    assert patterns.count.sum() == 1000
    np.testing.assert_array_equal(patterns.right[patterns.pattern].numpy(), scores)


@pytest.mark.parametrize("column", [0, 1, np.nan])
def test_without_priors_items_that_say_nothing_are_refused(column: float) -> None:
    scores = law_school("lsat6")
    scores[:, 3] = column
    with pytest.raises(InputError, match="'i3'"):
        maximum_likelihood(scores)


def test_without_priors_a_slope_without_end_is_no_fit() -> None:
    # Two camps, and ten items that only the camp decides: the likelihood makes them steps.
    rng = np.random.default_rng(0)
    scores = np.repeat(rng.integers(0, 2, (60, 1)), 14, axis=1)
    scores[:, 10:] = rng.integers(0, 2, (60, 4))
    with pytest.raises(ConvergenceError, match="steepest item"):
        maximum_likelihood(scores.astype(float))
    assert calibrate(ResponseMatrix.from_dense(scores.astype(np.int8))).converged
