"""Content constraints: shares hold after every batch, chosen or drawn, and stated probabilities stay true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.cohort import WITH_SHARES, Cohort
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.responses import ResponseMatrix
from irteval.select.content import Content, ContentBounds
from irteval.session import Session

SIZES = {"big": 100, "middle": 30, "small": 10}
BENCHMARKS = [name for name, size in SIZES.items() for _ in range(size)]
SHARES = {"big": (0.0, 0.4), "middle": (0.2, 1.0), "small": (0.15, 0.3)}
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def suite(known_bank: Callable[..., ItemBank]) -> ItemBank:
    return known_bank(len(BENCHMARKS), benchmarks=BENCHMARKS)


def content(asked: list[float], shares: dict[str, Any] | None = None) -> Content:
    return Content(ContentBounds.of(BENCHMARKS, shares or SHARES, CPU), torch.tensor([asked]).double())


@pytest.mark.parametrize("criterion", WITH_SHARES)
@pytest.mark.parametrize("batch", [1, 7, None])
def test_shares_hold_after_every_batch(
    suite: ItemBank, draw_answers: Callable[..., NDArray[np.float64]], criterion: str, batch: int | None
) -> None:
    scores = torch.as_tensor(draw_answers(suite, np.array([-1.0, 0.0, 1.5]), 0))
    cohort = Cohort(suite, ["a", "b", "c"], criterion=criterion, shares=SHARES)
    rows, group = torch.arange(3), torch.as_tensor([["big", "middle", "small"].index(b) for b in BENCHMARKS])
    while int(cohort.asked[0]) < 60:
        plan = cohort.plan(rows, 60 - int(cohort.asked[0]), batch)
        cohort.tell(rows, plan.items, scores.gather(1, plan.items))
        asked = int(cohort.asked[0])
        for g, name in enumerate(SIZES):
            count = (cohort.state != 0)[:, group == g].sum(1)
            least, most = SHARES[name]
            # All ten of the small one are asked before its share is reached.
            assert bool((count >= min(np.floor(least * asked + 1e-9), SIZES[name])).all()), (name, asked)
            assert bool((count <= np.ceil(most * asked)).all()), (name, asked)


def test_probabilities_within_bounds_are_those_of_the_draws(
    suite: ItemBank, draw_answers: Callable[..., NDArray[np.float64]]
) -> None:
    copies = 1500
    answers = torch.as_tensor(draw_answers(suite, np.array([0.3]), 0)).expand(copies, -1)
    rows = torch.arange(copies)
    names = [f"copy {n}" for n in range(copies)]
    cohort = Cohort(suite, names, criterion="random", shares={"small": (0.3, 1)}, seed=1)
    first = cohort.plan(rows, 20, 20)
    stated = torch.zeros(140).double().scatter(0, first.items.flatten(), first.inclusion.flatten())
    often = torch.zeros(copies, 140).scatter(1, first.items, 1.0).mean(0)
    torch.testing.assert_close(often.double(), stated, atol=0.05, rtol=0)
    assert float(stated[-10:].sum()) == pytest.approx(6)
    cohort.tell(rows, first.items, answers.gather(1, first.items))
    second = cohort.plan(rows, 20, 20)
    cohort.tell(rows, second.items, answers.gather(1, second.items))
    weights = cohort.scorer.weights[0]
    found = cohort.design_score(rows).mean
    error = float(found.std()) / copies**0.5
    assert float(found.mean()) == pytest.approx(float((weights * answers[0]).sum()), abs=4 * error)


def test_without_bounds_in_the_way_nothing_changes(suite: ItemBank) -> None:
    size = torch.rand(1, 140, generator=torch.Generator().manual_seed(0)).double()
    free = content([0, 0, 0], {"*": (0.0, 1.0)}).inclusion(size, 12)
    expected = 12 * size / size.sum()
    torch.testing.assert_close(free, expected, atol=1e-6, rtol=0)


def test_limits_that_a_batch_can_not_meet_are_met_as_far_as_it_goes() -> None:
    frame = torch.ones(1, 140, dtype=torch.bool)
    # 30 were asked, all of the big one: the small one is owed 4, the middle one 6; a batch of 5 has room for
    # the one that is further behind, and for no more.
    low, high = content([30, 0, 0]).limits(frame, 5)
    assert low[0].tolist() == [0, 5, 0]
    assert float(high.sum()) >= 5
    # Where only the big one has open items, it may exceed its share.
    frame[0, 100:] = False
    low, high = content([30, 30, 10]).limits(frame, 20)
    assert high[0].tolist() == [20, 0, 0]


def test_a_share_that_is_exact_in_decimals_is_exact() -> None:
    low, high = content([0, 0, 0], {"big": (0.58, 0.58)}).limits(torch.ones(1, 140, dtype=torch.bool), 50)
    assert (low[0, 0], high[0, 0]) == (29, 29)


def test_every_benchmark_gets_an_estimate_and_a_folder_goes_on(
    suite: ItemBank, draw_answers: Callable[..., NDArray[np.float64]], tmp_path: Any
) -> None:
    suite.save(tmp_path / "bank")
    answers = dict(zip(suite.items, draw_answers(suite, np.array([0.5]), 3)[0].tolist(), strict=True))
    whole = Session(suite, budget=50, shares=SHARES)
    kept = Session.create(tmp_path / "run", tmp_path / "bank", budget=50, shares=SHARES)
    while batch := whole.ask():
        whole.tell({r.item: answers[r.item] for r in batch})
        assert [r.item for r in kept.ask()] == [r.item for r in batch]
        kept.tell({r.item: answers[r.item] for r in batch})
        kept.close()
        kept = Session.resume(tmp_path / "run")
    estimate = kept.estimate()
    kept.close()
    asked = {group.benchmark: group.items_asked for group in estimate.groups}
    assert asked["small"] >= 7
    assert asked["middle"] >= 10
    assert asked["big"] <= 20
    assert estimate.score == pytest.approx(whole.estimate().score, abs=1e-9)


def test_shares_narrow_the_group_that_they_are_for(
    suite: ItemBank, draw_answers: Callable[..., NDArray[np.float64]]
) -> None:
    theta = np.random.default_rng(0).standard_normal(60)
    recorded = ResponseMatrix.from_dense(draw_answers(suite, theta, 1), items=suite.items)
    width, covered = {}, {}
    for name, shares in (("free", None), ("big", {"big": (0.8, 1.0)})):
        estimates = replay(suite, recorded, budget=50, shares=shares)
        big = [estimate.groups[0] for estimate in estimates]
        truth = recorded.dense()[:, :100].mean(1)
        width[name] = np.mean([group.half_width for group in big])
        covered[name] = np.mean(
            [g.interval[0] <= t <= g.interval[1] for g, t in zip(big, truth, strict=True)]
        )
    assert width["big"] < 0.9 * width["free"]
    assert min(covered.values()) > 0.88  # of .95; the Monte-Carlo error of 60 subjects is .028


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"huge": (0, 1)}, "the bank has no benchmark 'huge', wanted one of big, middle, small"),
        ({"big": (0.5, 0.2)}, "0.5:0.2 of 'big', wanted 0 <= least <= most <= 1"),
        ({"*": (0.4, 1)}, r"the least shares sum to 1.2, wanted at most 1"),
        ({"*": (0, 0.3)}, r"the greatest shares sum to 0.9, wanted at least 1"),
    ],
)
def test_shares_that_can_not_be(suite: ItemBank, shares: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Session(suite, shares=shares)
    with pytest.raises(InputError, match="'fisher', with shares wanted one of score, random"):
        Session(suite, shares=SHARES, criterion="fisher")
