"""Score estimators by name."""

from __future__ import annotations

from collections.abc import Callable

from irteval.estimate.aipw import Aipw
from irteval.estimate.estimator import ScoreEstimator

ESTIMATORS: dict[str, Callable[[], ScoreEstimator]] = {"aipw": Aipw}
