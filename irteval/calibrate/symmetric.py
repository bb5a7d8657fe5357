"""Symmetric matrices as vectors, so that quadratic forms over many items are one matrix product.

``x @ C @ x`` for every item is ``pack_symmetric(C) @ outer_lower(x)``: off-diagonal entries of C count twice.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=64)
def _lower(size: int) -> tuple[Tensor, Tensor]:
    """Row and column of each entry of the lower triangle, row by row."""
    rows, columns = torch.tril_indices(size, size)
    return rows, columns


def outer_lower(x: Tensor) -> Tensor:
    """Lower triangle of ``x xᵀ`` as a vector: ``[..., P]`` to ``[..., P (P + 1) / 2]``."""
    rows, columns = _lower(x.shape[-1])
    return x[..., rows] * x[..., columns]


def pack_lower(matrix: Tensor) -> Tensor:
    """Lower triangle of a symmetric matrix as a vector: ``[..., P, P]`` to ``[..., P (P + 1) / 2]``."""
    rows, columns = _lower(matrix.shape[-1])
    return matrix[..., rows, columns]


def pack_symmetric(matrix: Tensor) -> Tensor:
    """``pack_lower`` with off-diagonal entries doubled, the partner of `outer_lower` in a quadratic form."""
    rows, columns = _lower(matrix.shape[-1])
    return matrix[..., rows, columns] * torch.where(rows == columns, 1.0, 2.0).to(matrix)


def unpack_lower(vector: Tensor) -> Tensor:
    """The symmetric matrix whose lower triangle is given: ``[..., P (P + 1) / 2]`` to ``[..., P, P]``."""
    size = int((8 * vector.shape[-1] + 1) ** 0.5 - 1) // 2
    rows, columns = _lower(size)
    matrix = vector.new_empty(*vector.shape[:-1], size, size)
    matrix[..., rows, columns] = vector
    matrix[..., columns, rows] = vector
    return matrix
