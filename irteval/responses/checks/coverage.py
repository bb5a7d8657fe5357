"""Coverage: who answered how much of what."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irteval.responses.checks.benchmarks import items_by_benchmark
from irteval.responses.checks.finding import Finding, Named, counted, listed
from irteval.responses.matrix import ResponseMatrix

CHECK = "coverage"


def coverage(responses: ResponseMatrix) -> list[Finding]:
    """No answer at all (fatal), items and subjects without one, and subjects that left a benchmark half done.

    Linear in the observed cells.
    """
    if responses.cells == 0:
        return [Finding(CHECK, "fatal", "no answer was observed: there is nothing to fit or to score")]
    findings = []
    empty_subjects = np.flatnonzero(responses.subject_counts() == 0)
    if empty_subjects.size:
        what = f"{counted(empty_subjects.size, 'subject')} without an answer"
        findings.append(Finding(CHECK, "warning", what, Named.of(responses.subjects, empty_subjects)))
    empty_items = np.flatnonzero(responses.item_counts() == 0)
    if empty_items.size:
        what = f"{counted(empty_items.size, 'item')} without an answer: what they add to a score is a guess"
        findings.append(Finding(CHECK, "note", what, items=Named.of(responses.items, empty_items)))
    return findings + listed(_partial(responses))


def _partial(responses: ResponseMatrix) -> list[Finding]:
    """Benchmarks that some subjects answered in part: fewer items than anybody answered."""
    findings = []
    for name, items in items_by_benchmark(responses).items():
        whole = int(np.count_nonzero(responses.item_counts()[items]))
        counts = _counts(responses, items)
        partial = np.flatnonzero((counts > 0) & (counts < whole))
        if not partial.size:
            continue
        share = counts[partial] / whole
        findings.append(
            Finding(
                CHECK,
                "note",
                f"{partial.size} of {np.count_nonzero(counts)} subjects answered a part of the items only: a "
                "plain mean compares different items",
                Named.of(responses.subjects, partial[np.argsort(share, kind="stable")]),
                benchmark=name,
                figures={"least_share": float(share.min()), "median_share": float(np.median(share))},
            )
        )
    return findings


def _counts(responses: ResponseMatrix, items: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many of these items each subject answered, ``[N]``."""
    if len(items) == len(responses.items):
        return responses.subject_counts()
    return responses.take(items=items).subject_counts()
