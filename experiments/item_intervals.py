"""Do the 95 % intervals of item parameters hold?

Simulated 2PL data: theta ~ N(0, 1), a ~ logN(0, .4), b ~ N(0, 1.2). The truth is taken on the scale of the
calibrated subjects (theta standardised in the sample, as a bank has it) and on that of their population.
Intervals are estimate ± 1.96 SE; b = -d / a by the delta method, over items with |a| > 2 SE.

    python experiments/item_intervals.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irteval.calibrate import calibrate
from irteval.responses import ResponseMatrix

Floats = NDArray[np.float64]
SIZES = ((500, 1000, 12), (200, 300, 40), (500, 100, 60), (2000, 50, 60), (1000, 30, 100), (300, 20, 150))
HEADER = """\
| subjects × items | seeds | estimator | scale | a | d | b | median SE of a, d, b |
|---|---|---|---|---|---|---|---|"""


def coverage(subjects: int, items: int, seed: int, standardise: bool) -> tuple[Floats, Floats, str]:
    """Share of intervals of (a, d, b) that hold, their median standard errors, and the estimator's name."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(subjects)
    if standardise:
        theta = (theta - theta.mean()) / theta.std()
    a, b = rng.lognormal(0, 0.4, items), rng.normal(0, 1.2, items)
    scores = rng.random((subjects, items)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    found = calibrate(ResponseMatrix.from_dense(scores.astype(np.int8)))
    covariance = found.parameters.covariance
    assert covariance is not None
    slope, intercept = found.parameters.slope[:, 0], found.parameters.intercept
    by_b = np.stack([intercept / slope**2, -1 / slope], 1)
    variance = np.stack(
        [covariance[:, 0, 0], covariance[:, 1, 1], np.einsum("jp,jpq,jq->j", by_b, covariance, by_b)]
    )
    error = np.stack([slope - a, intercept + a * b, -intercept / slope - b])
    sure = np.abs(slope) > 2 * np.sqrt(variance[0])
    held = np.abs(error) < 1.96 * np.sqrt(variance)
    spread = np.sqrt(np.median(variance[:, sure], axis=1))
    return np.array([held[0].mean(), held[1].mean(), held[2, sure].mean()]), spread, found.estimator


def main() -> None:
    print(HEADER)
    for subjects, items, seeds in SIZES:
        for scale in ("subjects", "population"):
            runs = [coverage(subjects, items, seed, scale == "subjects") for seed in range(seeds)]
            held = " | ".join(f"{share:.3f}" for share in np.mean([run[0] for run in runs], axis=0))
            spread = ", ".join(f"{error:.3f}" for error in np.mean([run[1] for run in runs], axis=0))
            print(
                f"| {subjects} × {items} | {seeds} | {runs[0][2]} | {scale} | {held} | {spread} |", flush=True
            )


if __name__ == "__main__":
    main()
