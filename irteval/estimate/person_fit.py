"""Person fit: whether a subject's answers are those of anybody like the calibrated subjects.

The log-likelihood of the answers at the subject's own ability, standardised: the statistic l_z of Drasgow,
Levine & Williams (1985), with the correction of Snijders (2001, Asymptotic null distribution of person fit
statistics with estimated person parameter) for the ability being estimated, here in K dimensions. Under the
model it is about N(0, 1); answers that contradict the items' difficulties make it very negative.
"""

from __future__ import annotations

import torch
from torch import Tensor

from irteval.calibrate.ability import ability_posterior
from irteval.irt.parameters import ItemParameters

LEAST_ANSWERS = 20
# A real subject fits no response model exactly, and what it lacks adds up with the answers; so does, much
# faster, what a random one lacks. The limit is therefore on l_z / √n.
LEAST_FIT = -0.6


def person_fit(parameters: ItemParameters, items: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Snijders' corrected l_z, ``[S]``; 0 where it is undefined, as it is without answers.

    At the posterior mode theta under N(0, I), with w = logit p and c the regression of w on the slopes a,
    weighted by p (1 - p):

        ``l_z = Σ (y - p)(w - cᵀ a) / √(Σ p (1 - p)(w - cᵀ a)²)``

    Args:
        parameters: of J items in K dimensions; asymptotes are left out of account.
        items: numbers of the items asked, ``[S, n]``.
        y: their answers in [0, 1], ``[S, n]``; any finite number where the weight is 0.
        weight: 1 for an answer, 0 for padding, ``[S, n]``.
    """
    theta, _ = ability_posterior(parameters, items, y, weight)
    slope = torch.as_tensor(parameters.slope, device=items.device)[items]
    logit = torch.as_tensor(parameters.intercept, device=items.device)[items]
    logit = logit + torch.einsum("snk,sk->sn", slope, theta)
    p = torch.sigmoid(logit)
    information = weight * p * (1 - p)
    gram = torch.einsum("sn,snk,snl->skl", information, slope, slope)
    ridge = 1e-9 * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    c = torch.linalg.solve(gram + ridge, torch.einsum("sn,sn,snk->sk", information, logit, slope))
    rest = logit - torch.einsum("snk,sk->sn", slope, c)
    variance = (information * rest**2).sum(1)
    fit = (weight * (y - p) * rest).sum(1) / variance.clamp_min(1e-12).sqrt()
    return torch.where(variance > 1e-9, fit, 0.0)


def misfit_warnings(
    parameters: ItemParameters, items: Tensor, y: Tensor, weight: Tensor
) -> list[tuple[str, ...]]:
    """A line for every subject whose answers fit nobody; arguments as in `person_fit`."""
    fit = person_fit(parameters, items, y, weight)
    count = weight.sum(1)
    misfit = (count >= LEAST_ANSWERS) & (fit < LEAST_FIT * count.sqrt())
    return [
        (f"misfit: the answers contradict the items' difficulties (person fit {value:.1f}, 0 expected)",)
        if bad
        else ()
        for value, bad in zip(fit.tolist(), misfit.tolist(), strict=True)
    ]
