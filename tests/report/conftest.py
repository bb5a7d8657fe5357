from __future__ import annotations

from collections.abc import Callable

import pytest

from irteval.estimate.result import Estimate


@pytest.fixture
def estimate() -> Callable[..., Estimate]:
    def make(subject: str, score: float, **changes: object) -> Estimate:
        values = {
            "subject": subject,
            "benchmark": "digits",
            "score": score,
            "interval": (max(0.0, score - 0.05), min(1.0, score + 0.05)),
            "level": 0.95,
            "items_asked": 45,
            "items_total": 900,
            "ability": (0.0,),
            "ability_se": (0.3,),
            "method": "default",
        }
        return Estimate(**(values | changes))

    return make
