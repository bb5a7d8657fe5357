"""Ability of many subjects on one fixed grid, renewed answer by answer: for selection in one dimension."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from irteval.errors import InputError
from irteval.irt.parameters import ItemParameters

RANGE = 6.0
NODES = 241


class AbilityGrid:
    """Posterior of theta ~ N(0, 1) for S subjects in one dimension.

    A node spacing of .05 is well below the posterior SD that an adaptive test of any length in use reaches;
    the abilities that are reported come from the exact, adaptive grid of `irteval.calibrate.ability`.

    Args:
        parameters: of N items, K = 1.
        subjects: S.
        device: where tensors live.

    Attributes:
        nodes: the grid, ``[G]``.
        ranking: items by falling Fisher information at each node, ``[G, N]``.
        log_right, log_wrong: log probabilities of a right and a wrong answer, ``[N, G]``.

    Raises:
        InputError: more than one dimension.
    """

    def __init__(self, parameters: ItemParameters, subjects: int, device: torch.device | str = "cpu") -> None:
        if parameters.dims != 1:
            raise InputError(
                f"the criterion works in one dimension, the bank has {parameters.dims}",
                field="criterion",
            )
        self.nodes = torch.linspace(-RANGE, RANGE, NODES, dtype=torch.float64, device=device)
        slope, intercept, lower, upper = (
            torch.as_tensor(value, dtype=torch.float64, device=device)
            for value in (
                parameters.slope[:, 0],
                parameters.intercept,
                np.zeros(parameters.items) if parameters.lower is None else parameters.lower,
                np.ones(parameters.items) if parameters.upper is None else parameters.upper,
            )
        )
        linear = self.nodes[:, None] * slope + intercept
        p = (lower + (upper - lower) * linear.sigmoid()).clamp(1e-12, 1 - 1e-12)
        change = (upper - lower) * slope * linear.sigmoid() * (-linear).sigmoid()
        self.ranking = (change**2 / (p * (1 - p))).argsort(dim=1, descending=True, stable=True)
        self.log_right, self.log_wrong = p.log().T.contiguous(), (1 - p).log().T.contiguous()
        self._log_posterior = (-(self.nodes**2) / 2).expand(subjects, -1).clone()

    def update(self, rows: Tensor, items: Tensor, y: Tensor) -> None:
        """Take in answers ``[R, k]`` of the subjects ``rows [R]``; NaN for none."""
        known = ~y.isnan()
        share = y.nan_to_num()[..., None]
        gain = share * self.log_right[items] + (1 - share) * self.log_wrong[items]
        self._log_posterior[rows] += torch.where(known[..., None], gain, 0.0).sum(1)

    def mean(self, rows: Tensor) -> Tensor:
        """Posterior means, ``[R]``."""
        return self._log_posterior[rows].softmax(1) @ self.nodes
