"""The control and Wilson's interval; the default beyond the range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irteval.estimate.mean import wilson
from irteval.responses import ResponseMatrix
from irteval.validation.methods import METHODS, random_sample, wilson_items
from irteval.validation.metrics import full_scores
from irteval.validation.splits import make_split

Simulate = Callable[[int, int, int], tuple[Any, ...]]


@pytest.fixture(scope="module")
def responses(simulate_2pl: Simulate) -> ResponseMatrix:
    return ResponseMatrix.from_dense(simulate_2pl(60, 80, 5)[3])


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [
        (0, 10, 0, 0.277533),
        (10, 10, 0.722467, 1),
        (0, 25, 0, 0.133192),
        (25, 25, 0.866808, 1),
        (0, 5000, 0, 0.000768),
        (19, 20, 0.763869, 0.991119),
        (1, 1, 0.206549, 1),
        (5, 5, 0.565518, 1),
    ],
)
def test_wilson_has_its_published_values(right: int, count: int, low: float, high: float) -> None:
    found = wilson(np.array([right / count]), np.array([count]), 10**12, 0.95)
    np.testing.assert_allclose([found[0][0], found[1][0]], [low, high], atol=1e-6)


def test_wilson_knows_that_a_benchmark_ends() -> None:
    mean = np.array([0.6])
    widths = [np.ptp(wilson(mean, np.array([50]), n, 0.95)) for n in (10**9, 500, 100, 51)]
    assert widths == sorted(widths, reverse=True)
    low, high = wilson(mean, np.array([50]), 50, 0.95)
    assert (low[0], high[0]) == (pytest.approx(0.6, abs=1e-6), pytest.approx(0.6, abs=1e-6))
    # As if the sample were (N - 1) / (N - n) times as large.
    np.testing.assert_allclose(
        wilson(mean, np.array([50]), 99, 0.95), wilson(mean, np.array([100]), 10**12, 0.95), atol=1e-9
    )


def test_wilson_items_is_the_least_number_that_is_enough() -> None:
    truth, recorded = np.array([0.5, 0.9, 0.5]), np.array([500, 500, 20])
    needed = wilson_items(truth, recorded, 0.05, 0.95).astype(int)
    for size, enough in ((needed, True), (needed - 1, False)):
        low, high = wilson(truth, size, recorded, 0.95)
        assert (((high - low) / 2 <= 0.05) == enough).all()


def test_random_mean_is_unbiased_and_covered(responses: ResponseMatrix) -> None:
    held = [METHODS["random"](responses, 0)(responses, [20], seed, 0.95)[0] for seed in range(200)]
    error = np.stack([h.error for h in held])
    by_seed = error.mean(1)  # the items of a seed are the same for everybody
    assert abs(by_seed.mean()) < 4 * by_seed.std() / np.sqrt(len(by_seed))
    truth = full_scores(responses)
    expected = np.sqrt((truth * (1 - truth) / 20 * 60 / 79).mean())
    assert np.sqrt((error**2).mean()) == pytest.approx(expected, rel=0.06)
    assert np.mean([h.covered for h in held]) == pytest.approx(0.95, abs=0.02)
    assert not np.array_equal(held[0].score, held[1].score)


def test_everybody_gets_the_same_items_and_more_of_them(responses: ResponseMatrix) -> None:
    few, many = (~np.isnan(random_sample(responses, size, 3)) for size in (10, 30))
    assert (few == few[0]).all()
    assert (few.sum(1) == 10).all()
    assert (many >= few).all()


def test_random_mean_draws_from_what_is_there(
    with_missing: Callable[..., NDArray[np.int8]], responses: ResponseMatrix
) -> None:
    holes = ResponseMatrix.from_dense(with_missing(np.asarray(responses.scores), 0.5, 0))
    (held,) = METHODS["random"](holes, 0)(holes, [60], 0, 0.95)
    np.testing.assert_array_equal(held.items, np.minimum(holes.subject_counts(), 60))
    assert np.isfinite(held.score).all()
    everything = held.items == holes.subject_counts()
    np.testing.assert_allclose(held.score[everything], held.truth[everything])
    np.testing.assert_allclose(held.low[everything], held.high[everything], atol=1e-6)


def test_intervals_hold_beyond_the_range(simulate_2pl: Simulate) -> None:
    covered = []
    for seed in range(3):
        responses = ResponseMatrix.from_dense(simulate_2pl(60, 80, 10 + seed)[3])
        split = make_split(responses, "extrapolation", seed)
        source, targets = responses.take(split.source), responses.take(split.target)
        (held,) = METHODS["auto"](source, seed)(targets, [25], seed, 0.95)
        covered.append(held.covered.mean())
    assert np.mean(covered) >= 0.92
