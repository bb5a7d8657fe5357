"""The command driver: a harness of the user's own, that fails, hangs, answers late and outlives the run."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irteval.bank import ItemBank
from irteval.drivers.command import CommandHarness
from irteval.drivers.live import HarnessError, run_live
from irteval.errors import InputError
from irteval.journal import WORK_FOLDER, RunFolder
from irteval.session import Session

ROOT = Path(__file__).parents[2]

# Notes every item that it runs, and answers by the last digit of its id.
HARNESS = """
import json, sys, time
ids, out, ran, seconds = sys.argv[1:]
with open(out, "w") as answers:
    for item in open(ids).read().split("\\n")[:-1]:
        with open(ran, "a") as file:
            print(item, file=file)
        time.sleep(float(seconds))
        score = int(item[-1]) % 2
        print(json.dumps({"item": item, "score": score, "cost": 2, "tokens": 5}), file=answers, flush=True)
"""


@pytest.fixture
def bank(known_bank: Callable[..., ItemBank]) -> ItemBank:
    return known_bank(60)


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., str]:
    """A function of seconds an item that returns a command; ``ran.txt`` has the items that it ran."""
    (tmp_path / "har ness.py").write_text(HARNESS)

    def make(seconds: float = 0) -> str:
        words = [sys.executable, tmp_path / "har ness.py", "{ids_file}", "{out_file}", tmp_path / "ran.txt"]
        return shlex.join([*map(str, words), str(seconds)])

    return make


def shell(script: str) -> str:
    return shlex.join(["sh", "-c", script, "sh", "{ids_file}", "{out_file}"])


def ran(tmp_path: Path) -> list[str]:
    return (tmp_path / "ran.txt").read_text().split()


def test_every_item_is_run_once_and_told(bank, command, tmp_path) -> None:
    session = Session(bank, budget=30)
    harness = CommandHarness(command(), tmp_path / 'it\'s a "folder"')
    estimate = run_live(session, harness, at_once=8, concurrency=2)
    assert (estimate.items_asked, estimate.stopped) == (30, "budget")
    assert sorted(ran(tmp_path)) == sorted(session.answers)
    assert all(answer.score == int(item[-1]) % 2 for item, answer in session.answers.items())
    assert {(answer.cost, answer.tokens) for answer in session.answers.values()} == {(2, 5)}


@pytest.mark.parametrize(("setting", "items"), [({"max_cost": 40}, 20), ({"max_tokens": 101}, 21)])
def test_a_budget_of_cost_or_tokens_ends_the_asking(bank, command, tmp_path, setting, items) -> None:
    session = Session(bank, batch=1, **setting)
    estimate = run_live(session, CommandHarness(command(), tmp_path / "work"), at_once=1)
    assert (estimate.items_asked, estimate.stopped) == (items, "budget")


def test_out_of_time_is_a_stop_that_the_run_goes_on_from(bank, command, tmp_path) -> None:
    session = Session(bank, budget=20)
    harness = CommandHarness(command(), tmp_path / "work")
    assert run_live(session, harness, max_seconds=0).stopped == "budget"
    assert session.stopped is None
    assert run_live(session, harness).items_asked == 20


def test_a_failing_command_is_an_error_and_what_it_answered_counts(bank, tmp_path) -> None:
    # The first item of each call is answered, then the command fails, half a line written.
    script = (
        """head -n 1 "$1" | sed 's/.*/{"item": "&", "score": 1}/' > "$2"; printf '{"item' >> "$2"; exit 3"""
    )
    session = Session(bank, budget=20)
    estimate = run_live(session, CommandHarness(shell(script), tmp_path / "work"), at_once=5)
    states = [answer.status for answer in session.answers.values()]
    assert (states.count("ok"), states.count("error")) == (4, 16)
    assert estimate.items_asked == 4
    assert "16 of 20 items gave no score and count as missing (16 error)" in estimate.warnings


def test_a_command_that_ends_well_without_an_answer_is_an_error_too(bank, tmp_path) -> None:
    script = """head -n 2 "$1" | sed 's/.*/{"item": "&", "score": 1}/' > "$2" """
    session = Session(bank, budget=10)
    run_live(session, CommandHarness(shell(script), tmp_path / "work"), at_once=5)
    assert [a.status for a in session.answers.values()].count("error") == 6


def test_a_slow_command_is_ended_and_its_items_timed_out(bank, tmp_path) -> None:
    script = """head -n 1 "$1" | sed 's/.*/{"item": "&", "score": 1}/' > "$2"; sleep 60"""
    session = Session(bank, budget=4)
    began = time.monotonic()
    run_live(session, CommandHarness(shell(script), tmp_path / "work", 0.5), at_once=2, concurrency=2)
    assert time.monotonic() - began < 30
    assert sorted(a.status for a in session.answers.values()) == ["ok", "ok", "timeout", "timeout"]


def test_a_command_that_never_works_ends_the_run_and_nothing_is_lost(bank, command, tmp_path) -> None:
    bank.save(tmp_path / "bank")
    for failing in (shell("exit 7"), shell("exit 0")):
        folder = tmp_path / f"run-{failing.count('7')}"
        session = Session.create(folder, tmp_path / "bank", budget=20)
        with pytest.raises(HarnessError, match="3 calls in a row failed"):
            run_live(session, CommandHarness(failing, folder / WORK_FOLDER), at_once=2)
        session.close()
        resumed = Session.resume(folder)
        assert len(resumed.pending) == 6
        estimate = run_live(resumed, CommandHarness(command(), folder / WORK_FOLDER), at_once=2)
        assert (estimate.items_asked, estimate.warnings) == (20, ())
        resumed.close()


def test_one_call_that_fails_alone_ends_the_run_too(bank, tmp_path) -> None:
    session = Session(bank, budget=5)
    with pytest.raises(HarnessError, match="no item was answered"):
        run_live(session, CommandHarness(shell("exit 1"), tmp_path / "work"), at_once=10)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"item": "elsewhere", "score": 1}', "'elsewhere', which was not asked"),
        ('{"item": "i1", "score": 7}', "field 'score'"),
        ("no JSON", "line 1"),
    ],
)
def test_an_answer_that_cannot_be_read_names_its_file(bank, tmp_path, line, message) -> None:
    session = Session(bank, budget=5)
    harness = CommandHarness(shell(f"""printf '%s\\n' '{line}' > "$2" """), tmp_path / "work")
    with pytest.raises(InputError, match=message) as error:
        run_live(session, harness)
    assert error.value.file is not None
    assert error.value.file.endswith("out.jsonl")
    assert session.answers == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run 'this {ids_file}", "quotation"),
        ("run {ids_file}", "{out_file}"),
        ("no-such {ids_file} {out_file}", "no-such"),
    ],
)
def test_a_command_line_that_cannot_work_is_refused(bank, tmp_path, line, message) -> None:
    with pytest.raises(InputError, match=message) as error:
        run_live(Session(bank), CommandHarness(line, tmp_path / "work"))
    assert error.value.field == "command"


def test_killed_runs_ask_nothing_twice_and_end_as_one_that_was_not(bank, command, tmp_path) -> None:
    bank.save(tmp_path / "bank")
    words = ["--driver", "command", "--command", command(0.06), "--budget", "40", "--batch", "4"]

    def start(out: Path) -> subprocess.Popen[bytes]:
        line = [
            sys.executable,
            str(ROOT / "cli.py"),
            "run",
            str(tmp_path / "bank"),
            *words,
            "--out",
            str(out),
        ]
        return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ)

    rng, folder = random.Random(0), tmp_path / "killed"
    for _ in range(1):
        process = start(folder)
        before = len(ran(tmp_path)) if (tmp_path / "ran.txt").exists() else 0
        while process.poll() is None and (
            not (tmp_path / "ran.txt").exists() or len(ran(tmp_path)) < before + 9
        ):
            time.sleep(0.02)
        time.sleep(0.2 * rng.random())
        with pytest.raises(InputError, match="in use by process"):
            Session.resume(folder)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    last = start(folder)
    _, errors = last.communicate()
    assert last.returncode == 0, errors
    told = RunFolder.open(folder).told()
    assert len(told) == len(ran(tmp_path)) == len(set(ran(tmp_path))) == 40
    whole = Session(bank, budget=40, batch=4)
    run_live(whole, CommandHarness(command(), tmp_path / "work"), at_once=4)
    assert {line.item: line.score for line in told} == {i: a.score for i, a in whole.answers.items()}
    assert np.isclose(RunFolder.open(folder).estimates()["estimates"][0]["score"], whole.estimate().score)
