"""Does calibration recover what it should, on the right scale, quickly? Beside PyPI's mirt and py-irt in one
run.

Simulated 2PL data: theta ~ N(0, 1) standardised in the sample, a ~ logN(0, .4), b ~ N(0, 1.2). Nothing is
    linked
afterwards: an estimate that lives on another scale counts as wrong. RMSE of b over items with |a| > 2 SE
(all items for peers, which give no SE). "scale": mean slope over its truth, regression of b-hat on b, and
regression of true theta on its estimate; each should be 1.

    python experiments/calibration_recovery.py              # ours
    python experiments/calibration_recovery.py --peers      # and the peers that are installed (minutes)
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irteval.calibrate import calibrate
from irteval.responses import ResponseMatrix

Floats = NDArray[np.float64]
ITEM_COUNTS = (30, 100, 300, 1000, 3000, 10_000)
SEEDS = 6


@dataclass(frozen=True)
class Simulation:
    """Truth and responses: theta ``[N]``, a and b ``[J]``, scores ``[N, J]``."""

    theta: Floats
    a: Floats
    b: Floats
    scores: NDArray[np.int8]


@dataclass(frozen=True)
class Fit:
    """What an estimator returned; ``sure`` marks items whose slope is twice its standard error or more."""

    a: Floats
    b: Floats
    theta: Floats
    sure: NDArray[np.bool_]
    iterations: int
    seconds: float
    megabytes: float


def simulate(subjects: int, items: int, seed: int) -> Simulation:
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=subjects)
    theta = (theta - theta.mean()) / theta.std()
    a, b = rng.lognormal(0, 0.4, items), rng.normal(0, 1.2, items)
    p = 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    return Simulation(theta, a, b, (rng.random(p.shape) < p).astype(np.int8))


def fit_ours(data: Simulation) -> Fit:
    responses = ResponseMatrix.from_dense(data.scores)
    before = peak()
    began = time.perf_counter()
    found = calibrate(responses)
    seconds = time.perf_counter() - began
    parameters = found.parameters
    assert parameters.covariance is not None
    a = parameters.slope[:, 0]
    sure = np.abs(a) > 2 * np.sqrt(parameters.covariance[:, 0, 0])
    theta = found.ability_mean[:, 0]
    return Fit(a, parameters.difficulty, theta, sure, found.iterations, seconds, peak() - before)


def fit_mirt(data: Simulation, nodes: int) -> Fit:
    import mirt

    before = peak()
    began = time.perf_counter()
    result = mirt.fit_mirt(data.scores.astype(int), "2PL", n_quadpts=nodes, compute_standard_errors=False)
    seconds = time.perf_counter() - began
    a = np.asarray(result.model.parameters["discrimination"], dtype=float).ravel()
    b = np.asarray(result.model.parameters["difficulty"], dtype=float).ravel()
    theta = np.asarray(mirt.fscores(result, data.scores.astype(int), method="EAP").theta, dtype=float).ravel()
    return Fit(a, b, theta, np.ones(len(a), bool), int(result.n_iterations), seconds, peak() - before)


def fit_py_irt(data: Simulation) -> Fit:
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    subjects, items = data.scores.shape
    names = [f"i{j}" for j in range(items)]
    table = pd.DataFrame(data.scores, columns=names).assign(subject_id=[f"s{i}" for i in range(subjects)])
    dataset = Dataset.from_pandas(table, subject_column="subject_id", item_columns=names)
    before = peak()
    began = time.perf_counter()
    config = IrtConfig(model_type="2pl", priors="hierarchical", epochs=500, seed=0)
    trainer = IrtModelTrainer(config=config, dataset=dataset, data_path=None, verbose=False)
    trainer.train(device="cpu")
    seconds = time.perf_counter() - began
    best = trainer.best_params
    item_of = np.argsort([int(best["item_ids"][j][1:]) for j in range(items)])
    subject_of = np.argsort([int(best["subject_ids"][i][1:]) for i in range(subjects)])
    a = np.asarray(best["disc"], dtype=float)[item_of]
    b = np.asarray(best["diff"], dtype=float)[item_of]
    theta = np.asarray(best["ability"], dtype=float)[subject_of]
    return Fit(a, b, theta, np.ones(items, bool), 500, seconds, peak() - before)


def peak() -> float:
    """Peak resident size of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux: ru_maxrss would count what the parent process held before the exec
        return float(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 2**10
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 2**20 if sys.platform == "darwin" else size / 2**10


def apart(action: Callable[..., list[float]], *arguments: object) -> list[float]:
    """Run in a fresh process, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(action, arguments)


def measure(estimator: Callable[..., Fit], data: Simulation, *more: object) -> list[float]:
    """Errors, scale, iterations, seconds (best of three), megabytes of one fit.

    The data come from another process: what it takes to simulate them is no part of the fit's peak.
    """
    estimator(simulate(20, 20, 0), *more)  # the first call loads libraries
    fit = estimator(data, *more)
    seconds = [fit.seconds]
    if fit.seconds < 5:
        seconds += [estimator(data, *more).seconds for _ in range(2)]
    sure = fit.sure & np.isfinite(fit.b)
    return [
        float(np.sqrt(((fit.b - data.b)[sure] ** 2).mean())),
        float(np.sqrt(((fit.a - data.a) ** 2).mean())),
        float(np.sqrt(((fit.theta - data.theta) ** 2).mean())),
        float(fit.a.mean() / data.a.mean()),
        float(np.polyfit(data.b[sure], fit.b[sure], 1)[0]),
        float(np.polyfit(fit.theta, data.theta, 1)[0]),
        float(fit.iterations),
        min(seconds),
        fit.megabytes,
    ]


HEADER = (
    "| estimator | subjects x items (seeds) | RMSE b: median (max) | a | theta | scale ± 2 SE: a | b | theta "
    "| iterations | s (best) | MB |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(name: str, subjects: int, items: int, runs: list[list[float]]) -> str:
    table = np.array(runs)
    m = np.median(table, axis=0)
    errors = " | ".join(f"{m[k]:.3f} ({table[:, k].max():.3f})" for k in range(3))
    scale = " | ".join(
        f"{table[:, k].mean():.3f}"
        + (f" ± {2 * table[:, k].std(ddof=1) / len(runs) ** 0.5:.3f}" if len(runs) > 1 else "")
        for k in range(3, 6)
    )
    return (
        f"| {name} | {subjects} x {items:,} ({len(runs)}) | {errors} | {scale} | {m[6]:.0f} "
        f"| {table[:, 7].min():.2f} | {m[8]:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true", help="fit PyPI's mirt and py-irt as well")
    arguments = parser.parse_args()
    print(HEADER)
    for items in ITEM_COUNTS:
        seeds = SEEDS if items <= 3000 else 2
        runs = [apart(measure, fit_ours, simulate(500, items, seed)) for seed in range(seeds)]
        print(line("irteval", 500, items, runs), flush=True)
    for subjects in (50, 100, 200, 2000):
        runs = [apart(measure, fit_ours, simulate(subjects, 1000, seed)) for seed in range(3)]
        print(line("irteval", subjects, 1000, runs), flush=True)
    if arguments.peers:
        for name, package, estimator, more in (
            ("PyPI mirt, 21 nodes (default)", "mirt", fit_mirt, (21,)),
            ("PyPI mirt, 121 nodes", "mirt", fit_mirt, (121,)),
            ("py-irt, hierarchical, 500 epochs", "py_irt", fit_py_irt, ()),
        ):
            if importlib.util.find_spec(package) is None:
                print(f"| {name} | not installed |")
                continue
            print(
                line(name, 500, 1000, [apart(measure, estimator, simulate(500, 1000, 0), *more)]), flush=True
            )


if __name__ == "__main__":
    main()
