"""How often the checks of responses cry wolf, and how often they find what was planted.

Clean data: a 2PL with theta ~ N(0, 1), log a ~ N(0, .4²), b ~ N(0, 1.2²), in six sizes, two random versions
of a harness. A false alarm is any finding of a check in a data set. Planted is one fault a data set: a row of
shuffled ids or one moved by three places (60 × 400), a second upload with 3 % of its answers changed
(60 × 400), an item under two ids with 2 % changed (400 × 60), and a version that loses 30 % of the right
answers on one of two benchmarks (60 × 150). Rows that may be guessing, or are right on more than .93, are not
chosen.

    python experiments/check_power.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irteval.responses import ResponseMatrix
from irteval.responses.checks import Finding
from irteval.responses.checks.consensus import consensus
from irteval.responses.checks.similar_items import similar_items
from irteval.responses.checks.similar_subjects import similar_subjects
from irteval.responses.checks.versions import versions

Floats = NDArray[np.float64]
Check = Callable[[ResponseMatrix], list[Finding]]
CHECKS: dict[str, Check] = {
    "consensus": consensus,
    "near-duplicate subjects": similar_subjects,
    "near-identical items": similar_items,
    "harness versions": versions,
}
SIZES = ((10, 60, 0.0), (30, 100, 0.0), (60, 150, 0.3), (200, 60, 0.0), (60, 400, 0.0), (12, 1000, 0.0))
SETS, PLANTED = 200, 200


def draw(subjects: int, items: int, rng: np.random.Generator) -> Floats:
    """0/1 scores ``[subjects, items]`` of a 2PL."""
    theta, b = rng.standard_normal(subjects), 1.2 * rng.standard_normal(items)
    p = 1 / (1 + np.exp(-np.exp(0.4 * rng.standard_normal(items)) * (theta[:, None] - b)))
    return (rng.random(p.shape) < p).astype(np.float64)


def matrix(scores: Floats, level: NDArray[np.str_], benchmarks: list[str] | None = None) -> ResponseMatrix:
    """The scores with a version of the harness for each subject."""
    ids = [f"s{i}" for i in range(len(scores))]
    table = pd.DataFrame({"harness_version": level}, index=ids)
    return ResponseMatrix.from_dense(scores, ids, subject_table=table, benchmarks=benchmarks)


def false_alarms(subjects: int, items: int, missing: float) -> dict[str, float]:
    """Share of clean data sets with a finding, by check."""
    alarms = dict.fromkeys(CHECKS, 0)
    for seed in range(SETS):
        rng = np.random.default_rng([subjects, items, seed])
        scores = draw(subjects, items, rng)
        scores[rng.random(scores.shape) < missing] = np.nan
        benchmarks = [f"b{j % 2}" for j in range(items)] if seed % 2 else None
        responses = matrix(scores, rng.choice(["1", "2"], subjects), benchmarks)
        for name, check in CHECKS.items():
            alarms[name] += bool(check(responses))
    return {name: count / SETS for name, count in alarms.items()}


def plant(fault: str, rng: np.random.Generator) -> bool:
    """Plant a fault into new data; whether the check for it names exactly whom it concerns."""
    if fault == "item under two ids":
        scores = draw(400, 60, rng)
        means = scores.mean(axis=0)
        column = int(rng.choice(np.flatnonzero((means > 0.2) & (means < 0.8))))
        copy = np.where(rng.random(400) < 0.02, 1 - scores[:, column], scores[:, column])
        found = similar_items(ResponseMatrix.from_dense(np.column_stack([scores, copy])))
        return [set(f.items.ids) for f in found] == [{f"i{column}", "i60"}]
    if fault == "version":
        scores, level = draw(60, 150, rng), rng.permutation(np.repeat(["1", "2"], 30))
        lost = (rng.random(scores.shape) < 0.3) & (level == "2")[:, None]
        lost[:, 50:] = False
        found = versions(matrix(np.where(lost, 0, scores), level, ["p"] * 50 + ["q"] * 100))
        return any(f.benchmark == "p" for f in found)
    scores = draw(60, 400, rng)
    means = scores.mean(axis=1)
    row = int(rng.choice(np.flatnonzero((means > np.quantile(means, 0.05) + 0.08) & (means < 0.93))))
    if fault == "second upload":
        copy = np.where(rng.random(400) < 0.03, 1 - scores[row], scores[row])
        found = similar_subjects(ResponseMatrix.from_dense(np.vstack([scores, copy])))
        return [set(f.subjects.ids) for f in found] == [{f"s{row}", "s60"}]
    scores[row] = rng.permutation(scores[row]) if fault == "shuffled ids" else np.roll(scores[row], 3)
    found = consensus(ResponseMatrix.from_dense(scores))
    named = [f.subjects.ids for f in found] == [(f"s{row}",)]
    return named and (fault == "shuffled ids" or found[0].what.endswith("moved back by 3"))


def main() -> None:
    print("| subjects × items, missing | " + " | ".join(CHECKS) + " |")
    print("|---" * (len(CHECKS) + 1) + "|")
    for size in SIZES:
        shares = " | ".join(f"{share:.3f}" for share in false_alarms(*size).values())
        print(f"| {size[0]} × {size[1]}, {size[2]:.0%} | {shares} |", flush=True)
    print("\n| planted | found |\n|---|---|")
    for fault in ("shuffled ids", "moved ids", "second upload", "item under two ids", "version"):
        found = [plant(fault, np.random.default_rng([7, seed])) for seed in range(PLANTED)]
        print(f"| {fault} | {np.mean(found):.3f} |", flush=True)


if __name__ == "__main__":
    main()
