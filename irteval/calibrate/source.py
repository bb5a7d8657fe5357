"""What the default scorer keeps of the calibrated subjects, without their names or their answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from irteval.bank import ScoreModel, SourceScores
from irteval.calibrate.calibration import Calibration, calibrate
from irteval.calibrate.hypotheses import DIFFICULTY_BINS, WIDE, HypothesisSet
from irteval.errors import ConvergenceError, InputError
from irteval.irt.parameters import ItemParameters
from irteval.responses import ResponseMatrix

TOTAL = "total"
ROWS = 256  # subjects whose predictions are held at a time

LEAST_SOURCE = 12  # subjects: with fewer, there is no telling the strongest from the rest
WEAK_SHARE = 0.6  # of the source, by score: stands for "calibrated" when the direction beyond is learnt
STRONG_SHARE = 0.3  # of the source: stands for "new"
MOST_STRONG = 16
MOST_ITEMS = 1500  # the direction has few coefficients; more items would only cost time
CLIP = 4.0  # logits


def item_weights(benchmarks: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names of the scores a bank gives, and the weight of every item in each, ``[G, N]``, rows summing to 1.

    One benchmark has one score, the plain mean. A suite has a total, the mean of its benchmarks' scores, and
    a score for each of them.
    """
    names, member = np.unique(np.asarray(benchmarks, dtype=str), return_inverse=True)
    own = np.eye(len(names))[:, member]
    own /= own.sum(1, keepdims=True)
    if len(names) == 1:
        return (str(names[0]),), own
    return (TOTAL, *(str(name) for name in names)), np.vstack([own.mean(0), own])


def difficulty_bins(source_mean: NDArray[np.float64]) -> NDArray[np.int64]:
    """Quantile bin of each item by difficulty; items that are equally hard share a bin."""
    edges = np.quantile(source_mean, np.linspace(0, 1, DIFFICULTY_BINS + 1)[1:-1])
    return np.searchsorted(edges, source_mean, side="left").astype(np.int64)


def smoothed_means(responses: ResponseMatrix) -> NDArray[np.float64]:
    """Share of subjects who got each item, half an answer added on either side, ``[N]``."""
    counts = responses.item_counts()
    total = np.nan_to_num(responses.item_means()) * counts
    return (total + 0.5) / (counts + 1)


def score_model(
    responses: ResponseMatrix, fits: dict[str, Calibration], benchmarks: Sequence[str], seed: int
) -> ScoreModel:
    """Summarise the source for the default scorer.

    Args:
        responses: of M subjects to N items.
        fits: the calibrations that the scorer mixes, by name, dimensions rising.
        benchmarks: of each item.
        seed: for the items that the direction beyond is learnt on.
    """
    names, weights = item_weights(benchmarks)
    largest = list(fits.values())[-1]
    scores, noise = _source_scores(responses, largest, weights)
    mean = smoothed_means(responses)
    constant = _constant(responses)
    source = {}
    for g, name in enumerate(names):
        spread = float(scores[:, g].var(ddof=1)) if len(scores) > 1 else 0.0
        source[name] = SourceScores(
            scores=np.sort(scores[:, g]).tolist(),
            reliability=float(np.clip(1 - noise[:, g].mean() / max(spread, 1e-12), 0, 1)),
            constant_share=float(weights[g][constant].sum()),
        )
    first = next(iter(fits.values()))
    beyond = beyond_direction(responses, first, scores[:, 0], mean, seed)
    return ScoreModel(
        fits=list(fits),
        source=source,
        source_mean=mean.tolist(),
        difficulty_bin=difficulty_bins(mean).tolist(),
        beyond=None if beyond is None else beyond.tolist(),
    )


def implied_score_model(parameters: ItemParameters, benchmarks: Sequence[str], fit: str) -> ScoreModel:
    """The score model of a bank without a source: what its parameters say of a N(0, I) population.

    Args:
        parameters: of N items.
        benchmarks: of each item.
        fit: the name of these parameters.
    """
    names, weights = item_weights(benchmarks)
    quantiles = ndtri((np.arange(199) + 0.5) / 199)
    length = np.sqrt((parameters.slope**2).sum(1)) * np.sign(parameters.slope.sum(1))
    lower = np.zeros(parameters.items) if parameters.lower is None else parameters.lower
    upper = np.ones(parameters.items) if parameters.upper is None else parameters.upper
    p = lower + (upper - lower) * expit(quantiles[:, None] * length + parameters.intercept)
    scores = p @ weights.T
    mean = p.mean(0)
    return ScoreModel(
        fits=[fit],
        source={
            # These scores are expected ones: there is no answer noise in them to distrust.
            name: SourceScores(scores=np.sort(scores[:, g]).tolist(), reliability=1.0, constant_share=0.0)
            for g, name in enumerate(names)
        },
        source_mean=mean.tolist(),
        difficulty_bin=difficulty_bins(mean).tolist(),
        beyond=None,
    )


def logistic_equivalent(parameters: ItemParameters) -> ItemParameters:
    """The two-parameter items nearest to items with asymptotes; others as they are.

    Weighted least squares of logit P on theta over N(0, 1), weights P (1 - P): the score hypotheses bend
    logits, which a guessing floor has none of.

    Raises:
        InputError: asymptotes in several dimensions.
    """
    if parameters.lower is None and parameters.upper is None:
        return parameters
    if parameters.dims > 1:
        raise InputError("asymptotes are supported in one dimension", field="lower")
    theta = ndtri((np.arange(199) + 0.5) / 199)[:, None]
    lower = np.zeros(parameters.items) if parameters.lower is None else parameters.lower
    upper = np.ones(parameters.items) if parameters.upper is None else parameters.upper
    p = lower + (upper - lower) * expit(theta * parameters.slope[:, 0] + parameters.intercept)
    p = np.clip(p, 1e-6, 1 - 1e-6)
    w = p * (1 - p)
    centre = (w * theta).sum(0) / w.sum(0)
    level = (w * logit(p)).sum(0) / w.sum(0)
    slope = (w * (theta - centre) * logit(p)).sum(0) / (w * (theta - centre) ** 2).sum(0)
    return ItemParameters(slope=slope, intercept=level - slope * centre)


def beyond_direction(
    responses: ResponseMatrix,
    fit: Calibration,
    scores: NDArray[np.float64],
    source_mean: NDArray[np.float64],
    seed: int,
) -> NDArray[np.float64] | None:
    """How items change, on the logit, for subjects stronger than the calibrated ones, ``[N]``.

    Learnt inside the source: calibrate its weak part alone, look at its strong part under the wide
    hypothesis, and average the coefficients that are not ability (common shift, slope on difficulty,
    difficulty bins).

    Args:
        responses: of M subjects to N items.
        fit: the calibration with fewest dimensions.
        scores: full scores of the subjects, ``[M]``.
        source_mean: smoothed item means, ``[N]``.
        seed: for the choice of items where there are many.

    Returns:
        None where the source is too small to learn it, or its weak part alone can't be fitted.
    """
    if len(scores) < LEAST_SOURCE:
        return None
    order = np.argsort(scores, kind="stable")
    weak = order[: int(WEAK_SHARE * len(order))]
    strong = order[-min(int(STRONG_SHARE * len(order)), MOST_STRONG) :]
    items = np.arange(len(source_mean))
    if len(items) > MOST_ITEMS:
        items = np.sort(np.random.default_rng(seed).choice(items, MOST_ITEMS, replace=False))
    dims = fit.parameters.dims
    weak_responses = responses.take(subjects=np.sort(weak), items=items)
    try:
        weak_fit = calibrate(weak_responses, dims=dims, estimator="variational", seed=seed)
    except ConvergenceError:
        return None
    bins = difficulty_bins(smoothed_means(weak_responses))
    hypothesis = HypothesisSet.build(weak_fit.parameters, bins, np.zeros(len(items), int), None, (WIDE,))
    answers = torch.as_tensor(responses.take(subjects=strong, items=items).dense())
    posterior = hypothesis.posterior(
        torch.arange(len(items)).expand(len(strong), -1), answers.nan_to_num(), (~answers.isnan()).double()
    )
    shift = posterior.mean[:, 0, dims:].mean(0).numpy()
    centred = np.clip(fit.parameters.intercept - fit.parameters.intercept.mean(), -CLIP, CLIP)
    bin_shift = np.zeros(DIFFICULTY_BINS)
    bin_shift[: len(shift) - 2] = shift[2:]
    beyond: NDArray[np.float64] = shift[0] + shift[1] * centred + bin_shift[difficulty_bins(source_mean)]
    return np.clip(beyond, -CLIP, CLIP)


def _source_scores(
    responses: ResponseMatrix, fit: Calibration, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Full scores of the source, missing cells predicted, and their noise ``Σ w² p (1 - p)``, ``[M, G]``."""
    scores, noise = [], []
    for start in range(0, responses.shape[0], ROWS):
        observed = responses.rows(start, min(start + ROWS, responses.shape[0]))
        theta = fit.ability_mean[start : start + ROWS]
        p = expit(theta @ fit.parameters.slope.T + fit.parameters.intercept)
        scores.append(np.where(np.isnan(observed), p, observed) @ weights.T)
        noise.append((p * (1 - p)) @ (weights**2).T)
    return np.concatenate(scores), np.concatenate(noise)


def _constant(responses: ResponseMatrix) -> NDArray[np.bool_]:
    """Items that every subject who answered passed, or failed, ``[N]``."""
    means = responses.item_means()
    return ~((means > 0) & (means < 1))
