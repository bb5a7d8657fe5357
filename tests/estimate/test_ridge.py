"""Ridge on scores: the closed form, what it is good at, and where it collapses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Reference
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from irteval.estimate.estimator import Sample
from irteval.estimate.mean import Mean
from irteval.estimate.ridge import PENALTIES, Ridge, regress
from irteval.responses import read_responses
from tests.conftest import Simulation


def test_is_the_best_penalty_left_one_out() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (30, 12)).astype(float)
    y, new = x @ rng.random(12) / 12 + 0.05 * rng.standard_normal(30), rng.random((5, 12))
    errors = [
        np.sqrt(np.mean((cross_val_predict(Reference(alpha=a), x, y, cv=LeaveOneOut()) - y) ** 2))
        for a in PENALTIES
    ]
    found, error = regress(x, y, new)
    assert error == pytest.approx(min(errors))
    expected = Reference(alpha=PENALTIES[np.argmin(errors)]).fit(x, y).predict(new)
    np.testing.assert_allclose(found, expected)


def test_covers_and_beats_the_mean(simulate_2pl: Callable[[int, int, int], Simulation]) -> None:
    scores = simulate_2pl(260, 300, 5).scores.astype(np.float64)
    source, targets, weights = scores[:160], scores[160:], np.full(300, 1 / 300)
    truth = targets.mean(1)
    error, plain, covered = [], [], []
    for seed in range(20):
        asked = np.isin(np.arange(300), np.random.default_rng(seed).permutation(300)[:40])
        sample = Sample(np.where(asked, targets, np.nan))
        found = Ridge().fit(source, weights).estimate(sample, 0.95)
        error.append(found.score - truth)
        plain.append(np.nanmean(sample.scores, 1) - truth)
        covered.append((found.low <= truth) & (truth <= found.high))
    assert np.square(plain).mean() > 1.2 * np.square(error).mean()
    assert 0.92 < np.mean(covered) < 0.98


def test_everything_asked_is_the_score_itself() -> None:
    scores = np.random.default_rng(0).integers(0, 2, (20, 30)).astype(float)
    weights = np.linspace(1, 2, 30) / 45
    found = Ridge().fit(scores[:15], weights).estimate(Sample(scores[15:]), 0.95)
    for values in (found.score, found.low, found.high):
        np.testing.assert_allclose(values, scores[15:] @ weights)


def test_collapses_beyond_the_source(shared: Path) -> None:
    scores = read_responses(shared / "data" / "arc_challenge_218" / "responses.parquet").dense()
    scores = scores[scores.mean(1).argsort()]
    source, targets = scores[:106], scores[-63:]
    weights = np.full(scores.shape[1], 1 / scores.shape[1])
    asked = np.isin(np.arange(len(weights)), np.random.default_rng(0).permutation(len(weights))[:50])
    sample, truth = Sample(np.where(asked, targets, np.nan)), targets.mean(1)
    found = Ridge().fit(source, weights).estimate(sample, 0.95)
    plain = Mean().fit(source, weights).estimate(sample, 0.95)
    assert (truth - found.score).mean() > 0.08
    assert ((found.low <= truth) & (truth <= found.high)).mean() < 0.5
    assert np.abs(plain.score - truth).mean() < np.abs(found.score - truth).mean() / 2
