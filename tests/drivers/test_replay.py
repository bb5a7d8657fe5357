"""Replay: one session at a time by other means, better than random, resumable at any point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.drivers.replay import replay
from irteval.errors import BankMismatchError, InputError
from irteval.estimate.result import Estimate
from irteval.journal import RunFolder
from irteval.responses import ResponseMatrix, read_responses
from irteval.session import Session
from irteval.validation.splits import make_split

if TYPE_CHECKING:
    from tests.conftest import Fitted

Draw = Callable[..., NDArray[np.float64]]


def one_at_a_time(bank: ItemBank, responses: ResponseMatrix, **settings: object) -> list[Estimate]:
    """What replay should say of complete responses, by the public session."""
    scores, place = responses.dense(), {item: j for j, item in enumerate(responses.items)}
    estimates = []
    for row, subject in enumerate(responses.subjects):
        session = Session(bank, subject, **settings)
        while batch := session.ask():
            session.tell({asked.item: scores[row, place[asked.item]] for asked in batch})
        estimates.append(session.estimate())
    return estimates


def assert_same(found: Estimate, wanted: Estimate, tolerance: float = 1e-9) -> None:
    assert (found.subject, found.stopped, found.items_asked) == (
        wanted.subject,
        wanted.stopped,
        wanted.items_asked,
    )
    assert found.extrapolating == wanted.extrapolating
    np.testing.assert_allclose(
        [found.score, *found.interval, *found.ability, *found.ability_se],
        [wanted.score, *wanted.interval, *wanted.ability, *wanted.ability_se],
        atol=tolerance,
    )


def errors(estimates: list[Estimate], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([estimate.score for estimate in estimates]) - truth


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": 60},
        {"budget": 33, "batch": 4, "seed": 3},
        {"target": 0.06},
        {"budget": 40, "criterion": "random", "level": 0.8},
        {"budget": 12, "criterion": "fisher"},
        {"budget": 20, "criterion": "fisher", "batch": 5},
    ],
    ids=str,
)
def test_equals_one_session_at_a_time(fitted: Fitted, settings: dict[str, object]) -> None:
    some = fitted.targets.take(subjects=np.arange(3))
    together = replay(fitted.bank, some, **settings)
    for found, wanted in zip(together, one_at_a_time(fitted.bank, some, **settings), strict=True):
        assert_same(found, wanted)


def test_who_is_tested_beside_it_changes_nothing(
    fitted: Fitted, with_missing: Callable[..., NDArray[np.int8]]
) -> None:
    holes = with_missing(np.asarray(fitted.targets.scores), 0.3, 0)
    holes[0, :60], holes[3, 30:] = -1, -1  # some can be asked far fewer items than others
    responses = ResponseMatrix.from_dense(holes, fitted.targets.subjects)
    for settings in ({"budget": 70}, {"target": 0.05}):
        together = replay(fitted.bank, responses, subjects=responses.subjects[:4], **settings)
        for n in range(4):
            [alone] = replay(fitted.bank, responses, subjects=responses.subjects[n : n + 1], **settings)
            assert_same(together[n], alone)


def test_items_without_a_recorded_response_are_never_asked(fitted: Fitted, tmp_path: Path) -> None:
    holes = np.asarray(fitted.targets.scores).copy()[:3]
    holes[:, 50:] = -1
    holes[2] = -1
    responses = ResponseMatrix.from_dense(holes, ["a", "b", "nobody"])
    estimates = replay(fitted.bank, responses, out=tmp_path / "run")
    assert [e.stopped for e in estimates] == ["bank_empty"] * 3
    assert [e.items_asked for e in estimates] == [50, 50, 0]
    assert [e.items_total for e in estimates] == [120] * 3
    assert estimates[0].warnings == ("70 items have no recorded response and could not be asked",)
    assert estimates[0].half_width > 0
    assert {line.item for line in RunFolder.open(tmp_path / "run").told()} <= {f"i{i}" for i in range(50)}
    truth = np.asarray(fitted.targets.scores)[:2].mean(1)
    assert (np.abs(errors(estimates[:2], truth)) < 0.1).all()


def test_beats_random_on_simulated_subjects(fitted: Fitted) -> None:
    truth = fitted.targets.subject_means()
    by_seed = {
        criterion: [
            np.abs(
                errors(replay(fitted.bank, fitted.targets, budget=25, criterion=criterion, seed=seed), truth)
            )
            for seed in range(3)
        ]
        for criterion in ("score", "random")
    }
    chance = np.sqrt(truth * (1 - truth) / 25 * 95 / 119) * np.sqrt(2 / np.pi)  # of a random mean
    assert np.mean(by_seed["score"]) < 0.85 * chance.mean()
    assert np.mean(by_seed["score"]) < np.mean(by_seed["random"])


def test_intervals_hold_on_simulated_subjects(fitted: Fitted) -> None:
    truth = fitted.targets.subject_means()
    covered = []
    for seed, budget in ((0, 15), (1, 30), (2, 60)):
        estimates = replay(fitted.bank, fitted.targets, budget=budget, seed=seed)
        covered += [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]
    assert np.mean(covered) >= 0.92


def test_a_target_is_met_and_said(fitted: Fitted) -> None:
    estimates = replay(fitted.bank, fitted.targets, target=0.07)
    truth = fitted.targets.subject_means()
    assert {e.stopped for e in estimates} == {"target"}
    assert all(e.half_width <= 0.07 for e in estimates)
    assert all(10 <= e.items_asked < 120 for e in estimates)
    assert (
        np.mean([e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]) >= 0.9
    )


def test_beats_random_on_swebench_newest(shared: Path) -> None:
    responses = read_responses(shared / "data" / "swebench_verified" / "responses.parquet")
    assert responses.subject_table is not None
    dates = responses.subject_table["submission_date"].astype(str).tolist()
    split = make_split(responses, "newest", 0, share=0.2, order=dates)
    bank = fit(responses.take(subjects=split.source))
    targets = responses.take(subjects=split.target)
    truth = targets.subject_means()
    estimates = replay(bank, targets, budget=50)
    error = np.abs(errors(estimates, truth)).mean()
    chance = np.sqrt(truth * (1 - truth) / 50 * 450 / 499) * np.sqrt(2 / np.pi)
    assert error < 0.75 * chance.mean()
    assert (
        np.mean([e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]) >= 0.85
    )


def test_same_seed_same_numbers_another_seed_others(fitted: Fitted) -> None:
    some = fitted.targets.take(subjects=np.arange(4))
    first = replay(fitted.bank, some, budget=30, seed=5)
    assert replay(fitted.bank, some, budget=30, seed=5) == first
    others = replay(fitted.bank, some, budget=30, seed=6)
    assert all(a.score != b.score for a, b in zip(first, others, strict=True))


def test_run_folder_holds_the_whole_run(fitted: Fitted, tmp_path: Path) -> None:
    some = fitted.targets.take(subjects=np.arange(3))
    seen: list[tuple[int, int]] = []
    estimates = replay(
        fitted.bank,
        some,
        budget=40,
        out=tmp_path / "run",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (3, 3)
    folder = RunFolder.open(tmp_path / "run")
    assert folder.settings["subjects"] == list(some.subjects)
    assert folder.settings["budget"] == 40
    told = folder.told()
    assert len(told) == len({(line.subject, line.item) for line in told}) == 120
    assert {line.status for line in told} == {"ok"}
    scores = some.to_frame().set_index(["subject", "item"])["score"]
    assert all(scores[line.subject, line.item] == line.score for line in told)
    assert all((line.probability is None) == (1 <= line.step <= 15) for line in told if line.step is not None)
    assert folder.estimates() == {"estimates": [estimate.to_json() for estimate in estimates]}
    trajectory = pd.read_parquet(tmp_path / "run" / "trajectory.parquet")
    assert list(trajectory.columns) == ["subject", "step", "items_asked", "score", "lo", "hi", "ability_0"]
    for estimate in estimates:
        own = trajectory[trajectory["subject"] == estimate.subject]
        assert own["items_asked"].tolist() == [10, *range(11, 26), 37, 40]
        assert own["score"].iloc[-1] == estimate.score


def test_a_finished_run_stays_as_it_is(fitted: Fitted, tmp_path: Path) -> None:
    some, out = fitted.targets.take(subjects=np.arange(3)), tmp_path / "run"
    first = replay(fitted.bank, some, budget=40, out=out)
    trajectory = pd.read_parquet(out / "trajectory.parquet")
    journal = (out / "journal.jsonl").read_bytes()
    again = replay(fitted.bank, some, budget=40, out=out)
    for found, wanted in zip(again, first, strict=True):
        assert_same(found, wanted)
    assert (out / "journal.jsonl").read_bytes() == journal
    order = ["subject", "items_asked"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(out / "trajectory.parquet").sort_values(order, ignore_index=True),
        trajectory.sort_values(order, ignore_index=True),
    )


@pytest.mark.parametrize("lines", [0, 7, 30, 31, 44, 100])
def test_cut_off_anywhere_it_goes_on_as_if_nothing_had_been(
    fitted: Fitted, tmp_path: Path, lines: int
) -> None:
    some = fitted.targets.take(subjects=np.arange(3))
    settings = {"target": 0.08, "batch": 6}
    whole = replay(fitted.bank, some, out=tmp_path / "whole", **settings)
    told = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut"
    RunFolder.create(cut, RunFolder.open(tmp_path / "whole").settings).close()
    (cut / "journal.jsonl").write_bytes(b"".join(told[:lines]) + told[lines][:9])
    # A step is asked before any of it is told; the next one may have been torn while it was written.
    asked = (tmp_path / "whole" / "asked.jsonl").read_bytes().splitlines(keepends=True)
    last = json.loads(told[max(lines - 1, 0)])["step"]
    known = sum(json.loads(line)["step"] <= last for line in asked)
    (cut / "asked.jsonl").write_bytes(b"".join(asked[: known + 3]))
    resumed = replay(fitted.bank, some, out=cut, **settings)
    for found, wanted in zip(resumed, whole, strict=True):
        assert_same(found, wanted)

    def answers(folder: Path) -> list[tuple[str, str, float | None]]:
        return sorted((line.subject, line.item, line.score) for line in RunFolder.open(folder).told())

    assert answers(cut) == answers(tmp_path / "whole")
    columns = ["subject", "items_asked"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(cut / "trajectory.parquet").sort_values(columns, ignore_index=True),
        pd.read_parquet(tmp_path / "whole" / "trajectory.parquet").sort_values(columns, ignore_index=True),
    )


KILLED = """
import os, signal, sys
from irteval.bank import ItemBank
from irteval.drivers.replay import replay
from irteval.journal import RunFolder
from irteval.responses import read_responses

told = RunFolder.append_told
calls = []

def append_told(self, lines):
    told(self, lines)
    calls.append(0)
    if len(calls) == 12:
        os.kill(os.getpid(), signal.SIGKILL)

RunFolder.append_told = append_told
bank, responses, out = sys.argv[1:]
replay(ItemBank.load(bank), read_responses(responses), budget=40, out=out, bank_path=bank)
"""


def test_kill_9_then_resume_asks_nothing_twice(fitted: Fitted, tmp_path: Path) -> None:
    bank, table, out = tmp_path / "bank", tmp_path / "responses.parquet", tmp_path / "run"
    fitted.bank.save(bank)
    some = fitted.targets.take(subjects=np.arange(4))
    some.to_frame().to_parquet(table)
    command = [sys.executable, "-c", KILLED, str(bank), str(table), str(out)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    left = len(RunFolder.open(out).told())
    assert 0 < left < 160
    resumed = replay(fitted.bank, read_responses(table), budget=40, out=out, bank_path=bank)
    told = [(line.subject, line.item) for line in RunFolder.open(out).told()]
    assert len(told) == len(set(told)) == 160
    for found, wanted in zip(resumed, replay(fitted.bank, some, budget=40), strict=True):
        assert_same(found, wanted)
    assert json.loads((out / "estimate.json").read_text())["estimates"][0]["stopped"] == "budget"


def test_another_setting_does_not_resume(fitted: Fitted, tmp_path: Path) -> None:
    some = fitted.targets.take(subjects=np.arange(2))
    replay(fitted.bank, some, budget=12, out=tmp_path / "run")
    with pytest.raises(InputError, match="holds a run with budget 12, now it is 13"):
        replay(fitted.bank, some, budget=13, out=tmp_path / "run")


def test_strangers_are_refused(fitted: Fitted) -> None:
    with pytest.raises(InputError, match="subject 'who' has no recorded responses"):
        replay(fitted.bank, fitted.targets, subjects=["who"], budget=5)
    other = ResponseMatrix.from_dense(np.ones((2, 3)), items=["x", "y", "z"])
    with pytest.raises(BankMismatchError):
        replay(fitted.bank, other, budget=5)


def test_a_calibrated_subject_is_pointed_out(fitted: Fitted) -> None:
    [estimate] = replay(fitted.bank, fitted.source, subjects=["s3"], budget=12)
    assert any("calibrated population" in line for line in estimate.warnings)


def test_extreme_subjects_are_finite(fitted: Fitted) -> None:
    responses = ResponseMatrix.from_dense(np.array([[1] * 120, [0] * 120]), ["all right", "all wrong"])
    for criterion in ("score", "random", "fisher"):
        right, wrong = replay(fitted.bank, responses, budget=30, criterion=criterion)
        assert right.score > 0.9 > 0.1 > wrong.score
        assert 0.95 < right.interval[1] <= 1
        assert 0 <= wrong.interval[0] < 0.05
        json.dumps([right.to_json(), wrong.to_json()], allow_nan=False)
    complete = replay(fitted.bank, responses)
    assert [e.interval for e in complete] == [(pytest.approx(1), pytest.approx(1)), (0, 0)]
    assert [e.stopped for e in complete] == ["bank_empty"] * 2
