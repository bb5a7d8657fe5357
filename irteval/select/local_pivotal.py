"""The local pivotal method: samples with prescribed inclusion probabilities, spread over any features.

Grafström, Lundström & Schelin (2012, Spatially balanced sampling through the pivotal method), variant 2: an
undecided unit meets its nearest undecided neighbour, and one of the two takes as much of the other's
probability as makes it 0 or 1, by a draw that leaves both expectations as they were. Neighbours therefore
seldom come together. The cube method (Deville & Tillé 2004) would balance linear totals of the features
exactly, up to a landing phase that drops constraints; a spread sample nearly balances every smooth function
of them (Grafström & Lundström 2013), its size is fixed, and it needs no linear algebra.
"""

from __future__ import annotations

import torch
from torch import Tensor

DECIDED = 1e-9  # distance from 0 or 1 that rounding leaves


def local_pivotal(inclusion: Tensor, features: Tensor, numbers: Tensor, count: int) -> Tensor:
    """Draw exactly ``count`` items a row.

    Args:
        inclusion: probabilities that sum to ``count`` in every row, ``[R, N]``.
        features: what to spread over, on one scale, ``[R, N, D]``.
        numbers: uniform numbers, ``[R, 2 N]``: the order of visits, then the duels.
        count: items to draw.

    Returns:
        Item numbers, ``[R, count]``, the order being that of the visits.
    """
    items = inclusion.shape[1]
    order = numbers[:, :items].argsort(1)
    left = inclusion.gather(1, order)
    place = features.gather(1, order[..., None].expand(-1, -1, features.shape[-1]))
    rows = torch.arange(len(left), device=left.device)
    for duel in numbers[:, items:].T:
        undecided = (left > DECIDED) & (left < 1 - DECIDED)
        if not bool((undecided.sum(1) > 1).any()):
            break
        # The earliest undecided unit of the random order, and the nearest of the others.
        one = undecided.to(torch.int8).argmax(1)
        distance = (place - place[rows, one][:, None]).square_().sum(-1).masked_fill_(~undecided, torch.inf)
        distance[rows, one] = torch.inf
        other = distance.argmin(1)
        alive = undecided.sum(1) > 1
        first, second = left[rows, one], left[rows, other]
        both = first + second
        small = both < 1
        # Below 1 the winner takes both; from 1 on the winner becomes 1 and the rest stays with the other.
        share = torch.where(small, first / both, (1 - second) / (2 - both).clamp_min(1e-300))
        winner_gets, loser_gets = both.clamp_max(1), (both - 1).clamp_min(0)
        won = duel < share
        left[rows, one] = torch.where(alive, torch.where(won, winner_gets, loser_gets), first)
        left[rows, other] = torch.where(alive, torch.where(won, loser_gets, winner_gets), second)
    taken = left.topk(count, dim=1).indices.sort(1).values
    return order.gather(1, taken)
