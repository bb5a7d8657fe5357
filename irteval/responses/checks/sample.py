"""The part of a response matrix that checks of pairs and of patterns look at: dense, and bounded in size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irteval.responses.matrix import ResponseMatrix

# Pairs cost the square of this; beyond, subjects and items are drawn at random.
MOST = 5_000


class Answers(NamedTuple):
    """Answers ``[n, m]`` of some subjects to some items.

    Attributes:
        scores: 0 where missing.
        observed: 1 where there is an answer, else 0.
        subjects, items: positions in the matrix, rising, ``[n]`` and ``[m]``.
    """

    scores: NDArray[np.float32]
    observed: NDArray[np.float32]
    subjects: NDArray[np.intp]
    items: NDArray[np.intp]


def sample_answers(
    responses: ResponseMatrix,
    seed: int,
    *,
    items: NDArray[np.intp] | None = None,
    most_subjects: int = MOST,
) -> Answers:
    """Answers of at most ``most_subjects`` subjects to at most 5,000 items, of these where some are given.

    Of those that answered, or were answered, at all; drawn without replacement where there are more.
    """
    rng = np.random.default_rng(seed)
    candidates = np.arange(len(responses.items)) if items is None else items
    columns = _draw(candidates[responses.item_counts()[candidates] > 0], MOST, rng)
    rows = _draw(np.flatnonzero(responses.subject_counts() > 0), most_subjects, rng)
    part = responses.take(rows, columns).dense()
    observed = ~np.isnan(part)
    active = observed.any(axis=1)
    scores = np.nan_to_num(part[active]).astype(np.float32)
    return Answers(scores, observed[active].astype(np.float32), rows[active], columns)


def _draw(candidates: NDArray[np.intp], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    if len(candidates) <= most:
        return candidates
    return np.sort(rng.choice(candidates, most, replace=False))
