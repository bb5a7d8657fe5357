"""Rows whose pattern contradicts the consensus: the accuracy may be right and the ids wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from irteval.responses.checks.benchmarks import items_by_benchmark
from irteval.responses.checks.discovery import discoveries
from irteval.responses.checks.finding import Finding, Named, Severity, listed
from irteval.responses.checks.positions import order_by_position, realigned
from irteval.responses.checks.sample import Answers, sample_answers
from irteval.responses.matrix import ResponseMatrix

Floats = NDArray[np.float32]

CHECK = "consensus"
FALSE_ALARMS = 0.001
MOST_SUBJECTS = 2_000  # every round takes a pass over their answers
FEWEST_SUBJECTS, FEWEST_ITEMS = 5, 40  # of a benchmark, and answers of a row
LEAST_SHARE = 0.35  # of the association that accuracy and items let expect; less contradicts
NULL_QUANTILES, LEAST_QUARTILE = (0.75, 0.9), 0.1
ROUNDS = 20
WEIGHT_POWER, LEAST_WEIGHT, SETTLED = 2, 0.01, 1e-3
FLOOR_QUANTILE, ABOVE_FLOOR = 0.05, 0.05  # rows no better than this above the weakest may be guesses


@dataclass(frozen=True)
class Agreement:
    """How n rows go with the consensus of the others, ``[n]`` each.

    Attributes:
        consensus: weighted mean score of each item over the other rows, ``[n, m]``.
        correlation: of a row with its consensus.
        share: of the association with it that is expected, that which is there; 1 in the middle of good rows.
        p_value: of a share this low.
    """

    consensus: Floats
    correlation: Floats
    share: NDArray[np.float64]
    p_value: NDArray[np.float64]


def consensus(responses: ResponseMatrix, seed: int = 0) -> list[Finding]:
    """Subjects whose answers on a benchmark are unrelated to which items the others find hard.

    By benchmark of 40 items or more, over at most 2,000 subjects and 5,000 items, for rows of 40 answers or
    more. A row is reported where a one-sided test with Benjamini and Hochberg's (1995) control of false
    discoveries at .001 finds its association with the consensus too low, and it has less than .35 of what is
    expected. A weak row that guesses looks the same: those within .05 of the lowest accuracies are a note,
    others a warning. Then orders of the items are tried in which the row would fit
    (:func:`irteval.responses.checks.positions.realigned`).
    """
    parts = []
    for name, items in items_by_benchmark(responses).items():
        answers = sample_answers(responses, seed, items=items, most_subjects=MOST_SUBJECTS)
        if answers.scores.shape[0] >= FEWEST_SUBJECTS and answers.scores.shape[1] >= FEWEST_ITEMS:
            parts.append((name, answers, agreement(answers)))
    if not parts:
        return []
    found = discoveries(np.concatenate([own.p_value for _, _, own in parts]), FALSE_ALARMS)
    ends = np.cumsum([len(own.p_value) for _, _, own in parts])
    findings = []
    for (name, answers, own), flagged in zip(parts, np.split(found, ends[:-1]), strict=True):
        findings += _findings(responses, name, answers, own, flagged & (own.share < LEAST_SHARE))
    return listed(sorted(findings, key=lambda finding: finding.severity == "note"))


def agreement(answers: Answers) -> Agreement:
    """Agreement of each row with the consensus of the others.

    The consensus is a mean over rows weighted by how well they go with it, found by iteration from equal
    weights: where ids are misaligned for a part of the rows, it is that of the larger part. What is expected
    of a row is an association T = sum_j d_j x_j, d the centred consensus, with the mean and variance that
    P_j = expit(logit(consensus_j) + c) gives, c such that the row has its accuracy. T / E(T) is put in
    relation to its upper quartile over the rows, for the consensus has an error of its own, and z to the
    normal distribution that has its quantiles .75 and .9, for rows differ by more than chance: the null is
    empirical (Efron 2004, JASA 99:96), from the part that misaligned rows don't reach, and has Student's
    tails of min(n, m) - 1 degrees of freedom.
    """
    scores, observed = answers.scores, answers.observed
    weights, before = np.ones(len(scores), dtype=np.float32), np.zeros(len(scores), dtype=np.float32)
    rounds = 0
    while rounds < ROUNDS and np.abs(weights - before).max() > SETTLED:
        means = _means_of_others(scores, observed, weights)
        correlation, deviation = _correlation(scores, observed, means)
        weights, before = np.maximum(correlation, LEAST_WEIGHT) ** WEIGHT_POWER, weights
        rounds += 1
    association = (deviation * scores).sum(axis=1)
    wanted, error = _expected_association(scores, observed, means, deviation)
    share = association / np.maximum(wanted, 1e-9)
    share = share / max(LEAST_QUARTILE, float(np.quantile(share, NULL_QUANTILES[0])))
    z = np.where(error > 1e-6, (share - 1) * wanted / np.maximum(error, 1e-6), 0)
    judged = observed.sum(axis=1) >= FEWEST_ITEMS
    p_value = student.cdf(_standardised(z), min(scores.shape) - 1)
    return Agreement(means, correlation, share, np.where(judged, p_value, 1.0))


def _standardised(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """In units of the normal distribution that the upper part of z has, one at least as wide as N(0, 1)."""
    upper, top = np.quantile(z, NULL_QUANTILES)
    low, high = norm.ppf(np.array(NULL_QUANTILES))
    spread = max(1.0, (top - upper) / (high - low))
    return np.asarray((z - min(upper - low * spread, 0)) / spread)


def _means_of_others(scores: Floats, observed: Floats, weights: Floats) -> Floats:
    """Weighted item means without the row itself, ``[n, m]``, drawn to the row's mean by half an answer."""
    total = weights @ scores - weights[:, None] * scores
    count = weights @ observed - weights[:, None] * observed
    whole = total.sum(axis=1, keepdims=True) / np.maximum(count.sum(axis=1, keepdims=True), 1e-9)
    half = 0.5 * float(weights.mean())
    return np.asarray((total + half * whole) / (count + half))


def _correlation(scores: Floats, observed: Floats, means: Floats) -> tuple[Floats, Floats]:
    """Of each row with its consensus over the answered items, and the consensus centred there."""
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    deviation = (means - (means * observed).sum(axis=1, keepdims=True) / count) * observed
    centred = (scores - scores.sum(axis=1, keepdims=True) / count) * observed
    length = np.sqrt((deviation**2).sum(axis=1) * (centred**2).sum(axis=1))
    return (deviation * centred).sum(axis=1) / np.maximum(length, 1e-9), deviation


def _expected_association(
    scores: Floats, observed: Floats, means: Floats, deviation: Floats
) -> tuple[Floats, Floats]:
    """Mean of T, and its standard deviation given the row's accuracy, ``[n]`` each."""
    easiness = logit(np.clip(means, 1e-3, 1 - 1e-3))
    shift = np.zeros((len(scores), 1), dtype=np.float32)
    for _ in range(ROUNDS):
        p = expit(shift + easiness) * observed
        information = p * (1 - p)
        gradient = (scores - p).sum(axis=1, keepdims=True)
        shift += np.clip(gradient / (information.sum(axis=1, keepdims=True) + 0.1), -1, 1)
    centre = (information * deviation).sum(axis=1) / np.maximum(information.sum(axis=1), 1e-9)
    variance = (information * (deviation - centre[:, None]) ** 2).sum(axis=1)
    return (deviation * p).sum(axis=1), np.sqrt(variance)


def _findings(
    responses: ResponseMatrix,
    benchmark: str | None,
    answers: Answers,
    own: Agreement,
    flagged: NDArray[np.bool_],
) -> list[Finding]:
    accuracy = answers.scores.sum(axis=1) / answers.observed.sum(axis=1)
    weak = accuracy < np.quantile(accuracy, FLOOR_QUANTILE) + ABOVE_FLOOR
    order = order_by_position(responses, answers.items)
    alike: dict[tuple[Severity, str], list[int]] = {}
    for row in np.flatnonzero(flagged).tolist():
        better = realigned(answers.scores[row], answers.observed[row], own.consensus[row], order)
        what = _what(weak[row], float(own.share[row]), better)
        severity: Severity = "note" if weak[row] and better is None else "warning"
        alike.setdefault((severity, what), []).append(row)
    return [
        Finding(
            CHECK,
            severity,
            what,
            Named.of(responses.subjects, answers.subjects[rows]),
            benchmark=benchmark,
            figures={
                "highest_correlation": float(own.correlation[rows].max()),
                "highest_share_of_expected": float(own.share[rows].max()),
                "least_accuracy": float(accuracy[rows].min()),
                "greatest_accuracy": float(accuracy[rows].max()),
            },
        )
        for (severity, what), rows in alike.items()
    ]


def _what(weak: bool, share: float, better: str | None) -> str:
    """The statement; every row of a benchmark that it holds for is put under it."""
    if share < -LEAST_SHARE:
        return "answers run against the consensus: reversed scores, or items right for who answers nothing"
    if better is not None:
        return f"item ids are misaligned: the answers fit the consensus if they were {better}"
    if weak:
        return "answers are unrelated to the consensus, at an accuracy as of guessing"
    return "answers are unrelated to the consensus at this accuracy: are the item ids misaligned?"
