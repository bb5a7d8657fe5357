"""Methods under validation: from a source and some answers of each target to the targets' full scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.cohort import CRITERIA
from irteval.drivers.replay import replay
from irteval.estimate.estimator import Sample, ScoreEstimator, Scores
from irteval.estimate.faq import Faq
from irteval.estimate.mean import wilson
from irteval.estimate.registry import ESTIMATORS
from irteval.estimate.result import Estimate
from irteval.responses import ResponseMatrix
from irteval.validation.metrics import HeldOut, full_scores


class Predictor(Protocol):
    """Predicts full scores from a fit of the source."""

    def __call__(
        self, targets: ResponseMatrix, sizes: Sequence[int], seed: int, level: float, /
    ) -> list[HeldOut]:
        """Scores of the targets, one `HeldOut` a size.

        Args:
            targets: responses of the held-out subjects to the items of the source.
            sizes: items asked of each target, each at least 1 and at most the number of items.
            seed: of whatever is drawn.
            level: of the intervals.
        """
        ...


class Method(Protocol):
    """Fits the source, once for all sizes and draws; one more method is one more entry of ``METHODS``."""

    def __call__(self, source: ResponseMatrix, seed: int, /) -> Predictor:
        """Fit the responses of the calibrated subjects; the seed is the fit's."""
        ...


@dataclass(frozen=True)
class Adaptive:
    """A bank of the source, and an adaptive session for each target.

    Attributes:
        criterion: that chooses the items, one of `irteval.cohort.CRITERIA`.
    """

    criterion: str

    def __call__(self, source: ResponseMatrix, seed: int) -> Sessions:
        """See `Method`."""
        return Sessions(fit(source, seed=seed, device="cpu"), self.criterion)


@dataclass(frozen=True)
class Sessions:
    """Adaptive sessions with a bank.

    Each size is replayed apart: a budget cuts the last block short, and what the blocks before a cut would
    have become depends on it.
    """

    bank: ItemBank
    criterion: str

    def __call__(
        self, targets: ResponseMatrix, sizes: Sequence[int], seed: int, level: float
    ) -> list[HeldOut]:
        """See `Predictor`."""
        test = self._test(targets, seed, level)
        return [_collect(targets, test(budget=size)) for size in sizes]

    def until(
        self, targets: ResponseMatrix, half_widths: Sequence[float], seed: int, level: float
    ) -> list[HeldOut]:
        """One `HeldOut` for each half-width, of sessions that stop there."""
        test = self._test(targets, seed, level)
        return [_collect(targets, test(target=width)) for width in half_widths]

    def _test(self, targets: ResponseMatrix, seed: int, level: float) -> partial[list[Estimate]]:
        return partial(replay, self.bank, targets, criterion=self.criterion, level=level, seed=seed)


def _collect(targets: ResponseMatrix, estimates: Sequence[Estimate]) -> HeldOut:
    limits = np.array([estimate.interval for estimate in estimates], dtype=np.float64)
    return HeldOut(
        truth=full_scores(targets),
        score=np.array([estimate.score for estimate in estimates]),
        low=limits[:, 0],
        high=limits[:, 1],
        items=np.array([estimate.items_asked for estimate in estimates], dtype=np.float64),
    )


def random_sample(targets: ResponseMatrix, size: int, seed: int) -> NDArray[np.float64]:
    """Answers to random items, ``[T, N]``, NaN where not asked.

    One order of the items is drawn a seed and holds for every target, size and method, so that methods are
    compared on the same items; a target skips items without a recorded response.
    """
    scores = targets.dense()
    order = np.random.default_rng(seed).permutation(scores.shape[1])
    met = np.cumsum(~np.isnan(scores[:, order]), axis=1)[:, np.argsort(order)]
    return np.where(met <= size, scores, np.nan)


@dataclass(frozen=True)
class Sampled:
    """The same random items for every target, and a score estimator.

    Attributes:
        make: makes the estimator, one of `irteval.estimate.registry.ESTIMATORS`.
    """

    make: Callable[[], ScoreEstimator]

    def __call__(self, source: ResponseMatrix, seed: int) -> Predictor:
        """See `Method`; these fits draw nothing."""
        items = source.shape[1]
        return partial(_from_sample, self.make().fit(source.dense(), np.full(items, 1 / items)))


def _from_sample(
    estimator: ScoreEstimator, targets: ResponseMatrix, sizes: Sequence[int], seed: int, level: float
) -> list[HeldOut]:
    recorded = ~np.isnan(targets.dense())
    found = []
    for size in sizes:
        answers = random_sample(targets, size, seed)
        count = (~np.isnan(answers)).sum(1)
        inclusion = np.where(recorded, (count / recorded.sum(1))[:, None], 0.0)
        found.append(_held_out(targets, estimator.estimate(Sample(answers, inclusion), level), count))
    return found


def faq(source: ResponseMatrix, seed: int) -> Predictor:
    """`irteval.estimate.faq.Faq`, which chooses its own items; its fit is part of every run."""

    def run(targets: ResponseMatrix, sizes: Sequence[int], seed: int, level: float) -> list[HeldOut]:
        runs = Faq().run(source.dense(), targets.dense(), sizes, seed, level)
        count = np.ones(targets.shape[0])
        return [_held_out(targets, scores, size * count) for size, scores in zip(sizes, runs, strict=True)]

    return run


def _held_out(targets: ResponseMatrix, scores: Scores, items: NDArray[np.generic]) -> HeldOut:
    return HeldOut(full_scores(targets), scores.score, scores.low, scores.high, items.astype(np.float64))


def wilson_items(
    truth: NDArray[np.float64], recorded: NDArray[np.int64], half_width: float, level: float
) -> NDArray[np.float64]:
    """Items that a fixed random sample needs for a Wilson interval of this half-width, ``[T]``.

    Args:
        truth: the share of right answers, ``[T]``.
        recorded: the population N of each, ``[T]``.
        half_width: wanted.
        level: of the interval.
    """
    sizes = np.arange(1, int(recorded.max()) + 1)
    capped = np.minimum(sizes, recorded[:, None])
    low, high = wilson(truth[:, None], capped, recorded[:, None], level)
    enough = (high - low) / 2 <= half_width
    return np.asarray(capped[np.arange(len(truth)), enough.argmax(1)], dtype=np.float64)


METHODS: dict[str, Method] = {
    "auto": Adaptive("score"),
    **{name: Sampled(make) for name, make in ESTIMATORS.items()},
    "faq": faq,
}
# Where a criterion has the name of an estimator, the estimator is what papers mean by it.
METHODS |= {name: Adaptive(name) for name in CRITERIA if name not in METHODS and name != "score"}
