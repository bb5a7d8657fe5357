"""Ask what most reduces the variance of the full score, items still pending allowed for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from irteval.calibrate.prediction import Prediction
from irteval.select.content import Content, Quota


def score_variance_batch(
    prediction: Prediction,
    weights: Tensor,
    frame: Tensor,
    rest: Tensor,
    pending: Tensor,
    count: int,
    cost: Tensor | None = None,
    content: Content | None = None,
) -> Tensor:
    """A batch chosen greedily by the expected reduction of the score's posterior variance.

    Under hypothesis h with posterior covariance C and score gradient g, asking item i takes
    ``f kappa² (F_iᵀ C g)² / (1 + f kappa² F_iᵀ C F_i)``, ``f = p (1 - p)``, off the variance ``gᵀ C g`` (the
    rank-one update of a Gaussian posterior); hypotheses are averaged by their weight. The choice of an item
    updates C as if it had been answered as expected, so that a batch does not ask the same thing twice;
    items that are pending are treated alike.

    Args:
        prediction: for R subjects and N items.
        weights: weight of each item in the score, ``[N]``.
        frame: whether an item may be asked, ``[R, N]``.
        rest: 1 for an item without an answer, ``[R, N]``.
        pending: numbers of items asked and not answered yet, ``[R, m]``, −1 for none.
        count: items to choose, at most the number in the frame of any row.
        cost: of each item, ``[N]``: the reduction a unit of cost counts.
        content: bounds on the share of each group of items.

    Returns:
        Item numbers, ``[R, count]``.
    """
    covariance = [c.clone() for c in prediction.covariance]
    t, q, r = _terms(prediction, covariance, weights, rest)

    def answer(items: Tensor, known: Tensor) -> None:
        """Update every fit as if ``items [R]`` were answered, in the rows where ``known [R]`` is 1."""
        for f, fit in enumerate(prediction.fits):
            x = fit.features[items]
            towards = torch.einsum("rtpq,rq->rtp", covariance[f], x)
            at = items[:, None, None].expand(-1, t[f].shape[1], 1)
            information = known[:, None] * r[f].gather(-1, at)[..., 0]
            shrink = information / (1 + information * (towards * x[:, None]).sum(-1))
            along = towards @ fit.features.T
            t[f] -= (shrink * t[f].gather(-1, at)[..., 0])[..., None] * along
            q[f] -= shrink[..., None] * along**2
            covariance[f] -= shrink[..., None, None] * towards[..., :, None] * towards[..., None, :]

    for column in pending.T:
        answer(column.clamp_min(0), (column >= 0).to(weights))
    hypothesis_weight = prediction.split(prediction.weight)
    frame = frame.clone()
    quota = None if content is None else Quota(content, frame, count)
    chosen = []
    for _ in range(count):
        gain = _gain(hypothesis_weight, r, t, q)
        gain = gain if cost is None else gain / cost
        allowed = frame if quota is None else quota.allowed(frame)
        item = gain.masked_fill(~allowed, -1).argmax(-1)
        chosen.append(item)
        if quota is not None:
            quota.take(item)
        frame.scatter_(-1, item[:, None], False)
        answer(item, torch.ones_like(item, dtype=weights.dtype))
    return torch.stack(chosen, -1)


def expected_reduction(prediction: Prediction, weights: Tensor, rest: Tensor) -> Tensor:
    """What asking each item alone takes off the score's posterior variance, ``[R, N]``.

    Arguments and formula are those of `score_variance_batch`.
    """
    t, q, r = _terms(prediction, prediction.covariance, weights, rest)
    return _gain(prediction.split(prediction.weight), r, t, q)


def _terms(
    prediction: Prediction, covariance: Sequence[Tensor], weights: Tensor, rest: Tensor
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """``F C g`` and ``F C F`` of every item, and its information f kappa² on the linear predictor; one
    ``[R, T, N]`` a fit each."""
    t, q, r = [], [], []
    for g, c, kappa, curvature, fit in zip(
        prediction.gradient(weights, rest),
        covariance,
        prediction.kappa,
        prediction.split(prediction.curvature),
        prediction.fits,
        strict=True,
    ):
        t.append((c @ g[..., None])[..., 0] @ fit.features.T)
        q.append(((fit.features @ c) * fit.features).sum(-1))
        r.append(curvature * kappa**2)
    return t, q, r


def _gain(weight: Sequence[Tensor], r: Sequence[Tensor], t: Sequence[Tensor], q: Sequence[Tensor]) -> Tensor:
    """The expected reduction averaged over hypotheses, ``[R, N]``."""
    gain = sum(
        torch.einsum("rt,rtn->rn", w, information * slope**2 / (1 + information * spread))
        for w, information, slope, spread in zip(weight, r, t, q, strict=True)
    )
    assert isinstance(gain, Tensor)
    return gain
