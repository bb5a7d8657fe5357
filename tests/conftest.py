"""Fixtures for the whole suite: the shared real data, and simulations whose truth is known."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.responses import ResponseMatrix


class Simulation(NamedTuple):
    """A simulated test: abilities ``theta`` [N], slopes ``a``, difficulties ``b`` [J], ``scores`` [N, J]."""

    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    scores: NDArray[np.int8]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; without it a test is skipped, but never in CI."""
    path = Path(__file__).resolve().parents[2] / "shared"
    if not path.is_dir():
        reason = f"needs the shared data, and there is no folder {path}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def simulate_2pl() -> Callable[[int, int, int], Simulation]:
    """A function of (subjects, items, seed) that draws 0/1 scores of a 2PL.

    theta ~ N(0, 1), standardised in the sample, so that the raw scale of a fit can be compared with it;
    log a ~ N(0, .4²) and b ~ N(0, 1.2²).
    """

    def simulate(subjects: int, items: int, seed: int) -> Simulation:
        rng = np.random.default_rng(seed)
        theta = rng.standard_normal(subjects)
        theta = (theta - theta.mean()) / theta.std()
        a = np.exp(0.4 * rng.standard_normal(items))
        b = 1.2 * rng.standard_normal(items)
        probability = 1 / (1 + np.exp(-a * (theta[:, None] - b)))
        scores = (rng.random((subjects, items)) < probability).astype(np.int8)
        return Simulation(theta, a, b, scores)

    return simulate


@pytest.fixture
def with_missing() -> Callable[[NDArray[np.int8], float, int], NDArray[np.int8]]:
    """A function of (scores [N, J], share, seed) that sets a random share of the cells to missing (-1)."""

    def remove(scores: NDArray[np.int8], share: float, seed: int) -> NDArray[np.int8]:
        rng = np.random.default_rng(seed)
        return np.where(rng.random(scores.shape) < share, np.int8(-1), scores)

    return remove


class Fitted(NamedTuple):
    """A bank of 120 items fitted to 60 subjects, and 40 held-out ``targets`` with all their answers."""

    bank: ItemBank
    source: ResponseMatrix
    targets: ResponseMatrix


@pytest.fixture(scope="session")
def fitted(simulate_2pl: Callable[[int, int, int], Simulation]) -> Fitted:
    """A small bank as `irteval.fit` makes it, with the scorer's fits and a learnt direction beyond."""
    scores = simulate_2pl(100, 120, 3).scores
    source = ResponseMatrix.from_dense(scores[:60])
    targets = ResponseMatrix.from_dense(scores[60:], [f"target-{n}" for n in range(40)])
    return Fitted(fit(source, seed=0), source, targets)


@pytest.fixture(scope="session")
def known_bank() -> Callable[..., ItemBank]:
    """A function of (items, seed) that makes a bank from drawn numbers, taken as known: log a ~ N(0, .3²),
    b ~ N(0, 1); further keywords go to `ItemBank.from_parameters`."""

    def make(items: int, seed: int = 0, **more: object) -> ItemBank:
        rng = np.random.default_rng(seed)
        a = np.exp(0.3 * rng.standard_normal(items))
        b = rng.standard_normal(items)
        return ItemBank.from_parameters([f"i{i}" for i in range(items)], a, -a * b, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def draw_answers() -> Callable[..., NDArray[np.float64]]:
    """A function of (bank, abilities [N], seed) that draws 0/1 answers to every item of a 2PL bank."""

    def draw(bank: ItemBank, theta: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
        parameters = bank.parameters
        p = expit(theta[:, None] * parameters.slope[:, 0] + parameters.intercept)
        return (np.random.default_rng(seed).random(p.shape) < p).astype(np.float64)

    return draw
