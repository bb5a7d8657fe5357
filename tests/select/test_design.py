"""Designs: which part of a session draws and which chooses, with which probabilities, in which blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from irteval.bank import ItemBank
from irteval.calibrate.ability_grid import AbilityGrid
from irteval.calibrate.prediction import Prediction
from irteval.errors import InputError
from irteval.select.design import FisherDesign, RandomDesign, ScoreDesign, View, block_size

ITEMS = 80


def refuse_prediction() -> Prediction:
    raise AssertionError("this part of the design needs no prediction")


def refuse_ability() -> Tensor:
    raise AssertionError("this design needs no ability")


def refuse_posterior() -> tuple[Tensor, Tensor]:
    raise AssertionError("this design needs no posterior")


def view_of(asked: int, in_range: float = 1.0, subjects: int = 3) -> View:
    """Subjects who have been asked the first items of a bank; predictions spread from .02 to .98."""
    frame = torch.ones(subjects, ITEMS, dtype=torch.bool)
    frame[:, :asked] = False
    p = torch.linspace(0.02, 0.98, ITEMS).double().expand(subjects, -1)
    return View(
        asked=asked,
        frame=frame,
        rest=frame.double(),
        pending=torch.zeros(subjects, 0, dtype=torch.long),
        weights=torch.full((ITEMS,), 1 / ITEMS).double(),
        source_mean=torch.linspace(0.05, 0.95, ITEMS).double(),
        ability=refuse_ability,
        posterior=refuse_posterior,
        prediction=refuse_prediction,
        mixed=lambda: (p, torch.full((subjects,), in_range).double()),
        uniform=torch.linspace(0.1, 0.9, subjects).double(),
        cost=torch.ones(ITEMS).double(),
    )


def test_blocks_end_where_they_should() -> None:
    ends, asked = [], 0
    while asked < 1600:
        asked += block_size(asked)
        ends.append(asked)
    expected = [25, 37, *range(50, 301, 25), *range(350, 501, 50), *range(600, 1001, 100), 1200, 1400, 1600]
    assert ends == expected
    assert block_size(30) == 7  # whoever is between two ends goes to the next one
    assert block_size(487) == 13


def test_the_first_ten_are_one_a_stratum_of_source_difficulty() -> None:
    plan = ScoreDesign().plan(view_of(0), 1000, 3)
    assert plan.items.shape == (3, 10)
    assert bool((plan.items // 8 == torch.arange(10)).all())
    assert plan.inclusion is not None
    torch.testing.assert_close(plan.inclusion, torch.full((3, ITEMS), 10 / ITEMS).double())


def test_from_ten_on_items_are_chosen_up_to_the_twenty_fifth() -> None:
    with pytest.raises(AssertionError, match="needs no prediction"):
        ScoreDesign().plan(view_of(10), 1000, None)
    with pytest.raises(AssertionError, match="needs no prediction"):
        ScoreDesign().plan(view_of(24), 1000, None)
    assert ScoreDesign().plan(view_of(25), 1000, None).items.shape == (3, 12)


@pytest.mark.parametrize(("in_range", "share"), [(0.5, 0.15), (0.49, 0.5)])
def test_blocks_are_drawn_by_deviation_with_a_uniform_share(in_range: float, share: float) -> None:
    view = view_of(25, in_range)
    plan = ScoreDesign().plan(view, 1000, None)
    assert plan.inclusion is not None
    assert plan.p is not None
    p = np.linspace(0.02, 0.98, ITEMS)
    deviation = np.sqrt(p * (1 - p)) * (np.arange(ITEMS) >= 25)
    expected = 12 * ((1 - share) * deviation / deviation.sum() + share * (np.arange(ITEMS) >= 25) / 55)
    np.testing.assert_allclose(plan.inclusion[0], expected, rtol=1e-6)
    np.testing.assert_allclose(plan.p[0], p, rtol=1e-6)
    assert plan.inclusion[0, 25:].min() > 0  # every open item has a chance


def test_a_limit_and_a_batch_shorten_what_is_asked() -> None:
    assert ScoreDesign().plan(view_of(0), 4, None).items.shape == (3, 4)
    assert ScoreDesign().plan(view_of(25), 5, 8).items.shape == (3, 5)
    assert ScoreDesign().plan(view_of(25), 40, 8).items.shape == (3, 8)
    assert RandomDesign().plan(view_of(0), 40, 8).items.shape == (3, 8)


def test_weights_of_a_suite_enter_the_probabilities() -> None:
    weights = torch.cat([torch.full((40,), 0.5 / 40), torch.full((40,), 0.5 / 40 * 3)]).double()
    view = replace(view_of(0), weights=weights / weights.sum())
    plan = ScoreDesign().plan(view, 1000, None)
    assert plan.inclusion is not None
    np.testing.assert_allclose(plan.inclusion[0, 40:] / plan.inclusion[0, 0], 3)


def test_random_asks_every_open_item_alike() -> None:
    plan = RandomDesign().plan(view_of(30), 1000, 10)
    assert plan.inclusion is not None
    torch.testing.assert_close(plan.inclusion[:, 30:], torch.full((3, 50), 0.2).double())
    assert plan.inclusion[:, :30].max() == 0
    assert int(plan.items.min()) >= 30


def test_fisher_asks_the_most_informative_open_items(known_bank: Callable[..., ItemBank]) -> None:
    bank = known_bank(ITEMS)
    grid = AbilityGrid(bank.parameters, 3)
    theta = torch.tensor([-1.0, 0.0, 5.0]).double()
    view = replace(view_of(20), ability=lambda: theta)
    chosen = FisherDesign(grid).plan(view, 1000, 4)
    assert chosen.inclusion is None
    a, d = bank.parameters.slope[:, 0], bank.parameters.intercept
    for row in range(3):
        p = 1 / (1 + np.exp(-(a * theta[row].item() + d)))
        value = np.where(np.arange(ITEMS) < 20, -1, a**2 * p * (1 - p))
        assert chosen.items[row].tolist() == np.argsort(-value, kind="stable")[:4].tolist()


def test_fisher_passes_over_items_that_cannot_be_asked(known_bank: Callable[..., ItemBank]) -> None:
    grid = AbilityGrid(known_bank(ITEMS).parameters, 3)
    view = replace(view_of(0), ability=lambda: torch.zeros(3).double())
    view.frame[1, grid.ranking[len(grid.nodes) // 2, :30]] = False
    chosen = FisherDesign(grid).plan(view, 1000, 5)
    assert bool(view.frame.gather(1, chosen.items).all())
    assert all(len(set(row)) == 5 for row in chosen.items.tolist())


def test_fisher_needs_one_dimension(known_bank: Callable[..., ItemBank]) -> None:
    two = ItemBank.from_parameters(["a", "b"], np.ones((2, 2)), np.zeros(2))
    with pytest.raises(InputError, match="one dimension, the bank has 2"):
        AbilityGrid(two.parameters, 1)
