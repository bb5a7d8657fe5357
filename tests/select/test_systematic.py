"""Systematic sampling keeps its promises: as many as wanted, none twice, each as often as it should be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irteval.select.systematic import inclusion_probabilities, systematic_draw, uniforms

SIZES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(SIZES, st.data())
def test_probabilities_sum_to_the_count_and_none_exceeds_one(sizes: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(sizes)))
    inclusion = inclusion_probabilities(torch.tensor([sizes]), count)[0]
    assert inclusion.sum().item() == pytest.approx(count, abs=1e-9)
    assert bool(((inclusion > 0) & (inclusion <= 1)).all())
    order = np.argsort(sizes, kind="stable")
    assert (np.diff(inclusion.numpy()[order]) >= -1e-12).all()


def test_probabilities_are_proportional_below_the_cap() -> None:
    size = torch.tensor([[100.0, 1.0, 2.0, 3.0, 4.0, 0.0]])
    expected = torch.tensor([[1, 0.2, 0.4, 0.6, 0.8, 0]]).double()
    torch.testing.assert_close(inclusion_probabilities(size, 3), expected)


def test_the_cap_is_passed_on_until_nobody_is_above_it() -> None:
    # With 4 of 10: 10 is certain, then 4, then the rest share 2.
    inclusion = inclusion_probabilities(torch.tensor([[10.0, 4.0, 1.0, 1.0, 1.0]]), 4)
    torch.testing.assert_close(inclusion, torch.tensor([[1, 1, 2 / 3, 2 / 3, 2 / 3]]).double())


def test_everything_is_certain_when_everything_is_drawn() -> None:
    size = torch.rand(20, 37, generator=torch.Generator().manual_seed(0)).double()
    size[:, 30:] = 0
    inclusion = inclusion_probabilities(size, 30)
    torch.testing.assert_close(inclusion, (size > 0).double())


@settings(max_examples=100, deadline=None)
@given(SIZES, st.integers(0, 2**32 - 1), st.data())
def test_exactly_as_many_and_none_twice(sizes: list[float], cell: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(sizes)))
    size = torch.tensor([[*sizes, 0.0, 0.0]], dtype=torch.float64)
    order = torch.tensor([data.draw(st.permutations(range(len(sizes) + 2)))]).double()
    inclusion = inclusion_probabilities(size, count)
    items = systematic_draw(
        inclusion, order, torch.tensor([(cell + 0.5) / 2**32], dtype=torch.float64), count
    )[0].tolist()
    assert len(set(items)) == count
    assert max(items) < len(sizes)  # never one of size 0
    assert set(torch.nonzero(inclusion[0] >= 1 - 1e-9)[:, 0].tolist()) <= set(items)


def test_draws_come_as_often_as_their_probability() -> None:
    rng = np.random.default_rng(0)
    size, order = torch.as_tensor(rng.gamma(1, size=(1, 40))), torch.as_tensor(rng.random((1, 40)))
    inclusion = inclusion_probabilities(size, 12)
    repeats = 20_000
    start = torch.as_tensor(rng.random(repeats))
    items = systematic_draw(inclusion.expand(repeats, -1), order.expand(repeats, -1), start, 12)
    frequency = np.bincount(items.numpy().ravel(), minlength=40) / repeats
    error = np.sqrt(inclusion[0].numpy() * (1 - inclusion[0].numpy()) / repeats)
    assert (np.abs(frequency - inclusion[0].numpy()) <= 4.5 * error + 1e-12).all()


def test_the_sample_spreads_along_the_order() -> None:
    order = torch.linspace(0, 1, 100).double().expand(50, -1)
    inclusion = torch.full((50, 100), 0.1).double()
    start = torch.rand(50, generator=torch.Generator().manual_seed(0)).double()
    items = systematic_draw(inclusion, order, start, 10)
    assert bool((items // 10 == torch.arange(10)).all())  # one a stratum


def test_uniforms_depend_on_seed_subject_and_step_alone() -> None:
    alone = uniforms(1, ["a"], 2)
    assert uniforms(1, ["b", "a", "c"], 2)[1] == alone[0]
    others = [uniforms(2, ["a"], 2), uniforms(1, ["b"], 2), uniforms(1, ["a"], 3), uniforms(12, ["a"], 2)]
    assert len({float(u) for u in (alone, *others)}) == 5


def test_uniforms_are_uniform_and_independent_between_steps() -> None:
    names = [f"subject {n}" for n in range(4000)]
    first, second = uniforms(0, names, 0).numpy(), uniforms(0, names, 1).numpy()
    counts = np.histogram(first, 20, (0, 1))[0]
    assert ((counts - 200) ** 2 / 200).sum() < 45  # chi squared with 19 degrees of freedom, p = .0007
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(4000)
    assert 0 < first.min() < first.max() < 1
