"""Splits: who is calibrated, and who is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses import ResponseMatrix

SPLITS = ("interpolation", "extrapolation", "newest", "family")
FIXED_SOURCE = ("extrapolation", "newest")  # seeds draw targets and items only: one fit serves all of them


@dataclass(frozen=True)
class Split:
    """Numbers of the source subjects, which are calibrated, and of the targets, which are held out."""

    source: NDArray[np.intp]
    target: NDArray[np.intp]


def make_split(
    responses: ResponseMatrix,
    kind: str,
    seed: int,
    *,
    share: float = 0.25,
    most_targets: int | None = None,
    order: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
) -> Split:
    """Split subjects into source and target.

    ``interpolation`` holds out a random share. ``extrapolation`` takes the bottom half by accuracy as the
    source and targets from the top 30 %. ``newest`` holds out the last share by date, equal dates on one
    side. ``family`` holds out random families, each of them whole.

    Args:
        responses: of all subjects.
        kind: one of ``SPLITS``.
        seed: of the random choices.
        share: held out; extrapolation has shares of its own.
        most_targets: so many of the held-out subjects, at random; all where None.
        order: a sortable date of each subject, for ``newest``; their order in the responses where None.
        families: a family of each subject, for ``family``.

    Raises:
        InputError: an unknown kind, too few subjects, nobody older than the newest, or a single family.
    """
    subjects = responses.shape[0]
    if subjects < 4:
        raise InputError(f"{subjects} subjects, wanted at least 4 to hold some out", field="subject")
    if not 0 < share < 1:
        raise InputError(f"{share:g}, wanted a share between 0 and 1", field="share")
    rng = np.random.default_rng(seed)
    held_out = min(max(1, round(share * subjects)), subjects - 2)
    if kind == "interpolation":
        target = rng.permutation(subjects)[:held_out]
        source = np.setdiff1d(np.arange(subjects), target)
    elif kind == "extrapolation":
        ranked = np.argsort(responses.subject_means(), kind="stable")
        source, target = ranked[: subjects // 2], ranked[-max(1, int(0.3 * subjects)) :]
    elif kind == "newest":
        source, target = _newest(np.arange(subjects) if order is None else np.asarray(order), held_out)
    elif kind == "family":
        if families is None:
            raise InputError("a split by family wants a column of the subjects' table", field="family")
        source, target = _whole_families(np.asarray(families), held_out, rng)
    else:
        raise InputError(f"'{kind}', wanted one of {', '.join(SPLITS)}", field="split")
    if most_targets is not None and len(target) > most_targets:
        target = rng.choice(target, most_targets, replace=False)
    return Split(np.sort(source), np.sort(target))


def _newest(dates: NDArray[np.generic], held_out: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first = np.sort(dates)[-held_out]
    source, target = np.flatnonzero(dates < first), np.flatnonzero(dates >= first)
    if not len(source):
        raise InputError(f"every subject has the date {first}, wanted older ones too", field="order")
    return source, target


def _whole_families(
    families: NDArray[np.str_], held_out: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Random families as long as they fit into the share held out; the smallest family where none does."""
    names, member, sizes = np.unique(families, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise InputError(f"every subject is of the family '{names[0]}', wanted several", field="family")
    chosen: list[int] = []
    room = held_out
    for family in rng.permutation(len(names)):
        if sizes[family] <= room:
            chosen.append(int(family))
            room -= int(sizes[family])
    held = np.isin(member, chosen or [int(sizes.argmin())])
    return np.flatnonzero(~held), np.flatnonzero(held)


def column(responses: ResponseMatrix, name: str, field: str) -> list[str]:
    """A column of the subjects' table as text, one value a subject.

    Args:
        responses: with their table of subjects.
        name: of the column.
        field: what the column is for, named in errors.

    Raises:
        InputError: no such column, or a subject without a value.
    """
    table = responses.subject_table
    if table is None or name not in table.columns:
        there = "no table of subjects" if table is None else f"columns {', '.join(map(str, table.columns))}"
        raise InputError(f"no column '{name}' about the subjects, found {there}", field=field)
    values = table[name]
    empty = np.flatnonzero(values.isna().to_numpy())
    if len(empty):
        who = responses.subjects[int(empty[0])]
        raise InputError(f"subject '{who}' and {len(empty) - 1} others have no '{name}'", field=field)
    if pd.api.types.is_numeric_dtype(values):
        # As text of one length, so that 9 comes before 10.
        rank = np.unique(values.to_numpy(), return_inverse=True)[1]
        return [f"{place:09d}" for place in rank]
    return [str(value) for value in values]
