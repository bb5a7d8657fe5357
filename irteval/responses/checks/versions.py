"""Jumps between versions of a harness: the same benchmark, scored by another rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from irteval.responses.checks.benchmarks import items_by_benchmark
from irteval.responses.checks.discovery import discoveries
from irteval.responses.checks.finding import Finding, Named, counted, listed
from irteval.responses.checks.margins import expected_scores
from irteval.responses.checks.sample import Answers, sample_answers
from irteval.responses.matrix import ResponseMatrix

CHECK = "harness versions"
NAMES = ("harness", "version", "filter")
FALSE_ALARMS = 0.001
FEWEST_SUBJECTS, FEWEST_AN_ITEM = 5, 15  # on either side; single answers vary too oddly for a t test of fewer
LEAST_JUMP, LEAST_ITEM_JUMP = 0.05, 0.25  # of a score in shares


class Jumps(NamedTuple):
    """How far the answers of some subjects are above those of the others on each unit, and p-values."""

    jump: NDArray[np.float64]
    p_value: NDArray[np.float64]


def versions(responses: ResponseMatrix, seed: int = 0) -> list[Finding]:
    """Benchmarks and items that are easier or harder under one version than for equally able others.

    Versions are the columns of the subjects' table whose name has ``harness``, ``version`` or ``filter`` in
    it. Per version, residuals of the Rasch model are compared with those of all other subjects by Welch's t
    test over subjects, for each item and, where there are several, each benchmark (Benjamini and Hochberg
    at .001). With one benchmark a jump of the whole score can't be told from abler subjects, and only the
    items that moved against the others show. At most 5,000 subjects and items.
    """
    table = responses.subject_table
    columns = [] if table is None else [name for name in table if any(n in str(name).lower() for n in NAMES)]
    if table is None or not columns:
        return []
    answers = sample_answers(responses, seed)
    residual = (answers.scores - expected_scores(answers.scores, answers.observed)) * answers.observed
    findings = []
    for name in columns:
        levels = table[name].fillna("").astype(str).to_numpy(dtype=object)[answers.subjects]
        for level in np.unique(levels[levels != ""]):
            own = levels == level
            if min(own.sum(), (~own).sum()) >= FEWEST_SUBJECTS:
                who = Named.of(responses.subjects, answers.subjects[own])
                label = f"{name} {level}"
                findings += _benchmarks(responses, answers, residual, own, label, who)
                findings += _items(responses, answers, residual, own, label, who)
    return listed(findings)


def _benchmarks(
    responses: ResponseMatrix,
    answers: Answers,
    residual: NDArray[np.float32],
    own: NDArray[np.bool_],
    label: str,
    who: Named,
) -> list[Finding]:
    """Benchmarks that jump; none where there is only one."""
    groups = items_by_benchmark(responses)
    if len(groups) < 2:
        return []
    member = np.stack([np.isin(answers.items, items) for items in groups.values()], axis=1).astype(np.float32)
    counts = answers.observed @ member
    found = _jumps((residual @ member) / np.maximum(counts, 1), counts > 0, own, FEWEST_SUBJECTS)
    jumped = discoveries(found.p_value, FALSE_ALARMS) & (np.abs(found.jump) >= LEAST_JUMP)
    names = list(groups)
    return [
        Finding(
            CHECK,
            "warning",
            f"scores of {label} jump by {found.jump[b]:+.2f} against the other benchmarks",
            who,
            benchmark=names[b],
            figures={"jump": float(found.jump[b]), "p_value": float(found.p_value[b])},
        )
        for b in np.flatnonzero(jumped)
    ]


def _items(
    responses: ResponseMatrix,
    answers: Answers,
    residual: NDArray[np.float32],
    own: NDArray[np.bool_],
    label: str,
    who: Named,
) -> list[Finding]:
    """Items that jump, as one finding."""
    found = _jumps(residual, answers.observed > 0, own, FEWEST_AN_ITEM)
    jumped = discoveries(found.p_value, FALSE_ALARMS) & (np.abs(found.jump) >= LEAST_ITEM_JUMP)
    items = np.flatnonzero(jumped)
    if not items.size:
        return []
    order = items[np.argsort(-np.abs(found.jump[items]), kind="stable")]
    return [
        Finding(
            CHECK,
            "warning",
            f"{counted(items.size, 'item')} easier or harder under {label} than for equally able subjects",
            who,
            Named.of(responses.items, answers.items[order]),
            figures={"largest_jump": float(found.jump[order[0]])},
        )
    ]


def _jumps(
    values: NDArray[np.float32], there: NDArray[np.bool_], own: NDArray[np.bool_], fewest: int
) -> Jumps:
    """Welch's t test of each column of ``values`` ``[n, units]`` between the own rows and the others.

    Columns with fewer than ``fewest`` values on either side have no jump.
    """
    mean, variance, count = zip(*(_moments(values[side], there[side]) for side in (own, ~own)), strict=True)
    jump = mean[0] - mean[1]
    parts = [variance[side] / np.maximum(count[side], 1) for side in (0, 1)]
    error = np.sqrt(np.maximum(parts[0] + parts[1], 1e-12))
    freedom = (parts[0] + parts[1]) ** 2 / np.maximum(
        sum(parts[side] ** 2 / np.maximum(count[side] - 1, 1) for side in (0, 1)), 1e-24
    )
    p_value = 2 * student.sf(np.abs(jump) / error, np.maximum(freedom, 1))
    enough = np.minimum(count[0], count[1]) >= fewest
    return Jumps(np.where(enough, jump, 0.0), np.where(enough, p_value, 1.0))


def _moments(
    values: NDArray[np.float32], there: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Mean, variance and number of the values that are there, a column."""
    count = there.sum(axis=0)
    mean = np.where(there, values, 0).sum(axis=0, dtype=np.float64) / np.maximum(count, 1)
    squares = (np.where(there, values - mean, 0) ** 2).sum(axis=0)
    return mean, squares / np.maximum(count - 1, 1), count
