"""The calibrated subjects of the demo: small classifiers of many families, none of them very good.

Each is drawn at random: the settings of its family, how many images it learns from, which pixels it sees, and
how many of its labels are wrong. None learns from more than 400 of the 897 training images, so that the new
subjects can be better than all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from irteval.demo.digits import DIGITS, SIDE, Digits

SUBJECTS_PER_FAMILY = 10
TRAINING_IMAGES = (20, 400)  # least and most, log-uniform between
PIXELS_SEEN = (0.2, 1.0)  # share of the 64, uniform
WRONG_LABELS = (0.0, 0.2)  # share, uniform


def _between(rng: Generator, low: float, high: float) -> float:
    """Log-uniform between two positive numbers."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _whole(rng: Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(rng.integers(low, high + 1))


def _seed(rng: Generator) -> int:
    return int(rng.integers(2**31))


# One line a family: what is drawn is what changes the mistakes that it makes.
FAMILIES: dict[str, Callable[[Generator], Any]] = {
    "logistic": lambda rng: LogisticRegression(C=_between(rng, 0.03, 10), max_iter=200),
    "ridge": lambda rng: RidgeClassifier(alpha=_between(rng, 0.01, 100)),
    "sgd": lambda rng: SGDClassifier(alpha=_between(rng, 1e-5, 0.1), max_iter=20, random_state=_seed(rng)),
    "perceptron": lambda rng: Perceptron(max_iter=_whole(rng, 1, 10), random_state=_seed(rng)),
    "linear-svm": lambda rng: LinearSVC(C=_between(rng, 0.001, 10), random_state=_seed(rng)),
    "rbf-svm": lambda rng: SVC(C=_between(rng, 0.5, 10), gamma=_between(rng, 0.02, 0.5)),
    "poly-svm": lambda rng: SVC(C=_between(rng, 0.3, 10), kernel="poly", degree=_whole(rng, 2, 5)),
    "neighbours": lambda rng: KNeighborsClassifier(_whole(rng, 1, 11), p=_whole(rng, 1, 2)),
    "centroid": lambda rng: NearestCentroid(metric=str(rng.choice(["euclidean", "manhattan"]))),
    "tree": lambda rng: DecisionTreeClassifier(max_depth=_whole(rng, 3, 11), random_state=_seed(rng)),
    "random-tree": lambda rng: ExtraTreeClassifier(
        min_samples_leaf=_whole(rng, 1, 5), random_state=_seed(rng)
    ),
    "forest": lambda rng: RandomForestClassifier(_whole(rng, 2, 24), random_state=_seed(rng)),
    "extra-trees": lambda rng: ExtraTreesClassifier(_whole(rng, 2, 24), random_state=_seed(rng)),
    "boosted-stumps": lambda rng: AdaBoostClassifier(
        n_estimators=_whole(rng, 5, 39), random_state=_seed(rng)
    ),
    "gaussian-bayes": lambda rng: GaussianNB(var_smoothing=_between(rng, 1e-6, 0.1)),
    "bernoulli-bayes": lambda rng: BernoulliNB(alpha=_between(rng, 0.01, 3), binarize=rng.uniform(0.1, 0.8)),
    "multinomial-bayes": lambda rng: MultinomialNB(alpha=_between(rng, 0.01, 3)),
    "lda": lambda rng: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=rng.uniform(0.01, 0.9)),
    "qda": lambda rng: QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=rng.uniform(0.2, 0.9)),
    "network": lambda rng: MLPClassifier(
        _whole(rng, 4, 47), learning_rate_init=0.01, max_iter=_whole(rng, 20, 120), random_state=_seed(rng)
    ),
}


def train_population(
    digits: Digits, seed: int, progress: Callable[[str], None] | None = None
) -> dict[str, NDArray[np.int64]]:
    """Train ten classifiers of each family and let each name every item's digit.

    Args:
        digits: the images.
        seed: seed of the drawing and of the training.
        progress: called with a line for each family.

    Returns:
        The digits that each subject named, ``{"tree-03": [J], …}``.
    """
    predictions: dict[str, NDArray[np.int64]] = {}
    streams = np.random.SeedSequence(seed).spawn(len(FAMILIES))
    for (family, draw), stream in zip(FAMILIES.items(), streams, strict=True):
        if progress is not None:
            progress(f"training {SUBJECTS_PER_FAMILY} classifiers: {family}")
        rng = np.random.default_rng(stream)
        for number in range(SUBJECTS_PER_FAMILY):
            predictions[f"{family}-{number:02d}"] = _train_one(digits, draw(rng), rng)
    return predictions


def _train_one(digits: Digits, classifier: Any, rng: Generator) -> NDArray[np.int64]:
    """Give the classifier its images, pixels and labels; return what it names on the items, ``[J]``."""
    chosen = _training_sample(digits.train_labels, int(_between(rng, *TRAINING_IMAGES)), rng)
    pixels = rng.permutation(SIDE * SIDE)[: int(rng.uniform(*PIXELS_SEEN) * SIDE * SIDE)]
    labels = digits.train_labels[chosen].copy()
    # The first two of each digit keep their labels: a class without examples is an error to some learners.
    wrong = rng.random(len(chosen)) < rng.uniform(*WRONG_LABELS)
    wrong[: 2 * DIGITS] = False
    labels[wrong] = rng.integers(DIGITS, size=int(wrong.sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # stopped early, constant pixels: both meant
        classifier.fit(digits.train_images[np.ix_(chosen, pixels)], labels)
    named: NDArray[np.int64] = classifier.predict(digits.test_images[:, pixels])
    return named


def _training_sample(labels: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.intp]:
    """Positions of ``size`` images drawn without replacement, the first twenty being two of each digit."""
    order = rng.permutation(len(labels))
    rank = np.zeros(len(labels), dtype=np.intp)  # how many of the same digit came before
    for digit in range(DIGITS):
        same = order[labels[order] == digit]
        rank[same] = np.arange(len(same))
    return order[np.argsort(rank[order] >= 2, kind="stable")][:size]
