"""The same subject on the same item more than once: copies, re-runs and trials are different things.

- **Equal copies** are one observation that was written twice: an answer with the harness's own id met
  again, the same trial of the same run twice, or rows of one run that nothing tells apart and that agree in
  every cell of the file.
- **Re-runs** are observations of different runs.
- **Trials** are repetitions within a run: numbered ones (epochs), or rows of one run that nothing tells
  apart and that do not all agree.

Copies count once under every policy. The rest is settled by it: ``trials`` makes it k of n, ``mean`` the
mean, ``newest`` and ``oldest`` take one run by its date (of rows in one run that are not numbered, the last
or first), and ``error`` refuses. Two subjects under one name are told apart before, by their revisions and
weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError
from irteval.responses.logs.observations import Observations
from irteval.responses.logs.records import moment_of

Repeats: TypeAlias = Literal["trials", "mean", "newest", "oldest", "error"]
_COUNTED = 1e-6


@dataclass(frozen=True)
class RepeatCounts:
    """What was found: copies left out, and cells that were run again or have several trials in a run."""

    equal_copies: int
    cells_repeated: int
    cells_rerun: int
    cells_with_trials: int


def settle_repeats(
    observations: Observations, policy: Repeats | None
) -> tuple[Observations, RepeatCounts, list[str]]:
    """One observation a cell by this policy, or with None every observation but the copies.

    Raises:
        InputError: one trial of one run has two scores, or the policy is ``error`` and a cell is there twice.
    """
    key = observations.cells()
    if _all_different(key):
        return observations, RepeatCounts(0, 0, 0, 0), []
    observations, copies = _drop_copies(observations, key)
    key = observations.cells()
    order = _in_order(observations, key)
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    counts = _count(observations, order, starts, sizes, copies)
    notes = _notes(counts, policy)
    if policy is None or len(starts) == len(order):
        return observations, counts, notes
    if policy == "error":
        raise _repeated(observations, order, int(starts[np.argmax(sizes > 1)]))
    if policy in ("newest", "oldest"):
        observations = observations.take(
            _one_run(observations, key, order, starts, newest=policy == "newest")
        )
        key = observations.cells()
        order = _in_order(observations, key)
    return _averaged(observations, key, order, as_trials=policy != "mean"), counts, notes


def _column(observations: Observations, name: str, otherwise: int = 0) -> NDArray[Any]:
    column = observations.columns.get(name)
    return np.full(len(observations), otherwise, dtype=np.int32) if column is None else column


def _moment(observations: Observations) -> NDArray[np.float64]:
    """[L] when each was observed, else when its run began; what has no time comes before all that has."""
    begun = np.array([moment_of(run.time) for run in observations.runs], dtype=np.float64)
    moment = begun[observations.run]
    own = observations.columns.get("moment")
    if own is not None:
        moment = np.where(np.isnan(own), moment, own)
    return np.where(np.isnan(moment), -np.inf, moment)


def _in_order(observations: Observations, key: NDArray[np.int64]) -> NDArray[np.int64]:
    """By cell, then from the oldest to the newest; of the same time in the order they were read."""
    trial = _column(observations, "trial")
    return np.lexsort((observations.line, trial, observations.run, _moment(observations), key))


def _all_different(key: NDArray[np.int64]) -> bool:
    in_order = np.sort(key)
    return bool((in_order[1:] > in_order[:-1]).all())


def _drop_copies(observations: Observations, key: NDArray[np.int64]) -> tuple[Observations, int]:
    copy = _met_again(observations, key) if "record" in observations.columns else np.zeros(len(key), np.bool_)
    kept = np.flatnonzero(~copy)
    copy[kept[_written_again(observations.take(kept), key[kept])]] = True
    return (observations.take(np.flatnonzero(~copy)), int(copy.sum())) if copy.any() else (observations, 0)


def _met_again(observations: Observations, key: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[L] whether an answer with the harness's own id is one that was met before, with the same score."""
    record = observations.columns["record"]
    order = np.lexsort((observations.run, record, key))
    same = (np.diff(key[order]) == 0) & (record[order][1:] == record[order][:-1]) & (record[order][1:] != 0)
    again = np.zeros(len(key), dtype=np.bool_)
    again[order[1:][same & _equal(observations, order)]] = True
    return again


def _written_again(observations: Observations, key: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[L] whether an observation repeats another one of its run that nothing tells apart from it.

    Those without a number are copies where all such rows of their file agree, else trials.
    """
    trial, moment = _column(observations, "trial"), _moment(observations)
    order = np.lexsort((observations.line, moment, trial, observations.run, key))
    same = np.ones(len(order) - 1, dtype=np.bool_)
    for column in (key, observations.run, trial, moment):
        same &= column[order][1:] == column[order][:-1]
    equal = _equal(observations, order)
    numbered = trial[order][1:] > 0
    contradicts = same & numbered & ~equal
    if contradicts.any():
        raise _contradiction(observations, order, int(np.argmax(contradicts)))
    files = {run.file: k for k, run in enumerate(observations.runs)}
    file = np.array([files[run.file] for run in observations.runs], dtype=np.int64)[
        observations.run[order[1:]]
    ]
    disagree = np.zeros(len(observations.runs), dtype=np.bool_)
    disagree[file[same & ~equal]] = True
    again = np.zeros(len(order), dtype=np.bool_)
    again[order[1:][same & equal & (numbered | ~disagree[file])]] = True
    return again


def _equal(observations: Observations, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each observation equals the one before it in this order."""
    score, status = observations.score[order], observations.status[order]
    same = (score[1:] == score[:-1]) | (np.isnan(score[1:]) & np.isnan(score[:-1]))
    return np.asarray(same & (status[1:] == status[:-1]))


def _count(
    observations: Observations,
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    copies: int,
) -> RepeatCounts:
    if len(starts) == len(order):
        return RepeatCounts(copies, 0, 0, 0)
    run = observations.run[order]
    another = np.diff(run, prepend=-1) != 0
    another[starts] = False
    runs = np.add.reduceat(another, starts) + 1
    return RepeatCounts(copies, int((sizes > 1).sum()), int((runs > 1).sum()), int((sizes > runs).sum()))


def _notes(counts: RepeatCounts, policy: Repeats | None) -> list[str]:
    notes = []
    if counts.equal_copies:
        notes.append(f"{counts.equal_copies} records are equal copies of another one and count once")
    if counts.cells_repeated:
        what = {
            None: "all are kept, a row each",
            "trials": "each is k of n trials",
            "mean": "each is the mean",
            "newest": "the newest run counts",
            "oldest": "the oldest run counts",
            "error": "",
        }[policy]
        notes.append(
            f"{counts.cells_repeated} cells were observed more than once ({counts.cells_rerun} in several "
            f"runs, {counts.cells_with_trials} several times within a run): {what} (--repeats)"
        )
    return notes


def _one_run(
    observations: Observations,
    key: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    *,
    newest: bool,
) -> NDArray[np.int64]:
    """Positions of the observations of one run a cell, of the scored ones where there are any."""
    scored = np.logical_or.reduceat(~np.isnan(observations.score[order]), starts)
    sizes = np.diff(starts, append=len(order))
    fit = ~np.isnan(observations.score[order]) | ~np.repeat(scored, sizes)
    order = order[fit]
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    at = starts + sizes - 1 if newest else starts
    best = np.repeat(order[at], sizes)
    numbered = _column(observations, "trial")[order] > 0
    kept = (observations.run[order] == observations.run[best]) & (numbered | (order == best))
    return np.asarray(order[kept])


def _averaged(
    observations: Observations, key: NDArray[np.int64], order: NDArray[np.int64], *, as_trials: bool
) -> Observations:
    """One observation a cell: its mean, and ``as_trials`` its trials where each is right or wrong."""
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    score = observations.score[order]
    scored = ~np.isnan(score)
    trials = _column(observations, "trials", 1)[order].astype(np.float64)
    weight = np.where(scored, trials, 0.0)
    total = np.add.reduceat(weight, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(np.where(scored, score, 0.0) * weight, starts) / total
    successes = np.where(scored, score * trials, 0.0)
    whole = np.logical_and.reduceat(np.abs(successes - np.rint(successes)) < _COUNTED, starts)
    # The row that stands for a cell: its last scored one, else its last.
    sizes = np.diff(starts, append=len(order))
    position = np.arange(len(order)) + np.where(scored, len(order), 0)
    stands = order[np.maximum.reduceat(position, starts) % len(order)]
    settled = observations.take(stands)
    columns = {
        name: column for name, column in settled.columns.items() if name not in ("trial", "trials", "record")
    }
    for name in ("tokens_in", "tokens_out", "seconds", "cost"):
        if name in columns:
            summed = np.add.reduceat(observations.columns[name][order], starts)
            columns[name] = np.where(sizes > 1, summed, columns[name]).astype(np.float32)
    if as_trials:
        columns["trials"] = np.where(whole, np.maximum(total, 1), 1).astype(np.int32)
    return replace(settled, score=mean, columns=columns)


def _repeated(observations: Observations, order: NDArray[np.int64], start: int) -> InputError:
    earlier, later = int(order[start]), int(order[start + 1])
    file, line = observations.place(later)
    other, other_line = observations.place(earlier)
    return InputError(
        f"{observations.name(later)} are also in {other} line {other_line}, wanted one observation a cell",
        file=file,
        line=line,
    )


def _contradiction(observations: Observations, order: NDArray[np.int64], pair: int) -> InputError:
    earlier, later = int(order[pair]), int(order[pair + 1])
    file, line = observations.place(later)
    return InputError(
        f"{observations.name(later)} have another score in line {observations.place(earlier)[1]} for "
        "the same trial of the same run, wanted one",
        file=file,
        line=line,
    )
