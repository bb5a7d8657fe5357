from __future__ import annotations

import numpy as np

from irteval.demo.newcomers import train_network, train_stronger


def share_right(images, named) -> float:
    return float(np.mean(named == images.test_labels))


def test_the_network_rises_from_chance(images, network):
    scores = [share_right(images, named) for named in network.values()]
    assert scores[0] < 0.2
    assert scores[-1] > 0.8
    assert sum(0.2 < score < 0.8 for score in scores) >= 4


def test_two_new_subjects_are_better_than_every_calibrated_one(images, population):
    stronger = train_stronger(images, seed=0)
    assert len(stronger) == 2
    assert min(share_right(images, named) for named in stronger.values()) > population.subject_means().max()


def test_the_seed_decides_every_checkpoint(images, network):
    for step, named in train_network(images, seed=0).items():
        np.testing.assert_array_equal(named, network[step])
