"""From records to observations: names, items, one metric and filter, and scores as shares in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.collect import Collected
from irteval.responses.logs.items import Items, identify
from irteval.responses.logs.observations import Observations
from irteval.responses.logs.records import STATUS
from irteval.responses.logs.select import Selection, select
from irteval.responses.policies.chance import undo_correction
from irteval.responses.policies.metrics import ALL
from irteval.responses.policies.score_values import State
from irteval.responses.policies.subjects import subject_names
from irteval.responses.policies.versions import benchmark_names

T = TypeVar("T", bound=np.generic)
Scale: TypeAlias = Literal["share", "percent"]

# Means and sums of floats may miss 0 and 1 by this much.
_SLACK = 1e-9
# What a score that is no number is called in the table.
_STATUS_OF_STATE = {
    State.ABSENT: STATUS["unscored"],
    State.MISSING: STATUS["missing"],
    State.NOT_SCALAR: STATUS["non_scalar"],
    State.NEEDS_KEY: STATUS["non_scalar"],
    State.UNREADABLE: STATUS["unreadable"],
    State.UNSCORED: STATUS["unscored"],
}


@dataclass(frozen=True)
class Choice:
    """What was chosen: records left out by reason, and what a person should be told."""

    left_out: Mapping[str, int]
    notes: tuple[str, ...]


def choose(
    records: Collected,
    *,
    metric: str | None,
    filter: str | None,
    scale: Scale,
    chance: float | None,
    aliases: Mapping[str, str],
) -> tuple[Observations, Choice]:
    """The observations of the chosen metric and filter; options as in :func:`irteval.import_logs`.

    Raises:
        InputError: a choice that the records leave no answer to, or a score of the chosen metric that is text
            or beyond [0, 1], with its place.
    """
    subjects, about_subjects = subject_names(records.runs, aliases)
    names, about_versions = benchmark_names(records.runs)
    benchmarks, benchmark_of_run = _codes(names)
    items, item, about_items = identify(records, benchmarks, benchmark_of_run)
    selection = select(records, benchmarks, benchmark_of_run, metric=metric, filter=filter)
    observations = _observations(records, items, item, selection, subjects)
    observations, about_scores = _shares(records, selection, observations, metric, scale, chance)
    notes = (*about_subjects, *about_versions, *about_items, *selection.notes, *about_scores)
    return observations, Choice(selection.left_out, notes)


def _codes(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Distinct names in order, and which one each is."""
    distinct = sorted(set(names))
    position = {name: k for k, name in enumerate(distinct)}
    return tuple(distinct), np.array([position[name] for name in names], dtype=np.int32)


def _observations(
    records: Collected,
    items: Items,
    item: NDArray[np.int32],
    selection: Selection,
    subjects: Sequence[str],
) -> Observations:
    """The chosen rows; their scores are still as the log has them."""
    row = selection.row
    # Where all rows are chosen their columns need no second place in memory.
    every = len(row) == len(records) and bool((row == np.arange(len(row))).all())

    def of(column: NDArray[T]) -> NDArray[T]:
        return column if every else column[row]

    run = of(records.run)
    names, subject_of_run = _codes(subjects)
    variants, variant_of_run = _codes([r.variant for r in records.runs])
    score, status = np.full(len(row), np.nan), np.array(of(records.status))
    for position, scores in enumerate(records.scores.values()):
        here = np.flatnonzero(selection.metric == position)
        state, own = scores.states[row[here]], status[here]
        score[here] = scores.numbers[row[here]]
        for known, code in _STATUS_OF_STATE.items():
            own[(state == known) & (own == STATUS["ok"])] = code
        # A score that is there counts, whatever else happened to the answer.
        own[state == State.NUMBER] = STATUS["ok"]
        status[here] = own
    status[(selection.metric < 0) & (status == STATUS["ok"])] = STATUS["unscored"]
    return Observations(
        subjects=names,
        subject_of_run=subject_of_run,
        items=items,
        item=of(item),
        variants=variants,
        variant_of_run=variant_of_run,
        metrics=selection.names,
        metric=selection.metric,
        filters=selection.filters,
        filter=of(selection.filter),
        runs=records.runs,
        run=run,
        score=score,
        status=status,
        record=row,
        line=of(records.line),
        columns={name: of(column) for name, column in records.columns.items() if name != "content"},
    )


def _shares(
    records: Collected,
    selection: Selection,
    observations: Observations,
    metric: str | None,
    scale: Scale,
    chance: float | None,
) -> tuple[Observations, list[str]]:
    """Scores as shares in [0, 1]; what is none is refused, or with every metric marked and counted."""
    score, status = observations.score, observations.status
    notes = []
    if scale == "percent":
        score = score / 100
        notes.append("scores are percentages: read as hundredths")
    if chance is not None:
        score = undo_correction(score, chance)
        notes.append(f"scores were corrected for guessing at rate {chance:g}: undone")
    beyond = (score < -_SLACK) | (score > 1 + _SLACK)
    if metric != ALL:
        _refuse(records, selection, observations, score, beyond)
    elif beyond.any():
        status = np.where(beyond, STATUS["out_of_range"], status).astype(np.int8)
        score = np.where(beyond, np.nan, score)
        notes.append(f"{int(beyond.sum())} values are no shares in [0, 1] and have no score")
    if lists := int((status == STATUS["non_scalar"]).sum()):
        notes.append(f"{lists} values are lists or objects, not one number, and have no score")
    return replace(observations, score=np.clip(score, 0, 1, out=score), status=status), notes


def _refuse(
    records: Collected,
    selection: Selection,
    observations: Observations,
    score: NDArray[np.float64],
    beyond: NDArray[np.bool_],
) -> None:
    unreadable = observations.status == STATUS["unreadable"]
    bad = beyond | unreadable
    if not bad.any():
        return
    position = int(np.argmax(bad))
    name = selection.names[selection.metric[position]]
    file, line = observations.place(position)
    if unreadable[position]:
        found = f"'{records.scores[name].unreadable}'"
        wanted = "a number, a truth value or a grade C, I, P, N"
    else:
        found, wanted = f"score {score[position]:g}", "a share in [0, 1]"
        here = observations.metric == observations.metric[position]
        low, high = np.nanmin(score[here]), np.nanmax(score[here])
        if low >= 0 and 1 < high <= 100:
            wanted += "; percentages are read with --scale percent"
        elif low < 0 and high <= 1:
            wanted += "; a correction for guessing is undone with --chance RATE"
    raise InputError(f"{found}, wanted {wanted}", file=file, line=line, field=name)
