"""Clean data sets of a 2PL to plant faults in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

Draw = Callable[[int, int, int], NDArray[np.float64]]


@pytest.fixture
def draw_scores(simulate_2pl: Callable[..., object]) -> Draw:
    """A function of (subjects, items, seed) that gives 0/1 scores as floats, so that cells can go missing."""

    def draw(subjects: int, items: int, seed: int) -> NDArray[np.float64]:
        return simulate_2pl(subjects, items, seed).scores.astype(np.float64)  # type: ignore[attr-defined]

    return draw
