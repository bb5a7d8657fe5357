"""Abilities renewed answer by answer on one grid, and the ranking that Fisher selection reads off it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from irteval.bank import ItemBank
from irteval.calibrate.ability_grid import AbilityGrid


def grid_of(a: float, items: int, subjects: int = 1) -> AbilityGrid:
    bank = ItemBank.from_parameters([f"i{i}" for i in range(items)], np.full(items, a), np.zeros(items))
    return AbilityGrid(bank.parameters, subjects)


@pytest.mark.parametrize(
    ("a", "right", "wrong", "mean"),
    [
        (1, 1, 0, 0.413242),
        (2, 1, 0, 0.605706),
        (4, 1, 0, 0.729478),
        (1, 10, 0, 1.711999),
        (1, 0, 20, -2.214551),
        (1, 150, 50, 1.076403),
        (1, 900, 408, 0.788984),
        (1, 654, 654, 0),
    ],
)
def test_means_are_the_reference_values(a: float, right: int, wrong: int, mean: float) -> None:
    grid = grid_of(a, right + wrong)
    y = torch.cat([torch.ones(right), torch.zeros(wrong)]).double()[None]
    grid.update(torch.tensor([0]), torch.arange(right + wrong)[None], y)
    assert grid.mean(torch.tensor([0])).item() == pytest.approx(mean, abs=2e-4)


def test_one_by_one_is_all_at_once_and_lost_answers_say_nothing() -> None:
    rows, items = torch.tensor([1]), torch.arange(6)[None]
    y = torch.tensor([[1.0, 0.0, torch.nan, 1.0, 1.0, 0.5]]).double()
    together, single = grid_of(1.3, 6, 3), grid_of(1.3, 6, 3)
    together.update(rows, items, y)
    for k in range(6):
        single.update(rows, items[:, k : k + 1], y[:, k : k + 1])
    means = together.mean(torch.arange(3))
    torch.testing.assert_close(single.mean(torch.arange(3)), means)
    torch.testing.assert_close(means[[0, 2]], torch.zeros(2).double())
    assert means[1] > 0


def test_ranking_is_by_information_and_knows_guessing(known_bank: Callable[..., ItemBank]) -> None:
    bank = known_bank(60, lower=np.linspace(0, 0.4, 60))
    grid = AbilityGrid(bank.parameters, 1)
    node = 130
    theta, c = grid.nodes[node].item(), np.linspace(0, 0.4, 60)
    a, d = bank.parameters.slope[:, 0], bank.parameters.intercept
    star = 1 / (1 + np.exp(-(a * theta + d)))
    p = c + (1 - c) * star
    information = ((1 - c) * a * star * (1 - star)) ** 2 / (p * (1 - p))  # Birnbaum (1968)
    assert grid.ranking[node].tolist() == np.argsort(-information, kind="stable").tolist()
