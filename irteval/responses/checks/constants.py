"""Items that everyone passes or fails, and subjects that pass or fail all."""

from __future__ import annotations

import numpy as np

from irteval.responses.checks.benchmarks import items_by_benchmark
from irteval.responses.checks.finding import Finding, Named, counted, listed
from irteval.responses.matrix import ResponseMatrix

CHECK = "constant answers"
MANY_ITEMS = 10  # a subject that passes or fails all of fewer items says nothing odd


def constants(responses: ResponseMatrix) -> list[Finding]:
    """Constant items, and subjects with one score on every item of a benchmark; linear in the cells."""
    findings = []
    means, answered = responses.item_means(), responses.item_counts() > 1
    for value, done in ((0.0, "failed"), (1.0, "passed")):
        items = np.flatnonzero(answered & (means == value))
        if items.size:
            number = counted(items.size, "item")
            what = f"{number} {done} by every subject: in the score, but no help to tell subjects apart"
            findings.append(Finding(CHECK, "note", what, items=Named.of(responses.items, items)))
    for name, own in items_by_benchmark(responses).items():
        part = responses if name is None else responses.take(items=own)
        scores, counts = part.subject_means(), part.subject_counts()
        for value, done in ((0.0, "failed"), (1.0, "passed")):
            subjects = np.flatnonzero((counts >= MANY_ITEMS) & (scores == value))
            if subjects.size:
                findings.append(
                    Finding(
                        CHECK,
                        "warning",
                        f"every item {done} by {counted(subjects.size, 'subject')}: a failed run, a filter "
                        "that never matched, or a constant written in place of scores",
                        Named.of(responses.subjects, subjects),
                        benchmark=name,
                        figures={"most_items": int(counts[subjects].max())},
                    )
                )
    return listed(findings)
