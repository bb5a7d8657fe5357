"""``irteval run``."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from irteval.estimate.result import Estimate
from irteval.journal import RunFolder
from tests.cli.conftest import BUDGET, ITEMS, Command, Files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def replay(irteval: Command, files: Files) -> Command:
    """A replay of the new subjects with more words."""

    def call(*words: object):
        return irteval("run", files.bank, "--driver", "replay", "--responses", files.new, *words)

    return call


def test_every_subject_gets_an_estimate(replay: Command) -> None:
    result = replay("--budget", BUDGET, "--json")
    assert result.code == 0, result.err
    estimates = result.document["estimates"]
    assert [estimate["subject"] for estimate in estimates] == [f"new-{i}" for i in range(6)]
    for estimate in estimates:
        assert set(estimate) == set(Estimate.__dataclass_fields__)
        low, high = estimate["interval"]
        assert 0 <= low <= estimate["score"] <= high <= 1
        assert low < high
        assert (estimate["items_asked"], estimate["items_total"]) == (BUDGET, ITEMS)
        assert estimate["stopped"] == "budget"
    assert "new-5" in replay("--budget", BUDGET).out


def test_named_subjects_only(replay: Command) -> None:
    estimates = replay("--budget", BUDGET, "--subject", "new-3", "--subject", "new-1", "--json").document
    assert [estimate["subject"] for estimate in estimates["estimates"]] == ["new-3", "new-1"]
    result = replay("--subject", "nobody", "--json")
    assert (result.code, result.document["error"]["field"]) == (2, "subject")


def test_the_same_seed_gives_the_same_numbers(replay: Command) -> None:
    first, second, other = (replay("--budget", BUDGET, "--seed", seed, "--json").out for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_a_missed_target_is_code_3_after_the_result(replay: Command) -> None:
    result = replay("--budget", BUDGET, "--target", "0.001", "--json")
    assert result.code == 3
    assert len(result.document["estimates"]) == 6
    assert "missed the target" in result.err


def test_a_reached_target_is_code_0(replay: Command) -> None:
    result = replay("--target", "0.3", "--json")
    assert result.code == 0
    assert {estimate["stopped"] for estimate in result.document["estimates"]} == {"target"}


def test_calibrated_subjects_are_warned_of(irteval: Command, files: Files) -> None:
    words = ("--driver", "replay", "--responses", files.responses, "--budget", BUDGET, "--subject", "old-00")
    result = irteval("run", files.bank, *words, "--json")
    assert any("calibrated" in warning for warning in result.document["estimates"][0]["warnings"])
    assert "calibrated" in result.err


def test_a_bank_of_another_benchmark_is_code_4(irteval: Command, files: Files, strangers: Path) -> None:
    result = irteval("run", files.bank, "--driver", "replay", "--responses", strangers, "--json")
    assert (result.code, result.document["error"]["code"]) == (4, "bank_mismatch")


@pytest.mark.parametrize(
    ("flag", "value"), [("--target", 0), ("--target", 1.5), ("--level", 1), ("--budget", 0)]
)
def test_settings_out_of_range_are_code_2(replay: Command, flag: str, value: float) -> None:
    result = replay(flag, value, "--json")
    assert (result.code, "error" in result.document) == (2, True)


def test_a_run_goes_on_where_it_was(replay: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = replay("--budget", BUDGET, "--out", out, "--json")
    assert first.code == 0, first.err
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 6 * BUDGET
    journal.write_bytes(b"".join(lines[:40]) + lines[40][:25])
    again = replay("--budget", BUDGET, "--out", out, "--json")
    assert again.code == 0, again.err
    told = RunFolder.open(out).told()
    assert len(told) == len({(line.subject, line.item) for line in told}) == 6 * BUDGET
    for one, other in zip(again.document["estimates"], first.document["estimates"], strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-6)
        assert one["interval"] == pytest.approx(other["interval"], abs=1e-6)


def test_a_killed_run_goes_on(replay: Command, files: Files, tmp_path: Path) -> None:
    words = ("--batch", "1", "--budget", "40", "--out")
    command = ("run", files.bank, "--driver", "replay", "--responses", files.new, *words, tmp_path / "killed")
    writer = subprocess.Popen([sys.executable, ROOT / "cli.py", *map(str, command)])
    journal = tmp_path / "killed" / "journal.jsonl"
    while writer.poll() is None and not (journal.is_file() and journal.stat().st_size):
        time.sleep(0.005)
    writer.kill()
    writer.wait()
    before = RunFolder.open(tmp_path / "killed").told()
    assert before
    killed = replay(*words, tmp_path / "killed", "--json").document["estimates"]
    told = RunFolder.open(tmp_path / "killed").told()
    assert told[: len(before)] == before
    assert len(told) == len({(line.subject, line.item) for line in told}) == 6 * 40
    whole = replay(*words, tmp_path / "whole", "--json").document["estimates"]
    assert [one["score"] for one in killed] == pytest.approx([one["score"] for one in whole], abs=1e-6)


def test_other_settings_in_the_folder_are_refused(replay: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert replay("--budget", BUDGET, "--out", out).code == 0
    result = replay("--budget", BUDGET + 1, "--out", out, "--quiet")
    assert result.code == 2
    assert "budget 12, now it is 13" in result.err
    assert result.err.count("\n") == 1


def test_a_folder_in_use_is_refused(replay: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert replay("--budget", BUDGET, "--out", out).code == 0
    with RunFolder.open(out):
        result = replay("--budget", BUDGET, "--out", out)
    assert result.code == 2
    assert "in use by process" in result.err


# Goals and shares


def test_shares_and_goals_reach_the_session(replay: Command, tmp_path: Path) -> None:
    result = replay("--stop-rank", "--rival", "new-0", "--rival", "weak=0.02:0.05", "--json")
    assert result.code == 0, result.err
    stopped = [estimate["stopped"] for estimate in result.document["estimates"]]
    assert "rank" in stopped
    assert set(stopped) <= {"rank", "bank_empty"}
    run = tmp_path / "first"
    assert replay("--subject", "new-1", "--difference", "0.5", "--out", run).code == 0
    result = replay("--subject", "new-2", "--rival", run, "--difference", "0.5", "--json")
    (estimate,) = result.document["estimates"]
    assert estimate["stopped"] == "difference"
    (found,) = RunFolder.open(run).estimates()["estimates"]
    assert found["stopped"] == "difference"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--share", "half"], "'half', wanted NAME=LEAST:MOST"),
        (["--share", "math=a:1"], "'a' in 'math=a:1', wanted a number"),
        (["--share", "math=0.2:"], "the bank has no benchmark 'math'"),
        (["--rival", "nobody", "--stop-rank"], "subject 'nobody' has no recorded responses"),
        (["--rival", "me=high", "--stop-rank"], "'high' in 'me=high', wanted a number"),
        (["--stop-rank"], "no rival, wanted at least one"),
        (["--difference", "0.05", "--rival", "x=0.3:0.6"], "can't be found: the score of 'x'"),
    ],
)
def test_goals_and_shares_that_can_not_be(replay: Command, words: list[str], message: str) -> None:
    result = replay(*words)
    assert result.code == 2
    assert message in " ".join(result.err.replace("│", " ").split())


def test_a_rival_without_an_ended_run(replay: Command, tmp_path: Path) -> None:
    result = replay("--rival", tmp_path, "--stop-rank")
    assert result.code == 2
    assert "no estimates, wanted a run that has ended" in result.err
