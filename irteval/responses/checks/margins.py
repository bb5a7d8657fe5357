"""What answers to expect from how able each subject and how easy each item is, and nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float32]

STEPS = 8
LARGEST_STEP = 1.0
PRIOR_PRECISION = 1 / 9  # of abilities and easinesses: finite where all answers are equal


def expected_scores(scores: Floats, observed: Floats) -> Floats:
    """P ``[n, m]`` of the Rasch model, logit P = ability + easiness, at its joint posterior mode.

    Newton steps on abilities and easinesses in turn. Joint estimates spread a little too far (Andersen 1973,
    *Conditional inference and models for measuring*), which does not matter to a comparison of answers with
    their margins: row and column sums of P are those of the scores, up to the weak prior N(0, 3²).

    Args:
        scores: ``[n, m]``, 0 where missing.
        observed: 1 where there is an answer, else 0.
    """
    ability = np.zeros(scores.shape[0], dtype=np.float32)
    easiness = np.zeros(scores.shape[1], dtype=np.float32)
    for _ in range(STEPS):
        for parameters, axis in ((ability, 1), (easiness, 0)):
            p = expit(ability[:, None] + easiness) * observed
            gradient = (scores - p).sum(axis=axis) - PRIOR_PRECISION * parameters
            information = (p * (1 - p)).sum(axis=axis) + PRIOR_PRECISION
            parameters += np.clip(gradient / information, -LARGEST_STEP, LARGEST_STEP)
    return np.asarray(expit(ability[:, None] + easiness), dtype=np.float32)
