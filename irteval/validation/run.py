"""The whole validation: every data set, split, method and seed, in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd
import torch

from irteval.errors import InputError
from irteval.responses import ResponseMatrix
from irteval.validation.methods import METHODS, Sessions, wilson_items
from irteval.validation.metrics import HeldOut, sampling_variance, summarise
from irteval.validation.sizes import resolve_sizes
from irteval.validation.splits import FIXED_SOURCE, SPLITS, make_split

KEYS = ["benchmark", "split", "method", "size", "target"]


@dataclass(frozen=True)
class Plan:
    """What is the same for every task; workers get it once.

    Attributes:
        parts: the responses of each data set.
        sizes: of each data set, in items.
        half_widths: at which adaptive sessions stop, besides the sizes.
        level: of the intervals.
        share, most_targets, order, families: see `irteval.validation.splits.make_split`; by subject.
    """

    parts: dict[str, ResponseMatrix]
    sizes: dict[str, list[int]]
    half_widths: tuple[float, ...]
    level: float
    share: float
    most_targets: int | None
    order: dict[str, str] | None
    families: dict[str, str] | None


@dataclass(frozen=True)
class Task:
    """One fit: a data set, a split, a method, and the seeds that share its source."""

    benchmark: str
    split: str
    method: str
    seeds: tuple[int, ...]


def validate(
    responses: ResponseMatrix,
    *,
    sizes: Sequence[int | float | str] = (50,),
    methods: Sequence[str] = ("auto", "random"),
    splits: Sequence[str] = ("interpolation",),
    repeats: int = 5,
    seed: int = 0,
    level: float = 0.95,
    share: float = 0.25,
    most_targets: int | None = None,
    order: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    half_widths: Sequence[float] = (),
    jobs: int = 1,
    note: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Errors, rank agreement and interval coverage on subjects that no fit has seen.

    Each benchmark is validated apart. The numbers don't depend on ``jobs``. Processes are spawned: a script
    that asks for several needs the guard ``if __name__ == "__main__":``.

    Args:
        responses: of all subjects.
        sizes: items asked of each target: numbers, or shares of the items (.05, ``"5%"``).
        methods: of `irteval.validation.methods.METHODS`.
        splits: of `irteval.validation.splits.SPLITS`.
        repeats: seeds of each split and method.
        seed: of the first repeat.
        level: of the intervals.
        share, most_targets, order, families: see `irteval.validation.splits.make_split`.
        half_widths: adaptive methods are also run until intervals are that narrow.
        jobs: processes.
        note: called with a line where something is not as asked for.
        progress: called with the number of finished and of all fits.

    Returns:
        One row for each benchmark, split, method and size, or half-width in the column ``target``, with the
        columns of `irteval.validation.metrics.summarise`. In rows of a half-width ``wilson_items`` is what a
        fixed random sample needs for Wilson's interval of that half-width.

    Raises:
        InputError: an unknown method or split, a size that is none, or too few subjects.
    """
    details = held_out_scores(
        responses,
        sizes=sizes,
        methods=methods,
        splits=splits,
        repeats=repeats,
        seed=seed,
        level=level,
        share=share,
        most_targets=most_targets,
        order=order,
        families=families,
        half_widths=half_widths,
        jobs=jobs,
        note=note,
        progress=progress,
    )
    return summary(details)


def summary(details: pd.DataFrame) -> pd.DataFrame:
    """The table of `validate` from the rows of `held_out_scores`."""
    rows = []
    for key, part in details.groupby(KEYS, sort=False, dropna=False):
        row = dict(zip(KEYS, key, strict=True)) | summarise(part)
        rows.append(row | {"wilson_items": float(part["wilson_items"].mean())})
    table = pd.DataFrame(rows)
    return table.astype({"size": "Int64"})


def held_out_scores(
    responses: ResponseMatrix,
    *,
    sizes: Sequence[int | float | str],
    methods: Sequence[str],
    splits: Sequence[str],
    repeats: int = 5,
    seed: int = 0,
    level: float = 0.95,
    share: float = 0.25,
    most_targets: int | None = None,
    order: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    half_widths: Sequence[float] = (),
    jobs: int = 1,
    note: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """What `validate` summarises: a row for each target of each seed, so that methods can be paired.

    Returns:
        Columns ``benchmark``, ``split``, ``method``, ``size``, ``target``, ``seed``, ``subject``, ``truth``,
        ``score``, ``low``, ``high``, ``items``, ``uniform_variance`` (of the mean over as many random items)
        and ``wilson_items``.
    """
    _check(methods, METHODS, "methods")
    _check(splits, SPLITS, "split")
    if repeats < 1 or jobs < 1:
        field = "repeats" if repeats < 1 else "jobs"
        raise InputError(f"{min(repeats, jobs)}, wanted at least 1", field=field)
    if any(not 0 < width < 1 for width in half_widths):
        raise InputError(f"{min(half_widths):g}, wanted a half-width between 0 and 1", field="target")
    parts = by_benchmark(responses)
    plan = Plan(
        parts=parts,
        sizes={name: resolve_sizes(sizes, part.shape[1], note) for name, part in parts.items()},
        half_widths=tuple(half_widths),
        level=level,
        share=share,
        most_targets=most_targets,
        order=None if order is None else dict(zip(responses.subjects, order, strict=True)),
        families=None if families is None else dict(zip(responses.subjects, families, strict=True)),
    )
    seeds = range(seed, seed + repeats)
    tasks = [
        Task(name, split, method, together)
        for name in parts
        for split in splits
        for method in methods
        for together in ([tuple(seeds)] if split in FIXED_SOURCE else [(number,) for number in seeds])
    ]
    frames = []
    for frame in _run_all(plan, tasks, jobs):
        frames.append(frame)
        if progress is not None:
            progress(len(frames), len(tasks))
    details = pd.concat(frames, ignore_index=True)
    # Rows of one method stand together, its sizes in order.
    place = details.groupby(KEYS[:3], sort=False).ngroup()
    return (
        details.assign(place=place)
        .sort_values(["place", "size", "target"], kind="stable", ascending=[True, True, False])
        .drop(columns="place")
        .reset_index(drop=True)
    )


def by_benchmark(responses: ResponseMatrix) -> dict[str, ResponseMatrix]:
    """The responses of each benchmark, of the subjects that have answered some of it."""
    names = np.array(responses.benchmarks or [""] * responses.shape[1])
    found = {}
    for name in dict.fromkeys(names.tolist()):
        part = responses.take(items=np.flatnonzero(names == name))
        found[name] = part.take(subjects=np.flatnonzero(part.subject_counts() > 0))
    return found


def _check(names: Sequence[str], known: Collection[str], field: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"'{name}', wanted one of {', '.join(known)}", field=field)


def _run_all(plan: Plan, tasks: Sequence[Task], jobs: int) -> Iterator[pd.DataFrame]:
    """Frames of the tasks in their order; every process computes on one thread, this one too."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker, (plan,)) as pool:
            try:
                yield from pool.map(_run_in_worker, tasks)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from map(partial(run_task, plan), tasks)
    finally:
        torch.set_num_threads(threads)


_plan: Plan | None = None  # a worker's copy: sent once, not with every task


def _start_worker(plan: Plan) -> None:
    global _plan
    _plan = plan
    torch.set_num_threads(1)


def _run_in_worker(task: Task) -> pd.DataFrame:
    assert _plan is not None  # the pool's initializer has set it
    return run_task(_plan, task)


def run_task(plan: Plan, task: Task) -> pd.DataFrame:
    """Rows of `held_out_scores` of one fit."""
    responses = plan.parts[task.benchmark]
    sizes = plan.sizes[task.benchmark]
    predictor, frames = None, []
    for seed in task.seeds:
        split = make_split(
            responses,
            task.split,
            seed,
            share=plan.share,
            most_targets=plan.most_targets,
            order=None if plan.order is None else [plan.order[name] for name in responses.subjects],
            families=None if plan.families is None else [plan.families[name] for name in responses.subjects],
        )
        if predictor is None:
            predictor = METHODS[task.method](responses.take(subjects=split.source), seed)
        targets = responses.take(subjects=split.target)
        for size, held in zip(sizes, predictor(targets, sizes, seed, plan.level), strict=True):
            frames.append(_frame(plan, task, seed, targets, held, size=size))
        if isinstance(predictor, Sessions):
            stopped = predictor.until(targets, plan.half_widths, seed, plan.level)
            for width, held in zip(plan.half_widths, stopped, strict=True):
                frames.append(_frame(plan, task, seed, targets, held, half_width=width))
    return pd.concat(frames, ignore_index=True)


def _frame(
    plan: Plan,
    task: Task,
    seed: int,
    targets: ResponseMatrix,
    held: HeldOut,
    *,
    size: int | None = None,
    half_width: float | None = None,
) -> pd.DataFrame:
    needed = np.full(len(held.truth), np.nan)
    if half_width is not None:
        needed = wilson_items(held.truth, targets.subject_counts(), half_width, plan.level)
    return pd.DataFrame(
        {
            "benchmark": task.benchmark,
            "split": task.split,
            "method": task.method,
            "size": np.nan if size is None else float(size),
            "target": np.nan if half_width is None else half_width,
            "seed": seed,
            "subject": list(targets.subjects),
            "truth": held.truth,
            "score": held.score,
            "low": held.low,
            "high": held.high,
            "items": held.items,
            "uniform_variance": sampling_variance(targets.dense(), held.items),
            "wilson_items": needed,
        }
    )
