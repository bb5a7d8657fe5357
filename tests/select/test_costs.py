"""Items that differ in cost: the target is reached at less cost, and its interval holds as before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from irteval.bank import ItemBank
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.journal import RunFolder
from irteval.responses import ResponseMatrix
from irteval.session import Session

ITEMS, SUBJECTS, TARGET = 600, 100, 0.07


@pytest.fixture(scope="module")
def bank(known_bank: Callable[..., ItemBank]) -> ItemBank:
    plain = known_bank(ITEMS)
    cost = np.random.default_rng(4).choice([1.0, 10.0], ITEMS)
    return ItemBank.build(plain.items, plain.parameters, item_table=pd.DataFrame({"cost": cost}))


def test_a_target_is_reached_at_a_fifth_less_cost_and_covers(bank, draw_answers, tmp_path) -> None:
    theta = np.random.default_rng(1).standard_normal(SUBJECTS)
    recorded = ResponseMatrix.from_dense(draw_answers(bank, theta, 2), items=bank.items)
    truth = recorded.dense().mean(1)
    cost = dict(zip(bank.items, bank.item_table["cost"], strict=True))
    spent, covered = {}, {}
    for costs in ("ignore", "bank"):
        estimates = replay(bank, recorded, target=TARGET, costs=costs, out=tmp_path / costs)
        assert {estimate.stopped for estimate in estimates} == {"target"}
        spent[costs] = sum(cost[line.item] for line in RunFolder.open(tmp_path / costs).told())
        inside = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]
        covered[costs] = np.mean(inside)
    assert spent["bank"] < 0.8 * spent["ignore"]
    assert min(covered.values()) > 0.85  # of .95; the Monte-Carlo error of 100 subjects is .022


def test_costs_that_are_not_there_are_said(known_bank, bank) -> None:
    with pytest.raises(InputError, match="has no costs of items"):
        Session(known_bank(20), costs="bank")
    table = pd.DataFrame({"cost": np.where(np.arange(ITEMS) == 5, 0.0, 1.0)})
    with pytest.raises(InputError, match="item 'i5' has no cost above 0"):
        Session(ItemBank.build(bank.items, bank.parameters, item_table=table), costs="bank")
    with pytest.raises(InputError, match="wanted ignore or bank"):
        Session(bank, costs="yes")
    recorded = ResponseMatrix.from_dense(np.ones((1, ITEMS)), items=bank.items)
    assert replay(bank, recorded, budget=20, costs="bank")[0].items_asked == 20
