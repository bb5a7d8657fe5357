"""Errors, rank agreement, decisions, coverage and width of held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from irteval.responses import ResponseMatrix


@dataclass(frozen=True)
class HeldOut:
    """Scores of T held-out subjects by one method, ``[T]`` each; limits are NaN where it states none."""

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


def full_scores(responses: ResponseMatrix) -> NDArray[np.float64]:
    """The score that all recorded responses give: the mean of the benchmarks' means, ``[N]``."""
    scores = responses.dense()
    if responses.benchmarks is None:
        return np.asarray(np.nanmean(scores, axis=1))
    names = np.asarray(responses.benchmarks)
    parts = [np.nanmean(scores[:, names == name], axis=1) for name in np.unique(names)]
    return np.asarray(np.nanmean(parts, axis=0))


def sampling_variance(scores: NDArray[np.float64], asked: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of the mean over a simple random sample without replacement, ``[T]``.

    S² / n · (1 − n / N) over the N recorded scores of a subject, S² with the divisor N − 1 (Cochran 1977,
    section 2.6).

    Args:
        scores: of T subjects, ``[T, J]``, NaN missing.
        asked: n, ``[T]``.
    """
    recorded = (~np.isnan(scores)).sum(1)
    spread = np.nanvar(scores, axis=1) * recorded / np.maximum(recorded - 1, 1)
    return np.asarray(spread / np.maximum(asked, 1) * np.clip(1 - asked / recorded, 0, None))


def decision_accuracy(score: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Share of pairs of subjects that differ in truth and are ordered rightly; equal scores count half."""
    first, second = np.triu_indices(len(truth), 1)
    really = np.sign(truth[first] - truth[second])
    agree = (np.sign(score[first] - score[second]) * really)[really != 0]
    return float(np.mean((agree + 1) / 2)) if len(agree) else float("nan")


def summarise(details: pd.DataFrame) -> dict[str, Any]:
    """One row of `validate` from the targets of all its seeds.

    Args:
        details: a row a target and seed, with ``seed``, ``subject``, ``truth``, ``score``, ``low``, ``high``,
            ``items`` and ``uniform_variance``, as `held_out_scores` returns them.

    Returns:
        ``subjects`` (different ones), ``mae``, ``rmse``, ``bias`` (mean of estimate minus truth),
        ``kendall``, ``spearman`` and ``decision`` (means over seeds), ``coverage``, ``width``, ``items``
        (mean asked) and ``effective_sample``: the expected squared error of as many uniformly drawn
        items, over the method's own. Standard errors ``mae_se`` and ``coverage_se`` cluster by subject.
        Coverage and width are NaN where the method states no interval.
    """
    names = details["subject"].to_numpy()
    values = {name: details[name].to_numpy(np.float64) for name in ("truth", "score", "low", "high", "items")}
    held = HeldOut(**values)
    stated = ~(np.isnan(held.low) | np.isnan(held.high))
    covered = held.covered[stated].astype(np.float64)
    squared = float((held.error**2).mean())
    uniform = float(details["uniform_variance"].mean())
    return {
        "subjects": len(np.unique(names)),
        "mae": float(np.abs(held.error).mean()),
        "mae_se": clustered_se(np.abs(held.error), names),
        "rmse": float(np.sqrt(squared)),
        "bias": float(held.error.mean()),
        **_rank_agreement(details),
        "coverage": float(covered.mean()) if stated.any() else float("nan"),
        "coverage_se": clustered_se(covered, names[stated]),
        "width": float((held.high - held.low)[stated].mean()) if stated.any() else float("nan"),
        "items": float(held.items.mean()),
        # Where every item is asked both errors are 0, and no sample is more effective than another.
        "effective_sample": uniform / squared if squared > 1e-20 else float("nan"),
    }


def _rank_agreement(details: pd.DataFrame) -> dict[str, float]:
    found = []
    for _, part in details.groupby("seed", sort=False):
        score, truth = part["score"].to_numpy(np.float64), part["truth"].to_numpy(np.float64)
        ordered = len(part) > 2 and np.ptp(score) > 0 and np.ptp(truth) > 0
        kendall = kendalltau(score, truth).statistic if ordered else np.nan
        spearman = spearmanr(score, truth).statistic if ordered else np.nan
        found.append((kendall, spearman, decision_accuracy(score, truth)))
    means = pd.DataFrame(found, columns=["kendall", "spearman", "decision"]).mean()
    return {str(name): float(value) for name, value in means.items()}


def clustered_se(values: NDArray[np.float64], names: NDArray[Any]) -> float:
    """Standard error of a mean whose values come in clusters, one a subject (Liang & Zeger 1986)."""
    _, cluster = np.unique(names, return_inverse=True)
    if len(cluster) == 0 or cluster.max() < 1:
        return float("nan")
    sums = np.bincount(cluster, values - values.mean())
    clusters = len(sums)
    return float(np.sqrt((sums**2).sum() * clusters / (clusters - 1)) / len(values))
