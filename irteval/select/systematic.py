"""Systematic sampling with unequal, known inclusion probabilities.

Madow (1949), On the theory of systematic sampling, II: lay the inclusion probabilities end to end along an
order and take the item under each of the points u, u + 1, u + 2, … An order that sorts items by predicted
answer spreads the sample over easy and hard items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def inclusion_probabilities(size: Tensor, count: int | Tensor) -> Tensor:
    """Probabilities proportional to size that sum to ``count``, none above 1.

    Items whose share exceeds 1 are taken for certain and the rest is shared out again, until none does.

    Args:
        size: positive for items that may be drawn, 0 for others, ``[R, N]``.
        count: items to draw, at most the number of positive sizes in every row; or an expected number for
            each row, ``[R, 1]``.
    """
    size = size.double()
    certain = torch.zeros_like(size, dtype=torch.bool)
    while True:
        left = size.masked_fill(certain, 0)
        remaining = count - certain.sum(-1, keepdim=True)
        share = remaining * left / left.sum(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)
        over = (share >= 1) & ~certain
        if not bool(over.any()):
            return torch.where(certain, 1.0, share)
        certain |= over


def systematic_draw(inclusion: Tensor, order: Tensor, start: Tensor, count: int) -> Tensor:
    """Draw exactly ``count`` items a row.

    Args:
        inclusion: probabilities that sum to ``count`` in every row, ``[R, N]``.
        order: items are laid out by increasing value of this key, ``[R, N]``.
        start: one uniform number a row, as `uniforms` makes them, ``[R]``.
        count: items to draw.

    Returns:
        Item numbers, ``[R, count]``, all different within a row.
    """
    layout = order.argsort(dim=-1, stable=True)
    edges = inclusion.gather(-1, layout).cumsum(-1)
    # Rounding must not lose the last point: the probabilities sum to count by construction.
    edges = edges * (count / edges[:, -1:])
    points = start[:, None].to(edges) + torch.arange(count, dtype=edges.dtype, device=edges.device)
    place = torch.searchsorted(edges.contiguous(), points.contiguous(), right=True)
    return layout.gather(-1, place.clamp_max(edges.shape[-1] - 1))


def uniforms(seed: int, subjects: Sequence[str], step: int) -> Tensor:
    """One reproducible uniform number in (0, 1) a subject, ``[R]``.

    It depends on the seed, the subject's id and the step alone: not on who else is tested beside it, nor on
    whether the session was interrupted. It is the middle of one of 2^32 cells, so never so near to 0 or 1
    that the rounding of a sum of probabilities could decide which item a point falls on.
    """
    digests = [
        hashlib.blake2b(f"{seed}\x1f{subject}\x1f{step}".encode(), digest_size=4) for subject in subjects
    ]
    return torch.tensor(
        [(int.from_bytes(d.digest(), "big") + 0.5) / 2.0**32 for d in digests], dtype=torch.float64
    )


def random_numbers(start: Tensor, count: int) -> Tensor:
    """Uniform numbers in [0, 1), ``[R, count]``, a stream for each of ``start [R]`` (see `uniforms`)."""
    streams = [np.random.Generator(np.random.Philox(key=int(u * 2**32))) for u in start.tolist()]
    return torch.as_tensor(np.stack([stream.random(count) for stream in streams]), device=start.device)
