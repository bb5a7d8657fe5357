"""The scorer prepared from a bank: what is possible, what is smallest, and suites."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from irteval.bank import ItemBank
from irteval.estimate.scorer import Answers, Scorer


@pytest.mark.parametrize("items", range(1, 60))
def test_possible_scores_are_exact_at_the_ends(known_bank: Callable[..., ItemBank], items: int) -> None:
    scorer = Scorer(known_bank(items))
    low, high = scorer.possible(Answers.of(torch.ones(1, items).double()), 0)
    assert low.item() == high.item() == pytest.approx(1)
    assert high.item() <= 1  # a sum of 13 thirteenths is not 1 in floating point
    low, high = scorer.possible(Answers.of(torch.zeros(1, items).double()), 0)
    assert low.item() == high.item() == 0
    low, high = scorer.possible(Answers.of(torch.full((1, items), torch.nan).double()), 0)
    assert (low.item(), high.item()) == (0, pytest.approx(1))


def test_answers_in_any_pattern() -> None:
    scores = torch.tensor([[1, torch.nan, 0.5, torch.nan], [torch.nan] * 4, [0, 1, 1, 0]]).double()
    answers = Answers.of(scores)
    assert answers.items.shape == (3, 4)
    assert answers.weight.sum(1).tolist() == [2, 0, 4]
    assert answers.items[0, :2].tolist() == [0, 2]
    assert answers.y[0, :2].tolist() == [1, 0.5]
    assert answers.answered.tolist() == [[1, 0, 1, 0], [0] * 4, [1] * 4]
    assert Answers.of(torch.zeros(0, 4).double()).items.shape == (0, 0)


def test_a_suite_weighs_its_benchmarks_alike(known_bank: Callable[..., ItemBank]) -> None:
    scorer = Scorer(known_bank(40, benchmarks=["a"] * 10 + ["b"] * 30))
    assert scorer.names == ("total", "a", "b")
    np.testing.assert_allclose(scorer.weights.sum(1), 1)
    assert scorer.smallest(0) == pytest.approx(1 / 120)
    assert scorer.smallest(1) == pytest.approx(1 / 20)
    scores = torch.full((1, 40), torch.nan).double()
    scores[0, :10] = 1
    low, high = scorer.possible(Answers.of(scores), 0)
    assert (low.item(), high.item()) == (pytest.approx(0.5), pytest.approx(1))
    low, high = scorer.possible(Answers.of(scores), 1)
    assert low.item() == high.item() == pytest.approx(1)
