"""Scores from answers that are already there: which items were seen must not decide the score."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.cohort import Cohort
from irteval.errors import BankMismatchError, InputError
from irteval.estimate.result import Estimate
from irteval.responses import ResponseMatrix
from irteval.scoring import UNKNOWN_CHOICE, score
from irteval.session import Session

if TYPE_CHECKING:
    from tests.conftest import Fitted

Draw = Callable[..., NDArray[np.float64]]


def rasch(b: NDArray[np.float64]) -> ItemBank:
    return ItemBank.from_difficulty([f"i{n}" for n in range(len(b))], np.ones(len(b)), b)


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.interval[0] - 1e-9 <= truth <= estimate.interval[1] + 1e-9


def test_easy_items_alone_do_not_make_a_subject_strong() -> None:
    bank = rasch(np.repeat([-2.0, 2.0], 10))
    scores = np.full((2, 20), np.nan)
    scores[0, :10] = [1] * 9 + [0]
    scores[1] = [1] * 9 + [0] + [1] * 5 + [0] * 5
    a, b = score(bank, ResponseMatrix.from_dense(scores, ["A", "B"], bank.items))
    # Nine of the easy ten fit theta = .19, where a hard item is passed with probability .14: (9 + 1.4) / 20.
    assert a.ability[0] == pytest.approx(0.19, abs=0.01)
    assert a.score == pytest.approx(0.52, abs=0.06)
    assert covers(a, 0.52)
    assert a.half_width > 0.1
    assert b.score == pytest.approx(0.7)
    assert b.half_width == pytest.approx(0, abs=1e-12)
    assert a.score < b.score
    assert a.ability[0] < b.ability[0]


def test_either_end_of_the_difficulties_gives_the_same_score() -> None:
    bank = rasch(np.linspace(-2, 2, 101))
    p = expit(-np.linspace(-2, 2, 101))
    expected = np.diff(np.round(np.cumsum(p)), prepend=0)  # 17 of the first 20, 3 of the last 20
    scores = np.full((2, 101), np.nan)
    scores[0, :20], scores[1, -20:] = expected[:20], expected[-20:]
    assert np.nansum(scores, 1).tolist() == [17, 3]
    for estimate in score(bank, ResponseMatrix.from_dense(scores, items=bank.items)):
        assert estimate.score == pytest.approx(0.5, abs=0.05)
        assert covers(estimate, 0.5)
        assert estimate.warnings == (UNKNOWN_CHOICE,)


def test_biased_choices_are_seen_through(fitted: Fitted) -> None:
    scores = np.asarray(fitted.targets.scores).astype(np.float64)
    easy = np.argsort(fitted.source.item_means())[::-1]
    scores[:20, easy[40:]] = np.nan  # the first half saw the easiest third alone
    scores[20:, easy[:80]] = np.nan  # the second half the hardest third
    truth = fitted.targets.subject_means()
    estimates = score(fitted.bank, ResponseMatrix.from_dense(scores, fitted.targets.subjects))
    error = np.array([estimate.score for estimate in estimates]) - truth
    naive = np.nanmean(scores, 1) - truth
    assert np.abs(naive).mean() > 0.2
    assert np.abs(error).mean() < 0.3 * np.abs(naive).mean()
    assert np.mean([covers(e, t) for e, t in zip(estimates, truth, strict=True)]) >= 0.9


def test_every_item_answered_is_the_mean(fitted: Fitted) -> None:
    for estimate, truth in zip(
        score(fitted.bank, fitted.targets), fitted.targets.subject_means(), strict=True
    ):
        assert estimate.score == pytest.approx(truth)
        assert estimate.half_width == pytest.approx(0, abs=1e-12)
        assert estimate.warnings == ()
        assert estimate.items_asked == estimate.items_total == 120
        assert estimate.stopped is None


def test_a_designed_sample_is_scored_like_its_session(fitted: Fitted) -> None:
    answers = np.asarray(fitted.targets.scores)[:3]
    scores, steps = np.full((3, 120), np.nan), np.full((3, 120), -1)
    probabilities = np.full((3, 120), np.nan)
    wanted = []
    for row, subject in enumerate(fitted.targets.subjects[:3]):
        session = Session(fitted.bank, subject, budget=50)
        while batch := session.ask():
            at = fitted.bank.index(asked.item for asked in batch)
            scores[row, at], steps[row, at] = answers[row, at], [asked.step for asked in batch]
            probabilities[row, at] = [asked.probability or np.nan for asked in batch]
            session.tell(dict(zip((asked.item for asked in batch), answers[row, at].tolist(), strict=True)))
        wanted.append(session.estimate())
    designed = ResponseMatrix.from_dense(
        scores, fitted.targets.subjects[:3], probability=probabilities, step=steps
    )
    for found, session_estimate in zip(score(fitted.bank, designed), wanted, strict=True):
        assert found.warnings == ()
        np.testing.assert_allclose(
            [found.score, *found.interval], [session_estimate.score, *session_estimate.interval], atol=1e-8
        )
    blind = score(fitted.bank, ResponseMatrix.from_dense(scores, fitted.targets.subjects[:3]))
    assert all(estimate.warnings == (UNKNOWN_CHOICE,) for estimate in blind)


def test_order_of_rows_and_columns_changes_nothing(fitted: Fitted) -> None:
    scores = np.asarray(fitted.targets.scores).astype(np.float64)
    rng = np.random.default_rng(0)
    scores[rng.random(scores.shape) < 0.6] = np.nan
    rows, columns = rng.permutation(40), rng.permutation(120)
    straight = score(fitted.bank, ResponseMatrix.from_dense(scores, fitted.targets.subjects))
    shuffled = score(
        fitted.bank,
        ResponseMatrix.from_dense(
            scores[rows][:, columns],
            [fitted.targets.subjects[r] for r in rows],
            [fitted.targets.items[c] for c in columns],
        ),
    )
    by_name = {estimate.subject: estimate for estimate in shuffled}
    for estimate in straight:
        other = by_name[estimate.subject]
        np.testing.assert_allclose(
            [other.score, *other.interval, *other.ability],
            [estimate.score, *estimate.interval, *estimate.ability],
            atol=1e-8,
        )


def test_many_subjects_are_scored_in_parts(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score(fitted.bank, fitted.targets.take(items=np.arange(60)))
    monkeypatch.setattr("irteval.scoring.CELLS", 1000)
    parts = score(fitted.bank, fitted.targets.take(items=np.arange(60)))
    assert [e.subject for e in parts] == [e.subject for e in whole]
    np.testing.assert_allclose([e.score for e in parts], [e.score for e in whole], atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_all_right_ranks_first_and_all_wrong_last_in_noise(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 2, (50, 20)).astype(np.float64)
    scores[10], scores[40] = 1, 0
    responses = ResponseMatrix.from_dense(scores)
    estimates = score(fit(responses), responses)
    for values in ([e.score for e in estimates], [e.ability[0] for e in estimates]):
        assert (np.argmax(values), np.argmin(values)) == (10, 40)


def test_extreme_answers_to_some_items_are_the_extremes(
    known_bank: Callable[..., ItemBank], draw_answers: Draw
) -> None:
    bank = known_bank(30)
    scores = draw_answers(bank, np.linspace(-1.5, 1.5, 41), 0)
    scores[10], scores[40] = 1, 0
    scores[:, 20:] = np.nan
    estimates = score(bank, ResponseMatrix.from_dense(scores, items=bank.items))
    assert estimates[10].score >= max(estimate.score for estimate in estimates)
    assert estimates[40].score <= min(estimate.score for estimate in estimates)
    json.dumps([estimate.to_json() for estimate in estimates], allow_nan=False)


def test_no_answer_is_an_unknown_subject(known_bank: Callable[..., ItemBank]) -> None:
    bank = known_bank(30)
    scores = np.full((2, 30), np.nan)
    scores[1, 0] = 1
    nobody, one = score(bank, ResponseMatrix.from_dense(scores, items=bank.items))
    assert nobody.warnings[0].startswith("no answer to any item of the bank")
    assert (nobody.ability[0], nobody.ability_se[0]) == (
        pytest.approx(0, abs=1e-9),
        pytest.approx(1, abs=1e-6),
    )
    assert nobody.half_width > 0.25
    assert one.half_width > 0.2
    json.dumps([nobody.to_json(), one.to_json()], allow_nan=False)


def test_shares_of_success_count(known_bank: Callable[..., ItemBank]) -> None:
    bank = known_bank(40)
    scores = np.full((1, 40), np.nan)
    scores[0, :25] = np.linspace(0, 1, 25)
    [estimate] = score(bank, ResponseMatrix.from_dense(scores, items=bank.items))
    assert estimate.interval[0] >= 12.5 / 40 - 1e-9
    assert estimate.interval[1] <= 27.5 / 40 + 1e-9


def test_level_widens_and_is_checked(fitted: Fitted) -> None:
    part = fitted.targets.take(subjects=np.arange(2), items=np.arange(60))
    narrow, wide = score(fitted.bank, part, level=0.8), score(fitted.bank, part, level=0.99)
    for a, b in zip(narrow, wide, strict=True):
        assert b.half_width > a.half_width
        assert (a.level, b.level) == (0.8, 0.99)
    for level in (0, 1, 95):
        with pytest.raises(InputError, match="field 'level'"):
            score(fitted.bank, part, level=level)


def test_strange_responses_are_refused(fitted: Fitted) -> None:
    with pytest.raises(BankMismatchError):
        score(fitted.bank, ResponseMatrix.from_dense(np.ones((1, 2)), items=["x", "y"]))
    with pytest.raises(InputError, match="no subject"):
        score(fitted.bank, fitted.targets.take(subjects=np.array([], dtype=int)))


def test_calibrated_subjects_are_pointed_out(fitted: Fitted) -> None:
    [estimate] = score(fitted.bank, fitted.source.take(subjects=np.array([4])))
    assert any("calibrated population" in line for line in estimate.warnings)


def test_a_random_sample_with_its_probabilities_is_covered(fitted: Fitted) -> None:
    # Subjects unlike anyone, asked 40 random items in one step: the design carries the interval.
    rng = np.random.default_rng(0)
    p = np.stack([rng.permuted(rng.beta(1, 1, 120)) for _ in range(60)])
    answers = (rng.random(p.shape) < p).astype(np.float64)
    names = [f"x{n}" for n in range(60)]
    cohort = Cohort(fitted.bank, names, criterion="random", seed=1)
    plan = cohort.plan(torch.arange(60), 40, 40)
    asked = np.zeros(p.shape, dtype=bool)
    np.put_along_axis(asked, plan.items.numpy(), True, axis=1)
    responses = ResponseMatrix.from_dense(
        np.where(asked, answers, np.nan),
        names,
        probability=np.where(asked, 1 / 3, np.nan),
        step=np.where(asked, 0, -1),
    )
    estimates = score(fitted.bank, responses)
    assert np.mean([covers(e, t) for e, t in zip(estimates, answers.mean(1), strict=True)]) >= 0.9


def test_scores_without_ids_are_refused() -> None:
    with pytest.raises(InputError, match="20 scores without item ids"):
        score(rasch(np.zeros(20)), np.ones(20))  # type: ignore[arg-type]
    bank = ItemBank.from_difficulty([f"question-{n}" for n in range(20)], np.ones(20), np.zeros(20))
    with pytest.raises(BankMismatchError, match="holds 0 of the 19 items"):
        score(bank, ResponseMatrix.from_dense(np.ones((1, 19))))
