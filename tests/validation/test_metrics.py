"""The summary of held-out errors: by hand, and by scipy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import mean_absolute_error, roc_auc_score, root_mean_squared_error

from irteval.responses import ResponseMatrix
from irteval.validation.metrics import (
    clustered_se,
    decision_accuracy,
    full_scores,
    sampling_variance,
    summarise,
)


@pytest.fixture
def details() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    truth = rng.random(40)
    score = truth + 0.1 * rng.standard_normal(40)
    return pd.DataFrame(
        {
            "seed": np.repeat([0, 1], 20),
            "subject": [f"s{n % 30}" for n in range(40)],
            "truth": truth,
            "score": score,
            "low": score - 0.1,
            "high": score + 0.1,
            "items": 20.0,
            "uniform_variance": truth * (1 - truth) / 20,
        }
    )


def test_the_summary_is_what_its_columns_say(details: pd.DataFrame) -> None:
    row, truth, score = summarise(details), details["truth"], details["score"]
    assert row["subjects"] == 30
    assert row["mae"] == pytest.approx(mean_absolute_error(truth, score))
    assert row["rmse"] == pytest.approx(root_mean_squared_error(truth, score))
    assert row["bias"] == pytest.approx((score - truth).mean())
    assert row["coverage"] == pytest.approx(((score - truth).abs() <= 0.1).mean())
    assert (row["width"], row["items"]) == (pytest.approx(0.2), 20)
    halves = [details[:20], details[20:]]
    for name, function in (("kendall", kendalltau), ("spearman", spearmanr)):
        expected = np.mean([function(half["score"], half["truth"]).statistic for half in halves])
        assert row[name] == pytest.approx(expected)
    # Without ties Kendall's tau is the share of pairs ordered rightly, less the others.
    assert row["decision"] == pytest.approx((row["kendall"] + 1) / 2)
    expected = details["uniform_variance"].mean() / ((score - truth) ** 2).mean()
    assert row["effective_sample"] == pytest.approx(expected)


def test_no_interval_is_no_coverage(details: pd.DataFrame) -> None:
    row = summarise(details.assign(low=np.nan, high=np.nan))
    assert np.isnan([row["coverage"], row["coverage_se"], row["width"]]).all()
    assert np.isfinite(row["mae"])


def test_decisions_count_ties_by_half() -> None:
    truth = np.array([0, 0, 1, 1, 1])
    score = np.array([0.2, 0.4, 0.4, 0.1, 0.9])
    assert decision_accuracy(score, truth) == pytest.approx(roc_auc_score(truth, score))
    assert np.isnan(decision_accuracy(score, np.ones(5)))


def test_sampling_variance_is_that_of_drawing_without_replacement() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((1, 30))
    scores[0, :6] = np.nan
    draws = [rng.permutation(scores[0, 6:])[:8].mean() for _ in range(20_000)]
    assert sampling_variance(scores, np.array([8.0]))[0] == pytest.approx(np.var(draws), rel=0.05)
    assert sampling_variance(scores, np.array([24.0]))[0] == 0


def test_standard_errors_cluster_by_subject() -> None:
    values = np.random.default_rng(0).standard_normal(200)
    plain = clustered_se(values, np.array([f"s{n}" for n in range(200)]))
    assert plain == pytest.approx(values.std(ddof=1) / np.sqrt(200), rel=1e-6)
    repeated = clustered_se(np.tile(values, 5), np.array([f"s{n}" for n in range(200)] * 5))
    assert repeated == pytest.approx(plain)  # the same subjects five times are no new subjects
    assert np.isnan(clustered_se(values, np.array(["one"] * 200)))


def test_full_scores_are_means_of_benchmarks() -> None:
    scores = np.array([[1, 0, 0, np.nan], [1, 1, np.nan, np.nan]])
    plain = ResponseMatrix.from_dense(scores)
    np.testing.assert_allclose(full_scores(plain), [1 / 3, 1])
    suite = ResponseMatrix.from_dense(scores, benchmarks=["a", "b", "b", "b"])
    np.testing.assert_allclose(full_scores(suite), [0.5, 1])
