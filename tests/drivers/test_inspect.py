"""The Inspect driver against the real Inspect: its command line, its logs, its retries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import read_eval_log

from irteval.bank import ItemBank
from irteval.cli import invoke
from irteval.drivers.inspect_entry import adaptive
from irteval.drivers.inspect_task import run_inspect
from irteval.drivers.live import HarnessError
from irteval.errors import BankMismatchError, InputError
from irteval.responses.importing import import_logs
from irteval.session import Session

ITEMS = 50

# The answers come from a solver: Inspect counts the tokens of its mock model with a file from the network.
TASK = """
import os
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver


@solver
def ones():
    async def solve(state, generate):
        number = int(str(state.input_text).split("+")[0])
        with open(os.environ["RAN"], "a") as ran:
            print(number, file=ran)
        if str(number) in os.environ.get("FAILS", "").split():
            raise RuntimeError("as told")
        state.output = ModelOutput.from_content("toy", "1")
        return state

    return solve


@task
def sums(n: int = 50):
    samples = [Sample(input=f"{k}+1=", target="1" if k % 3 else "7") for k in range(n)]
    return Task(dataset=samples, solver=ones(), scorer=match())
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toy.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAN", str(tmp_path / "ran.txt"))
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.delenv("FAILS", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A plain run of every sample, imported: item to score."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "toy.py").write_text(TASK)
    before = os.environ.get("RAN")
    os.environ["RAN"] = str(folder / "ran.txt")
    try:
        inspect_eval(f"{folder}/toy.py@sums", model="mockllm/model", log_dir=str(folder), display="none")
    finally:
        os.environ.pop("RAN") if before is None else os.environ.update(RAN=before)
    return import_logs(next(folder.glob("*.eval"))).frame.set_index("item")["score"]


@pytest.fixture
def bank(plain: Any) -> ItemBank:
    items = sorted(plain.index)
    rng = np.random.default_rng(0)
    made = ItemBank.from_difficulty(
        items, np.ones(ITEMS), rng.normal(size=ITEMS), benchmarks=["sums"] * ITEMS
    )
    made.save("bank")
    return made


def ran() -> list[str]:
    return Path("ran.txt").read_text().split()


def test_all_samples_in_any_order_are_what_the_plain_command_gives(bank, plain) -> None:
    session = Session(bank, "toy", criterion="random", batch=7)
    estimate = run_inspect(session, "toy.py@sums", "mockllm/model", parallel=7, log_dir=Path("logs"))
    assert estimate.stopped == "bank_empty"
    assert {item: a.score for item, a in session.answers.items()} == plain.to_dict()
    again = import_logs("logs").frame.set_index("item")["score"]
    assert again.to_dict() == plain.to_dict()


def test_the_log_has_the_estimate_and_no_mean_over_chosen_samples(bank) -> None:
    session = Session(bank, "toy", budget=20, batch=4)
    estimate = run_inspect(session, "toy.py@sums", "mockllm/model", parallel=4, log_dir=Path("logs"))
    assert estimate.items_asked == len(ran()) == 20
    log = read_eval_log(str(next(Path("logs").glob("*.eval"))))
    metrics = {m.name: m.value for score in log.results.scores for m in score.metrics.values()}
    assert "accuracy" not in metrics
    assert metrics["irt_score"] == pytest.approx(estimate.score)
    assert (metrics["irt_low"], metrics["irt_high"]) == pytest.approx(estimate.interval)
    assert metrics["items_asked"] == 20
    assert log.eval.metadata["irteval"]["bank_hash"] == bank.info.content_hash


def test_a_sample_that_fails_is_missing_and_counted(bank, monkeypatch) -> None:
    monkeypatch.setenv("FAILS", " ".join(str(k) for k in range(0, ITEMS, 5)))
    session = Session(bank, "toy", batch=5)
    estimate = run_inspect(session, "toy.py@sums", "mockllm/model", parallel=5, log_dir=Path("logs"))
    assert estimate.items_asked == 40
    assert "10 of 50 items gave no score and count as missing (10 error)" in estimate.warnings


def test_a_run_that_failed_goes_on_with_eval_retry(bank, monkeypatch) -> None:
    monkeypatch.setenv("FAILS", " ".join(str(k) for k in range(0, ITEMS, 9)))
    made = adaptive(task="toy.py@sums", bank="bank", budget=25, parallel=5, subject="toy")
    (first,) = inspect_eval(made, model="mockllm/model", log_dir="logs", display="none")
    assert first.status == "error"
    good = {sample.id for sample in first.samples or [] if sample.error is None}
    monkeypatch.delenv("FAILS")
    (second,) = eval_retry(first, log_dir="logs", display="none")
    assert second.status == "success"
    metrics = {m.name: m.value for score in second.results.scores for m in score.metrics.values()}
    assert metrics["items_asked"] == 25
    assert len(good) > 0
    # What was answered well is not run again, but for what the second run had no use for.
    counts = Counter(ran())
    assert all(counts[str(int(number) - 1)] == 1 for number in good)


def test_a_killed_run_goes_on_from_its_folder(bank) -> None:
    words = ["--driver", "inspect", "--model", "mockllm/model", "--tasks", "toy.py@sums", "--budget", "20"]
    words += ["--concurrency", "4", "--out", "run", "--json"]
    session = Session.create_or_resume(
        "run",
        bank,
        "bank",
        "mockllm/model",
        {
            "name": "inspect",
            "tasks": "toy.py@sums",
            "model": "mockllm/model",
            "model_args": {},
            "task_args": {},
        },
        budget=20,
        batch=4,
    )
    told = session.ask(4)
    session.tell({reference.item: 1.0 for reference in told})
    left = session.ask(4)  # in flight when the process ends
    session.close()
    assert invoke(["run", "bank", *words]) == 0
    assert len(ran()) == len(set(ran())) == 16
    resumed = Session.resume("run")
    assert len(resumed.answers) == 20
    assert {reference.item for reference in left} <= set(resumed.answers)
    resumed.close()
    assert invoke(["run", "bank", *words]) == 0
    assert len(ran()) == 16


def test_the_users_own_command_line(bank) -> None:
    words = ["eval", "irteval/adaptive", "-T", "task=toy.py@sums", "-T", "bank=bank", "-T", "budget=15"]
    inspect = Path(sys.executable).with_name("inspect")
    line = [str(inspect), *words, "--model", "mockllm/model", "--log-dir", "logs", "--display", "plain"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "irt_score" in done.stdout
    log = read_eval_log(str(next(Path("logs").glob("*.eval"))))
    assert log.results.completed_samples == 15


def test_what_does_not_fit(bank, known_bank) -> None:
    with pytest.raises(BankMismatchError, match=r"60 of the 60 items .* no sample of 'sums'"):
        run_inspect(Session(known_bank(60)), "toy.py@sums", "mockllm/model")
    with pytest.raises(InputError, match="nothing"):
        run_inspect(Session(bank), "toy.py@nothing", "mockllm/model")
    with pytest.raises(PrerequisiteError, match="nothing"):
        adaptive(task="toy.py@nothing", bank="bank", subject="toy")
    session = Session(bank)
    with pytest.raises(HarnessError, match="no scorer 'f1'"):
        run_inspect(session, "toy.py@sums", "mockllm/model", scorer="f1", log_dir=Path("logs"))
    assert session.answers == {}
