"""The few-shot draw of lm-eval, replayed: a document gets the examples that it gets in a full run.

lm-eval draws examples document by document from one generator, so the prompt of a document depends on how
many were drawn before it. ``Random.sample(range(n), k)`` consumes a generator as ``Random.sample(rows, k)``
does: the draws of a whole task are replayed as indices, in milliseconds, and each document is given its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any


class DrawnExamples:
    """Stands in for the generator of a sampler, for one document.

    Args:
        draws: indices of each call of ``sample`` that the document makes.
    """

    def __init__(self, draws: Sequence[Sequence[int]]) -> None:
        self._draws = iter(draws)

    def sample(self, population: Sequence[Any], k: int) -> list[Any]:
        """The rows that a full run draws for this document."""
        drawn = next(self._draws)
        assert len(drawn) == k
        return [population[index] for index in drawn]


def replay_draws(
    rows: Sequence[Any], docs: Sequence[Any], shots: int, seed: int, *, leaves_out: bool
) -> list[list[list[int]]]:
    """The draws of every document of a task, in the order in which a full run makes them.

    Args:
        rows: what examples are drawn from.
        docs: the task's documents.
        shots: examples a document.
        seed: of the generator.
        leaves_out: whether a document is kept out of its own examples: one more is drawn then, and where
            copies of the document leave too few, all are drawn again from the other rows.
    """
    generator, indices = Random(seed), range(len(rows))
    if not leaves_out:
        return [[generator.sample(indices, shots)] for _ in docs]
    draws = []
    for doc in docs:
        first = generator.sample(indices, shots + 1)
        kept = [index for index in first if rows[index] != doc]
        if len(kept) >= shots:
            draws.append([first])
            continue
        others = [index for index in indices if rows[index] != doc]
        # Drawn from the list of other rows: its places, not theirs.
        draws.append([first, generator.sample(range(len(others)), shots)])
    return draws
