from __future__ import annotations

import pytest

from irteval.demo import digits
from irteval.demo.newcomers import train_network
from irteval.demo.population import train_population


@pytest.fixture(scope="session")
def images():
    return digits.load(seed=0)


@pytest.fixture(scope="session")
def population(images):
    return digits.responses(images, train_population(images, seed=0))


@pytest.fixture(scope="session")
def network(images):
    return train_network(images, seed=0)
