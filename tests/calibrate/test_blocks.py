"""Blocks: every layout gives the same cells, missing ones without weight."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import irteval.calibrate.blocks as module
from irteval.calibrate.blocks import Blocks
from irteval.responses import ResponseMatrix

CPU = torch.device("cpu")


def whole(blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    parts = list(blocks)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    return (
        torch.cat([part.score for part in parts]).numpy(),
        torch.cat([part.weight for part in parts]).numpy(),
    )


@pytest.mark.parametrize("cells", [30, 100_000])
def test_missing_cells_have_no_weight(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    rng = np.random.default_rng(0)
    scores = rng.integers(-1, 2, (20, 15))
    scores[3] = np.abs(scores[3])
    blocks = Blocks(ResponseMatrix.from_dense(scores), CPU)
    assert len(blocks) == (10 if cells == 30 else 1)
    score, weight = whole(blocks)
    np.testing.assert_array_equal(score, np.maximum(scores, 0))
    np.testing.assert_array_equal(weight, scores >= 0)


def test_sparse_is_dense() -> None:
    rng = np.random.default_rng(1)
    rows, columns = np.nonzero(rng.random((3000, 2000)) < 0.1)
    values = rng.integers(0, 2, len(rows))
    subjects, items = [f"s{i}" for i in range(3000)], [f"i{j}" for j in range(2000)]
    sparse = ResponseMatrix.from_cells(subjects, items, rows, columns, values)
    assert sparse.is_sparse
    blocks = Blocks(sparse, CPU)
    assert blocks.dtype == torch.float32
    block = blocks.block(len(blocks) - 1)
    here = rows >= block.start
    expected = np.zeros((block.stop - block.start, 2000))
    expected[rows[here] - block.start, columns[here]] = values[here]
    np.testing.assert_array_equal(block.score.numpy(), expected)
    assert int(block.weight.sum()) == here.sum()


def test_trials_are_weights() -> None:
    scores = np.array([[0.5, 1.0], [np.nan, 0.25]])
    trials = np.array([[2, 4], [7, 4]])
    score, weight = whole(Blocks(ResponseMatrix.from_dense(scores, trials=trials), CPU))
    np.testing.assert_array_equal(score, [[0.5, 1.0], [0.0, 0.25]])
    np.testing.assert_array_equal(weight, [[2, 4], [0, 4]])
