"""Preferences between two answers: how far the subject's was preferred to the reference's, in [0, 1].

AlpacaEval writes 1 where the reference wins, 2 where the subject wins, 0 or 1.5 for a tie, anything between
1 and 2 for a judge's probability, and nothing where the judge gave none.
"""

from __future__ import annotations

import math
from typing import Any

TIE = 0.5
_LARGEST = 1e9


def share_preferred(preference: Any) -> Any:
    """The score of a preference; what is no preference is returned as it is."""
    if isinstance(preference, bool) or not isinstance(preference, int | float):
        return preference
    if abs(preference) > _LARGEST:
        return "beyond all preferences"
    if math.isnan(preference):
        return None
    if preference == 0:
        return TIE
    return preference - 1 if 1 <= preference <= 2 else f"preference {preference:g}"
