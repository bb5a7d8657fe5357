"""What a new subject would answer to every item: the mixture of hypotheses, given its answers so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from irteval.calibrate.hypotheses import HypothesisSet
from irteval.calibrate.symmetric import pack_symmetric


@dataclass(frozen=True)
class Prediction:
    """Predicted answers of R subjects to N items under H hypotheses: the T hypotheses of each fit in turn.

    Attributes:
        probability: predictive P(y = 1), item and subject uncertainty integrated out, ``[R, H, N]``.
        log_weight: log of prior odds times evidence, not normalised, ``[R, H]``.
        kappa: attenuation by item uncertainty, ``[R, T, N]`` a fit.
        covariance: posterior covariance of the coefficients, ``[R, T, P]`` squared a fit.
        fits: the hypothesis sets.
    """

    probability: Tensor
    log_weight: Tensor
    kappa: tuple[Tensor, ...]
    covariance: tuple[Tensor, ...]
    fits: tuple[HypothesisSet, ...] = field(repr=False)

    @property
    def inside(self) -> Tensor:
        """Which hypotheses say "like the calibrated subjects", ``[H]``: the first of each fit."""
        return torch.cat([fit.log_odds.new_tensor(range(len(fit.log_odds))) == 0 for fit in self.fits])

    @property
    def weight(self) -> Tensor:
        """Posterior probabilities of the hypotheses, ``[S, H]``."""
        return self.log_weight.softmax(-1)

    @property
    def curvature(self) -> Tensor:
        """p (1 - p), ``[S, H, N]``."""
        return self.probability * (1 - self.probability)

    def split(self, values: Tensor) -> tuple[Tensor, ...]:
        """``[S, H, ...]`` as one ``[S, T, ...]`` a fit."""
        return torch.split(values, [len(fit.log_odds) for fit in self.fits], 1)

    def gradient(self, weights: Tensor, rest: Tensor) -> tuple[Tensor, ...]:
        """Derivative of ``Σ_rest weights p`` in the coefficients of each fit, ``[S, T, P]`` each.

        Args:
            weights: weight of each item in the score, ``[N]``.
            rest: 1 for an item without an answer, ``[S, N]``.
        """
        inner = self.curvature * (weights * rest)[:, None]
        return tuple(
            (part * kappa) @ fit.features
            for part, kappa, fit in zip(self.split(inner), self.kappa, self.fits, strict=True)
        )

    def score(self, weights: Tensor, answered: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the weighted full score under each hypothesis, ``[S, H]`` each.

        Observed answers count as observed; the rest as predicted, with the variance of the subject's
        posterior (delta method) and of the answers themselves.

        Args:
            weights: weight of each item in the score, summing to 1, ``[N]``.
            answered: 1 where there is an answer, ``[S, N]``.
            y: answers, ``[S, N]``; any finite number where there is none.
        """
        rest = 1 - answered
        observed = (weights * answered * y).sum(-1, keepdim=True)
        mean = observed + (self.probability * (weights * rest)[:, None]).sum(-1)
        noise = (self.curvature * (weights**2 * rest)[:, None]).sum(-1)
        posterior = torch.cat(
            [
                torch.einsum("stp,stpq,stq->st", gradient, covariance, gradient)
                for gradient, covariance in zip(self.gradient(weights, rest), self.covariance, strict=True)
            ],
            1,
        )
        return mean, posterior + noise


def predict(fits: Sequence[HypothesisSet], answered: Tensor, y: Tensor, weight: Tensor) -> Prediction:
    """Predictions given answers; shapes as in `HypothesisSet.posterior`.

    ``p = sigmoid(mu / sqrt(1 + pi/8 var))`` with ``mu = kappa (F E[beta] + c)``, ``var = kappa² Fᵀ C F``
    (MacKay 1992, as in `irteval.calibrate.hypotheses`).
    """
    probability, log_weight, kappas, covariances = [], [], [], []
    for fit in fits:
        posterior = fit.posterior(answered, y, weight)
        kappa = fit.kappa(posterior.mean, fit.item_covariance)
        mu = kappa * (posterior.mean @ fit.features.T + fit.offset)
        variance = kappa**2 * (pack_symmetric(posterior.covariance) @ fit.outer.T)
        probability.append(torch.sigmoid(mu * (1 + math.pi / 8 * variance).rsqrt()))
        log_weight.append(fit.log_odds + posterior.log_evidence)
        kappas.append(kappa)
        covariances.append(posterior.covariance)
    return Prediction(
        probability=torch.cat(probability, 1),
        log_weight=torch.cat(log_weight, 1),
        kappa=tuple(kappas),
        covariance=tuple(covariances),
        fits=tuple(fits),
    )
