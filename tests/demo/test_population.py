from __future__ import annotations

import numpy as np

from irteval.demo import digits
from irteval.demo.population import FAMILIES, SUBJECTS_PER_FAMILY, train_population


def test_the_calibrated_subjects_are_many_and_varied(population):
    assert len(population.subjects) == len(FAMILIES) * SUBJECTS_PER_FAMILY >= 150
    scores = population.subject_means()
    assert scores.min() < 0.2
    assert scores.max() > 0.85
    assert np.std(scores) > 0.15
    assert len(np.unique(population.dense(), axis=0)) == len(population.subjects)


def test_the_seed_decides_every_answer(images, population):
    again = digits.responses(images, train_population(images, seed=0))
    np.testing.assert_array_equal(again.dense(), population.dense())
    other = digits.responses(images, train_population(images, seed=1))
    assert (other.dense() != population.dense()).any()
