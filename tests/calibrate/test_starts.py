"""Starts: margins, and leading components of the residuals by either route."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import irteval.calibrate.starts as module
from irteval.calibrate.blocks import Blocks
from irteval.calibrate.starts import further_dimensions, margins, smoothed_logit, standardise
from irteval.responses import ResponseMatrix


def two_factor_blocks(subjects: int, items: int) -> tuple[Blocks, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(subjects, 2, generator=generator, dtype=torch.float64)
    slope = torch.ones(items, 2, dtype=torch.float64)
    slope[: items // 2, 1] = -1
    scores = torch.bernoulli(torch.sigmoid(theta @ slope.mT), generator=generator).to(torch.int8)
    return Blocks(ResponseMatrix.from_dense(scores.numpy()), torch.device("cpu")), theta


def test_margins() -> None:
    scores = np.array([[1, 0, -1], [1, 1, 0]])
    blocks = Blocks(ResponseMatrix.from_dense(scores), torch.device("cpu"))
    found = [values.tolist() for values in margins(blocks)]
    assert found == [[1.0, 2.0], [2.0, 3.0], [2.0, 1.0, 0.0], [2.0, 2.0, 1.0]]


def test_smoothed_logit_is_finite() -> None:
    score, weight = torch.tensor([0.0, 5.0, 10.0]), torch.tensor([10.0, 10.0, 10.0])
    assert smoothed_logit(score, weight).tolist() == pytest.approx([-np.log(21), 0, np.log(21)], abs=1e-5)


def test_standardise_leaves_constants_at_zero() -> None:
    values = torch.tensor([[1.0, 3.0], [3.0, 3.0], [99.0, 3.0]])
    found = standardise(values, torch.tensor([True, True, False]))
    assert found[:2].tolist() == [[-1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(("subjects", "items"), [(150, 400), (400, 150)])
def test_second_factor_is_found_by_either_route(
    subjects: int, items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks, theta = two_factor_blocks(subjects, items)
    ability, intercept = theta[:, 0], torch.zeros(items, dtype=torch.float64)
    use = torch.ones(subjects, dtype=torch.bool)
    exact = further_dimensions(blocks, ability, intercept, 1, use, 0)[:, 0]
    monkeypatch.setattr(module, "EXACT", 0)
    iterated = further_dimensions(blocks, ability, intercept, 1, use, 0)[:, 0]
    for found in (exact, iterated):
        correlation = np.corrcoef(found.numpy(), theta[:, 1].numpy())[0, 1]
        assert abs(correlation) > 0.9
    assert abs(np.corrcoef(exact.numpy(), iterated.numpy())[0, 1]) > 0.999
