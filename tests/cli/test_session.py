"""``irteval session``: the loop by files, with errors, late answers and kills."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from irteval.journal import RunFolder
from tests.cli.conftest import BUDGET, Command, Files


@pytest.fixture
def known(files: Files) -> dict[str, float]:
    table = pd.read_parquet(files.new)
    own = table[table["subject"] == "new-2"]
    return dict(zip(own["item"], own["score"].astype(float), strict=True))


@pytest.fixture
def session(irteval: Command, files: Files, tmp_path: Path) -> Path:
    folder = tmp_path / "session"
    words = ("--bank", files.bank, "--subject", "new-2", "--budget", BUDGET, "--seed", 3)
    assert irteval("session", "new", folder, *words).code == 0
    return folder


def lines(answers: dict[str, float | None], **more: object) -> bytes:
    return "\n".join(json.dumps({"item": i, "score": s, **more}) for i, s in answers.items()).encode()


def ask(irteval: Command, session: Path, k: int = 5) -> list[str]:
    result = irteval("session", "ask", session, "-k", k)
    assert result.code == 0, result.err
    return [asked["item"] for asked in result.document["items"]]


def test_the_loop_ends_with_an_estimate(
    irteval: Command, session: Path, known: dict[str, float], tmp_path: Path
) -> None:
    asked: list[str] = []
    while items := ask(irteval, session):
        asked += items
        answers = tmp_path / "answers.jsonl"
        answers.write_bytes(lines({item: known[item] for item in items}))
        told = irteval("session", "tell", session, answers, "--json").document
        assert told["told"] == len(items)
    assert len(asked) == len(set(asked)) == BUDGET
    result = irteval("session", "estimate", session, "--json")
    (estimate,) = result.document["estimates"]
    assert (result.document["command"], estimate["subject"]) == ("session estimate", "new-2")
    assert (estimate["items_asked"], estimate["stopped"]) == (BUDGET, "budget")
    assert (session / "trajectory.parquet").is_file()
    assert json.loads((session / "estimate.json").read_text())["estimates"] == [estimate]


def test_ask_is_json_with_or_without_the_flag(irteval: Command, session: Path) -> None:
    document = irteval("session", "ask", session, "-k", 3).document
    assert [set(item) for item in document["items"]] == [{"item", "benchmark"}] * 3
    more = irteval("session", "ask", session, "-k", 3, "--json").document
    assert not {item["item"] for item in document["items"]} & {item["item"] for item in more["items"]}
    assert more["pending"] == 6


def test_answers_from_standard_input_late_and_lost(
    irteval: Command, session: Path, known: dict[str, float]
) -> None:
    first, second = ask(irteval, session), ask(irteval, session)
    late = {item: known[item] for item in reversed(second)}
    assert irteval("session", "tell", session, "-", stdin=lines(late)).code == 0
    lost = lines(dict.fromkeys(first), status="timeout", cost=0.5)
    told = irteval("session", "tell", session, "-", "--json", stdin=lost).document
    assert told["pending"] == 0
    (estimate,) = irteval("session", "estimate", session, "--json").document["estimates"]
    assert any("5 of 10" in warning for warning in estimate["warnings"])


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b'{"item": "q00"}', "score"),
        (b'{"item": "q00", "score": 1.7}', "score"),
        (b'{"item": "q00", "score": "banana"}', "score"),
        (b'{"item": 7, "score": 1}', "item"),
        (b'{"item": "q00", "score": 1, "status": "so-so"}', "status"),
        (b"nonsense", None),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_taken_in(
    irteval: Command, session: Path, known: dict[str, float], line: bytes, field: str | None
) -> None:
    items = ask(irteval, session)
    good = lines({item: known[item] for item in items})
    result = irteval("session", "tell", session, "-", "--json", stdin=good + b"\n" + line)
    error = result.document["error"]
    assert (result.code, error["file"], error["line"], error["field"]) == (2, "-", 6, field)
    assert RunFolder.open(session).told() == []


def test_answers_that_do_not_belong(irteval: Command, session: Path) -> None:
    items = ask(irteval, session)
    stranger = next(f"q{j:02d}" for j in range(60) if f"q{j:02d}" not in items)
    not_asked = irteval("session", "tell", session, "-", stdin=lines({stranger: 1}))
    assert (not_asked.code, "was not asked" in not_asked.err) == (2, True)
    assert irteval("session", "tell", session, "-", stdin=lines({"elsewhere": 1})).code == 4
    assert irteval("session", "tell", session, "-", stdin=lines({items[0]: 1})).code == 0
    assert irteval("session", "tell", session, "-", stdin=lines({items[0]: 0})).code == 2
    assert irteval("session", "tell", session, "no-such-file.jsonl").code == 2


def test_a_torn_journal_is_mended_and_said(irteval: Command, session: Path, known: dict[str, float]) -> None:
    items = ask(irteval, session)
    irteval("session", "tell", session, "-", stdin=lines({item: known[item] for item in items}))
    journal = session / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    result = irteval("session", "ask", session, "-k", 2)
    assert result.code == 0
    assert "cut short" in result.err
    told = irteval("session", "tell", session, "-", "--json", stdin=lines({items[-1]: known[items[-1]]}))
    assert told.code == 0
    assert sorted(line.item for line in RunFolder.open(session).told()) == sorted(items)


def test_a_session_without_answers_has_an_estimate(irteval: Command, session: Path) -> None:
    (estimate,) = irteval("session", "estimate", session, "--json").document["estimates"]
    assert (estimate["items_asked"], estimate["stopped"]) == (0, None)
    low, high = estimate["interval"]
    assert high - low > 0.3


def test_one_process_at_a_time(irteval: Command, session: Path) -> None:
    with RunFolder.open(session):
        result = irteval("session", "ask", session)
    assert (result.code, "in use by process" in result.err) == (2, True)
    assert irteval("session", "ask", session).code == 0


def test_a_missed_target_is_code_3(
    irteval: Command, files: Files, tmp_path: Path, known: dict[str, float]
) -> None:
    folder = tmp_path / "other"
    irteval("session", "new", folder, "--bank", files.bank, "--budget", 5, "--target", 0.001)
    assert irteval("session", "estimate", folder).code == 0
    while items := ask(irteval, folder):
        irteval("session", "tell", folder, "-", stdin=lines({item: known[item] for item in items}))
    assert irteval("session", "estimate", folder).code == 3


def test_a_session_is_not_started_twice(irteval: Command, session: Path, files: Files) -> None:
    result = irteval("session", "new", session, "--bank", files.bank)
    assert (result.code, "holds a run already" in result.err) == (2, True)
    assert irteval("session", "ask", session.parent / "nowhere").code == 2


def test_a_bank_of_plain_numbers_will_do(
    irteval: Command, plain_bank: Path, tmp_path: Path, known: dict[str, float]
) -> None:
    folder = tmp_path / "plain"
    irteval("session", "new", folder, "--bank", plain_bank, "--budget", BUDGET)
    items = ask(irteval, folder)
    irteval("session", "tell", folder, "-", stdin=lines({item: known[item] for item in items}))
    assert irteval("session", "estimate", folder, "--json").document["estimates"][0]["items_asked"] == 5
