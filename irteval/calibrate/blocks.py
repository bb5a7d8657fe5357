"""A response matrix as tensors, a block of rows at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from irteval.responses.matrix import ResponseMatrix

CELLS = 100_000  # of one block on a CPU: its temporaries stay in the cache
CELLS_GPU = 16_000_000
CACHED = 4_000_000  # cells kept as tensors instead of being made anew in each pass
PRECISE = 300_000  # cells up to which products are in double precision


@dataclass(frozen=True)
class Block:
    """Rows start … stop of the responses.

    Attributes:
        start, stop: rows.
        score: y in [0, 1], 0 where missing, ``[n, J]``.
        weight: trials of each cell, 0 where missing, ``[n, J]``.
        whole: every weight is 1.
    """

    start: int
    stop: int
    score: Tensor
    weight: Tensor
    whole: bool


class Blocks:
    """The rows of a response matrix in blocks of about 100,000 cells, missing cells with weight 0.

    Single precision above 300,000 cells: the item sums are kept in double precision by the estimators, and
    the parameters differ from an all-double fit by about 1e-6.

    Attributes:
        subjects, items: N, J.
        device, dtype: of the tensors.
        has_trials: some cell stands for more than one trial.
    """

    def __init__(self, responses: ResponseMatrix, device: torch.device) -> None:
        self._responses = responses
        self.subjects, self.items = responses.shape
        self.device = device
        cells = self.subjects * self.items
        self.dtype = torch.float64 if cells <= PRECISE else torch.float32
        self.has_trials = responses.trials is not None
        size = max(1, (CELLS if device.type == "cpu" else CELLS_GPU) // max(1, self.items))
        edges = [*range(0, self.subjects, size), self.subjects]
        self.spans = list(itertools.pairwise(edges))
        self._cache = [self._read(*span) for span in self.spans] if cells <= CACHED else None

    @property
    def cells(self) -> int:
        """N J, missing ones included."""
        return self.subjects * self.items

    def block(self, number: int) -> Block:
        """The block with this number."""
        return self._cache[number] if self._cache else self._read(*self.spans[number])

    def __len__(self) -> int:
        """How many blocks there are."""
        return len(self.spans)

    def __iter__(self) -> Iterator[Block]:
        """Every block in order."""
        return (self.block(number) for number in range(len(self.spans)))

    def _read(self, start: int, stop: int) -> Block:
        scores = self._responses.scores
        if isinstance(scores, np.ndarray) and scores.dtype == np.int8:
            raw = torch.from_numpy(scores[start:stop]).to(self.device)
            if not self.has_trials and int(raw.min()) >= 0:
                one = torch.ones((), dtype=self.dtype, device=self.device)
                return Block(start, stop, raw.to(self.dtype), one.expand(raw.shape), whole=True)
            score, weight = raw.clamp_min(0).to(self.dtype), (raw >= 0).to(self.dtype)
        else:
            rows = torch.from_numpy(self._responses.rows(start, stop)).to(self.device)
            missing = rows.isnan()
            score, weight = rows.masked_fill(missing, 0.0).to(self.dtype), (~missing).to(self.dtype)
        trials = self._responses.trial_rows(start, stop)
        if trials is not None:
            count = torch.from_numpy(np.asarray(trials, dtype=np.float64)).to(self.device, self.dtype)
            weight = torch.where(weight > 0, count, 0.0)
        return Block(start, stop, score, weight, whole=False)
