"""Methods under validation: from a source and some answers of each target to the targets' full scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from irteval.calibrate.fit import fit
from irteval.cohort import CRITERIA
from irteval.drivers.replay import replay
from irteval.estimate.result import Estimate
from irteval.responses import ResponseMatrix
from irteval.validation.metrics import HeldOut, full_scores


class Method(Protocol):
    """Predicts full scores; one more is one more entry of ``METHODS``."""

    def __call__(
        self,
        source: ResponseMatrix,
        targets: ResponseMatrix,
        sizes: Sequence[int],
        seed: int,
        level: float,
        /,
    ) -> list[HeldOut]:
        """Scores of the targets, one `HeldOut` a size; the source is fitted once for all of them.

        Args:
            source: responses of the calibrated subjects.
            targets: responses of the held-out ones to the same items.
            sizes: items asked of each target, each at least 1 and at most the number of items.
            seed: of whatever is drawn.
            level: of the intervals.
        """
        ...


@dataclass(frozen=True)
class Adaptive:
    """A bank of the source, and an adaptive session for each target.

    Attributes:
        criterion: that chooses the items, one of `irteval.cohort.CRITERIA`.
    """

    criterion: str

    def __call__(
        self,
        source: ResponseMatrix,
        targets: ResponseMatrix,
        sizes: Sequence[int],
        seed: int,
        level: float,
        half_widths: Sequence[float] = (),
    ) -> list[HeldOut]:
        """See `Method`; then one more `HeldOut` for each half-width, of sessions that stop there.

        Each size is replayed apart: a budget cuts the last block short, and what the blocks before a cut
        would have become depends on it.
        """
        bank = fit(source, seed=seed, device="cpu")
        test = partial(replay, bank, targets, criterion=self.criterion, level=level, seed=seed)
        return [
            *(_collect(targets, test(budget=size)) for size in sizes),
            *(_collect(targets, test(target=width)) for width in half_widths),
        ]


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


def random_mean(
    source: ResponseMatrix, targets: ResponseMatrix, sizes: Sequence[int], seed: int, level: float
) -> list[HeldOut]:
    """The control: the mean over random items, with Wilson's interval for a finite population."""
    recorded = targets.subject_counts()
    found = []
    for size in sizes:
        sample = random_sample(targets, size, seed)
        count = (~np.isnan(sample)).sum(1)
        mean = np.nanmean(sample, axis=1)
        low, high = wilson(mean, count, recorded, level)
        found.append(HeldOut(full_scores(targets), mean, low, high, count.astype(np.float64)))
    return found


def wilson(
    mean: NDArray[np.float64],
    count: NDArray[np.int64],
    population: int | NDArray[np.int64],
    level: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's (1927) score interval, ``[T]`` each, with the number of answers scaled up for a finite
    population.

    Drawing n of N without replacement has (N - n) / (N - 1) of the variance, as if n were that much larger.
    """
    n = count * np.maximum(population - 1, 1) / np.maximum(population - count, 1e-12)
    z = ndtri((1 + level) / 2)
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * np.sqrt(mean * (1 - mean) / n + z**2 / (4 * n**2))
    return np.clip(centre - half_width, 0, 1), np.clip(centre + half_width, 0, 1)


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
    "random": random_mean,
    **{name: Adaptive(name) for name in CRITERIA if name not in ("score", "random")},
}
