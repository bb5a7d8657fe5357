"""The score-variance criterion against updates written out with matrices, and against random choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from irteval.bank import ItemBank
from irteval.calibrate.hypotheses import INSIDE, SHIFTED, WIDE, HypothesisSet
from irteval.calibrate.prediction import Prediction, predict
from irteval.calibrate.source import difficulty_bins
from irteval.irt.parameters import ItemParameters
from irteval.select.score_variance import score_variance_batch

ITEMS = 40
WEIGHTS = torch.full((ITEMS,), 1 / ITEMS).double()
NOBODY = torch.zeros(1, 0, dtype=torch.long)


def prediction_of(parameters: ItemParameters, y: Tensor, answered: Tensor, seed: int = 0) -> Prediction:
    """Predictions by two fits, of one and of two dimensions with uncertain items."""
    rng = np.random.default_rng(seed)
    slope = np.hstack([parameters.slope, 0.5 * rng.standard_normal((ITEMS, 1))])
    second = ItemParameters(slope, parameters.intercept, np.broadcast_to(0.1 * np.eye(3), (ITEMS, 3, 3)))
    bins = difficulty_bins(expit(parameters.intercept))
    fits = tuple(
        HypothesisSet.build(p, bins, np.zeros(ITEMS, int), None, (INSIDE, SHIFTED, WIDE))
        for p in (parameters, second)
    )
    return predict(fits, torch.arange(ITEMS).expand(len(y), -1), y, answered)


@pytest.fixture
def case(known_bank: Callable[..., ItemBank]) -> tuple[Prediction, Tensor]:
    """Predictions for two subjects with 10 answers each, and where they have none."""
    y = torch.as_tensor(np.random.default_rng(1).integers(0, 2, (2, ITEMS)).astype(np.float64))
    answered = torch.zeros(2, ITEMS).double()
    answered[0, :10] = answered[1, 20:30] = 1
    return prediction_of(known_bank(ITEMS).parameters, y, answered), 1 - answered


def variance_after(prediction: Prediction, rest: Tensor, row: int, items: list[int]) -> float:
    """Mean over hypotheses of ``gᵀ C g`` after these items, by inverting the precision as it stands."""
    gradient = prediction.gradient(WEIGHTS, rest)
    curvature, weight = prediction.split(prediction.curvature), prediction.split(prediction.weight)
    total = 0.0
    for f, fit in enumerate(prediction.fits):
        for t in range(3):
            precision = torch.linalg.inv(prediction.covariance[f][row, t])
            for i in items:
                information = curvature[f][row, t, i] * prediction.kappa[f][row, t, i] ** 2
                precision = precision + information * torch.outer(fit.features[i], fit.features[i])
            g = gradient[f][row, t]
            total += float(weight[f][row, t] * g @ torch.linalg.inv(precision) @ g)
    return total


def test_choices_are_the_greedy_ones_of_a_written_out_update(case: tuple[Prediction, Tensor]) -> None:
    prediction, rest = case
    chosen = score_variance_batch(prediction, WEIGHTS, rest > 0, rest, torch.zeros(2, 0, dtype=torch.long), 5)
    for row in range(2):
        asked: list[int] = []
        for item in chosen[row].tolist():
            open_items = [i for i in range(ITEMS) if rest[row, i] and i not in asked]
            best = min(variance_after(prediction, rest, row, [*asked, i]) for i in open_items)
            assert variance_after(prediction, rest, row, [*asked, item]) == pytest.approx(best, rel=1e-9)
            asked.append(item)


def test_pending_items_count_as_answered(case: tuple[Prediction, Tensor]) -> None:
    prediction, rest = case
    whole = score_variance_batch(prediction, WEIGHTS, rest > 0, rest, torch.zeros(2, 0, dtype=torch.long), 6)
    # One subject has three pending, the other one two: the second row is padded.
    pending = torch.stack([whole[0, :3], torch.tensor([whole[1, 0], whole[1, 1], -1])])
    frame = rest > 0
    for row in range(2):
        frame[row, pending[row][pending[row] >= 0]] = False
    after = score_variance_batch(prediction, WEIGHTS, frame, rest, pending, 3)
    assert after[0].tolist() == whole[0, 3:].tolist()
    assert after[1].tolist() == whole[1, 2:5].tolist()


def test_inputs_are_left_alone(case: tuple[Prediction, Tensor]) -> None:
    prediction, rest = case
    covariance, frame = [c.clone() for c in prediction.covariance], rest > 0
    score_variance_batch(prediction, WEIGHTS, frame, rest, torch.zeros(2, 0, dtype=torch.long), 5)
    assert bool((frame == (rest > 0)).all())
    for before, now in zip(covariance, prediction.covariance, strict=True):
        torch.testing.assert_close(before, now)


def test_only_open_items_are_chosen_and_none_twice(case: tuple[Prediction, Tensor]) -> None:
    prediction, rest = case
    chosen = score_variance_batch(
        prediction, WEIGHTS, rest > 0, rest, torch.zeros(2, 0, dtype=torch.long), 30
    )
    for row in range(2):
        assert sorted(chosen[row].tolist()) == torch.nonzero(rest[row])[:, 0].tolist()


def test_beats_random_items(case: tuple[Prediction, Tensor]) -> None:
    prediction, rest = case
    chosen = score_variance_batch(prediction, WEIGHTS, rest > 0, rest, torch.zeros(2, 0, dtype=torch.long), 8)
    rng = np.random.default_rng(0)
    for row in range(2):
        open_items = torch.nonzero(rest[row])[:, 0].numpy()
        draws = [
            variance_after(prediction, rest, row, rng.choice(open_items, 8, replace=False).tolist())
            for _ in range(50)
        ]
        assert variance_after(prediction, rest, row, chosen[row].tolist()) < min(draws)


def test_a_batch_is_not_one_question_asked_eight_times() -> None:
    # 20 twins of the most informative item, and 20 items of another kind (a second dimension).
    slope = np.zeros((ITEMS, 2))
    slope[:20, 0], slope[20:, 1] = 1.5, 1.2
    parameters = ItemParameters(slope, np.zeros(ITEMS))
    fit = HypothesisSet.build(parameters, np.zeros(ITEMS, int), np.zeros(ITEMS, int), None, (INSIDE,))
    nothing = torch.zeros(1, 0).double()
    prediction = predict((fit,), NOBODY, nothing, nothing)
    rest = torch.ones(1, ITEMS).double()
    chosen = score_variance_batch(prediction, WEIGHTS, rest > 0, rest, NOBODY, 8)[0]
    assert 3 <= int((chosen < 20).sum()) <= 5
    alone = score_variance_batch(prediction, WEIGHTS, rest > 0, rest, NOBODY, 1)[0]
    assert int(alone[0]) < 20  # what eight single best choices would all be


def test_an_item_with_no_information_is_never_preferred() -> None:
    slope = np.ones((ITEMS, 1))
    slope[:10] = 0
    parameters = ItemParameters(slope, np.linspace(-1, 1, ITEMS))
    fit = HypothesisSet.build(parameters, np.zeros(ITEMS, int), np.zeros(ITEMS, int), None, (INSIDE,))
    nothing = torch.zeros(1, 0).double()
    rest = torch.ones(1, ITEMS).double()
    chosen = score_variance_batch(
        predict((fit,), NOBODY, nothing, nothing), WEIGHTS, rest > 0, rest, NOBODY, 30
    )
    assert int(chosen.min()) >= 10
