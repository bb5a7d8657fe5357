"""CPU against GPU: the same numbers, how much faster. Run it on any machine with a CUDA device.

python experiments/gpu_check.py
"""

from __future__ import annotations

import time

import numpy as np
import torch

from irteval.calibrate import Calibration, calibrate
from irteval.responses import ResponseMatrix

SIZES = ((1000, 5000, 1), (5000, 10_000, 1), (1000, 5000, 4))  # subjects, items, dimensions


def simulate(subjects: int, items: int) -> ResponseMatrix:
    rng = np.random.default_rng(0)
    theta, a, b = rng.normal(size=subjects), rng.lognormal(0, 0.4, items), rng.normal(0, 1.2, items)
    p = 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    return ResponseMatrix.from_dense((rng.random(p.shape) < p).astype(np.int8))


def timed(responses: ResponseMatrix, dims: int, device: str) -> tuple[Calibration, float]:
    calibrate(simulate(50, 100), dims=dims, device=device)  # the first call loads libraries and kernels
    began = time.perf_counter()
    fit = calibrate(responses, dims=dims, estimator="variational", device=device)
    return fit, time.perf_counter() - began


def main() -> None:
    if not torch.cuda.is_available():
        print("no CUDA device: nothing to compare")
        return
    print("| subjects x items, dims | largest difference a, d, theta | CPU s | GPU s | ratio |")
    print("|---|---|---|---|---|")
    for subjects, items, dims in SIZES:
        responses = simulate(subjects, items)
        (cpu, cpu_seconds), (gpu, gpu_seconds) = (
            timed(responses, dims, device) for device in ("cpu", "cuda")
        )
        differences = (
            np.abs(cpu.parameters.slope - gpu.parameters.slope).max(),
            np.abs(cpu.parameters.intercept - gpu.parameters.intercept).max(),
            np.abs(cpu.ability_mean - gpu.ability_mean).max(),
        )
        shown = ", ".join(f"{difference:.1e}" for difference in differences)
        print(
            f"| {subjects:,} x {items:,}, {dims} | {shown} | {cpu_seconds:.2f} | {gpu_seconds:.2f} "
            f"| {cpu_seconds / gpu_seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
