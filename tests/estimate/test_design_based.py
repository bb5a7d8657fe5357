"""The design-based score holds whatever the predictions are: unbiased, covered, patient, regroupable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.estimate.design_based import DesignScore, planned_variance, pooled_design_score
from irteval.select.systematic import inclusion_probabilities, systematic_draw

ITEMS = 120
ROWS = torch.arange(ITEMS)


@dataclass
class Log:
    """What `pooled_design_score` is told of R subjects, in the order of asking."""

    weights: Tensor
    y: Tensor
    p: Tensor
    inclusion: Tensor
    step: Tensor
    answered: Tensor
    pending: Tensor
    base: Tensor
    planned: Tensor

    def score(self) -> DesignScore:
        return pooled_design_score(**vars(self))

    def take(self, rows: object) -> Log:
        return Log(**{name: value[rows] for name, value in vars(self).items()})


def sessions(
    truth: NDArray[np.float64],
    predictions: list[NDArray[np.float64]],
    repeats: int,
    seed: int,
    chosen: int = 10,
    size: int = 12,
    lost: float = 0.0,
) -> Log:
    """Sessions of one subject that choose the first items and then draw one block a prediction.

    The design believes its predictions: it draws by their deviation with a uniform share of .3.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = torch.full((ITEMS,), 1 / ITEMS).double()
    is_open = torch.ones(repeats, ITEMS, dtype=torch.bool)
    is_open[:, :chosen] = False
    nothing = torch.full((repeats, 1), torch.nan).double()
    items, steps = (
        [torch.arange(chosen).expand(repeats, -1)],
        [torch.zeros(repeats, chosen, dtype=torch.long)],
    )
    inclusions, ps = [nothing.expand(-1, chosen)], [torch.full((repeats, chosen), 0.5).double()]
    base, planned = [nothing[:, 0]], [torch.ones(repeats).double()]
    for step, prediction in enumerate(predictions, 1):
        p = torch.as_tensor(prediction).expand(repeats, -1)
        share = torch.where(is_open, (p * (1 - p)).sqrt(), 0.0)
        share = 0.7 * share / share.sum(-1, keepdim=True) + 0.3 * is_open / is_open.sum(-1, keepdim=True)
        inclusion = inclusion_probabilities(share, size)
        start = torch.rand(repeats, generator=generator).double()
        drawn = systematic_draw(inclusion, p, start, size)
        items.append(drawn)
        steps.append(torch.full((repeats, size), step))
        inclusions.append(inclusion.gather(1, drawn))
        ps.append(p.gather(1, drawn))
        base.append((p * is_open) @ weights)
        planned.append(planned_variance(weights, p, inclusion, is_open))
        is_open = is_open.scatter(1, drawn, False)
    asked = torch.cat(items, 1)
    answered = torch.rand(asked.shape, generator=generator) >= lost
    answered[:, :chosen] = True
    return Log(
        weights=weights[asked],
        y=torch.where(answered, torch.as_tensor(truth)[asked], 0.0),
        p=torch.cat(ps, 1),
        inclusion=torch.cat(inclusions, 1),
        step=torch.cat(steps, 1),
        answered=answered,
        pending=torch.zeros_like(answered),
        base=torch.stack(base, 1),
        planned=torch.stack(planned, 1),
    )


def population(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Answers of one subject, and the probabilities they were drawn with."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 1, ITEMS)
    return (rng.random(ITEMS) < p).astype(np.float64), p


def predictions_of(kind: str, p: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Three blocks' predictions: ``right``, ``wrong`` (upside down), ``sure`` (everything is right)."""
    made = {"right": p, "wrong": 1 - p, "sure": np.full(ITEMS, 0.99)}[kind]
    return [np.clip(made, 0.01, 0.99)] * 3


def misses(log: Log, truth: NDArray[np.float64], multiplier: float = 2.05) -> float:
    """Share of sessions whose interval does not hold the truth."""
    score = log.score()
    return float(((score.mean - truth.mean()).abs() > multiplier * score.variance.sqrt()).double().mean())


@pytest.mark.parametrize("kind", ["right", "wrong", "sure"])
def test_unbiased_however_wrong_the_predictions(kind: str) -> None:
    truth, p = population()
    mean = sessions(truth, predictions_of(kind, p), 20_000, 0).score().mean
    assert mean.mean().item() == pytest.approx(truth.mean(), abs=4 * mean.std().item() / 20_000**0.5)


def test_predictions_that_change_between_blocks_keep_it_unbiased() -> None:
    truth, p = population(1)
    mean = sessions(truth, [np.full(ITEMS, 0.5), 1 - 0.9 * p, p], 20_000, 1).score().mean
    assert mean.mean().item() == pytest.approx(truth.mean(), abs=4 * mean.std().item() / 20_000**0.5)


@pytest.mark.parametrize("kind", ["right", "wrong", "sure"])
def test_interval_covers(kind: str) -> None:
    shares = []
    for seed in range(8):
        truth, p = population(seed)
        shares.append(misses(sessions(truth, predictions_of(kind, p), 500, seed), truth))
    assert np.mean(shares) <= 0.06


def test_good_predictions_make_it_sharper_than_random_sampling() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.4, ITEMS)
    truth = (rng.random(ITEMS) < p).astype(np.float64)
    mean = sessions(truth, predictions_of("right", p), 2000, 0).score().mean
    n = 46
    random = truth.var() / n * (ITEMS - n) / (ITEMS - 1)
    assert ((mean - truth.mean()) ** 2).mean().item() < 0.7 * random


@pytest.mark.parametrize("kind", ["right", "wrong"])
def test_lost_answers_neither_shift_nor_shrink_it(kind: str) -> None:
    shares = []
    for seed in range(8):
        truth, p = population(seed)
        log = sessions(truth, predictions_of(kind, p), 1000, seed, lost=0.4)
        mean = log.score().mean
        # Towards later blocks a lost answer stays as it was predicted: a bias of the wrong ones alone.
        assert mean.mean().item() == pytest.approx(truth.mean(), abs=0.01 if kind == "right" else 0.02)
        shares.append(misses(log, truth))
    assert np.mean(shares) <= 0.07


def test_lost_answers_of_a_certain_block_leave_it_uncertain() -> None:
    # Everything that was open is drawn with certainty, and a third of the answers never comes.
    shares = []
    for seed in range(8):
        truth, _ = population(seed)
        log = sessions(truth, [np.full(ITEMS, 0.5)], 500, seed, chosen=20, size=100, lost=1 / 3)
        assert log.score().variance.min() > 1e-4
        shares.append(misses(log, truth))
    assert np.mean(shares) <= 0.08


def test_everything_drawn_and_answered_is_exact() -> None:
    truth, p = population()
    score = sessions(truth, [p], 3, 0, chosen=20, size=100).score()
    np.testing.assert_allclose(score.mean, truth.mean(), atol=1e-9)
    assert score.variance.max() < 1e-9
    assert score.draws.tolist() == [100] * 3


def test_without_a_drawn_block_nothing_is_claimed() -> None:
    truth, _ = population()
    score = sessions(truth, [], 2, 0).score()
    assert bool(score.variance.isinf().all())
    assert score.draws.tolist() == [0, 0]


def test_a_block_waits_for_its_last_answer() -> None:
    truth, p = population()
    log = sessions(truth, predictions_of("right", p), 50, 0)
    second = torch.nonzero(log.step[0] == 2)[:, 0]
    log.answered[:, second[0]] = False
    log.pending[:, second[0]] = True
    waiting = log.score()
    assert waiting.draws.tolist() == [24] * 50
    # Its correction counts for nothing yet: the same with all of its answers turned round, seen by itself.
    first_two = torch.nonzero(log.step[0] <= 2)[:, 0]

    def early(log: Log) -> DesignScore:
        part = {
            name: value if name in ("base", "planned") else value[:, first_two]
            for name, value in vars(log).items()
        }
        return Log(**part | {"base": log.base[:, :3], "planned": log.planned[:, :3]}).score()

    before = early(log)
    log.y[:, second] = 1 - log.y[:, second]
    torch.testing.assert_close(early(log).mean, before.mean)
    torch.testing.assert_close(early(log).variance, before.variance)
    # Once it is told, the block joins in.
    log.y[:, second] = 1 - log.y[:, second]
    log.answered[:, second[0]], log.pending[:, second[0]] = True, False
    assert log.score().draws.tolist() == [36] * 50
    assert bool((early(log).mean != before.mean).any())


def test_written_out_by_hand() -> None:
    weights = torch.full((1, 3), 0.25).double()
    log = Log(
        weights=weights,
        y=torch.tensor([[1.0, 1.0, 0.0]]).double(),
        p=torch.tensor([[0.5, 0.6, 0.3]]).double(),
        inclusion=torch.tensor([[torch.nan, 0.5, 0.4]]).double(),
        step=torch.tensor([[0, 1, 2]]),
        answered=torch.ones(1, 3, dtype=torch.bool),
        pending=torch.zeros(1, 3, dtype=torch.bool),
        base=torch.tensor([[torch.nan, 0.25 * (0.6 + 0.3 + 0.2), 0.25 * (0.3 + 0.2)]]).double(),
        planned=torch.tensor([[1.0, 0.02, 0.01]]).double(),
    )
    first = 0.25 * (1 + 0.6 + 0.3 + 0.2 + (1 - 0.6) / 0.5)
    second = 0.25 * (1 + 1 + 0.3 + 0.2 + (0 - 0.3) / 0.4)
    score = log.score()
    assert score.mean.item() == pytest.approx((first / 0.02 + second / 0.01) / (1 / 0.02 + 1 / 0.01))
    seen = [(0.25 * 0.4) ** 2 * 0.5 / 0.25, (0.25 * 0.3) ** 2 * 0.6 / 0.16]
    ratio = (seen[0] / 0.02**2 + seen[1] / 0.01**2) / (1 / 0.02 + 1 / 0.01)
    dispersion = max(1, (2 * ratio + 16) / 18)
    assert score.variance.item() == pytest.approx(dispersion / (1 / 0.02 + 1 / 0.01))


def test_bad_predictions_raise_the_dispersion() -> None:
    truth, _ = population()
    confident = np.where(truth > 0, 0.02, 0.98)  # sure, and always wrong
    log = sessions(truth, [confident] * 3, 200, 0)
    plain = 1 / (1 / log.planned[:, 1:]).sum(1)
    assert bool((log.score().variance > 5 * plain).all())


def test_planned_variance_is_the_sum_it_says() -> None:
    weights = torch.tensor([0.2, 0.3, 0.5]).double()
    p = torch.tensor([[0.5, 0.001, 0.9]]).double()
    inclusion = torch.tensor([[0.25, 0.5, 0.0]]).double()
    frame = torch.tensor([[True, True, False]])
    expected = 0.04 * 0.25 * 3 + 0.09 * 0.01 * 1  # a prediction is never trusted to be certain
    assert planned_variance(weights, p, inclusion, frame).item() == pytest.approx(expected)


def test_regrouped_reordered_and_padded_it_is_the_same() -> None:
    truth, p = population()
    log = sessions(truth, predictions_of("right", p), 20, 0, lost=0.2)
    whole = log.score()
    for rows in (slice(0, 5), torch.tensor([7]), torch.tensor([19, 3])):
        part = log.take(rows).score()
        torch.testing.assert_close(part.mean, whole.mean[rows])
        torch.testing.assert_close(part.variance, whole.variance[rows])
    order = torch.randperm(46, generator=torch.Generator().manual_seed(0))
    shuffled = Log(**{n: v if n in ("base", "planned") else v[:, order] for n, v in vars(log).items()})
    torch.testing.assert_close(shuffled.score().mean, whole.mean)
    padded = Log(
        weights=torch.nn.functional.pad(log.weights, (0, 4), value=0.5),
        y=torch.nn.functional.pad(log.y, (0, 4)),
        p=torch.nn.functional.pad(log.p, (0, 4)),
        inclusion=torch.nn.functional.pad(log.inclusion, (0, 4), value=torch.nan),
        step=torch.nn.functional.pad(log.step, (0, 4), value=-1),
        answered=torch.nn.functional.pad(log.answered, (0, 4), value=True),
        pending=torch.nn.functional.pad(log.pending, (0, 4)),
        base=torch.nn.functional.pad(log.base, (0, 3), value=torch.nan),
        planned=torch.nn.functional.pad(log.planned, (0, 3), value=1.0),
    )
    torch.testing.assert_close(padded.score().mean, whole.mean)
    torch.testing.assert_close(padded.score().variance, whole.variance)
