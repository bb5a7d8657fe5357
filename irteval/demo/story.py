"""The demo's story: train classifiers, fit a bank, test new subjects with a twentieth of the items."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from scipy.stats import hypergeom

from irteval.calibrate.fit import fit
from irteval.demo import digits
from irteval.demo.newcomers import train_network, train_stronger
from irteval.demo.population import train_population
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.estimate.result import Estimate
from irteval.report.plots import save_png, training_curve
from irteval.report.tables import estimates_table

SHARE_ASKED = 0.05  # of the items
SESSIONS = 10  # a new subject
BANK, RESPONSES, NEW_RESPONSES = "bank", "responses.parquet", "new-responses.parquet"
TABLE, CURVE = "table.csv", "training-curve.png"


@dataclass(frozen=True)
class DemoRow:
    """One new subject, tested in several sessions that draw their items with different seeds.

    Attributes:
        sessions: what 5 % of the items said, an estimate a session.
        true_score: share right of all items.
        random_error: expected absolute error of the plain share right on as many items drawn at random.
    """

    sessions: tuple[Estimate, ...]
    true_score: float
    random_error: float

    @property
    def estimate(self) -> Estimate:
        """The first session's: the one that is shown."""
        return self.sessions[0]

    @property
    def covered(self) -> bool:
        """Whether the interval shown holds the true score."""
        return _holds(self.estimate, self.true_score)

    @property
    def mean_absolute_error(self) -> float:
        """Over the sessions."""
        return float(np.mean([abs(estimate.score - self.true_score) for estimate in self.sessions]))

    @property
    def coverage(self) -> float:
        """Share of the sessions whose interval holds the true score."""
        return float(np.mean([_holds(estimate, self.true_score) for estimate in self.sessions]))


def _holds(estimate: Estimate, true_score: float) -> bool:
    low, high = estimate.interval
    return low <= true_score <= high


@dataclass(frozen=True)
class DemoResult:
    """What the demo found and where it lies.

    Attributes:
        rows: one a new subject: checkpoints in training order, then the two better classifiers.
        calibrated: number of calibration subjects.
        best_calibrated: true score of the strongest of them.
        folder: where the files are: ``bank/``, ``responses.parquet`` of the calibrated subjects,
            ``new-responses.parquet``, ``table.csv``, ``training-curve.png``.
        seconds: wall time of the whole.
    """

    rows: tuple[DemoRow, ...]
    calibrated: int
    best_calibrated: float
    folder: str
    seconds: float

    @property
    def mean_absolute_error(self) -> float:
        """Mean over the new subjects and their sessions."""
        return float(np.mean([row.mean_absolute_error for row in self.rows]))

    @property
    def random_mean_absolute_error(self) -> float:
        """The same for as many items drawn at random: the control."""
        return float(np.mean([row.random_error for row in self.rows]))

    @property
    def coverage(self) -> float:
        """Share of all intervals that hold the true score."""
        return float(np.mean([row.coverage for row in self.rows]))

    def table(self) -> Table:
        """The rows for a terminal."""
        truth = {row.estimate.subject: row.true_score for row in self.rows}
        return estimates_table([row.estimate for row in self.rows], truth=truth)

    def summary(self) -> str:
        """The result in sentences."""
        first = self.rows[0].estimate
        covered = sum(row.covered for row in self.rows)
        lines = (
            f"One session a subject is shown, {first.items_asked} of {first.items_total} items each: "
            f"{covered} of {len(self.rows)} intervals hold the true score.",
            f"The bank was fitted to {self.calibrated} others, the best of which scores "
            f"{self.best_calibrated:.3f}.",
            f"Over {SESSIONS} sessions a subject: mean absolute error {self.mean_absolute_error:.4f}, "
            f"coverage {100 * self.coverage:.1f} % (nominal {100 * first.level:g} %).",
            f"The share right on as many random items: mean absolute error "
            f"{self.random_mean_absolute_error:.4f}.",
            f"{self.seconds:.0f} s in all. Bank, responses, table and training curve are in {self.folder}",
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON values; ``estimates`` has the keys of every command and some more."""
        return {
            "estimates": [
                {
                    **row.estimate.to_json(),
                    "true_score": row.true_score,
                    "covered": row.covered,
                    "mean_absolute_error": row.mean_absolute_error,
                    "random_error": row.random_error,
                    "coverage": row.coverage,
                }
                for row in self.rows
            ],
            "calibrated": self.calibrated,
            "best_calibrated": self.best_calibrated,
            "sessions": SESSIONS,
            "mean_absolute_error": self.mean_absolute_error,
            "random_mean_absolute_error": self.random_mean_absolute_error,
            "coverage": self.coverage,
            "folder": self.folder,
            "seconds": self.seconds,
        }


def run_demo(out: Path, seed: int = 0, progress: Callable[[str], None] | None = None) -> DemoResult:
    """Train, fit, test; write the responses, the bank, the table and the training curve.

    Args:
        out: folder to write into; made where it is missing, the files of an earlier demo are replaced.
        seed: seed of everything that is drawn.
        progress: called with a line as each stage begins.

    Returns:
        The estimates beside the true scores.

    Raises:
        InputError: the folder cannot be made.
    """
    say = progress if progress is not None else lambda line: None
    started = time.perf_counter()
    _make_folder(out)
    benchmark = digits.load(seed)

    say("training the calibration subjects: classifiers of twenty families")
    population = digits.responses(benchmark, train_population(benchmark, seed))
    say("training the new subjects: a network and its checkpoints, two better classifiers")
    steps = train_network(benchmark, seed)
    checkpoints = {f"network-step-{step:03d}": named for step, named in steps.items()}
    newcomers = digits.responses(benchmark, checkpoints | train_stronger(benchmark, seed))

    say(f"fitting the bank: {len(population.subjects)} subjects, {len(population.items)} items")
    bank = fit(population, seed=seed, name=digits.BENCHMARK)
    budget = round(SHARE_ASKED * len(benchmark.items))
    say(f"testing {len(newcomers.subjects)} new subjects with {budget} items each, {SESSIONS} times")
    sessions = [replay(bank, newcomers, budget=budget, seed=seed + number) for number in range(SESSIONS)]
    rows = tuple(
        DemoRow(estimates, true_score, _random_error(true_score, budget, len(benchmark.items)))
        for estimates, true_score in zip(
            zip(*sessions, strict=True), newcomers.subject_means().tolist(), strict=True
        )
    )
    best_calibrated = float(population.subject_means().max())
    say("writing the files")
    bank.save(out / BANK, overwrite=True)
    population.to_frame().to_parquet(out / RESPONSES, index=False)
    newcomers.to_frame().to_parquet(out / NEW_RESPONSES, index=False)
    _table_frame(rows).to_csv(out / TABLE, index=False)
    save_png(_curve(rows, list(steps), best_calibrated), out / CURVE)
    return DemoResult(
        rows=rows,
        calibrated=len(population.subjects),
        best_calibrated=best_calibrated,
        folder=str(out),
        seconds=time.perf_counter() - started,
    )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"no folder to write into: {error.strerror}", file=str(out)) from error


def _random_error(true_score: float, asked: int, total: int) -> float:
    """E|k / n - R / J|, exact: k of n items drawn without replacement are right, k is hypergeometric."""
    right = np.arange(asked + 1)
    chance = hypergeom.pmf(right, total, round(true_score * total), asked)
    return float(chance @ np.abs(right / asked - true_score))


def _table_frame(rows: Sequence[DemoRow]) -> pd.DataFrame:
    """What the printed table shows, unrounded."""
    return pd.DataFrame(
        {
            "subject": [row.estimate.subject for row in rows],
            "true_score": [row.true_score for row in rows],
            "score": [row.estimate.score for row in rows],
            "lo": [row.estimate.interval[0] for row in rows],
            "hi": [row.estimate.interval[1] for row in rows],
            "items_asked": [row.estimate.items_asked for row in rows],
            "items_saved": [row.estimate.items_total - row.estimate.items_asked for row in rows],
            "covered": [row.covered for row in rows],
            "mean_absolute_error": [row.mean_absolute_error for row in rows],
            "random_error": [row.random_error for row in rows],
            "coverage": [row.coverage for row in rows],
        }
    )


def _curve(rows: Sequence[DemoRow], steps: Sequence[int], best_calibrated: float) -> Figure:
    """The network's checkpoints as a training curve, the stronger classifiers beside it."""
    estimates = [row.estimate for row in rows]
    first = estimates[0]
    return training_curve(
        steps,
        estimates[: len(steps)],
        truth={row.estimate.subject: row.true_score for row in rows},
        others=estimates[len(steps) :],
        best_calibrated=best_calibrated,
        title=f"A network learns to read digits: its score on {first.items_total} images, "
        f"estimated from {first.items_asked}",
    )
