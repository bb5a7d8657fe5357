"""Held-out splits, the control, the summary of errors; coverage by simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses import ResponseMatrix
from irteval.validation import (
    HeldOut,
    adaptive,
    clustered_se,
    full_scores,
    make_split,
    random_mean,
    summarise,
    validate,
    wilson,
)

Simulate = Callable[[int, int, int], tuple[Any, ...]]


@pytest.fixture(scope="module")
def responses(simulate_2pl: Simulate) -> ResponseMatrix:
    return ResponseMatrix.from_dense(simulate_2pl(60, 80, 5)[3])


# Splits


@pytest.mark.parametrize("kind", ["interpolation", "extrapolation", "newest"])
@pytest.mark.parametrize("seed", range(3))
def test_source_and_target_are_disjoint(responses: ResponseMatrix, kind: str, seed: int) -> None:
    split = make_split(responses, kind, seed)
    assert not set(split.source) & set(split.target)
    assert len(split.source) >= 30
    assert len(split.target) >= 15
    again = make_split(responses, kind, seed)
    np.testing.assert_array_equal(split.target, again.target)
    few = make_split(responses, kind, seed, most_targets=5)
    assert len(few.target) == 5
    assert set(few.target) <= set(split.target)
    np.testing.assert_array_equal(few.source, split.source)


def test_interpolation_is_random(responses: ResponseMatrix) -> None:
    targets = {tuple(make_split(responses, "interpolation", seed).target) for seed in range(5)}
    assert len(targets) == 5
    assert all(len(target) == 15 for target in targets)


def test_extrapolation_goes_from_the_weak_to_the_strong(responses: ResponseMatrix) -> None:
    split, means = make_split(responses, "extrapolation", 0), responses.subject_means()
    assert len(split.source) == 30
    assert len(split.target) == 18
    assert means[split.source].max() <= np.median(means) + 1e-9 <= means[split.target].min() + 1e-9


def test_newest_keeps_equal_dates_on_one_side(responses: ResponseMatrix) -> None:
    dates = [f"2026-{1 + n // 10:02d}-01" for n in np.random.default_rng(0).permutation(60)]
    split = make_split(responses, "newest", 0, order=dates)
    source, target = {dates[n] for n in split.source}, {dates[n] for n in split.target}
    assert max(source) < min(target)
    assert len(split.source) + len(split.target) == 60
    assert len(split.target) == 20  # 15 wanted, and the 5 others of the earliest of their dates
    last = make_split(responses, "newest", 0)
    np.testing.assert_array_equal(last.target, np.arange(45, 60))


def test_splits_that_cannot_be_made_are_refused(responses: ResponseMatrix) -> None:
    with pytest.raises(InputError, match="'sideways', wanted one of"):
        make_split(responses, "sideways", 0)
    with pytest.raises(InputError, match="3 subjects, wanted at least 4"):
        make_split(responses.take(subjects=np.arange(3)), "interpolation", 0)
    with pytest.raises(InputError, match="every subject has the date 2026-01-01, wanted older ones too"):
        make_split(responses, "newest", 0, order=["2026-01-01"] * 60)


# The control


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


def test_random_mean_is_unbiased_and_covered(responses: ResponseMatrix) -> None:
    held = [random_mean(responses, responses, 20, seed, 0.95) for seed in range(40)]
    error = np.concatenate([h.error for h in held])
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(error))
    truth = full_scores(responses)
    expected = np.sqrt((truth * (1 - truth) / 20 * 60 / 79).mean())
    assert np.sqrt((error**2).mean()) == pytest.approx(expected, rel=0.06)
    assert np.mean([h.covered for h in held]) == pytest.approx(0.95, abs=0.02)
    assert not np.array_equal(held[0].score, held[1].score)


def test_random_mean_draws_from_what_is_there(
    with_missing: Callable[..., NDArray[np.int8]], responses: ResponseMatrix
) -> None:
    holes = ResponseMatrix.from_dense(with_missing(np.asarray(responses.scores), 0.5, 0))
    held = random_mean(holes, holes, 60, 0, 0.95)
    np.testing.assert_array_equal(held.items, np.minimum(holes.subject_counts(), 60))
    assert np.isfinite(held.score).all()


# Errors


def held_out(truth: list[float], score: list[float], half: float = 0.1) -> HeldOut:
    t, s = np.array(truth), np.array(score)
    return HeldOut(t, s, s - half, s + half, np.full(len(t), 20.0))


def test_the_summary_is_what_its_columns_say() -> None:
    first = (["a", "b", "c"], held_out([0.2, 0.5, 0.8], [0.3, 0.45, 0.95]))
    second = (["a", "b", "d"], held_out([0.2, 0.5, 0.6], [0.15, 0.7, 0.6]))
    row = summarise([first, second], 100)
    error = np.array([0.1, -0.05, 0.15, -0.05, 0.2, 0.0])
    assert row["subjects"] == 4
    assert row["mae"] == pytest.approx(np.abs(error).mean())
    assert row["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert row["coverage"] == pytest.approx(4 / 6)
    assert row["width"] == pytest.approx(0.2)
    assert row["items"] == 20
    assert row["kendall"] == pytest.approx((1 + 1 / 3) / 2)
    truth = np.array([0.2, 0.5, 0.8, 0.2, 0.5, 0.6])
    random = (truth * (1 - truth) / 20 * 80 / 99).mean()
    assert row["effective_sample"] == pytest.approx(random / (error**2).mean())


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


# The whole


def test_validate_prefers_the_default_and_its_intervals_hold(simulate_2pl: Simulate) -> None:
    covered, rows = [], []
    for seed in range(3):
        responses = ResponseMatrix.from_dense(simulate_2pl(60, 80, seed)[3])
        table = validate(responses, sizes=(15, 30), repeats=1, seed=seed, share=0.4)
        table = table.set_index(["method", "size"])
        rows.append(table)
        covered.append(table["coverage"]["auto"].mean())
    assert np.mean(covered) >= 0.92
    for size in (15, 30):
        auto, random = (
            np.mean([t.loc[(method, size), "mae"] for t in rows]) for method in ("auto", "random")
        )
        assert auto < 0.85 * random
        assert np.mean([t.loc[("auto", size), "effective_sample"] for t in rows]) > 1.2
    narrower = [t.loc[("auto", 30), "width"] < t.loc[("random", 30), "width"] for t in rows]
    assert sum(narrower) >= 2


def test_intervals_hold_beyond_the_range(simulate_2pl: Simulate) -> None:
    covered = []
    for seed in range(3):
        responses = ResponseMatrix.from_dense(simulate_2pl(60, 80, 10 + seed)[3])
        split = make_split(responses, "extrapolation", seed)
        source, targets = responses.take(split.source), responses.take(split.target)
        covered.append(adaptive(source, targets, 25, seed, 0.95).covered.mean())
    assert np.mean(covered) >= 0.92


def test_validate_names_every_row(responses: ResponseMatrix) -> None:
    lines: list[str] = []
    table = validate(
        responses,
        sizes=(12,),
        methods=("random",),
        splits=("interpolation", "newest"),
        repeats=2,
        progress=lines.append,
    )
    assert table[["split", "method", "size"]].to_numpy().tolist() == [
        ["interpolation", "random", 12],
        ["newest", "random", 12],
    ]
    assert len(lines) == 4
    with pytest.raises(InputError, match="'magic', wanted one of auto, random"):
        validate(responses, methods=("magic",))
