"""The items of each benchmark."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irteval.responses.matrix import ResponseMatrix


def items_by_benchmark(responses: ResponseMatrix) -> dict[str | None, NDArray[np.intp]]:
    """Positions of the items of each benchmark by its name; all under None where no benchmark is known."""
    if responses.benchmarks is None:
        return {None: np.arange(len(responses.items))}
    names, code = np.unique(np.array(responses.benchmarks), return_inverse=True)
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(names)))
    return dict(zip(names.tolist(), np.split(order, ends[:-1]), strict=True))
