"""Ability estimates: reference posteriors, quadrature, published values on real data, extremes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from irteval.bank import ItemBank
from irteval.calibrate.ability import Ability, ability
from irteval.errors import InputError
from irteval.irt.parameters import ItemParameters
from irteval.responses import read_responses


def equal_items(count: int, a: float = 1.0) -> ItemParameters:
    return ItemParameters(np.full(count, a), np.zeros(count))


def answers(right: int, wrong: int) -> NDArray[np.float64]:
    return np.repeat([1.0, 0.0], [right, wrong])[None]


@pytest.mark.parametrize(
    ("right", "wrong", "a", "mean", "sd", "mode"),
    [
        (1, 0, 1, 0.413242, 0.910621, 0.4010),
        (1, 0, 2, 0.605706, 0.795689, 0.5213),
        (1, 0, 4, 0.729478, 0.684005, 0.4914),
        (10, 0, 1, 1.711999, 0.661991, 1.6336),
        (20, 0, 1, 2.214551, 0.598319, 2.1281),
        (150, 50, 1, 1.076403, 0.160676, None),
        (654, 654, 1, 0.0, 0.055237, 0.0),
        (900, 408, 1, 0.788984, 0.059576, None),
        (1500, 500, 1, 1.096354, 0.051555, None),
    ],
)
def test_reference_posteriors(
    right: int, wrong: int, a: float, mean: float, sd: float, mode: float | None
) -> None:
    for sign, scores in ((1, answers(right, wrong)), (-1, answers(wrong, right))):
        found = ability(equal_items(right + wrong, a), scores)
        assert found.mean.item() == pytest.approx(sign * mean, abs=1e-6)
        assert found.sd.item() == pytest.approx(sd, abs=1e-6)
        if mode is not None:
            assert found.mode.item() == pytest.approx(sign * mode, abs=1e-4)


def test_without_answers_it_is_the_prior() -> None:
    found = ability(equal_items(3), np.full((2, 3), np.nan))
    np.testing.assert_allclose(found.mean, 0, atol=1e-12)
    np.testing.assert_allclose(found.sd, 1, atol=1e-12)
    np.testing.assert_allclose(found.mode, 0, atol=1e-12)
    np.testing.assert_allclose(found.log_marginal, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("count", "a"), [(1, 0.05), (1, 1.0), (1, 8.0), (10_000, 0.05), (10_000, 1.0), (1000, 8.0)]
)
def test_extremes_are_finite_in_numbers_and_in_json(count: int, a: float) -> None:
    scores = np.vstack([answers(count, 0), answers(0, count)])
    found = ability(equal_items(count, a), scores)
    numbers = [value.ravel().tolist() for value in (found.mean, found.sd, found.mode, found.log_marginal)]
    json.dumps(numbers, allow_nan=False)
    assert found.mean[0, 0] == pytest.approx(-found.mean[1, 0])
    # The mode solves theta = J a (1 - P), however far out in the prior's tail that is.
    assert found.mode[0, 0] == pytest.approx(count * a * expit(-a * found.mode[0, 0]), abs=1e-6)
    assert (found.sd > 0).all()
    assert (found.sd < 1).all()


def test_ten_thousand_items_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    a, d, theta = rng.lognormal(0, 0.4, 10_000), rng.normal(0, 1.2, 10_000), np.array([-2.5, 0.1, 3.0])
    scores = (rng.random((3, 10_000)) < expit(theta[:, None] * a + d)).astype(float)
    found = ability(ItemParameters(a, d), scores)
    assert found.log_marginal.max() < -1500
    p = expit(found.mean * a + d)
    np.testing.assert_allclose(found.sd[:, 0], (1 + (p * (1 - p)) @ a**2) ** -0.5, rtol=0.02)
    assert (np.abs(found.mean[:, 0] - theta) < 4 * found.sd[:, 0]).all()


def quadrature(parameters: ItemParameters, scores: NDArray[np.float64], trials: NDArray[np.int32]) -> Ability:
    """Posterior moments by brute force on a grid in one or two dimensions."""
    axis = np.linspace(-7, 7, 701 if parameters.dims == 1 else 281)
    nodes = np.stack(np.meshgrid(*[axis] * parameters.dims, indexing="ij"), -1).reshape(-1, parameters.dims)
    lower = 0.0 if parameters.lower is None else parameters.lower
    upper = 1.0 if parameters.upper is None else parameters.upper
    p = lower + (upper - lower) * expit(nodes @ parameters.slope.T + parameters.intercept)
    log_prior = -(nodes**2).sum(1) / 2
    y, seen = np.nan_to_num(scores), trials * ~np.isnan(scores)
    joint = (seen * y) @ np.log(p).T + (seen * (1 - y)) @ np.log1p(-p).T + log_prior - logsumexp(log_prior)
    total = logsumexp(joint, axis=1)
    mass = np.exp(joint - total[:, None])
    mean = mass @ nodes
    return Ability(mean, np.sqrt(mass @ nodes**2 - mean**2), nodes[joint.argmax(1)], total)


@pytest.mark.parametrize("asymptotes", [{}, {"lower": 0.2}, {"lower": 0.1, "upper": 0.95}])
def test_matches_quadrature_with_missing_cells_shares_and_trials(asymptotes: dict[str, float]) -> None:
    rng = np.random.default_rng(1)
    bounds = {name: np.full(30, value) for name, value in asymptotes.items()}
    parameters = ItemParameters(rng.normal(0.6, 1, 30), rng.normal(0, 1, 30), **bounds)  # type: ignore[arg-type]
    trials = rng.integers(1, 6, (20, 30)).astype(np.int32)
    scores = rng.integers(0, trials + 1) / trials
    scores[:10] = rng.random((10, 30))
    scores[rng.random((20, 30)) < 0.4] = np.nan
    found, expected = ability(parameters, scores, trials), quadrature(parameters, scores, trials)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-5)
    np.testing.assert_allclose(found.sd, expected.sd, atol=1e-5)
    np.testing.assert_allclose(found.mode, expected.mode, atol=0.011)
    np.testing.assert_allclose(found.log_marginal, expected.log_marginal, atol=1e-5)


def test_two_dimensions_by_laplace_are_close_to_quadrature() -> None:
    rng = np.random.default_rng(2)
    parameters = ItemParameters(rng.normal(0.5, 0.7, (60, 2)), rng.normal(0, 1, 60))
    theta = rng.standard_normal((25, 2))
    eta = theta @ parameters.slope.T + parameters.intercept
    scores = (rng.random(eta.shape) < expit(eta)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = np.nan
    found, expected = (
        ability(parameters, scores),
        quadrature(parameters, scores, np.ones(scores.shape, np.int32)),
    )
    assert (np.abs(found.mean - expected.mean) / expected.sd).max() < 0.2
    np.testing.assert_allclose(found.sd, expected.sd, rtol=0.06)
    np.testing.assert_allclose(found.log_marginal, expected.log_marginal, atol=0.05)


def test_published_parameters_in_the_normal_metric() -> None:
    bank = ItemBank.from_difficulty(["x"], [1.0], [0.0], scaling=1.7)
    assert bank.parameters.slope.item() == 1.7
    found = ability(bank.parameters, answers(1, 0))
    assert found.mean.item() == pytest.approx(ability(equal_items(1, 1.7), answers(1, 0)).mean.item())
    shifted = ItemBank.from_difficulty(["x"], [2.0], [0.5]).parameters
    assert shifted.intercept.item() == -1.0
    assert shifted.difficulty.item() == 0.5
    p = expit(1.7 * 1.0)
    assert p == pytest.approx(0.845535, abs=1e-6)
    assert np.exp(found.log_marginal.item()) == pytest.approx(0.5)


@pytest.mark.parametrize(("name", "form"), [("arc", "v1"), ("arc", "v2"), ("winogrande", "v1")])
def test_modes_of_published_item_parameters(shared: Path, name: str, form: str) -> None:
    folder = shared / "data" / "openllm_v1_metabench"
    table = pd.read_parquet(folder / "items.parquet")
    table = table[(table["benchmark"] == name) & (table["form"] == form)].set_index("item_id")
    published = pd.read_parquet(folder / "reference_abilities.parquet")
    published = published[(published["benchmark"] == name) & (published["form"] == form)]
    published = published.set_index("model_id")["theta"].dropna().iloc[:300]
    responses = read_responses(folder / "responses.parquet", benchmark=name)
    responses = responses.with_items(table.index)
    responses = responses.take(subjects=np.isin(responses.subjects, published.index))
    bounds = {"lower": table["ref_g"].fillna(0.0).to_numpy(), "upper": table["ref_u"].fillna(1.0).to_numpy()}
    parameters = ItemParameters(table["ref_a"].to_numpy(), table["ref_d"].to_numpy(), **bounds)  # type: ignore[arg-type]
    found = ability(parameters, responses.dense())
    expected = published[list(responses.subjects)].to_numpy()
    np.testing.assert_allclose(found.mode[:, 0], expected, atol=5e-5)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="wanted \\[subjects, 3\\]"):
        ability(equal_items(3), np.zeros((2, 4)))
    guessing = ItemParameters(np.ones((3, 2)), np.zeros(3), lower=np.full(3, 0.2))
    with pytest.raises(InputError, match="one dimension"):
        ability(guessing, np.zeros((2, 3)))
