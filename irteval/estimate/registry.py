"""Score estimators by name."""

from __future__ import annotations

from collections.abc import Callable

from irteval.estimate.aipw import Aipw
from irteval.estimate.estimator import ScoreEstimator
from irteval.estimate.mean import Mean
from irteval.estimate.p_irt import GpIrt, PIrt
from irteval.estimate.pca import Pca
from irteval.estimate.ridge import Ridge
from irteval.estimate.stratified import Stratified

ESTIMATORS: dict[str, Callable[[], ScoreEstimator]] = {
    estimator.name: estimator for estimator in (Mean, Stratified, Ridge, Aipw, Pca, PIrt, GpIrt)
}
