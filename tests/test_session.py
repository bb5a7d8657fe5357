"""The session: ask, tell, estimate, stop, in any order of answers, through any interruption."""

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
from irteval.errors import BankMismatchError, InputError
from irteval.estimate.result import Estimate
from irteval.journal import RunFolder
from irteval.scoring import score
from irteval.session import ItemReference, Response, Session

if TYPE_CHECKING:
    from tests.conftest import Fitted

Answers = dict[str, float]
Draw = Callable[..., NDArray[np.float64]]


@pytest.fixture(scope="module")
def bank(known_bank: Callable[..., ItemBank]) -> ItemBank:
    return known_bank(60)


@pytest.fixture(scope="module")
def answers(bank: ItemBank, draw_answers: Draw) -> Answers:
    """What an average subject would answer to every item."""
    return dict(zip(bank.items, draw_answers(bank, np.array([0.3]), 1)[0].tolist(), strict=True))


def told(batch: list[ItemReference], answers: Answers) -> Answers:
    return {asked.item: answers[asked.item] for asked in batch}


def play(session: Session, answers: Answers, k: int | None = None) -> list[str]:
    """Run a session to its end; the items it asked."""
    asked = []
    while batch := session.ask(k):
        session.tell(told(batch, answers))
        asked += [reference.item for reference in batch]
    return asked


def assert_same(found: Estimate, wanted: Estimate, tolerance: float = 1e-9) -> None:
    assert (found.stopped, found.items_asked) == (wanted.stopped, wanted.items_asked)
    np.testing.assert_allclose(
        [found.score, *found.interval, *found.ability, *found.ability_se],
        [wanted.score, *wanted.interval, *wanted.ability, *wanted.ability_se],
        atol=tolerance,
    )


# Asking


@pytest.mark.parametrize("k", [1, 16, 64])
@pytest.mark.parametrize("criterion", ["score", "fisher", "random"])
def test_any_size_of_batch(bank: ItemBank, answers: Answers, k: int, criterion: str) -> None:
    session = Session(bank, budget=40, criterion=criterion)
    first = session.ask(k)
    assert len(first) == min(k, 40)
    session.tell(told(first, answers))
    rest = play(session, answers, k)
    asked = [reference.item for reference in first] + rest
    assert len(asked) == len(set(asked)) == 40
    assert session.stopped == "budget"
    assert session.ask(k) == []
    truth = np.mean(list(answers.values()))
    assert session.estimate().interval[0] <= truth <= session.estimate().interval[1]


def test_without_a_number_it_asks_up_to_its_next_look(bank: ItemBank, answers: Answers) -> None:
    session = Session(bank, budget=55)
    sizes = []
    while batch := session.ask():
        sizes.append(len(batch))
        session.tell(told(batch, answers))
    assert sizes == [10, *[1] * 15, 12, 13, 5]


def test_asking_while_others_are_pending(bank: ItemBank, answers: Answers) -> None:
    session = Session(bank, budget=30)
    first, second = session.ask(8), session.ask(8)
    third = session.ask()
    batch = first + second + third
    items = [reference.item for reference in batch]
    assert len(set(items)) == len(items)
    assert session.pending == items
    assert session.stopped is None
    session.tell(told(second, answers))
    assert session.pending == items[:8] + items[16:]
    while more := session.ask(5):
        items += [reference.item for reference in more]
    assert len(set(items)) == 30
    assert session.stopped is None  # the last answers are still to come
    assert session.ask(5) == []
    session.tell({item: answers[item] for item in session.pending})
    assert session.stopped == "budget"
    assert session.pending == []


def test_pending_items_are_not_asked_for_twice_the_information(bank: ItemBank, answers: Answers) -> None:
    session, patient = Session(bank, budget=25), Session(bank, budget=25)
    opening = session.ask(10)
    session.tell(told(opening, answers))
    patient.tell(told(patient.ask(10), answers))
    at_once = session.ask(5)
    one_by_one = [patient.ask(1)[0] for _ in range(5)]  # four pending by the last
    assert [reference.item for reference in at_once] == [reference.item for reference in one_by_one]


def test_references_say_what_a_harness_needs(known_bank: Callable[..., ItemBank]) -> None:
    suite = known_bank(40, benchmarks=["a"] * 15 + ["b"] * 25)
    session = Session(suite, budget=30)
    for reference in session.ask(30):
        assert reference.benchmark == suite.benchmarks[suite.items.index(reference.item)]
        # The first 10 are drawn, the next 15 chosen (at once here), the last 5 drawn.
        assert (reference.probability is None) == (reference.step == 1)
        assert reference.probability is None or 0 < reference.probability <= 1


def test_a_number_below_one_is_refused(bank: ItemBank) -> None:
    with pytest.raises(InputError, match="field 'k': 0, wanted at least 1"):
        Session(bank).ask(0)


# Telling


def test_order_of_answers_within_a_step_changes_nothing(bank: ItemBank, answers: Answers) -> None:
    straight, shuffled = Session(bank, budget=50), Session(bank, budget=50)
    play(straight, answers)
    rng = np.random.default_rng(0)
    while batch := shuffled.ask():
        for n in rng.permutation(len(batch)):
            shuffled.tell(told([batch[n]], answers))
    assert_same(shuffled.estimate(), straight.estimate())


def test_late_answers_come_in_whenever_they_come(bank: ItemBank, answers: Answers) -> None:
    session = Session(bank, budget=60)
    late: Answers = {}
    rng = np.random.default_rng(0)
    while True:
        batch = session.ask(7)
        if not batch:
            break
        for reference in batch:
            if rng.random() < 0.5:
                late[reference.item] = answers[reference.item]
            else:
                session.tell(told([reference], answers))
        if len(late) > 9:
            session.tell(dict(reversed(late.items())))
            late = {}
    session.tell(late)
    assert session.stopped == "bank_empty"
    truth = float(np.mean(list(answers.values())))
    assert session.estimate().score == pytest.approx(truth)
    assert session.estimate().half_width == pytest.approx(0, abs=1e-12)


def test_plain_values_and_responses_are_alike(bank: ItemBank) -> None:
    sessions = [Session(bank, budget=10) for _ in range(3)]
    [items] = {tuple(reference.item for reference in session.ask()) for session in sessions}
    sessions[0].tell(dict.fromkeys(items, 1))
    sessions[1].tell(dict.fromkeys(items, True))
    sessions[2].tell(dict.fromkeys(items, Response(1.0, trials=1, cost=0.1)))
    assert sessions[0].estimate() == sessions[1].estimate() == sessions[2].estimate()
    assert sessions[2].answers[items[0]].cost == 0.1


def test_an_error_is_missing_or_wrong_as_wanted(bank: ItemBank, answers: Answers) -> None:
    estimates = {}
    for errors in ("missing", "wrong"):
        session = Session(bank, budget=60, errors=errors)
        n = 0
        while batch := session.ask():
            outcome: dict[str, object] = dict(told(batch, answers))
            for reference in batch:
                n += 1
                if n % 4 == 0:
                    outcome[reference.item] = Response(None, status=("error", "timeout")[n % 8 == 0])
            session.tell(outcome)  # type: ignore[arg-type]
        estimates[errors] = session.estimate()
        failed = {item for item, response in session.answers.items() if response.status != "ok"}
        assert len(failed) == 15
        known = sum(answers[item] for item in bank.items if item not in failed) / 60
        if errors == "wrong":
            assert estimates[errors].score == pytest.approx(known)
            lines = ("15 of 60 items failed and count as wrong (8 error, 7 timeout)",)
            assert estimates[errors].warnings == lines
        else:
            lines = ("15 of 60 items gave no score and count as missing (8 error, 7 timeout)",)
            assert estimates[errors].warnings == lines
            assert estimates[errors].items_asked == 45
            assert estimates[errors].half_width > 0
            assert known < estimates[errors].interval[0] + 1e-9
            assert estimates[errors].interval[1] < known + 0.25 + 1e-9
    assert estimates["missing"].score > estimates["wrong"].score + 0.05


def test_an_unscored_item_is_missing_however_errors_count(bank: ItemBank) -> None:
    session = Session(bank, budget=10, errors="wrong")
    batch = session.ask()
    session.tell(dict.fromkeys((reference.item for reference in batch), None))
    assert session.estimate().items_asked == 0
    assert session.stopped == "budget"


def test_a_lost_answer_may_still_come_in(bank: ItemBank, answers: Answers) -> None:
    session, straight = Session(bank, budget=10), Session(bank, budget=10)
    play(straight, answers)
    batch = session.ask()
    session.tell({batch[0].item: Response(None, status="timeout"), **told(batch[1:], answers)})
    assert session.estimate().items_asked == 9
    session.tell(told(batch[:1], answers))
    assert_same(session.estimate(), straight.estimate())
    with pytest.raises(InputError, match="has the answer"):  # and is not lost again
        session.tell({batch[0].item: None})
    assert session.estimate().items_asked == 10


def test_a_second_answer_must_be_the_same(bank: ItemBank) -> None:
    session = Session(bank, budget=10)
    item, other = (reference.item for reference in session.ask(2))
    session.tell({item: 1.0})
    session.tell({item: 1.0})
    with pytest.raises(InputError, match=rf"item '{item}' has the answer 1.0, now 0.0"):
        session.tell({other: 0.0, item: 0.0})
    assert session.pending == [other]  # nothing of a refused call was taken in


@pytest.mark.parametrize("value", [1.7, -0.1, float("nan"), float("inf")])
def test_scores_outside_their_range_are_refused(bank: ItemBank, value: float) -> None:
    session = Session(bank, budget=10)
    first, second = (reference.item for reference in session.ask(2))
    with pytest.raises(InputError, match="field 'score'"):
        session.tell({first: 1.0, second: value})
    assert session.pending == [first, second]


def test_strange_items_are_refused(bank: ItemBank) -> None:
    session = Session(bank, budget=10)
    asked = session.ask(1)[0].item
    not_asked = next(item for item in bank.items if item != asked)
    with pytest.raises(BankMismatchError, match="has no item 'nonsense'"):
        session.tell({asked: 1.0, "nonsense": 1.0})
    with pytest.raises(InputError, match=f"item '{not_asked}' was not asked"):
        session.tell({asked: 1.0, not_asked: 1.0})
    assert session.pending == [asked]


def test_a_planned_item_that_was_not_handed_out_was_not_asked(bank: ItemBank) -> None:
    session, same = Session(bank, budget=10), Session(bank, budget=10)
    session.ask(1)
    planned = same.ask(10)[5].item
    with pytest.raises(InputError, match="was not asked"):
        session.tell({planned: 1.0})


# Stopping


def test_equal_answers_never_stop_it(bank: ItemBank) -> None:
    for value in (1.0, 0.0):
        session = Session(bank, target=0.05)
        for _ in range(5):
            session.tell({session.ask(1)[0].item: value})
        assert session.stopped is None
        assert session.estimate().half_width > 0.05
        assert len(session.ask(1)) == 1


def test_one_answer_never_reaches_a_target(bank: ItemBank) -> None:
    session = Session(bank, target=0.2)
    session.tell({session.ask(1)[0].item: 1.0})
    estimate = session.estimate()
    assert session.stopped is None
    assert estimate.half_width > 0.2
    assert 0.7 < estimate.ability_se[0] < 1


def test_it_stops_at_its_target(fitted: Fitted) -> None:
    scores = dict(zip(fitted.targets.items, np.asarray(fitted.targets.scores)[7].tolist(), strict=True))
    session = Session(fitted.bank, "target-7", target=0.07)
    asked = play(session, scores)
    assert session.stopped == "target"
    assert session.estimate().half_width <= 0.07
    assert 10 <= len(asked) < 120
    assert session.ask(3) == []


def test_budget_and_an_empty_bank_are_told_apart(bank: ItemBank, answers: Answers) -> None:
    for budget, reason in ((20, "budget"), (60, "bank_empty"), (1000, "bank_empty"), (None, "bank_empty")):
        session = Session(bank, budget=budget)
        asked = play(session, answers, 25)
        assert session.stopped == session.estimate().stopped == reason
        assert len(asked) == min(budget or 60, 60)


def test_an_impossible_target_ends_with_the_bank(bank: ItemBank, answers: Answers) -> None:
    session = Session(bank, target=0.0001)
    assert len(play(session, answers, 10)) == 60
    # All answered: the half-width is 0, which is a target reached and a bank empty.
    assert session.stopped in ("target", "bank_empty")
    assert session.estimate().half_width == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"budget": 0}, "budget"),
        ({"batch": 0}, "batch"),
        ({"target": 4}, "target"),
        ({"level": 1}, "level"),
        ({"criterion": "best"}, "criterion"),
        ({"errors": "ignore"}, "errors"),
    ],
)
def test_settings_outside_their_range_are_refused(
    bank: ItemBank, settings: dict[str, object], field: str
) -> None:
    with pytest.raises(InputError, match=f"field '{field}'"):
        Session(bank, **settings)


# Estimating


def test_no_answer_gives_the_population(bank: ItemBank) -> None:
    estimate = Session(bank).estimate()
    assert estimate.ability == (pytest.approx(0, abs=1e-9),)
    assert estimate.ability_se == (pytest.approx(1, abs=1e-6),)
    assert estimate.items_asked == 0
    assert estimate.interval[0] < 0.3 < 0.7 < estimate.interval[1]
    json.dumps(estimate.to_json(), allow_nan=False)


@pytest.mark.parametrize("criterion", ["score", "fisher", "random"])
@pytest.mark.parametrize("value", [1.0, 0.0])
def test_extreme_subjects_are_finite_all_the_way(bank: ItemBank, criterion: str, value: float) -> None:
    session = Session(bank, criterion=criterion)
    while batch := session.ask(7):
        session.tell(dict.fromkeys((reference.item for reference in batch), value))
        estimate = session.estimate()
        json.dumps(estimate.to_json(), allow_nan=False)
        assert 0 <= estimate.interval[0] <= estimate.score <= estimate.interval[1] <= 1
        assert (estimate.half_width > 0) == (session.stopped is None)
    assert session.estimate().score == pytest.approx(value)


def test_calibrated_subjects_are_pointed_out(fitted: Fitted) -> None:
    assert any("calibrated population" in line for line in Session(fitted.bank, "s3").estimate().warnings)
    assert Session(fitted.bank, "target-3").estimate().warnings == ()


def test_a_suite_has_a_score_for_each_benchmark(
    known_bank: Callable[..., ItemBank], draw_answers: Draw
) -> None:
    suite = known_bank(50, benchmarks=["a"] * 10 + ["b"] * 40)
    scores = dict(zip(suite.items, draw_answers(suite, np.array([0.0]), 0)[0].tolist(), strict=True))
    session = Session(suite, budget=30)
    play(session, scores)
    estimate = session.estimate()
    assert estimate.benchmark == "total"
    assert [group.benchmark for group in estimate.groups] == ["a", "b"]
    assert [group.items_total for group in estimate.groups] == [10, 40]
    assert sum(group.items_asked for group in estimate.groups) == estimate.items_asked == 30
    assert estimate.score == pytest.approx(np.mean([group.score for group in estimate.groups]), abs=0.06)
    whole = Session(suite)
    play(whole, scores, 50)
    truth = [
        np.mean([scores[i] for i, b in zip(suite.items, suite.benchmarks, strict=True) if b == n])
        for n in "ab"
    ]
    assert [group.score for group in whole.estimate().groups] == pytest.approx(truth)
    assert whole.estimate().score == pytest.approx(np.mean(truth))


def test_same_seed_same_session_another_seed_another(bank: ItemBank, answers: Answers) -> None:
    def items(seed: int, subject: str = "subject") -> tuple[list[str], Estimate]:
        session = Session(bank, subject, budget=40, seed=seed)
        return play(session, answers), session.estimate()

    assert items(3) == items(3)
    assert items(3)[0] != items(4)[0]
    assert items(3)[0] != items(3, "someone else")[0]


def test_trajectory_has_a_row_a_look(bank: ItemBank, answers: Answers) -> None:
    session = Session(bank, "me", budget=40)
    play(session, answers)
    trajectory = session.trajectory
    assert list(trajectory.columns) == ["subject", "step", "items_asked", "score", "lo", "hi", "ability_0"]
    assert trajectory["items_asked"].tolist() == [10, *range(11, 26), 37, 40]
    assert trajectory["score"].iloc[-1] == session.estimate().score
    assert (trajectory["hi"] > trajectory["lo"]).all()


# Keeping


@pytest.fixture
def bank_folder(bank: ItemBank, tmp_path: Path) -> Path:
    bank.save(tmp_path / "bank")
    return tmp_path / "bank"


@pytest.mark.parametrize("before", [0, 3, 10, 18, 25, 31, 50])
def test_interrupted_it_goes_on_as_if_it_had_not_been(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path, before: int
) -> None:
    whole = Session(bank, "me", budget=50, seed=2)
    expected = play(whole, answers, 4)
    session = Session.create(tmp_path / "run", bank_folder, "me", budget=50, seed=2)
    asked: list[str] = []
    while len(asked) < before:
        batch = session.ask(4)
        asked += [reference.item for reference in batch]
        session.tell(told(batch, answers))
    session.close()
    resumed = Session.resume(tmp_path / "run")
    assert resumed.pending == []
    assert asked + play(resumed, answers, 4) == expected
    assert_same(resumed.estimate(), whole.estimate())


def test_one_process_a_call_is_one_session(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path
) -> None:
    whole = Session(bank, "me", budget=18)
    expected = play(whole, answers)
    Session.create(tmp_path / "run", bank_folder, "me", budget=18).close()
    asked: list[str] = []
    while True:
        session = Session.resume(tmp_path / "run")
        batch = session.ask()
        session.close()
        if not batch:
            break
        asked += [reference.item for reference in batch]
        session = Session.resume(tmp_path / "run", bank)
        assert session.pending == [reference.item for reference in batch]
        session.tell(told(batch, answers))
        session.close()
    assert asked == expected
    session = Session.resume(tmp_path / "run")
    assert_same(session.write_results(), whole.estimate())
    trajectory = pd.read_parquet(tmp_path / "run" / "trajectory.parquet")
    pd.testing.assert_frame_equal(trajectory, whole.trajectory)


def test_pending_and_planned_items_survive(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path
) -> None:
    whole = Session(bank, "me", budget=30)
    first, second = whole.ask(7), whole.ask(1)
    session = Session.create(tmp_path / "run", bank_folder, "me", budget=30)
    assert session.ask(7) == first
    session.tell(told(first[2:5], answers))
    session.close()
    resumed = Session.resume(tmp_path / "run")
    assert resumed.pending == [reference.item for reference in (*first[:2], *first[5:])]
    assert resumed.ask(1) == second
    resumed.tell(told(first + second, answers))
    whole.tell(told(first + second, answers))
    assert play(resumed, answers) == play(whole, answers)
    assert_same(resumed.estimate(), whole.estimate())


def test_an_item_is_planned_once_and_handed_out_once_in_the_log(
    bank_folder: Path, answers: Answers, tmp_path: Path
) -> None:
    session = Session.create(tmp_path / "run", bank_folder, "me", budget=40, batch=20)
    expected = play(session, answers, 1)
    session.close()
    lines = RunFolder.open(tmp_path / "run").asked()
    assert [line.item for line in lines if line.status == "asked"] == expected
    planned = [line.item for line in lines if line.status == "planned"]
    assert len(planned) == len(set(planned))


def test_a_session_in_memory_can_be_kept(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path
) -> None:
    whole, session = Session(bank, "me", budget=45), Session(bank, "me", budget=45)
    expected = play(whole, answers, 5)
    asked: list[str] = []
    for _ in range(6):
        batch = session.ask(5)
        asked += [reference.item for reference in batch]
        session.tell(told(batch, answers))
    session.save(tmp_path / "run", bank_folder)
    batch = session.ask(5)  # it goes on in its folder
    asked += [reference.item for reference in batch]
    session.close()
    resumed = Session.resume(tmp_path / "run")
    assert resumed.pending == [reference.item for reference in batch]
    resumed.tell(told(batch, answers))
    assert asked + play(resumed, answers, 5) == expected
    assert_same(resumed.estimate(), whole.estimate())


def test_a_finished_session_stays_finished(bank_folder: Path, answers: Answers, tmp_path: Path) -> None:
    session = Session.create(tmp_path / "run", bank_folder, budget=20)
    play(session, answers)
    before = session.write_results()
    session.close()
    resumed = Session.resume(tmp_path / "run")
    assert resumed.stopped == "budget"
    assert resumed.ask(5) == []
    assert_same(resumed.estimate(), before)


def test_errors_and_late_answers_survive(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path
) -> None:
    session = Session.create(tmp_path / "run", bank_folder, "me", budget=40)
    first = session.ask(10)
    session.tell(told(first[1:8], answers))
    session.tell(
        {first[0].item: Response(None, status="error"), first[8].item: Response(None, status="timeout")}
    )
    session.ask(5)
    session.tell({**told(first[9:], answers), first[8].item: answers[first[8].item]})
    before, pending = session.estimate(), session.pending
    session.close()
    resumed = Session.resume(tmp_path / "run")
    assert resumed.pending == pending
    assert_same(resumed.estimate(), before)
    assert resumed.estimate().warnings == before.warnings
    resumed.tell({first[0].item: answers[first[0].item]})
    assert resumed.estimate().items_asked == 10


def test_another_bank_or_a_second_process_is_refused(
    bank_folder: Path, bank: ItemBank, known_bank: Callable[..., ItemBank], tmp_path: Path
) -> None:
    session = Session.create(tmp_path / "run", bank_folder)
    with pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
        Session.resume(tmp_path / "run")
    session.close()
    with pytest.raises(BankMismatchError, match="the bank has changed"):
        Session.resume(tmp_path / "run", known_bank(60, 9))
    with pytest.raises(InputError, match="holds a run already"):
        Session.create(tmp_path / "run", bank_folder)


def test_a_run_is_scored_like_its_session(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path
) -> None:
    session = Session.create(tmp_path / "run", bank_folder, "me", budget=45)
    play(session, answers)
    wanted = session.estimate().with_stop(None)
    [found] = score(bank, RunFolder.open(tmp_path / "run").responses())
    assert found.warnings == ()
    assert_same(found, wanted)


ENDLESS = """
import json, os, signal, sys
from irteval.session import Session

answers = json.loads(sys.argv[2])
session = Session.resume(sys.argv[1])
count = 0
while batch := session.ask(3):
    for reference in batch:
        session.tell({reference.item: answers[reference.item]})
        count += 1
        if count == 20:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_then_resume_asks_nothing_again(
    bank_folder: Path, bank: ItemBank, answers: Answers, tmp_path: Path
) -> None:
    whole = Session(bank, "me", budget=40)
    expected = play(whole, answers, 3)
    Session.create(tmp_path / "run", bank_folder, "me", budget=40).close()
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "run"), json.dumps(answers)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    resumed = Session.resume(tmp_path / "run")
    assert len(resumed.answers) == 20
    assert resumed.pending == expected[20:21]
    resumed.tell({item: answers[item] for item in resumed.pending})
    assert [*resumed.answers, *play(resumed, answers, 3)] == expected
    assert_same(resumed.estimate(), whole.estimate())
    lines = RunFolder.open(tmp_path / "run").told()
    assert [line.item for line in lines] == expected
