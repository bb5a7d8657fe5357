"""Workers over blocks: results in order, torch's threads as before."""

from __future__ import annotations

import time

import pytest
import torch

from irteval.calibrate.threads import SMALL, block_map

CPU = torch.device("cpu")


@pytest.mark.parametrize("cells", [SMALL - 1, SMALL])
def test_results_come_in_order(cells: int) -> None:
    before = torch.get_num_threads()

    def slow_then_fast(number: int) -> int:
        assert torch.get_num_threads() == 1
        time.sleep(0.01 if number % 3 == 0 else 0.0)
        return number

    with block_map(cells, CPU) as each:
        assert list(each(slow_then_fast, range(30))) == list(range(30))
    assert torch.get_num_threads() == before


def test_an_error_of_a_worker_is_raised() -> None:
    def fail(number: int) -> int:
        raise ValueError(f"block {number}")

    with pytest.raises(ValueError, match="block 0"), block_map(SMALL, CPU) as each:
        list(each(fail, range(5)))
