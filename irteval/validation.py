"""How good is it on subjects it has not seen? Held-out splits, errors and coverage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import kendalltau, spearmanr

from irteval.calibrate.fit import fit
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.responses import ResponseMatrix

SPLITS = ("interpolation", "extrapolation", "newest")


@dataclass(frozen=True)
class Split:
    """Numbers of the source subjects, which are calibrated, and of the targets, which are held out."""

    source: NDArray[np.intp]
    target: NDArray[np.intp]


def make_split(
    responses: ResponseMatrix,
    kind: str,
    seed: int,
    *,
    share: float = 0.25,
    most_targets: int | None = None,
    order: Sequence[str] | None = None,
) -> Split:
    """Split subjects into source and target.

    ``interpolation`` holds out a random share. ``extrapolation`` takes the bottom half by accuracy as the
    source and targets from the top 30 %. ``newest`` holds out the last share by date, equal dates on one
    side.

    Args:
        responses: of all subjects.
        kind: one of ``SPLITS``.
        seed: of the random choices.
        share: held out in interpolation and newest.
        most_targets: so many of the held-out subjects, at random; all where None.
        order: a sortable date of each subject, for ``newest``; their order in the responses where None.

    Raises:
        InputError: an unknown kind, too few subjects, or nobody older than the newest.
    """
    subjects = responses.shape[0]
    if subjects < 4:
        raise InputError(f"{subjects} subjects, wanted at least 4 to hold some out", field="subject")
    rng = np.random.default_rng(seed)
    held_out = max(1, round(share * subjects))
    if kind == "interpolation":
        shuffled = rng.permutation(subjects)
        source, target = shuffled[held_out:], shuffled[:held_out]
    elif kind == "extrapolation":
        ranked = np.argsort(responses.subject_means(), kind="stable")
        source, target = ranked[: subjects // 2], ranked[-max(1, int(0.3 * subjects)) :]
    elif kind == "newest":
        dates = np.arange(subjects) if order is None else np.asarray(order)
        first = np.sort(dates)[-held_out]
        source, target = np.flatnonzero(dates < first), np.flatnonzero(dates >= first)
        if not len(source):
            raise InputError(f"every subject has the date {first}, wanted older ones too", field="order")
    else:
        raise InputError(f"'{kind}', wanted one of {', '.join(SPLITS)}", field="split")
    if most_targets is not None and len(target) > most_targets:
        target = rng.choice(target, most_targets, replace=False)
    return Split(np.sort(source), np.sort(target))


@dataclass(frozen=True)
class HeldOut:
    """Scores of T held-out subjects by one method, ``[T]`` each."""

    truth: NDArray[np.float64]
    score: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    items: NDArray[np.float64]

    @property
    def error(self) -> NDArray[np.float64]:
        """Estimate minus truth."""
        return self.score - self.truth

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Whether the interval holds the truth, rounding apart."""
        return (self.low - 1e-9 <= self.truth) & (self.truth <= self.high + 1e-9)


Method = Callable[[ResponseMatrix, ResponseMatrix, int, int, float], HeldOut]
"""(source, targets, size, seed, level) to the targets' scores."""


def adaptive(source: ResponseMatrix, targets: ResponseMatrix, size: int, seed: int, level: float) -> HeldOut:
    """The default: a bank of the source, and an adaptive session for each target."""
    estimates = replay(fit(source, seed=seed), targets, budget=size, level=level, seed=seed)
    return HeldOut(
        truth=full_scores(targets),
        score=np.array([estimate.score for estimate in estimates]),
        low=np.array([estimate.interval[0] for estimate in estimates]),
        high=np.array([estimate.interval[1] for estimate in estimates]),
        items=np.array([estimate.items_asked for estimate in estimates], dtype=np.float64),
    )


def random_mean(
    source: ResponseMatrix, targets: ResponseMatrix, size: int, seed: int, level: float
) -> HeldOut:
    """The control: the mean over random items, with Wilson's interval for a finite population."""
    rng = np.random.default_rng(seed)
    scores = targets.dense()
    keys = np.where(np.isnan(scores), np.inf, rng.random(scores.shape))
    chosen = np.take_along_axis(scores, np.argsort(keys, axis=1)[:, :size], axis=1)
    count = (~np.isnan(chosen)).sum(1)
    mean = np.nanmean(chosen, axis=1)
    low, high = wilson(mean, count, scores.shape[1], level)
    return HeldOut(full_scores(targets), mean, low, high, count.astype(np.float64))


METHODS: dict[str, Method] = {"auto": adaptive, "random": random_mean}


def wilson(
    mean: NDArray[np.float64], count: NDArray[np.int64], population: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's (1927) score interval, ``[T]`` each, with the number of answers scaled up for a finite
    population.

    Drawing n of N without replacement has (N - n) / (N - 1) of the variance, as if n were that much larger.
    """
    with np.errstate(divide="ignore"):
        n = count * (population - 1) / np.maximum(population - count, 1e-12)
    z = ndtri((1 + level) / 2)
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * np.sqrt(mean * (1 - mean) / n + z**2 / (4 * n**2))
    return np.clip(centre - half_width, 0, 1), np.clip(centre + half_width, 0, 1)


def full_scores(responses: ResponseMatrix) -> NDArray[np.float64]:
    """The score that all recorded responses give: the mean of the benchmarks' means, ``[N]``."""
    scores = responses.dense()
    if responses.benchmarks is None:
        return np.asarray(np.nanmean(scores, axis=1))
    names = np.asarray(responses.benchmarks)
    parts = [np.nanmean(scores[:, names == name], axis=1) for name in np.unique(names)]
    return np.asarray(np.nanmean(parts, axis=0))


def validate(
    responses: ResponseMatrix,
    *,
    sizes: Sequence[int] = (50,),
    methods: Sequence[str] = ("auto", "random"),
    splits: Sequence[str] = ("interpolation",),
    repeats: int = 5,
    seed: int = 0,
    level: float = 0.95,
    share: float = 0.25,
    most_targets: int | None = None,
    order: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Errors, rank agreement and interval coverage on subjects that no fit has seen.

    Args:
        responses: of all subjects.
        sizes: items asked of each target.
        methods: of ``METHODS``.
        splits: of ``SPLITS``.
        repeats: seeds of each split and method.
        seed: of the first repeat.
        level: of the intervals.
        share, most_targets, order: see `make_split`.
        progress: called with a line before each repeat.

    Returns:
        One row for each split, method and size: ``mae`` with its standard error over subjects, ``rmse``,
        ``kendall``, ``spearman`` (means over repeats), ``coverage``, ``width``, ``effective_sample``
        (squared error of random sampling of as many items over the method's own).

    Raises:
        InputError: an unknown method or split, or too few subjects.
    """
    for method in methods:
        if method not in METHODS:
            raise InputError(f"'{method}', wanted one of {', '.join(METHODS)}", field="methods")
    rows = []
    for split in splits:
        for method in methods:
            for size in sizes:
                results = []
                for repeat in range(seed, seed + repeats):
                    if progress is not None:
                        progress(f"{split}, {method}, {size} items, seed {repeat}")
                    parts = make_split(
                        responses, split, repeat, share=share, most_targets=most_targets, order=order
                    )
                    source, target = responses.take(parts.source), responses.take(parts.target)
                    names = [responses.subjects[t] for t in parts.target]
                    results.append((names, METHODS[method](source, target, size, repeat, level)))
                n = responses.shape[1]
                rows.append({"split": split, "method": method, "size": size, **summarise(results, n)})
    return pd.DataFrame(rows)


def summarise(results: Sequence[tuple[Sequence[str], HeldOut]], items: int) -> dict[str, float]:
    """One row of `validate` from repeats and their targets' names; standard errors cluster by subject."""
    names = np.concatenate([names for names, _ in results])
    error = np.concatenate([held.error for _, held in results])
    truth = np.concatenate([held.truth for _, held in results])
    asked = np.concatenate([held.items for _, held in results])
    covered = np.concatenate([held.covered for _, held in results])
    width = np.concatenate([held.high - held.low for _, held in results])
    random = truth * (1 - truth) / asked * (items - asked) / max(items - 1, 1)
    ranks = [
        (kendalltau(held.score, held.truth).statistic, spearmanr(held.score, held.truth).statistic)
        for _, held in results
        if len(held.truth) > 2
    ]
    kendall, spearman = np.nanmean(ranks, axis=0) if ranks else (np.nan, np.nan)
    return {
        "subjects": len(set(names)),
        "mae": float(np.abs(error).mean()),
        "mae_se": clustered_se(np.abs(error), names),
        "rmse": float(np.sqrt((error**2).mean())),
        "kendall": float(kendall),
        "spearman": float(spearman),
        "coverage": float(covered.mean()),
        "coverage_se": clustered_se(covered.astype(np.float64), names),
        "width": float(width.mean()),
        "items": float(asked.mean()),
        "effective_sample": float(random.mean() / max((error**2).mean(), 1e-12)),
    }


def clustered_se(values: NDArray[np.float64], names: NDArray[np.str_]) -> float:
    """Standard error of a mean whose values come in clusters, one a subject (Liang & Zeger 1986)."""
    _, cluster = np.unique(names, return_inverse=True)
    sums = np.bincount(cluster, values - values.mean())
    clusters = len(sums)
    if clusters < 2:
        return float("nan")
    return float(np.sqrt((sums**2).sum() * clusters / (clusters - 1)) / len(values))
