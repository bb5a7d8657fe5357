"""Answers that were never scored: missing by default, wrong where a person says so.

An answer that failed (``error``: the run of this item crashed or timed out; ``limit``: it hit a limit
before it was scored) says something about the subject or about the day; only a person can tell which. One
that was not scored (``unscored``) or whose score is blank (``missing``) says nothing, and is never counted
as wrong.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irteval.responses.logs.records import STATUS, STATUSES

Errors: TypeAlias = Literal["missing", "wrong"]
FAILED = (STATUS["error"], STATUS["limit"])


def settle_failures(
    scores: NDArray[np.float64], status: NDArray[np.int8], policy: Errors
) -> tuple[NDArray[np.float64], dict[str, int], list[str]]:
    """Scores with failed answers as the policy wants them, answers without a score by status, and notes."""
    without = np.isnan(scores)
    codes, counts = np.unique(status[without], return_counts=True)
    by_status = {STATUSES[code]: int(count) for code, count in zip(codes, counts, strict=True)}
    if not by_status:
        return scores, {}, []
    failed = without & np.isin(status, FAILED)
    listed = ", ".join(f"{count} {name}" for name, count in by_status.items())
    total, scored = len(scores), int((~without).sum())
    note = f"{len(scores) - scored} of {total} records have no score ({listed})"
    if policy == "wrong" and failed.any():
        scores = np.where(failed, 0.0, scores)
        note += f": {int(failed.sum())} that failed count as wrong"
    else:
        note += f": they are missing, {scored} are scored (--errors wrong counts failures)"
    return scores, by_status, [note]
