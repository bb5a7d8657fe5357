"""False discovery control."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def discoveries(p_values: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """Which tests are discoveries at a false discovery rate (Benjamini and Hochberg 1995, JRSS B 57:289).

    Where no effect is real at all, the rate is also the chance of any discovery.
    """
    if not len(p_values):
        return np.zeros(0, dtype=np.bool_)
    in_order = np.sort(p_values)
    below = np.flatnonzero(in_order <= rate * np.arange(1, len(p_values) + 1) / len(p_values))
    return p_values <= (in_order[below[-1]] if below.size else -1.0)
