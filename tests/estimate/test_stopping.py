"""Goals of a test: widths, detectable differences and ranks, and the coverage at such stops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from torch import Tensor

from irteval.bank import ItemBank
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.estimate.interval import Interval
from irteval.estimate.stopping import Goal, Rival, widened
from irteval.responses import ResponseMatrix
from irteval.session import Session


def interval(score: float, half_width: float) -> Interval:
    values = torch.tensor([[score, score - half_width, score + half_width, half_width]]).double()
    return Interval(*values.T)


def test_a_difference_at_its_width_is_found_with_a_power_of_80_percent() -> None:
    z = 1.959964
    for rivals in ((), (Rival("known", 0.5, 0.5),), (Rival("tested", 0.47, 0.53),)):
        goal = Goal(0.95, difference=0.1, rivals=rivals)
        other = rivals[0].half_width if rivals else goal.width
        error = (goal.width**2 + other**2) ** 0.5 / z
        assert ndtr(0.1 / error - z) == pytest.approx(0.8, abs=1e-3)
        assert goal.reached(goal.width) == "difference"
    assert Goal(0.95, target=0.05, difference=0.1).reached(0.04) == "target"


def test_the_widest_rival_limits_the_difference() -> None:
    rivals = (Rival("near", 0.49, 0.51), Rival("far", 0.4, 0.6))
    with pytest.raises(InputError, match=r"0.1 can't be found: the score of 'far' is only known to ± 0.1"):
        Goal(0.95, difference=0.1, rivals=rivals)


def test_a_rank_needs_every_rival_apart_and_more_than_one_look_does() -> None:
    goal = Goal(0.95, rivals=(Rival("a", 0.3, 0.3), Rival("b", 0.9, 0.9)), rank=True)
    assert goal.settled(interval(0.6, 0.1), ["me"]).tolist() == [True]
    assert goal.settled(interval(0.45, 0.1), ["me"]).tolist() == [False]  # .15 apart: 1.5 half-widths
    assert goal.settled(interval(0.6, 0.1), ["a"]).tolist() == [True]
    alone = Goal(0.95, rivals=(Rival("a", 0.3, 0.3),), rank=True)
    assert alone.settled(interval(0.6, 0.1), ["a"]).tolist() == [False]  # nobody to be told apart from
    fuzzy = Goal(0.95, rivals=(Rival("a", 0.1, 0.5),), rank=True)
    assert fuzzy.settled(interval(0.6, 0.1), ["me"]).tolist() == [False]


def test_the_widened_interval_holds_at_every_look_together() -> None:
    """Means of normal draws, looked at after each of 2,000: the truth is outside some look in at most 5 %."""
    rng = np.random.default_rng(0)
    runs, draws = 1000, 2000
    mean = rng.standard_normal((runs, draws)).cumsum(1) / np.arange(1, draws + 1)
    error = 0.5 / np.sqrt(np.arange(1, draws + 1))  # of answers with an SD of .5
    half_width = torch.as_tensor(1.959964 * error)
    goal = Goal(0.95, rivals=(Rival("a", 0.3, 0.3),), rank=True)
    wide = (goal.widening(half_width) * half_width).numpy()
    outside = (np.abs(0.5 * mean) > wide)[:, 24:].any(1).mean()
    single = (np.abs(0.5 * mean) > half_width.numpy())[:, 24:].any(1).mean()
    assert outside <= 0.05
    assert single > 0.25  # what a rank stop on the plain interval would be worth
    factor = goal.widening(half_width[24:])
    assert 1.4 < float(factor.min()) <= float(factor.max()) < 2.0


def test_a_widened_interval_stays_within_what_is_possible() -> None:
    wide = widened(interval(0.5, 0.2), torch.tensor([2.0]), (torch.tensor([0.3]), torch.tensor([0.8])))
    assert (wide.low.item(), wide.high.item()) == pytest.approx((0.3, 0.8))
    same = widened(interval(0.5, 0.2), torch.tensor([1.0]), (torch.tensor([0.4]), torch.tensor([0.6])))
    assert (same.low.item(), same.high.item()) == pytest.approx((0.3, 0.7))


@pytest.fixture(scope="module")
def tested(
    known_bank: Callable[..., ItemBank], draw_answers: Callable[..., NDArray[np.float64]]
) -> tuple[ItemBank, ResponseMatrix, Tensor]:
    bank = known_bank(400)
    theta = np.random.default_rng(0).standard_normal(150)
    recorded = ResponseMatrix.from_dense(draw_answers(bank, theta, 1), items=bank.items)
    return bank, recorded, torch.as_tensor(recorded.dense().mean(1))


def test_ranks_are_right_and_the_interval_holds_at_the_stop(
    tested: tuple[ItemBank, ResponseMatrix, Tensor],
) -> None:
    bank, recorded, truth = tested
    estimates = replay(bank, recorded, rivals={"rival": (0.5, 0.5)}, stop_rank=True)
    settled = [(e, t) for e, t in zip(estimates, truth.tolist(), strict=True) if e.stopped == "rank"]
    assert len(settled) > 100
    right = [(e.score > 0.5) == (t > 0.5) for e, t in settled]
    assert np.mean(right) >= 0.97
    assert np.mean([e.interval[0] <= t <= e.interval[1] for e, t in settled]) >= 0.93
    assert np.median([e.items_asked for e, _ in settled]) < 100  # of 400
    # Those who are as good as the rival are asked everything rather than ranked by chance.
    near = [e for e, t in zip(estimates, truth.tolist(), strict=True) if abs(t - 0.5) < 0.01]
    assert np.mean([e.items_asked for e in near]) > 250


def test_a_difference_stops_at_its_width(tested: tuple[ItemBank, ResponseMatrix, Tensor]) -> None:
    bank, recorded, truth = tested
    estimates = replay(bank, recorded, difference=0.15)
    assert {estimate.stopped for estimate in estimates} == {"difference"}
    width = Goal(0.95, difference=0.15).width
    assert max(estimate.half_width for estimate in estimates) <= width
    inside = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth.tolist(), strict=True)]
    assert np.mean(inside) >= 0.93


def test_a_session_stops_on_a_rank_and_late_answers_leave_it_stopped(
    known_bank: Callable[..., ItemBank],
) -> None:
    bank = known_bank(200)
    p = expit(2.5 * bank.parameters.slope[:, 0] + bank.parameters.intercept)
    good = dict(zip(bank.items, (np.random.default_rng(0).random(200) < p).astype(float), strict=True))
    session = Session(bank, rivals={"weak": (0.3, 0.34), "fair": (0.4, 0.4)}, stop_rank=True)
    late = [reference.item for reference in session.ask(3)]
    while batch := session.ask():
        session.tell({reference.item: good[reference.item] for reference in batch})
    assert (session.stopped, session.pending) == ("rank", late)
    before = session.estimate()
    assert before.interval[0] > 0.4
    session.tell({item: good[item] for item in late})
    after = session.estimate()
    assert (after.stopped, session.ask()) == ("rank", [])
    assert after.items_asked == before.items_asked + 3
    assert after.half_width > 0.8 * before.half_width  # still the interval of all looks together
    assert after.interval[0] <= np.mean(list(good.values())) <= after.interval[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stop_rank": True}, "field 'rivals': no rival, wanted at least one"),
        ({"rivals": {"a": (0.5, 0.4)}}, "0.5 to 0.4 of 'a', wanted 0 <= lower <= upper <= 1"),
        ({"difference": 5}, "field 'difference': 5, wanted a fraction"),
        ({"difference": 0.05, "rivals": {"a": (0.3, 0.6)}}, "can't be found"),
    ],
)
def test_goals_that_can_not_be(
    known_bank: Callable[..., ItemBank], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Session(known_bank(20), **settings)
