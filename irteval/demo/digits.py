"""A benchmark that every installation carries: half of scikit-learn's handwritten digits, 900 images.

An item is one held-out image and a response is 1 where a classifier names its digit. The classifiers are
trained here, on the other half, so every number of the demo is a measurement and none is simulated.
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
        test_images=images[test],
        test_labels=labels[test].astype(np.int64),
        items=tuple(f"image-{index:04d}" for index in test),
    )


def responses(digits: Digits, predictions: dict[str, NDArray[np.int64]]) -> ResponseMatrix:
    """Mark the digits that each subject named, ``{subject: [J]}``, as a response matrix of 0 and 1."""
    named = np.stack(list(predictions.values()))
    return ResponseMatrix.from_dense(
        (named == digits.test_labels).astype(np.float64),
        subjects=list(predictions),
        items=list(digits.items),
        benchmarks=[BENCHMARK] * len(digits.items),
    )
