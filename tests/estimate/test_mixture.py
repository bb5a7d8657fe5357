"""The mixture of hypotheses: its moments, the gate on "like the calibrated ones", the in-range weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import expit, ndtr
from torch import Tensor

from irteval.bank import ItemBank
from irteval.calibrate.hypotheses import INSIDE, SHIFTED, WIDE, HypothesisSet
from irteval.calibrate.prediction import Prediction, predict
from irteval.calibrate.source import difficulty_bins
from irteval.estimate.mixture import SourceRange, mixture_score

ITEMS = 60
WEIGHTS = torch.full((ITEMS,), 1 / ITEMS).double()
SOURCE = SourceRange(low=0.2, high=0.8, reliability=0.95, constant_share=0.0)


@pytest.fixture
def predicted(known_bank: Callable[..., ItemBank]) -> Callable[[Tensor], Prediction]:
    """A function of answers [S, N], NaN for none, to their predictions."""
    parameters = known_bank(ITEMS).parameters
    bins = difficulty_bins(expit(parameters.intercept))
    fit = HypothesisSet.build(parameters, bins, np.zeros(ITEMS, int), None, (INSIDE, SHIFTED, WIDE))

    def make(scores: Tensor) -> Prediction:
        items = torch.arange(ITEMS).expand(len(scores), -1)
        return predict((fit,), items, scores.nan_to_num(), (~scores.isnan()).double())

    return make


def answers(known_bank: Callable[..., ItemBank], theta: list[float], count: int) -> Tensor:
    """Answers to every third, fourth … item by subjects of these abilities, rounded expectations."""
    parameters = known_bank(ITEMS).parameters
    p = expit(np.array(theta)[:, None] * parameters.slope[:, 0] + parameters.intercept)
    scores = (np.random.default_rng(0).random(p.shape) < p).astype(float)
    scores[:, count:] = np.nan
    return torch.as_tensor(scores)


def test_range_and_trust() -> None:
    trusts = [SourceRange(0, 1, reliability, 0).trust for reliability in (0.2, 0.6, 0.7, 0.8, 1)]
    np.testing.assert_allclose(trusts, [0, 0, 0.5, 1, 1], atol=1e-12)
    mean, variance = torch.tensor([0.5, 0.9, 0.1]).double(), torch.full((3,), 0.01).double()
    expected = [max(ndtr((m - 0.8) / 0.1), ndtr((0.2 - m) / 0.1)) for m in (0.5, 0.9, 0.1)]
    np.testing.assert_allclose(SOURCE.beyond(mean, variance), expected, rtol=1e-5)


def test_moments_are_those_of_a_mixture(
    known_bank: Callable[..., ItemBank], predicted: Callable[[Tensor], Prediction]
) -> None:
    scores = answers(known_bank, [0.0, 1.0], 20)
    prediction = predicted(scores)
    answered, y = (~scores.isnan()).double(), scores.nan_to_num()
    mixed = mixture_score(prediction, SOURCE, WEIGHTS, answered, y)
    mean, variance = prediction.score(WEIGHTS, answered, y)
    weight = mixed.weight
    torch.testing.assert_close(weight.sum(-1), torch.ones(2).double())
    torch.testing.assert_close(mixed.mean, (weight * mean).sum(-1))
    second = (weight * (variance + mean**2)).sum(-1)
    torch.testing.assert_close(mixed.variance, second - mixed.mean**2, atol=1e-10, rtol=1e-6)


def test_a_subject_like_the_source_is_in_range_and_a_stronger_one_is_not(
    known_bank: Callable[..., ItemBank], predicted: Callable[[Tensor], Prediction]
) -> None:
    scores = answers(known_bank, [0.0, 4.0], 40)
    mixed = mixture_score(predicted(scores), SOURCE, WEIGHTS, (~scores.isnan()).double(), scores.nan_to_num())
    assert mixed.in_range[0] > 0.9
    assert mixed.in_range[1] == 0
    assert mixed.weight[1, 0] < 0.02
    assert mixed.weight[0, 0] > 0.3


def test_a_source_of_noise_is_never_trusted(
    known_bank: Callable[..., ItemBank], predicted: Callable[[Tensor], Prediction]
) -> None:
    scores = answers(known_bank, [0.0], 40)
    noise = SourceRange(low=0.2, high=0.8, reliability=0.5, constant_share=0.0)
    mixed = mixture_score(predicted(scores), noise, WEIGHTS, (~scores.isnan()).double(), scores.nan_to_num())
    assert mixed.in_range.item() == 0
    assert mixed.weight[0, 0].item() < 1e-6


def test_extremes_are_finite(predicted: Callable[[Tensor], Prediction]) -> None:
    scores = torch.stack([torch.ones(ITEMS), torch.zeros(ITEMS), torch.full((ITEMS,), torch.nan)]).double()
    scores[:2, 50:] = torch.nan
    mixed = mixture_score(predicted(scores), SOURCE, WEIGHTS, (~scores.isnan()).double(), scores.nan_to_num())
    for value in vars(mixed).values():
        assert bool(value.isfinite().all())
    assert mixed.mean[0] > 0.93
    assert mixed.mean[1] < 0.07
    assert 0.3 < mixed.mean[2].item() < 0.7
    assert mixed.variance.min() > 0
