"""The same item under another prompt: reported, for the answers may be to another question.

Few-shot examples that are drawn as the run goes, another chat template or a new version of a task change
what is sent, under the same document. Compared is, within a variant, each prompt's hash with that of most
other answers to the item.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irteval.responses.logs.observations import Observations
from irteval.responses.policies.metrics import listed


def differing_prompts(observations: Observations) -> list[str]:
    """A note for each benchmark in which some subjects were asked by other prompts than most."""
    prompt = observations.columns.get("prompt")
    if prompt is None or np.bincount(observations.item, minlength=1).max() <= 1:
        return []
    known = np.flatnonzero(prompt != 0)
    asked = (
        observations.item[known].astype(np.int64) * len(observations.variants) + observations.variant[known]
    )
    differs = known[prompt[known] != _most_common(asked, prompt[known])]
    notes = []
    benchmark = observations.items.benchmark[observations.item[differs]]
    for b in np.unique(benchmark):
        here = differs[benchmark == b]
        subjects = np.unique(observations.subject_of_run[observations.run[here]])
        names = [observations.subjects[subject] for subject in subjects]
        benchmark_name = observations.items.benchmarks[b] or "all records"
        count = len(np.unique(observations.item[here]))
        notes.append(
            f"{benchmark_name}: {count} items were put to {listed(names)} by another prompt than to most"
        )
    return notes


def _most_common(group: NDArray[np.int64], value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """For each row the value that most rows of its group have; of a tie, the smallest."""
    order = np.lexsort((value, group))
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (np.diff(group[order]) != 0) | (value[order][1:] != value[order][:-1])
    first = np.flatnonzero(starts)
    counts = np.diff(first, append=len(order))
    # Of each group the first of its values with the most rows.
    groups = group[order][first]
    best = np.lexsort((-counts, groups))
    opening = np.flatnonzero(np.diff(groups[best], prepend=-1))
    sizes = np.diff(opening, append=len(best))
    winners = value[order][first][best[opening]]
    rows = np.add.reduceat(counts, np.concatenate(([0], np.cumsum(sizes)[:-1]))) if len(sizes) else sizes
    common = np.empty_like(value)
    common[order] = np.repeat(winners, rows)
    return common
