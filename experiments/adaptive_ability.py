"""Adaptive tests of ability on a simulated bank: error against the best possible, speed of selection.

The bank is known, so that only the choice of items is judged: 1,000 items, a ~ logN(0, .4), b ~ N(0, 1.2);
2,000 subjects, theta ~ N(0, 1). The floor is the root of E[1 / (1 + I50(theta))], I50 the information of the
50 best items at the true ability.

    python experiments/adaptive_ability.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.drivers.replay import replay
from irteval.irt.logistic import information
from irteval.responses import ResponseMatrix
from irteval.session import Session

ITEMS, SUBJECTS, ASKED = 1000, 2000, 50


def simulated_bank(items: int, seed: int) -> ItemBank:
    rng = np.random.default_rng(seed)
    return ItemBank.from_difficulty(
        [f"i{j:05d}" for j in range(items)], rng.lognormal(0, 0.4, items), rng.normal(0, 1.2, items)
    )


def simulated_responses(bank: ItemBank, theta: NDArray[np.float64], seed: int) -> ResponseMatrix:
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(theta[:, None] * bank.parameters.slope[:, 0] + bank.parameters.intercept)))
    scores = (rng.random(p.shape) < p).astype(np.int8)
    return ResponseMatrix.from_dense(scores, [f"s{i:05d}" for i in range(len(theta))], list(bank.items))


def floor(bank: ItemBank, theta: NDArray[np.float64]) -> float:
    """Root mean square error that 50 items chosen at the true ability would leave."""
    by_item = information(
        torch.as_tensor(theta)[:, None],
        torch.as_tensor(bank.parameters.slope),
        torch.as_tensor(bank.parameters.intercept),
    )
    best = by_item.topk(ASKED, dim=1).values.sum(1)
    return float((1 / (1 + best)).mean().sqrt())


def best_of(times: int, action: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def rmse(bank: ItemBank, responses: ResponseMatrix, theta: NDArray[np.float64], criterion: str) -> float:
    estimates = replay(bank, responses, budget=ASKED, criterion=criterion, batch=1)
    found = np.array([estimate.ability[0] for estimate in estimates])
    return float(np.sqrt(((found - theta) ** 2).mean()))


def ask_milliseconds(criterion: str, answered: int) -> float:
    """One ``ask(16)`` from 10,000 items after some answers."""
    bank = simulated_bank(10_000, seed=1)
    session = Session(bank, "subject", criterion=criterion)
    while len(session.answers) < answered:
        session.tell({reference.item: 1.0 for reference in session.ask(min(16, answered))})
    return 1000 * best_of(3, lambda: session.ask(16))


def main(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bank = simulated_bank(ITEMS, seed)
    theta = rng.normal(size=SUBJECTS)
    responses = simulated_responses(bank, theta, seed + 1)
    lowest = floor(bank, theta)
    fisher = rmse(bank, responses, theta, "fisher")
    random = rmse(bank, responses, theta, "random")
    print(f"{SUBJECTS} subjects, {ASKED} of {ITEMS} items, RMSE of ability")
    print(f"  floor              {lowest:.4f}")
    print(
        f"  Fisher information {fisher:.4f}   {fisher / lowest:.3f} x floor, {fisher / random:.3f} x random"
    )
    print(f"  random items       {random:.4f}")
    seconds = best_of(3, lambda: replay(bank, responses, budget=ASKED, criterion="fisher"))
    print(f"sessions run together: {SUBJECTS / seconds:.0f} a second, scores and intervals included")
    for criterion, answered in (("fisher", 0), ("fisher", 48), ("score", 0), ("score", 10), ("score", 48)):
        print(
            f"ask(16) from 10,000 items, {criterion}, {answered:2d} answers: "
            f"{ask_milliseconds(criterion, answered):.1f} ms"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
