"""The ability of the checkpoint before: it saves answers where it is right, and does no harm where not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.drivers.replay import replay
from irteval.errors import InputError
from irteval.responses import ResponseMatrix
from irteval.session import Session

SUBJECTS = 150


@pytest.mark.parametrize("distance", [0.0, 2.0, -3.0])
def test_error_and_coverage_where_the_prior_is_right_and_where_not(
    known_bank: Callable[..., ItemBank], draw_answers: Callable[..., NDArray[np.float64]], distance: float
) -> None:
    bank = known_bank(300)
    theta = 0.5 + distance + 0.2 * np.random.default_rng(0).standard_normal(SUBJECTS)
    recorded = ResponseMatrix.from_dense(draw_answers(bank, theta, 1), items=bank.items)
    truth = recorded.dense().mean(1)
    error, covered = {}, {}
    for name, prior in (("none", {}), ("carried", {"prior_mean": [0.5], "prior_sd": [0.25]})):
        for budget in (12, 40):
            estimates = replay(bank, recorded, budget=budget, **prior)
            error[name, budget] = np.sqrt(np.mean((np.array([e.score for e in estimates]) - truth) ** 2))
            inside = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]
            covered[name, budget] = np.mean(inside)
    if distance == 0:
        assert error["carried", 12] < 0.95 * error["none", 12]
        assert error["carried", 40] < 1.05 * error["none", 40]
    else:
        # A dozen answers can't overrule it all the way; forty can.
        assert error["carried", 12] < 1.15 * error["none", 12]
        assert error["carried", 40] < 1.1 * error["none", 40]
        assert covered["carried", 12] >= covered["none", 12] - 0.1
    assert min(covered["carried", 40], covered["none", 40]) >= 0.92  # Monte-Carlo error at .95: .018


def test_answers_far_from_the_prior_overrule_it(known_bank: Callable[..., ItemBank]) -> None:
    bank = known_bank(100)
    weak, none = (
        Session(bank, budget=60, prior_mean=mean, prior_sd=sd) for mean, sd in (([-2.0], [0.1]), (None, None))
    )
    for session in (weak, none):
        while batch := session.ask():
            session.tell(dict.fromkeys((reference.item for reference in batch), 1.0))
    assert weak.estimate().score == pytest.approx(none.estimate().score, abs=0.02)


def test_it_is_kept_with_the_run(known_bank: Callable[..., ItemBank], tmp_path) -> None:
    bank = known_bank(60)
    bank.save(tmp_path / "bank")
    plain = Session(bank, budget=20)
    session = Session.create(tmp_path / "run", tmp_path / "bank", budget=20, prior_mean=[1.0], prior_sd=[0.2])
    expected = session.estimate().score
    session.close()
    resumed = Session.resume(tmp_path / "run")
    assert resumed.estimate().score == pytest.approx(expected, abs=1e-12)
    assert expected > plain.estimate().score + 0.03
    resumed.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior_mean": [0.0]}, "wanted prior_mean and prior_sd, or neither"),
        ({"prior_mean": [0.0], "prior_sd": [0.0]}, "wanted more than 0"),
        ({"prior_mean": [0.0, 1.0], "prior_sd": [1.0, 1.0]}, "ability in 2 dimensions"),
    ],
)
def test_priors_that_can_not_be(
    known_bank: Callable[..., ItemBank], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Session(known_bank(20), **settings)
