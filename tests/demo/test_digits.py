from __future__ import annotations

import numpy as np

from irteval.demo import digits


def test_no_image_is_learnt_from_and_asked(images):
    assert len(images.items) == len(set(images.items)) == 900
    seen = {image.tobytes() for image in images.train_images}
    assert not seen & {image.tobytes() for image in images.test_images}
    assert np.bincount(images.test_labels).min() >= 85


def test_responses_are_right_or_wrong_and_none_is_missing(population):
    assert population.cells == 200 * 900
    assert set(np.unique(population.dense())) == {0.0, 1.0}
    assert set(population.benchmarks) == {digits.BENCHMARK}
