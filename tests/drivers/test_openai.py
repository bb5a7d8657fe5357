"""The driver of OpenAI-compatible servers, against one that misbehaves in every way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("urllib3")

from irteval.bank import ItemBank
from irteval.cli import invoke
from irteval.drivers.live import HarnessError, run_live
from irteval.drivers.openai import ANSWERS_FILE, OpenAIHarness
from irteval.drivers.prompts import read_prompts
from irteval.errors import BankMismatchError, InputError
from irteval.journal import WORK_FOLDER
from irteval.session import Session
from tests.drivers.server import Server

ITEMS = 40


@pytest.fixture
def bank(known_bank: Callable[..., ItemBank]) -> ItemBank:
    return known_bank(ITEMS)


@pytest.fixture
def server() -> Iterator[Server]:
    """Adds well, but for every third first summand."""

    def answer(prompt: str) -> str:
        a, b = (int(word) for word in prompt.removesuffix("=:").split("+"))
        return str(a + b if a % 3 else a + b + 1)

    running = Server(answer)
    yield running
    running.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Sums, in an order that is not the bank's, and one more than the bank has."""
    lines = [{"item": f"i{k}", "prompt": f"{k}+5=:", "target": str(k + 5)} for k in range(ITEMS + 1)]
    for k, line in enumerate(lines):
        line["choices"] = [f" {k + 6}", f" {k + 5}"]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, reversed(lines))) + "\n\n")
    return tmp_path / "prompts.jsonl"


@pytest.fixture
def harness(server: Server, file: Path, bank: ItemBank) -> Callable[..., OpenAIHarness]:
    def make(**more: Any) -> OpenAIHarness:
        by_choice = more.get("scoring", "").startswith("choice")
        options = {"first_delay": 0.01, "timeout": 5.0} | more
        return OpenAIHarness(read_prompts(file, bank, by_choice=by_choice), "adder", server.url, **options)

    return make


def right(item: str) -> float:
    return float(int(item[1:]) % 3 != 0)


@pytest.mark.parametrize(
    "how",
    [
        {"api": "chat"},
        {"api": "completions"},
        {"scoring": "regex"},
        {"scoring": "regex", "pattern": r"(\d+)$"},
        {"scoring": "choice"},
        {"scoring": "choice-norm"},
    ],
    ids=str,
)
def test_answers_are_scored(how, bank, server, harness) -> None:
    session = Session(bank, budget=20, batch=4)
    estimate = run_live(session, harness(**how, connections=4), at_once=1, concurrency=4)
    assert estimate.items_asked == len(server.requests) == 20
    assert {item: answer.score for item, answer in session.answers.items()} == {
        item: right(item) for item in session.answers
    }
    assert {answer.tokens for answer in session.answers.values()} == {10}
    assert all(body["model"] == "adder" and body["temperature"] == 0 for body in server.requests)


def test_requests_are_in_flight_at_once(bank, server, harness) -> None:
    server.meeting = threading.Barrier(8)
    session = Session(bank, budget=30, batch=8)
    run_live(session, harness(connections=8, timeout=60), at_once=1, concurrency=8)
    assert server.most_at_once == 8


def test_faults_that_go_away_cost_a_retry_and_nothing_else(bank, server, harness) -> None:
    server.faults = {0: "drop", 2: 429, 3: 500, 5: "malformed", 7: "stall", 9: "shape", 10: 503, 12: "drop"}
    session = Session(bank, budget=15, batch=3)
    estimate = run_live(session, harness(timeout=2), at_once=1, concurrency=3)
    assert estimate.items_asked == 15
    assert len(server.requests) == 15 + len(server.faults)
    assert all(answer.score == right(item) for item, answer in session.answers.items())


def test_an_item_that_fails_for_good_is_an_error_and_the_others_go_on(bank, server, harness) -> None:
    server.faults = {4: 400, 9: 413}
    session = Session(bank, budget=15, batch=1)
    estimate = run_live(session, harness(), at_once=1)
    assert estimate.items_asked == 13
    assert estimate.warnings[0] == "2 of 15 items gave no score and count as missing (2 error)"


def test_a_stalled_server_is_a_timeout(bank, server, harness) -> None:
    server.faults = {3: "stall"}
    session = Session(bank, budget=8, batch=1)
    run_live(session, harness(timeout=2, retries=0), at_once=1)
    assert [answer.status for answer in session.answers.values()].count("timeout") == 1


@pytest.mark.parametrize("fault", ["drop", 500, "malformed", "shape"])
def test_a_server_that_is_gone_ends_the_run_and_it_goes_on_later(
    bank, server, harness, tmp_path, fault
) -> None:
    bank.save(tmp_path / "bank")
    session = Session.create(tmp_path / "run", tmp_path / "bank", budget=12, batch=2)
    server.always = fault
    with pytest.raises(HarnessError, match="3 calls in a row failed"):
        run_live(session, harness(retries=1), at_once=1, concurrency=2)
    assert session.answers == {}
    session.close()
    server.always = None
    resumed = Session.resume(tmp_path / "run")
    assert run_live(resumed, harness(), at_once=1, concurrency=2).items_asked == 12
    resumed.close()


@pytest.mark.parametrize("state", [401, 403, 404])
def test_a_wrong_key_or_model_is_said_at_once(bank, server, harness, state) -> None:
    server.always = state
    with pytest.raises(HarnessError, match=f"says {state}"):
        run_live(Session(bank), harness(), at_once=1)
    assert len(server.requests) == 1


def test_a_policy_flag_counts_as_wrong_where_it_is_wanted(bank, server, harness) -> None:
    server.flagged = lambda prompt: int(prompt.split("+")[0]) % 4 == 0
    session = Session(bank, errors="wrong")
    estimate = run_live(session, harness(), at_once=1)
    expected = sum(right(item) for item in bank.items if int(item[1:]) % 4) / ITEMS
    assert estimate.score == pytest.approx(expected)
    assert estimate.warnings[0] == "10 of 40 items failed and count as wrong (10 error)"


def test_a_server_without_log_likelihoods_is_said(bank, server, harness) -> None:
    server.has_logprobs = False
    with pytest.raises(HarnessError, match="no log-probabilities"):
        run_live(Session(bank), harness(scoring="choice"), at_once=1)


def test_what_came_in_and_was_not_told_is_not_asked_again(bank, server, harness, tmp_path) -> None:
    session = Session(bank, budget=20, batch=5)
    first = harness(folder=tmp_path / WORK_FOLDER)
    asked = session.ask(5)
    first.answer(asked)  # and then the process is killed, with half a line on disk
    with open(tmp_path / WORK_FOLDER / ANSWERS_FILE, "ab") as answers:
        answers.write(b'{"item": "i')
    run_live(session, harness(folder=tmp_path / WORK_FOLDER), at_once=1)
    assert len(session.answers) == len(server.requests) == 20
    assert len((tmp_path / WORK_FOLDER / ANSWERS_FILE).read_text().splitlines()) == 20


def test_money(bank, server, harness) -> None:
    session = Session(bank, batch=1, max_cost=10 * 13e-6)
    run_live(session, harness(prices=(1.0, 2.0)), at_once=1)
    assert len(session.answers) == 10


def test_the_command_line(bank, server, file, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "se-cret")
    bank.save(tmp_path / "bank")
    words = ["--driver", "openai", "--model", "adder", "--base-url", server.url, "--prompts", str(file)]
    words += ["--concurrency", "4", "-M", "max_tokens=64", "--budget", "15", "--out", str(tmp_path / "run")]
    for _ in range(2):
        assert invoke(["run", str(tmp_path / "bank"), *words, "--json"]) == 0
        (estimate,) = json.loads(capsys.readouterr().out)["estimates"]
        assert (estimate["subject"], estimate["items_asked"]) == ("adder", 15)
    assert len(server.requests) == 15
    assert {body["max_tokens"] for body in server.requests} == {64}
    assert set(server.keys) == {"Bearer se-cret"}
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"se-cret" not in path.read_bytes()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"item": "i0", "target": "5"}', None),
        ('{"item": "i0", "prompt": "x"}', "target"),
        ('{"item": "i39", "prompt": "x", "target": "5"}', "item"),
        ("nonsense", None),
    ],
)
def test_a_line_that_is_no_prompt(bank, file, line, field) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:3], line, *lines[3:]]))
    with pytest.raises(InputError) as error:
        read_prompts(file, bank, by_choice=False)
    assert (error.value.file, error.value.line, error.value.field) == (str(file), 4, field)


def test_a_bank_of_other_items(known_bank, file) -> None:
    with pytest.raises(BankMismatchError, match=r"2 of the bank's 43 items, first 'i41'"):
        read_prompts(file, known_bank(43), by_choice=False)


def test_a_choice_without_the_right_one(bank, file) -> None:
    lines = file.read_text().replace('" 45"]', '" 4"]')
    file.write_text(lines)
    with pytest.raises(InputError, match="right one"):
        read_prompts(file, bank, by_choice=True)
