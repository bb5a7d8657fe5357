"""Pairs of rows whose answers agree beyond what their margins explain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import rel_entr

Floats = NDArray[np.float32]

ROWS_A_BLOCK = 1_000
FALSE_ALARMS = 0.001  # a data set, over all its pairs


class Group(NamedTuple):
    """Rows that are linked by alike pairs: their positions, least residual correlation and agreement."""

    rows: NDArray[np.intp]
    correlation: float
    agreement: float


def alike_groups(scores: Floats, observed: Floats, expected: Floats, least: float) -> list[Group]:
    """Groups of rows with residual correlations above ``least``, the largest first.

    The residual of an answer is what it differs by from its expectation. The correlation r of the residuals
    of two rows over the columns that both have is tested against ``least``, rho, by the bound of Chernoff
    (1952) for signs that agree with probability (1 + rho) / 2,

        log p <= -k KL((1 + r) / 2 || (1 + rho) / 2),

    with Bonferroni's correction over all pairs. k is not the number of columns but what they tell: answers
    that are all but certain agree by themselves. With v = P (1 - P) of both rows, k is the smaller of
    (sum sqrt(v v'))² / sum v v' and 4 sum sqrt(v v'). Rows that are equal are found from
    k > log(pairs / .001) / log(2 / (1 + rho)) on.

    Args:
        scores, observed, expected: ``[n, m]``; scores are 0 where missing.
        least: residual correlation that is still taken for ordinary kinship, in (0, 1).
    """
    n = len(scores)
    if n < 2:
        return []
    residual = (scores - expected) * observed
    spread = np.sqrt(expected * (1 - expected)) * observed
    bound = float(np.log(n * (n - 1) / 2 / FALSE_ALARMS))
    found = [
        pair
        for start in range(0, n, ROWS_A_BLOCK)
        for pair in _block(scores, observed, residual, spread, least, bound, start)
    ]
    return _groups(found, n)


def _block(
    scores: Floats, observed: Floats, residual: Floats, spread: Floats, least: float, bound: float, start: int
) -> Iterator[tuple[int, int, float, float]]:
    """The alike pairs of one block of rows with all later rows: both rows, correlation, agreement."""
    block = slice(start, start + ROWS_A_BLOCK)
    rest = slice(start, None)
    squares = (residual[block] ** 2) @ observed[rest].T * (observed[block] @ (residual[rest] ** 2).T)
    correlation = (residual[block] @ residual[rest].T) / np.sqrt(np.maximum(squares, 1e-12))
    first, second = np.nonzero(np.triu(correlation > least, 1))
    correlation = correlation[first, second]
    common = (spread[block] @ spread[rest].T)[first, second]
    products = (spread[block] ** 2 @ (spread[rest] ** 2).T)[first, second]
    told = np.minimum(common**2 / np.maximum(products, 1e-12), 4 * common)
    agree, by_kinship = np.clip((1 + correlation) / 2, 0, 1), (1 + least) / 2
    divergence = rel_entr(agree, by_kinship) + rel_entr(1 - agree, 1 - by_kinship)
    for pair in np.flatnonzero(told * divergence > bound):
        i, j = int(first[pair]), int(second[pair])
        both = (observed[start + i] * observed[start + j]) > 0
        agreement = 1 - float(np.abs(scores[start + i] - scores[start + j])[both].mean())
        yield start + i, start + j, float(correlation[pair]), agreement


def _groups(pairs: list[tuple[int, int, float, float]], n: int) -> list[Group]:
    if not pairs:
        return []
    first, second, correlation, agreement = (np.array(values) for values in zip(*pairs, strict=True))
    graph: Any = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    groups = [
        Group(
            np.flatnonzero(label == own),
            float(correlation[label[first] == own].min()),
            float(agreement[label[first] == own].min()),
        )
        for own in np.unique(label[first])
    ]
    return sorted(groups, key=lambda group: (-len(group.rows), -group.correlation))
