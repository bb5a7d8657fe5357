"""A cohort: many subjects at once are each as they would be alone, restored or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.bank import ItemBank
from irteval.cohort import ANSWERED, CRITERIA, LOST, PENDING, Asked, Cohort
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.estimate.stopping import Goal
from irteval.responses import ResponseMatrix

if TYPE_CHECKING:
    from tests.conftest import Fitted

NAMES = [f"subject {n}" for n in range(4)]


@pytest.fixture(scope="module")
def bank(known_bank: Callable[..., ItemBank]) -> ItemBank:
    return known_bank(80)


@pytest.fixture(scope="module")
def scores(bank: ItemBank, draw_answers: Callable[..., NDArray[np.float64]]) -> Tensor:
    return torch.as_tensor(draw_answers(bank, np.array([-1.0, 0.0, 0.5, 2.0]), 0))


def run(cohort: Cohort, scores: Tensor, rows: Tensor, until: int, batch: int | None = None) -> list[Asked]:
    """Ask and answer until so many items were asked."""
    plans = []
    while (left := until - int(cohort.asked[rows[0]])) > 0:
        plan = cohort.plan(rows, left, batch)
        cohort.tell(rows, plan.items, scores[rows].gather(1, plan.items))
        plans.append(plan)
    return plans


@pytest.mark.parametrize("criterion", CRITERIA)
def test_together_is_each_alone(bank: ItemBank, scores: Tensor, criterion: str) -> None:
    everyone = torch.arange(4)
    together = Cohort(bank, NAMES, criterion=criterion, seed=1)
    run(together, scores, everyone, 40)
    look = together.look(everyone, 0.95)
    for n, name in enumerate(NAMES):
        alone = Cohort(bank, [name], criterion=criterion, seed=1)
        run(alone, scores[n : n + 1], torch.tensor([0]), 40)
        assert alone.state[0].tolist() == together.state[n].tolist()
        single = alone.look(torch.tensor([0]), 0.95)
        torch.testing.assert_close(single.total.low[0], look.total.low[n], atol=1e-8, rtol=0)
        torch.testing.assert_close(single.total.high[0], look.total.high[n], atol=1e-8, rtol=0)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_restored_step_counts_as_it_was_drawn(bank: ItemBank, scores: Tensor, criterion: str) -> None:
    rows = torch.tensor([0])
    first = Cohort(bank, NAMES[:1], criterion=criterion)
    second = Cohort(bank, NAMES[:1], criterion=criterion)
    for plan in run(first, scores, rows, 60):
        second.restore(0, plan.items[0].tolist(), plan.inclusion[0].tolist(), plan.step)
        second.tell(rows, plan.items, scores[rows].gather(1, plan.items))
    before, after = first.design_score(rows), second.design_score(rows)
    torch.testing.assert_close(after.mean, before.mean)
    torch.testing.assert_close(after.variance, before.variance)
    chosen = {"score": 15, "fisher": 60, "kl": 60, "d-optimal": 60, "posterior-variance": 60}
    assert before.draws.item() == 60 - chosen.get(criterion, 0)
    then, now = first.plan(rows, 20), second.plan(rows, 20)
    assert now.items.tolist() == then.items.tolist()
    torch.testing.assert_close(now.inclusion, then.inclusion, equal_nan=True)


def test_states_follow_what_happens(bank: ItemBank) -> None:
    rows = torch.tensor([0, 1])
    cohort = Cohort(bank, NAMES[:2])
    plan = cohort.plan(rows, 100)
    assert cohort.open_items().tolist() == [70, 70]
    assert bool((cohort.state.gather(1, plan.items) == PENDING).all())
    y = torch.ones(2, 10).double()
    y[1, 3] = torch.nan
    cohort.tell(rows, plan.items, y)
    assert bool((cohort.state[0, plan.items[0]] == ANSWERED).all())
    assert cohort.state[1, plan.items[1, 3]] == LOST
    assert cohort.asked.tolist() == [10, 10]
    assert cohort.steps.tolist() == [1, 1]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_is_not_available_is_never_asked(bank: ItemBank, scores: Tensor, criterion: str) -> None:
    available = np.zeros((4, 80), dtype=bool)
    available[:, ::2] = True
    cohort = Cohort(bank, NAMES, criterion=criterion, available=available)
    everyone = torch.arange(4)
    asked = torch.cat([plan.items for plan in run(cohort, scores, everyone, 40)], 1)
    assert bool((asked.sort(1).values == torch.arange(0, 80, 2)).all())
    assert cohort.open_items().tolist() == [0] * 4
    look = cohort.look(everyone, 0.95)
    assert bool((look.total.high > look.total.low).all())  # the other half stays part of the score


def test_adopted_answers_say_what_told_ones_say(bank: ItemBank, scores: Tensor) -> None:
    everyone = torch.arange(4)
    told = Cohort(bank, NAMES, criterion="fisher")
    run(told, scores, everyone, 20)
    adopted = Cohort(bank, NAMES)
    adopted.adopt(torch.where(told.state == ANSWERED, scores, torch.nan))
    before, after = told.look(everyone, 0.95), adopted.look(everyone, 0.95)
    torch.testing.assert_close(after.model.mean, before.model.mean, atol=1e-8, rtol=0)
    torch.testing.assert_close(after.total.low, before.total.low, atol=1e-8, rtol=0)
    assert bool(adopted.design_score(everyone).variance.isinf().all())
    ragged = torch.where(
        torch.rand(4, 80, generator=torch.Generator().manual_seed(0)) < 0.3, scores, torch.nan
    )
    ragged[2] = torch.nan
    cohort = Cohort(bank, NAMES)
    cohort.adopt(ragged)
    assert cohort.look(everyone, 0.95).answers.weight.sum(1).tolist() == (~ragged.isnan()).sum(1).tolist()


def test_suite_scores_are_those_of_their_items(known_bank: Callable[..., ItemBank], scores: Tensor) -> None:
    suite = known_bank(80, benchmarks=["a"] * 20 + ["b"] * 60)
    cohort = Cohort(suite, NAMES, criterion="random")
    run(cohort, scores, torch.arange(4), 80, batch=16)
    for n, estimate in enumerate(cohort.estimates(cohort.look(torch.arange(4), 0.95))):
        means = [scores[n, :20].mean().item(), scores[n, 20:].mean().item()]
        assert [group.score for group in estimate.groups] == pytest.approx(means)
        assert estimate.score == pytest.approx(np.mean(means))
        assert estimate.subject == NAMES[n]


def test_a_stop_by_design_needs_twenty_five_drawn_answers(bank: ItemBank, scores: Tensor) -> None:
    everyone = torch.arange(4)
    chosen = Cohort(bank, NAMES, criterion="random")
    run(chosen, scores, everyone, 20)
    assert not bool(chosen.look(everyone, 0.95, Goal(0.95, 0.4)).decision.by_design.any())
    run(chosen, scores, everyone, 37)
    look = chosen.look(everyone, 0.95, Goal(0.95, 0.4))
    assert bool(look.decision.stop.all())
    assert bool((look.total.half_width <= 0.4).all())


def test_intervals_hold_for_subjects_unlike_anyone(fitted: Fitted) -> None:
    # Their answers have nothing to do with the items' difficulty.
    rng = np.random.default_rng(0)
    p = np.stack([rng.permuted(rng.beta(1, 1.5, 120)) for _ in range(80)])
    responses = ResponseMatrix.from_dense((rng.random(p.shape) < p).astype(np.int8))
    truth = responses.subject_means()
    for settings in ({"budget": 37}, {"budget": 60}, {"target": 0.08}):
        estimates = replay(fitted.bank, responses, **settings)
        covered = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]
        assert np.mean(covered) >= 0.9
        assert np.mean([estimate.extrapolating for estimate in estimates]) > 0.7


def test_an_unknown_criterion_is_refused(bank: ItemBank) -> None:
    with pytest.raises(InputError, match="'best', wanted one of score, random, fisher, kl"):
        Cohort(bank, NAMES, criterion="best")
