"""Where a fit starts: abilities and intercepts from margins, further dimensions from residuals."""

from __future__ import annotations

import torch
from torch import Tensor

from irteval.calibrate.blocks import Blocks

PSEUDO = 0.5  # right and wrong answers added to each margin
# The logistic function is flatter after averaging over ability: intercepts exceed the logit of the mean.
STRETCH = 1.1
EXACT = 2000  # rows or columns up to which residuals are decomposed exactly
SUBSPACE_STEPS = 8


def margins(blocks: Blocks) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums of score and weight: of subjects ``[N]``, ``[N]``, then of items ``[J]``, ``[J]``, all float64."""
    subject_score, subject_weight = [], []
    item_score = torch.zeros(blocks.items, dtype=torch.float64, device=blocks.device)
    item_weight = torch.zeros_like(item_score)
    for block in blocks:
        right = block.score * block.weight
        subject_score.append(right.sum(1, dtype=torch.float64))
        subject_weight.append(block.weight.sum(1, dtype=torch.float64))
        item_score += right.sum(0, dtype=torch.float64)
        item_weight += block.weight.sum(0, dtype=torch.float64)
    return torch.cat(subject_score), torch.cat(subject_weight), item_score, item_weight


def smoothed_logit(score: Tensor, weight: Tensor) -> Tensor:
    """Logit of a share with half an answer of each kind added."""
    return torch.log((score + PSEUDO) / (weight - score + PSEUDO))


def standardise(values: Tensor, use: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1 over the rows in ``use``; zeros where they don't vary."""
    chosen = values[use]
    spread = chosen.std(0, correction=0)
    return (values - chosen.mean(0)) / torch.where(spread > 1e-9, spread, torch.inf)


def further_dimensions(
    blocks: Blocks, ability: Tensor, intercept: Tensor, dims: int, use: Tensor, seed: int
) -> Tensor:
    """Leading left singular vectors of the residuals from a Rasch-like start, standardised: ``[N, dims]``.

    Residuals ``(y - p) / sqrt(p (1 - p))`` with ``p = sigmoid(theta + d)``, 0 where missing. Exact from the
    smaller Gram matrix up to 2,000 rows or columns; beyond, subspace iteration from a random start.
    """
    if min(blocks.subjects, blocks.items) <= EXACT:
        vectors = _exact(blocks, ability, intercept, dims)
    else:
        vectors = _subspace(blocks, ability, intercept, dims, seed)
    return standardise(vectors, use)


def _residuals(blocks: Blocks, number: int, ability: Tensor, intercept: Tensor) -> tuple[slice, Tensor]:
    block = blocks.block(number)
    rows = slice(block.start, block.stop)
    p = torch.sigmoid(ability[rows, None] + intercept).to(blocks.dtype)
    return rows, (block.score - p) * (block.weight > 0) / (p * (1 - p)).sqrt()


def _exact(blocks: Blocks, ability: Tensor, intercept: Tensor, dims: int) -> Tensor:
    by_rows = blocks.subjects <= blocks.items
    if by_rows:
        residuals = torch.cat([_residuals(blocks, k, ability, intercept)[1] for k in range(len(blocks))])
        gram = (residuals @ residuals.mT).double()
        return _leading(gram, dims)
    gram = torch.zeros(blocks.items, blocks.items, dtype=torch.float64, device=blocks.device)
    for number in range(len(blocks)):
        residuals = _residuals(blocks, number, ability, intercept)[1]
        gram += residuals.mT @ residuals
    basis = _leading(gram, dims).to(blocks.dtype)
    return torch.cat(
        [_residuals(blocks, k, ability, intercept)[1] @ basis for k in range(len(blocks))]
    ).double()


def _leading(gram: Tensor, dims: int) -> Tensor:
    """Eigenvectors of the largest eigenvalues, the largest entry of each positive, ``[n, dims]``."""
    vectors = torch.linalg.eigh(gram)[1].flip(1)[:, :dims]
    missing = dims - vectors.shape[1]
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return torch.nn.functional.pad(vectors * largest.sign(), (0, missing))


def _subspace(blocks: Blocks, ability: Tensor, intercept: Tensor, dims: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    basis = torch.randn(blocks.items, dims, generator=generator, dtype=blocks.dtype).to(blocks.device)
    for _ in range(SUBSPACE_STEPS):
        image = torch.zeros(blocks.items, dims, dtype=torch.float64, device=blocks.device)
        rows_image = []
        for number in range(len(blocks)):
            residuals = _residuals(blocks, number, ability, intercept)[1]
            rows_image.append(residuals @ basis)
            image += residuals.mT @ rows_image[-1]
        basis = torch.linalg.qr(image)[0].to(blocks.dtype)
    return torch.cat(rows_image).double()
