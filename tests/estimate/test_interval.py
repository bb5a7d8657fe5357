"""The combined interval: inside what is possible, never of zero width too early, ordered in level."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from irteval.estimate.design_based import DesignScore
from irteval.estimate.interval import Interval, combined_interval, design_interval
from irteval.estimate.mixture import ModelScore, SourceRange

SOURCE = SourceRange(low=0.2, high=0.8, reliability=0.95, constant_share=0.1)
SHARE = st.floats(0, 1)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def model_of(mean: float, variance: float, in_range: float) -> ModelScore:
    return ModelScore(vector(mean), vector(variance), vector(in_range), torch.ones(1, 1).double())


def design_of(mean: float = 0.0, variance: float = np.inf, draws: float = 0) -> DesignScore:
    return DesignScore(vector(mean), vector(variance), vector(draws))


def combine(
    model: ModelScore,
    design: DesignScore,
    *,
    asked: float = 25,
    possible: tuple[float, float] = (0, 1),
    smallest: float = 0.001,
    level: float = 0.95,
    source: SourceRange = SOURCE,
) -> Interval:
    low, high = possible
    return combined_interval(
        model, design, source, vector(asked), (vector(low), vector(high)), smallest, level
    )


@settings(max_examples=300, deadline=None)
@given(SHARE, st.floats(1e-12, 0.5), SHARE, SHARE, st.floats(1e-12, 0.5), st.booleans(), SHARE, SHARE, SHARE)
def test_inside_what_is_possible_with_a_positive_width(
    mean: float,
    variance: float,
    in_range: float,
    design_mean: float,
    design_variance: float,
    known: bool,
    answered: float,
    right: float,
    level: float,
) -> None:
    asked = min(199, round(200 * answered))
    low = round(asked * right) / 200
    high = low + (200 - asked) / 200
    interval = combine(
        model_of(mean, variance, in_range),
        design_of(design_mean - 0.2, design_variance) if known else design_of(),
        asked=asked,
        possible=(low, high),
        smallest=1 / 400,
        level=min(max(level, 0.01), 0.999),
    )
    assert low <= interval.low.item() <= interval.score.item() <= interval.high.item() <= high
    assert interval.high.item() - interval.low.item() >= 1 / 400 - 1e-12


def test_zero_width_when_nothing_is_open() -> None:
    interval = combine(model_of(0.6, 1e-12, 1), design_of(0.3, 0.01), possible=(0.42, 0.42))
    assert interval.low.item() == interval.score.item() == interval.high.item() == 0.42


@pytest.mark.parametrize("in_range", [0, 0.4, 1])
def test_a_higher_level_holds_the_lower_one(in_range: float) -> None:
    levels = [
        combine(model_of(0.5, 0.002, in_range), design_of(0.52, 0.003), level=level)
        for level in (0.5, 0.8, 0.9, 0.95, 0.99)
    ]
    for narrow, wide in pairwise(levels):
        assert wide.low.item() < narrow.low.item()
        assert wide.high.item() > narrow.high.item()
        assert wide.score.item() == narrow.score.item()


def test_in_range_it_is_the_model_alone() -> None:
    interval = combine(model_of(0.5, 0.0016, 1), design_of(0.51, 0.0025))
    assert interval.score.item() == pytest.approx(0.5)
    assert interval.half_width.item() == pytest.approx(2 * 0.04)


def test_beyond_it_leans_on_the_design() -> None:
    interval = combine(model_of(0.7, 0.0025, 0), design_of(0.65, 0.0009))
    variance = 1.4 * 0.0025 + 0.13 * 0.1**2 / (4 + 0.3 * 25 * 0.1)
    lean = variance / (variance + 0.0009)
    spread = (1 - lean) ** 2 * variance + lean**2 * 0.0009 + lean * (1 - lean) * np.sqrt(variance * 0.0009)
    centre = (interval.low + interval.high).item() / 2
    assert centre == pytest.approx(0.7 + lean * (0.65 - 0.7))
    assert interval.half_width.item() == pytest.approx(2.1 * np.sqrt(spread))
    assert interval.score.item() == pytest.approx(0.7)


def test_a_score_outside_the_limits_is_moved_to_them() -> None:
    interval = combine(model_of(0.9, 0.0001, 0), design_of(0.5, 0.0001))
    assert interval.score.item() == interval.high.item() < 0.9


def test_many_answers_and_an_unreliable_source_widen_it() -> None:
    few, many = (combine(model_of(0.5, 0.0016, 1), design_of(), asked=n).half_width.item() for n in (50, 200))
    assert few == pytest.approx(2 * 0.04)
    assert many == pytest.approx(2 * 0.04 * np.sqrt(1.6))  # 1 + .3 log2(200 / 50)
    noisy = SourceRange(low=0.2, high=0.8, reliability=0.6, constant_share=0.1)
    calm = SourceRange(low=0.2, high=0.8, reliability=0.8, constant_share=0.1)
    outside = model_of(0.5, 0.0016, 0)
    ratio = (
        combine(outside, design_of(), source=noisy).half_width
        / combine(outside, design_of(), source=calm).half_width
    )
    assert 1.15 < ratio.item() < np.sqrt(1.5)


def test_a_design_that_disagrees_widens_the_model() -> None:
    agreeing = combine(model_of(0.5, 0.0004, 1), design_of(0.5, 0.0001))
    far = combine(model_of(0.5, 0.0004, 1), design_of(0.8, 0.0001))
    assert agreeing.half_width.item() == pytest.approx(2 * 0.02)
    assert far.half_width.item() == pytest.approx(2 * np.sqrt((0.3**2 - 0.0001) / 2))


def test_design_alone_has_its_own_width_and_at_least_the_smallest() -> None:
    possible = (vector(0.0), vector(1.0))
    interval = design_interval(design_of(0.5, 0.0004), possible, 0.01, 0.95)
    assert interval.half_width.item() == pytest.approx(2.05 * 0.02)
    tight = design_interval(design_of(0.5, 1e-12), possible, 0.01, 0.95)
    assert tight.half_width.item() == pytest.approx(0.01)
    nothing = design_interval(design_of(), possible, 0.01, 0.95)
    assert (nothing.low.item(), nothing.high.item()) == (0, 1)


def test_rows_are_chosen_one_by_one() -> None:
    mine = Interval(*(vector(1, 2),) * 4)
    other = Interval(*(vector(3, 4),) * 4)
    assert mine.where(torch.tensor([True, False]), other).low.tolist() == [1, 4]
