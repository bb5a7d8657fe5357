"""Person fit: subjects like the source pass, random and flipped answers are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.estimate.person_fit import misfit_warnings, person_fit
from irteval.responses import ResponseMatrix
from irteval.scoring import score

if TYPE_CHECKING:
    from tests.conftest import Fitted

SUBJECTS, ASKED = 400, 40


def test_the_statistic_is_standard_normal_under_the_model_and_has_power(
    known_bank: Callable[..., ItemBank], draw_answers: Callable[..., NDArray[np.float64]]
) -> None:
    bank = known_bank(ASKED)
    rng = np.random.default_rng(0)
    y = torch.as_tensor(draw_answers(bank, rng.standard_normal(SUBJECTS), 1))
    items, ones = torch.arange(ASKED).expand(SUBJECTS, -1), torch.ones_like(y)
    fit = person_fit(bank.parameters, items, y, ones)
    assert abs(float(fit.mean())) < 0.2
    assert 0.85 < float(fit.std()) < 1.15
    assert sum(map(len, misfit_warnings(bank.parameters, items, y, ones))) <= 0.01 * SUBJECTS
    assert float(person_fit(bank.parameters, items, y, 0 * ones).abs().max()) == 0


def test_random_and_flipped_answers_are_told_and_real_ones_are_not(fitted: Fitted) -> None:
    rng = np.random.default_rng(1)
    answers = fitted.targets.dense()
    seen = rng.random(answers.shape).argsort(1) < ASKED
    for name, y, least, most in (
        ("as they are", answers, 0, 0.02),
        ("coin flips", (rng.random(answers.shape) < 0.5) * 1.0, 0.4, 1),
        ("flipped", 1 - answers, 0.9, 1),
    ):
        responses = ResponseMatrix.from_dense(np.where(seen, y, np.nan), items=fitted.bank.items)
        told = [any("misfit" in line for line in e.warnings) for e in score(fitted.bank, responses)]
        assert least <= np.mean(told) <= most, (name, np.mean(told))
