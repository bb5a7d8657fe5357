"""The plain mean and Wilson's interval."""

from __future__ import annotations

import numpy as np
import pytest

from irteval.estimate.estimator import Sample
from irteval.estimate.mean import Mean, wilson


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
    ],
)
def test_wilson_in_an_endless_population(right: int, count: int, low: float, high: float) -> None:
    limits = wilson(np.array([right / count]), np.array([count]), 10**12, 0.95)
    np.testing.assert_allclose(np.ravel(limits), [low, high], atol=1e-6)


def test_wilson_takes_a_population_a_subject_and_closes_when_all_is_asked() -> None:
    low, high = wilson(np.full(3, 0.5), np.full(3, 50), np.array([50, 100, 10**9]), 0.95)
    assert high[0] - low[0] < 1e-6
    alone = wilson(np.array([0.5]), np.array([50 * 99 / 50]), 10**12, 0.95)
    np.testing.assert_allclose([low[1], high[1]], np.ravel(alone), atol=1e-6)
    assert (np.diff(high - low) > 0).all()


def test_weights_and_inclusion_probabilities() -> None:
    scores = np.array([[1.0, 0.0, 1.0, np.nan], [np.nan, np.nan, np.nan, np.nan]])
    inclusion = np.array([0.5, 1.0, 0.5, 0.0])
    found = Mean().fit(scores, np.array([0.4, 0.2, 0.3, 0.1])).estimate(Sample(scores, inclusion), 0.95)
    share = np.array([0.8, 0.2, 0.6]) / 1.6
    expected = share[[0, 2]].sum()
    assert found.score[0] == pytest.approx(expected)
    limits = wilson(np.array([expected]), 1 / np.array([(share**2).sum()]), 3, 0.95)
    np.testing.assert_allclose([found.low[0], found.high[0]], np.ravel(limits))
    assert np.isnan(found.score[1])


def test_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    right = rng.integers(20, 181, 4000)
    answers = rng.permuted(np.arange(200) < right[:, None], axis=1).astype(float)
    answers[:, 40:] = np.nan
    found = Mean().fit(answers, np.full(200, 1 / 200)).estimate(Sample(answers), 0.95)
    assert 0.94 < ((found.low <= right / 200) & (right / 200 <= found.high)).mean() < 0.965
