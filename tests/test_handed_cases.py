"""Cases that an estimate of the full score must get right, worked out by hand or drawn with fixed seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import expit

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.drivers.replay import replay
from irteval.responses import ResponseMatrix
from irteval.responses.read import read_responses
from irteval.scoring import score
from irteval.session import Session

if TYPE_CHECKING:
    from tests.conftest import Fitted


@pytest.mark.parametrize("seen", [slice(0, 20), slice(81, 101)])
def test_either_end_of_sorted_items_covers_the_middle(seen: slice) -> None:
    difficulty = np.linspace(-2, 2, 101)
    bank = ItemBank.from_difficulty([f"i{n}" for n in range(101)], np.ones(101), difficulty)
    answers = (np.random.default_rng(0).random((200, 101)) < expit(-difficulty)).astype(float)
    part = np.full_like(answers, np.nan)
    part[:, seen] = answers[:, seen]
    estimates = score(bank, ResponseMatrix.from_dense(part, items=bank.items))
    assert np.mean([e.interval[0] <= 0.5 <= e.interval[1] for e in estimates]) >= 0.95


def test_five_right_answers_are_no_reason_to_stop() -> None:
    bank = ItemBank.from_difficulty([f"i{n}" for n in range(80)], np.ones(80), np.linspace(-2, 2, 80))
    session = Session(bank, target=0.05)
    session.tell({reference.item: 1.0 for reference in session.ask(5)})
    assert session.ask(1)
    assert session.stopped is None
    assert session.estimate().half_width > 0.05


@pytest.mark.parametrize("kind", ["all wrong", "all right", "coin flips", "flipped"])
def test_odd_subjects_are_covered(fitted: Fitted, kind: str) -> None:
    answers = fitted.targets.dense()
    coins = np.random.default_rng(1).random(answers.shape) < 0.5
    odd = {"all wrong": 0 * answers, "all right": 0 * answers + 1, "coin flips": 1.0 * coins}
    y = odd.get(kind, 1 - answers)
    estimates = replay(fitted.bank, ResponseMatrix.from_dense(y, items=fitted.bank.items), budget=50)
    truth = y.mean(1)
    covered = [
        e.interval[0] - 1e-9 <= t <= e.interval[1] + 1e-9 for e, t in zip(estimates, truth, strict=True)
    ]
    assert np.mean(covered) >= 0.85


def test_opposite_camps_are_within_their_bars(shared: Path) -> None:
    """Half of the adapters answer RTE with the labels the other way round: signed slopes."""
    responses = read_responses([shared / "data/glue_anchor/responses.parquet"], benchmark="rte")
    order = np.random.default_rng(0).permutation(len(responses.subjects))
    source, targets = (responses.take(subjects=np.sort(part)) for part in (order[21:], order[:21]))
    estimates = replay(fit(source), targets, budget=50)
    truth = targets.subject_means()
    covered = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]
    assert np.mean(covered) >= 0.85
    assert np.mean([abs(e.score - t) for e, t in zip(estimates, truth, strict=True)]) < 0.03
