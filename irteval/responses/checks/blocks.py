"""Unlinked blocks: subjects and items without a common answer can't be put on one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from irteval.responses.checks.finding import LISTED_FINDINGS, Finding, Named
from irteval.responses.layers import missing_of
from irteval.responses.matrix import ResponseMatrix

CHECK = "unlinked blocks"


def blocks(responses: ResponseMatrix) -> list[Finding]:
    """The connected parts of the graph of subjects and items, where there is more than one.

    Every answer links its subject with its item. Abilities of subjects in different parts have no common
    scale but the population that both are taken to be drawn from. Linear in the observed cells.
    """
    count, label = connected_components(_links(responses), directed=False)
    if count == 1:
        return []
    subjects = len(responses.subjects)
    subject_label, item_label = label[:subjects], label[subjects:]
    sizes = np.bincount(subject_label[responses.subject_counts() > 0], minlength=count)
    order = [int(own) for own in np.argsort(-sizes, kind="stable") if sizes[own] > 0]
    if len(order) < 2:
        return []
    what = f"of {len(order):,} that no subject or item links: abilities compare within a block only"
    findings = [
        Finding(
            CHECK,
            "warning",
            f"block {number} {what}",
            Named.of(responses.subjects, np.flatnonzero(subject_label == own)),
            Named.of(responses.items, np.flatnonzero(item_label == own)),
        )
        for number, own in enumerate(order[:LISTED_FINDINGS], start=1)
    ]
    if len(order) > LISTED_FINDINGS:
        findings.append(
            Finding(CHECK, "warning", f"{len(order) - LISTED_FINDINGS:,} more blocks, none larger")
        )
    return findings


def _links(responses: ResponseMatrix) -> Any:
    """The graph ``[N + J, N + J]``, each answer once: from its subject to its item."""
    subjects, items = responses.shape
    scores = responses.scores
    if sparse.issparse(scores):
        stored: Any = scores
    else:
        stored = sparse.csr_array(~missing_of(scores))
    below, columns = stored.indptr, stored.indices
    pointers = np.concatenate([below, np.full(items, below[-1])])
    size = subjects + items
    ones = np.ones(len(columns), dtype=np.int8)
    return sparse.csr_array((ones, columns + np.int32(subjects), pointers), shape=(size, size))
