"""Completion by principal components."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from irteval.estimate.estimator import Sample
from irteval.estimate.pca import Pca, impute, reconstruction

ITEMS = 200
EQUAL = np.full(ITEMS, 1 / ITEMS)


@pytest.fixture(scope="module")
def low_rank() -> NDArray[np.float64]:
    """120 subjects of graded scores with two factors and a little noise."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((120, 2)) @ rng.standard_normal((2, ITEMS))
    return np.clip(0.5 + 0.08 * factors + 0.03 * rng.standard_normal((120, ITEMS)), 0, 1)


@pytest.mark.parametrize("shape", [(30, 50), (50, 30)])
def test_reconstruction_is_that_of_principal_components(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).random(shape)
    model = PCA(3).fit(matrix)
    expected = model.inverse_transform(model.transform(matrix))
    np.testing.assert_allclose(matrix.mean(0) + reconstruction(matrix - matrix.mean(0), 3), expected)


def test_imputes_a_low_rank_matrix(low_rank: NDArray[np.float64]) -> None:
    missing = np.random.default_rng(1).random(low_rank.shape) < 0.3
    found = impute(np.where(missing, np.nan, low_rank), 2)
    np.testing.assert_array_equal(found[~missing], low_rank[~missing])
    assert np.sqrt(np.mean((found - low_rank)[missing] ** 2)) < 0.04


def test_recovers_scores_covers_and_beats_the_mean(low_rank: NDArray[np.float64]) -> None:
    source, targets = low_rank[:80], low_rank[80:].copy()
    source = np.where(np.random.default_rng(2).random(source.shape) < 0.1, np.nan, source)
    truth = targets.mean(1)
    asked = np.zeros((40, ITEMS), dtype=bool)
    for rows in (slice(0, 20), slice(20, 39)):
        asked[rows, np.random.default_rng(rows.start).permutation(ITEMS)[:30]] = True
    sample = np.where(asked, targets, np.nan)
    found = Pca().fit(source, EQUAL).estimate(Sample(sample), 0.95)
    assert np.isnan(found.score[39])
    error, plain = (found.score - truth)[:39], np.nanmean(sample[:39], axis=1) - truth[:39]
    assert np.square(plain).mean() > 2 * np.square(error).mean()
    assert ((found.low <= truth) & (truth <= found.high))[:39].mean() > 0.9
