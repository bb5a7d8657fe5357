"""A benchmark that every installation carries: 900 of scikit-learn's handwritten digits, clean to ambiguous.

An item is a held-out image through which another one shines, faintly or almost as strongly: like the items of
a real benchmark, they range from easy to hardly fair. A response is 1 where a classifier names the stronger
digit. The classifiers are trained here, on the other half of the images, so every number of the demo is a
measurement and none is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from irteval.responses.matrix import ResponseMatrix

BENCHMARK = "digits"
ITEMS = 900
DIGITS = 10
SIDE = 8  # pixels
MOST_BLENDED = 0.45  # share of the other image in the hardest item


@dataclass(frozen=True, eq=False)
class Digits:
    """Images to learn from and images to be tested on.

    Attributes:
        train_images, train_labels: ``[M, 64]`` grey values in [0, 1] and their digits ``[M]``.
        test_images, test_labels: the same for the items, ``[J, 64]`` and ``[J]``.
        items: ids of the test images, their positions in scikit-learn's data set.
    """

    train_images: NDArray[np.float64]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float64]
    test_labels: NDArray[np.int64]
    items: tuple[str, ...]


def load(seed: int) -> Digits:
    """Split scikit-learn's 1,797 digits into 900 items and 897 training images, digit by digit."""
    images, labels = load_digits(return_X_y=True)
    images = images / images.max()
    train, test = train_test_split(
        np.arange(len(labels)), test_size=ITEMS, stratify=labels, random_state=seed
    )
    test = np.sort(test)
    return Digits(
        train_images=images[train],
        train_labels=labels[train].astype(np.int64),
        test_images=_blend(images[test], np.random.default_rng(seed)),
        test_labels=labels[test].astype(np.int64),
        items=tuple(f"image-{index:04d}" for index in test),
    )


def _blend(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Let another image of the set shine through each, its share uniform from none to almost half."""
    share = rng.uniform(0, MOST_BLENDED, size=(len(images), 1))
    blended: NDArray[np.float64] = (1 - share) * images + share * rng.permutation(images)
    return blended


def responses(digits: Digits, predictions: dict[str, NDArray[np.int64]]) -> ResponseMatrix:
    """Mark the digits that each subject named, ``{subject: [J]}``, as a response matrix of 0 and 1."""
    named = np.stack(list(predictions.values()))
    return ResponseMatrix.from_dense(
        (named == digits.test_labels).astype(np.float64),
        subjects=list(predictions),
        items=list(digits.items),
        benchmarks=[BENCHMARK] * len(digits.items),
    )
