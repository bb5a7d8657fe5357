"""Every criterion is better than chance at what it aims at: ability, or the full score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit

from irteval.bank import ItemBank
from irteval.calibrate.ability_grid import AbilityGrid
from irteval.cohort import Cohort
from irteval.select.kullback_leibler import KullbackLeiblerDesign

SUBJECTS, ITEMS = 300, 200


def follow(bank: ItemBank, scores: torch.Tensor, criterion: str, until: int, seed: int = 0) -> Cohort:
    """Test every subject with so many items."""
    rows = torch.arange(len(scores))
    cohort = Cohort(bank, [f"s{n}" for n in rows.tolist()], criterion=criterion, seed=seed)
    while (left := until - int(cohort.asked[0])) > 0:
        plan = cohort.plan(rows, left)
        cohort.tell(rows, plan.items, scores.gather(1, plan.items))
    return cohort


def abilities(cohort: Cohort) -> NDArray[np.float64]:
    look = cohort.look(torch.arange(len(cohort.subjects)), 0.95)
    return np.array([estimate.ability for estimate in cohort.estimates(look)])


@pytest.fixture(scope="module")
def wide_bank() -> ItemBank:
    """Items from very easy to very hard, some much steeper than others."""
    rng = np.random.default_rng(5)
    a, b = np.exp(0.5 * rng.standard_normal(ITEMS)), 2 * rng.standard_normal(ITEMS)
    return ItemBank.from_difficulty([f"i{n}" for n in range(ITEMS)], a, b)


@pytest.mark.parametrize(
    ("criterion", "most"), [("fisher", 0.7), ("kl", 0.7), ("d-optimal", 0.7), ("posterior-variance", 0.97)]
)
def test_chosen_items_measure_ability_better_than_random_ones(
    wide_bank: ItemBank, draw_answers: Callable[..., NDArray[np.float64]], criterion: str, most: float
) -> None:
    """Information halves the error; the least certain answers, those to flat items among them, say little."""
    theta = np.random.default_rng(1).standard_normal(SUBJECTS)
    scores = torch.as_tensor(draw_answers(wide_bank, theta, 2))
    error = {
        name: np.sqrt(np.mean((abilities(follow(wide_bank, scores, name, 20))[:, 0] - theta) ** 2))
        for name in (criterion, "random")
    }
    assert error[criterion] < most * error["random"]


def test_d_optimal_items_measure_two_abilities_better_than_random_ones() -> None:
    rng = np.random.default_rng(3)
    slope = np.abs(rng.normal(0.8, 0.6, (ITEMS, 2))) * (rng.random((ITEMS, 2)) < 0.7)
    intercept = 1.5 * rng.standard_normal(ITEMS)
    bank = ItemBank.from_parameters([f"i{n}" for n in range(ITEMS)], slope, intercept)
    theta = rng.standard_normal((SUBJECTS, 2))
    scores = torch.as_tensor((rng.random((SUBJECTS, ITEMS)) < expit(theta @ slope.T + intercept)) * 1.0)
    error = {
        name: np.sqrt(np.mean((abilities(follow(bank, scores, name, 25)) - theta) ** 2))
        for name in ("d-optimal", "random")
    }
    assert error["d-optimal"] < 0.85 * error["random"]


@pytest.mark.parametrize("criterion", ["stratified", "balanced", "pps", "faq"])
def test_drawn_items_give_the_score_better_than_random_ones(
    wide_bank: ItemBank, draw_answers: Callable[..., NDArray[np.float64]], criterion: str
) -> None:
    """The design-based score against the mean of as many items drawn at random, once and for all."""
    theta = np.random.default_rng(4).standard_normal(SUBJECTS)
    scores = torch.as_tensor(draw_answers(wide_bank, theta, 6))
    cohort = follow(wide_bank, scores, criterion, 37)
    error = (cohort.design_score(torch.arange(SUBJECTS)).mean - scores.mean(1)).abs().mean()
    drawn = np.random.default_rng(7).permuted(scores.numpy(), axis=1)[:, :37]
    assert error < 0.92 * np.abs(drawn.mean(1) - scores.numpy().mean(1)).mean()


@pytest.mark.parametrize("criterion", ["stratified", "balanced"])
def test_spread_samples_need_no_model(
    wide_bank: ItemBank, draw_answers: Callable[..., NDArray[np.float64]], criterion: str
) -> None:
    """Nothing but inclusion probabilities in the estimate, and it beats a simple random sample's."""
    theta = np.random.default_rng(4).standard_normal(SUBJECTS)
    scores = torch.as_tensor(draw_answers(wide_bank, theta, 6))
    cohort = Cohort(wide_bank, [f"s{n}" for n in range(SUBJECTS)], criterion=criterion)
    plan = cohort.plan(torch.arange(SUBJECTS), 30, 30)
    error = ((scores.gather(1, plan.items) / plan.inclusion).sum(1) / ITEMS - scores.mean(1)).abs().mean()
    drawn = np.random.default_rng(7).permuted(scores.numpy(), axis=1)[:, :30]
    assert error < 0.92 * np.abs(drawn.mean(1) - scores.numpy().mean(1)).mean()


def test_kullback_leibler_information_is_its_sum_over_nodes(known_bank: Callable[..., ItemBank]) -> None:
    bank = known_bank(12)
    grid = AbilityGrid(bank.parameters, 1)
    a, d = bank.parameters.slope[:, 0], bank.parameters.intercept
    for at, asked in ((0.5, 9), (-1.0, 100)):
        reach = round(3 / np.sqrt(asked) / 0.05)
        theta = at + 0.05 * np.arange(-reach, reach + 1)[:, None]
        p, log_right, log_wrong = (
            expit(a * at + d),
            np.log(expit(a * theta + d)),
            np.log(expit(-a * theta - d)),
        )
        divergence = p * (np.log(p) - log_right) + (1 - p) * (np.log(1 - p) - log_wrong)
        found = KullbackLeiblerDesign(grid).information(torch.tensor([at]).double(), asked)[0]
        np.testing.assert_allclose(found, divergence.sum(0), rtol=1e-6)
