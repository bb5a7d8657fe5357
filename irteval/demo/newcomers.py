"""The new subjects of the demo: a network while it learns, and two classifiers better than any calibrated.

A bank meets both in practice. The checkpoints of one training run rise through the whole range of scores, the
first of them at chance; a subject better than all before is where most predictions of a score break down.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, VotingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import nn

from irteval.calibrate.threads import threads_for
from irteval.demo.digits import DIGITS, SIDE, Digits

CHECKPOINTS = (0, 5, 10, 15, 20, 25, 30, 40, 60, 80, 120, 180, 270, 400)  # optimiser steps
BATCH = 32
LEARNING_RATE = 0.01


def train_network(digits: Digits, seed: int) -> dict[int, NDArray[np.int64]]:
    """Train a small convolutional network by plain SGD and test it as it learns.

    Args:
        digits: the images.
        seed: seed of the initial weights and of the batches.

    Returns:
        The digits that each checkpoint named, ``{optimiser steps: [J]}``.
    """
    generator = torch.Generator().manual_seed(seed)
    network = _network(generator)
    optimiser = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=0.9)
    images, labels = _pictures(digits.train_images), torch.from_numpy(digits.train_labels)
    test_images = _pictures(digits.test_images)
    named = {}
    with threads_for(test_images.numel()):
        for step in range(CHECKPOINTS[-1] + 1):
            if step in CHECKPOINTS:
                with torch.no_grad():
                    named[step] = network(test_images).argmax(dim=1).numpy()
            batch = torch.randint(len(labels), (BATCH,), generator=generator)
            loss = nn.functional.cross_entropy(network(images[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return named


def train_stronger(digits: Digits, seed: int) -> dict[str, NDArray[np.int64]]:
    """Train two classifiers on every training image, several times what any calibrated subject saw.

    Args:
        digits: the images.
        seed: seed of the ensemble's trees.

    Returns:
        The digits that each subject named, ``{subject: [J]}``.
    """
    kernel = SVC(C=10, gamma=0.2)
    ensemble = VotingClassifier(
        [
            ("svm", SVC(C=10, gamma=0.3)),
            ("neighbours", KNeighborsClassifier(3)),
            ("trees", ExtraTreesClassifier(200, random_state=seed)),
        ]
    )
    return {
        name: classifier.fit(digits.train_images, digits.train_labels).predict(digits.test_images)
        for name, classifier in (("better-svm", kernel), ("better-ensemble", ensemble))
    }


def _network(generator: torch.Generator) -> nn.Sequential:
    """Two convolutions and a linear layer, about 6,000 weights, initialised from the generator."""
    network = nn.Sequential(
        nn.Conv2d(1, 8, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(SIDE * SIDE * 4, DIGITS),
    )
    for weight in network.parameters():
        if weight.ndim > 1:
            nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator)
        else:
            nn.init.zeros_(weight)
    return network


def _pictures(images: NDArray[np.float64]) -> torch.Tensor:
    """Rows of 64 grey values as ``[M, 1, 8, 8]``, single precision."""
    return torch.from_numpy(images.astype(np.float32)).reshape(-1, 1, SIDE, SIDE)
