"""Designs with known inclusion probabilities: what they state is what happens, and totals are unbiased."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.bank import ItemBank
from irteval.cohort import Cohort
from irteval.select.local_pivotal import local_pivotal
from irteval.select.stratified import StratifiedDesign
from irteval.select.systematic import inclusion_probabilities, random_numbers
from tests.select.test_design import ITEMS, view_of

DRAWN = ["random", "stratified", "balanced", "pps", "faq"]
DRAWS = 1500


@pytest.mark.parametrize("criterion", DRAWN)
def test_inclusion_probabilities_are_those_of_the_draws(
    known_bank: Callable[..., ItemBank], draw_answers: Callable[..., NDArray[np.float64]], criterion: str
) -> None:
    """Copies of one subject, each with draws of its own: in the second block too, whose probabilities depend
    on the answers to the first."""
    bank = known_bank(40)
    answers = torch.as_tensor(draw_answers(bank, np.array([0.3]), 0)).expand(DRAWS, -1)
    truth = float(answers[0].mean())
    rows = torch.arange(DRAWS)
    cohort = Cohort(bank, [f"copy {n}" for n in range(DRAWS)], criterion=criterion, seed=2)
    first = cohort.plan(rows, 10, 10)
    assert bool((first.items.sort(1).values.diff(dim=1) > 0).all())
    often = torch.zeros(DRAWS, 40).scatter(1, first.items, 1.0).mean(0)
    stated = (
        torch.zeros(40)
        .double()
        .scatter_reduce(0, first.items.flatten(), first.inclusion.flatten(), "amax", include_self=False)
    )
    torch.testing.assert_close(often.double(), stated, atol=0.05, rtol=0)
    weighted = (answers.gather(1, first.items) / first.inclusion).sum(1) / 40
    assert_unbiased(weighted, truth)
    cohort.tell(rows, first.items, answers.gather(1, first.items))
    second = cohort.plan(rows, 10, 10)
    cohort.tell(rows, second.items, answers.gather(1, second.items))
    known = torch.zeros(DRAWS, 40).double().scatter(1, first.items, 1.0)
    total = (known * answers).sum(1) + (answers.gather(1, second.items) / second.inclusion).sum(1)
    assert_unbiased(total / 40, truth)
    assert_unbiased(cohort.design_score(rows).mean, truth)


def assert_unbiased(estimates: Tensor, truth: float) -> None:
    error = float(estimates.std()) / len(estimates) ** 0.5
    assert float(estimates.mean()) == pytest.approx(truth, abs=4 * error + 1e-9)


@pytest.mark.parametrize("allocation", ["proportional", "neyman"])
def test_strata_get_their_share(allocation: str) -> None:
    view = view_of(0, subjects=200)
    view = type(view)(**{**vars(view), "uniform": (torch.arange(200).double() + 0.5) / 200})
    design = StratifiedDesign(view.source_mean, allocation)  # type: ignore[arg-type]
    plan = design.plan(view, 1000, 20)
    assert plan.inclusion is not None
    stratum = torch.arange(ITEMS) // 8
    expected = plan.inclusion[0].double() @ torch.nn.functional.one_hot(stratum).double()
    found = torch.nn.functional.one_hot(stratum[plan.items]).sum(1).double()
    assert bool(((found - expected).abs() < 1 + 1e-9).all())
    if allocation == "proportional":
        torch.testing.assert_close(expected, torch.full((10,), 2.0).double())
    else:
        spread = (view.source_mean * (1 - view.source_mean)).reshape(10, 8).mean(1).sqrt()
        torch.testing.assert_close(expected, 20 * spread / spread.sum())


def test_local_pivotal_samples_are_spread_and_keep_their_probabilities() -> None:
    rows, items, count = 3000, 30, 6
    place = torch.linspace(0, 1, items).double()[:, None].expand(rows, -1, 1)
    size = torch.linspace(1, 3, items).double().expand(rows, -1)
    inclusion = inclusion_probabilities(size, count)
    numbers = random_numbers((torch.arange(rows).double() + 0.5) / rows, 2 * items)
    drawn = local_pivotal(inclusion, place, numbers, count)
    assert drawn.shape == (rows, count)
    assert bool((drawn.sort(1).values.diff(dim=1) > 0).all())
    often = torch.zeros(rows, items).scatter(1, drawn, 1.0)
    torch.testing.assert_close(often.mean(0).double(), inclusion[0], atol=0.035, rtol=0)
    # Items beside each other come together far less often than independent ones would.
    together = (often[:, 1:] * often[:, :-1]).mean(0).sum()
    assert together < 0.4 * (inclusion[0, 1:] * inclusion[0, :-1]).sum()
