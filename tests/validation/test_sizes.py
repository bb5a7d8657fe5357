from __future__ import annotations

import pytest

from irteval.errors import InputError
from irteval.validation.sizes import resolve_sizes


def test_sizes_are_numbers_or_shares() -> None:
    assert resolve_sizes([50, "25", "5%", 0.1, "0.025"], 400) == [10, 20, 25, 40, 50]
    assert resolve_sizes(["1", "100%", 0.001], 400) == [1, 400]


def test_more_than_there_is_is_capped_and_said() -> None:
    notes: list[str] = []
    assert resolve_sizes([500, 450], 400, notes.append) == [400]
    assert notes[0] == "size 500 is more than the 400 items there are: all of them are asked"


@pytest.mark.parametrize("size", [0, -3, "many", 2.5, "120%", "inf", "nan"])
def test_what_is_no_size_is_refused(size: int | float | str) -> None:
    with pytest.raises(InputError, match="wanted a number of items, or a share"):
        resolve_sizes([size], 100)
