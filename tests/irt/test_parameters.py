"""Item parameters: shapes, and difficulty where it exists."""

from __future__ import annotations

import numpy as np
import pytest

from irteval.errors import InputError
from irteval.irt import ItemParameters


def test_difficulty_is_not_invented() -> None:
    parameters = ItemParameters(slope=np.array([2.0, -1.0, 0.0]), intercept=np.array([-1.0, 1.0, 1.0]))
    assert parameters.dims == 1
    np.testing.assert_allclose(parameters.difficulty, [0.5, 1.0, np.nan])


@pytest.mark.parametrize(
    "wrong",
    [
        {"slope": np.ones((2, 3, 1))},
        {"intercept": np.ones(3)},
        {"covariance": np.ones((2, 3, 3))},
        {"lower": np.ones(1)},
        {"slope": np.array([1.0, np.inf])},
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {"slope": np.ones(2), "intercept": np.zeros(2)}
    with pytest.raises(InputError):
        ItemParameters(**{**right, **wrong})  # type: ignore[arg-type]


def test_difficulty_needs_one_dimension() -> None:
    with pytest.raises(InputError, match="one dimension"):
        _ = ItemParameters(slope=np.ones((2, 2)), intercept=np.zeros(2)).difficulty
