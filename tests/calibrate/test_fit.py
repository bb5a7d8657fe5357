"""From responses to a bank: which fits it holds, what it reports, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.responses import ResponseMatrix

if TYPE_CHECKING:
    from tests.conftest import Fitted

Simulate = Callable[[int, int, int], tuple[Any, ...]]


@pytest.mark.parametrize(("subjects", "dims"), [(48, ["k2", "k4"]), (20, ["k1", "k2"]), (6, ["k1"])])
def test_dimensions_of_the_scorer_follow_the_number_of_subjects(
    simulate_2pl: Simulate, subjects: int, dims: list[str]
) -> None:
    bank = fit(ResponseMatrix.from_dense(simulate_2pl(subjects, 60, 0)[3]))
    assert bank.score_model is not None
    assert bank.score_model.fits == dims
    assert set(dims) | {"k1"} == set(bank.fits)
    assert (bank.score_model.beyond is None) == (subjects < 12)


def test_other_primary_models_leave_the_scorer_its_own_fits(simulate_2pl: Simulate) -> None:
    responses = ResponseMatrix.from_dense(simulate_2pl(20, 60, 0)[3])
    rasch = fit(responses, response_model="1pl")
    assert rasch.info.primary == "1pl"
    assert set(rasch.fits) == {"1pl", "k1", "k2"}
    assert np.ptp(rasch.parameters.slope) == 0


def test_report_says_how_it_went(fitted: Fitted) -> None:
    report = fitted.bank.fit_report
    assert report is not None
    assert (report.response_model, report.dims) == ("2pl", 1)
    assert (report.subjects, report.items, report.cells) == (60, 120, 7200)
    assert report.converged
    assert report.iterations > 0
    assert report.seconds > 0


def test_progress_names_the_parts(simulate_2pl: Simulate) -> None:
    lines: list[str] = []
    fit(ResponseMatrix.from_dense(simulate_2pl(20, 60, 0)[3]), progress=lines.append)
    assert lines[0] == "fitting the 2pl in 1 dimension"
    assert any("2 dimensions" in line for line in lines)


def test_the_bank_knows_its_subjects_and_keeps_every_item(simulate_2pl: Simulate) -> None:
    scores = simulate_2pl(20, 60, 0)[3].astype(np.float64)
    scores[:, 7] = np.nan
    scores[:, 8], scores[:, 9] = 1, 0
    bank = fit(ResponseMatrix.from_dense(scores))
    assert len(bank) == 60
    assert bank.knows_subject("s3")
    assert not bank.knows_subject("s20")
    assert bank.item_table["times_answered"].tolist()[6:9] == [20, 0, 20]
    assert np.isnan(bank.item_table["mean"][7])
    for parameters in bank.fits.values():
        assert np.isfinite(parameters.slope).all()
        assert np.isfinite(parameters.intercept).all()


def test_saved_and_loaded_it_says_the_same(fitted: Fitted, tmp_path: Path) -> None:
    fitted.bank.save(tmp_path / "bank")
    targets = fitted.targets.take(subjects=np.arange(3))
    before = replay(fitted.bank, targets, budget=40)
    assert replay(ItemBank.load(tmp_path / "bank"), targets, budget=40) == before


def test_too_few_subjects_are_refused(simulate_2pl: Simulate) -> None:
    scores = np.full((3, 10), np.nan)
    scores[1] = simulate_2pl(4, 10, 0)[3][0]
    with pytest.raises(InputError, match=r"1 subject\(s\) with answers, wanted at least 2"):
        fit(ResponseMatrix.from_dense(scores))
