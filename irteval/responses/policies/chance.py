"""Guessing: scores are read as they are, and a correction for it is undone where a person gives its rate.

A share that was corrected for guessing at rate g is s' = (s - g) / (1 - g), below 0 for who does worse than
chance. A response is a share in [0, 1], and guessing is the business of a response model's lower asymptote;
so s = g + (1 - g) s'.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError


def undo_correction(scores: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Shares before they were corrected for guessing at this rate.

    Raises:
        InputError: a rate that is not in [0, 1).
    """
    if not 0 <= rate < 1:
        raise InputError(f"{rate:g}, wanted a rate in [0, 1)", field="chance")
    return np.asarray(rate + (1 - rate) * scores)
