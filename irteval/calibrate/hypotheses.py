"""What a new subject may be like: competing hypotheses over a calibrated bank, weighed by its answers.

An item response model fitted to a population says little about a subject outside it. Every hypothesis keeps
the calibrated items and widens what the subject may do: have an unusual ability, find everything easier by
the same amount, react to difficulty less, profit on items of one difficulty more than on others, move in the
direction in which the strongest calibrated subjects left the rest behind, or answer as if items were all
alike. The logit of item i is

    kappa_i (F_i @ beta + c_i),    F_i = [a_i | 1 | c_i - mean c | difficulty bins | benchmarks | beyond_i]

with Gaussian priors on beta that differ between hypotheses. ``kappa_i = (1 + pi/8 z̃ᵀ S_i z̃)^(-1/2)``
carries the uncertainty S_i of the item's own parameters at ability z, ``z̃ = (z, 1)`` (MacKay 1992, The
evidence framework applied to classification networks, eq. 18, applied to items).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.calibrate.laplace import LaplacePosterior, laplace
from irteval.calibrate.symmetric import outer_lower, pack_lower, pack_symmetric
from irteval.irt.parameters import ItemParameters

DIFFICULTY_BINS = 5
FIXED = 1e8  # precision that holds a coefficient at its prior mean


@dataclass(frozen=True)
class Prior:
    """Prior of one hypothesis: standard deviations of its coefficients (0 fixes one), and its log odds.

    The means are 0 but for that of ``beyond`` and that of ``difficulty``, where -1 cancels the items'
    difficulties.
    """

    name: str
    ability: float
    common: float
    difficulty: float
    bins: float
    benchmarks: float
    beyond_mean: float
    beyond: float
    log_odds: float
    difficulty_mean: float = 0


INSIDE = Prior("inside", 1, 0, 0, 0, 0, 0, 0, 3.5)
GIVEN = replace(INSIDE, log_odds=6)  # where item parameters are given numbers, for whomever they hold
SHIFTED = Prior("shifted", 2, 1, 0.5, 0.7, 0.7, 0, 0, 0)  # where no beyond direction could be learnt
BEYOND = Prior("beyond", 1.5, 2, 0.25, 0.35, 0.35, 1, 1, 0)
WIDE = Prior("wide", 4, 2.5, 1, 1.5, 1.5, 0, 0, -1)
UNRELATED = Prior("unrelated", 0.3, 2, 0.25, 0.35, 1, 0, 0, 0, difficulty_mean=-1)


@dataclass(frozen=True)
class HypothesisSet:
    """The hypotheses over one fit of the bank: T priors that share their features.

    Attributes:
        features: F, ``[N, P]``.
        outer: lower triangles of F Fᵀ, ``[N, P (P + 1) / 2]``.
        offset: item intercepts c, ``[N]``.
        item_covariance: packed S_i, ``[N, (K + 1)(K + 2) / 2]``; zero where parameters are taken as known.
        prior_mean, prior_precision: ``[T, P]``.
        log_odds: prior log odds, ``[T]``.
        dims: K.
    """

    features: Tensor
    outer: Tensor
    offset: Tensor
    item_covariance: Tensor
    prior_mean: Tensor
    prior_precision: Tensor
    log_odds: Tensor
    dims: int

    @classmethod
    def build(
        cls,
        parameters: ItemParameters,
        difficulty_bin: NDArray[np.int64],
        benchmark: NDArray[np.int64],
        beyond: NDArray[np.float64] | None,
        priors: Sequence[Prior],
        device: torch.device | str = "cpu",
    ) -> HypothesisSet:
        """Features and priors over one fit.

        Args:
            parameters: item parameters of N items in K dimensions.
            difficulty_bin: bin of each item's difficulty, ``[N]``.
            benchmark: number of each item's benchmark, ``[N]``.
            beyond: the direction beyond the calibrated range, ``[N]``, or None.
            priors: the hypotheses.
            device: where the tensors live.
        """
        intercept = parameters.intercept
        centred = intercept - intercept.mean()
        blocks = [parameters.slope, np.ones((len(intercept), 1)), centred[:, None], _dummies(difficulty_bin)]
        names = ["ability"] * parameters.dims + ["common", "difficulty"]
        names += ["bins"] * blocks[-1].shape[1]
        if benchmark.max(initial=0) > 0:
            blocks.append(_dummies(benchmark))
            names += ["benchmarks"] * blocks[-1].shape[1]
        if beyond is not None:
            blocks.append(beyond[:, None])
            names.append("beyond")
        features = torch.as_tensor(np.hstack(blocks), dtype=torch.float64, device=device)
        covariance = parameters.covariance
        if covariance is None:
            covariance = np.zeros((len(intercept), parameters.dims + 1, parameters.dims + 1))
        deviations = torch.tensor([[getattr(prior, name) for name in names] for prior in priors])
        means = torch.tensor([[getattr(prior, f"{name}_mean", 0.0) for name in names] for prior in priors])
        return cls(
            features=features,
            outer=outer_lower(features),
            offset=torch.as_tensor(intercept, dtype=torch.float64, device=device),
            item_covariance=pack_lower(
                torch.as_tensor(np.nan_to_num(covariance), dtype=torch.float64, device=device)
            ),
            prior_mean=means.to(features),
            prior_precision=torch.where(deviations > 0, deviations.double() ** -2, FIXED).to(features),
            log_odds=torch.tensor([prior.log_odds for prior in priors]).to(features),
            dims=parameters.dims,
        )

    def kappa(self, beta: Tensor, item_covariance: Tensor) -> Tensor:
        """Attenuation by item uncertainty, ``[S, T, n]``, from beta ``[S, T, P]`` and S ``[..., n, V]``."""
        ability = beta[..., : self.dims]
        extended = torch.cat([ability, torch.ones_like(ability[..., :1])], -1)
        variance = pack_symmetric(extended[..., :, None] * extended[..., None, :]) @ item_covariance.mT
        return (1 + math.pi / 8 * variance).rsqrt()

    def posterior(self, answered: Tensor, y: Tensor, weight: Tensor) -> LaplacePosterior:
        """Posterior of beta under every hypothesis.

        Args:
            answered: item numbers, ``[S, n]``, any valid number where the weight is 0.
            y: answers in [0, 1], ``[S, n]``.
            weight: 1 where answered, 0 for padding, ``[S, n]``.
        """
        covariance = self.item_covariance[answered]
        return laplace(
            self.features[answered],
            self.offset[answered],
            y,
            weight,
            self.prior_mean,
            self.prior_precision,
            scale=lambda beta: self.kappa(beta, covariance),
        )


def _dummies(groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """One indicator column a group, ``[N]`` to ``[N, groups]``."""
    return np.eye(int(groups.max(initial=0)) + 1)[groups]
