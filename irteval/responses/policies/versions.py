"""Versions of a task or its data: responses to different versions are responses to different items."""

from __future__ import annotations

from collections.abc import Sequence

from irteval.responses.logs.records import Run


def benchmark_names(runs: Sequence[Run]) -> tuple[list[str], list[str]]:
    """The benchmark of each run, and what a person should be told.

    A task that was run in several versions becomes a benchmark a version, ``task@version``.
    """
    versions: dict[str, set[str]] = {}
    for run in runs:
        versions.setdefault(run.benchmark, set()).add(run.version)
    several = {name for name, found in versions.items() if name and len(found) > 1}
    names = [
        f"{r.benchmark}@{r.version or 'unknown'}" if r.benchmark in several else r.benchmark for r in runs
    ]
    notes = [
        f"{name}: versions {', '.join(sorted(version or 'unknown' for version in versions[name]))} are kept "
        f"apart as {name}@…"
        for name in sorted(several)
    ]
    return names, notes
