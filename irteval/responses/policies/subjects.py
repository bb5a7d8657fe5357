"""Who a subject is: the name of the language model, its revision, and what was loaded under that name.

Two revisions of one name are two subjects. So are two different sets of weights that logs call by the same
name and revision. Names that may mean the same are reported, and put together only where a person says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from irteval.responses.logs.records import Run

_STEP = re.compile(r"(?:step|checkpoint|ckpt|iter)[-_]?(\d{1,12})", re.IGNORECASE)
_SHORT = 8


def subject_names(runs: Sequence[Run], aliases: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The subject of each run, and what a person should be told.

    Args:
        runs: of all files.
        aliases: names that a person put together: from each to the one to keep.
    """
    plain = [aliases.get(run.subject, run.subject) for run in runs]
    plain = [
        f"{name}@{run.revision}" if run.revision else name for name, run in zip(plain, runs, strict=True)
    ]
    plain = [aliases.get(name, name) for name in plain]
    weights: dict[str, set[str]] = {}
    for name, run in zip(plain, runs, strict=True):
        if run.weights:
            weights.setdefault(name, set()).add(run.weights)
    several = {name for name, found in weights.items() if len(found) > 1}
    names = [
        f"{name}@{_short(run.weights)}" if name in several and run.weights else name
        for name, run in zip(plain, runs, strict=True)
    ]
    notes = [
        f"'{name}' was run with {len(weights[name])} different weights: kept apart as {name}@…"
        for name in sorted(several)
    ]
    merged = sum(run.subject in aliases for run in runs)
    if merged:
        notes.append(f"{merged} runs renamed by the table of aliases")
    return names, notes + _possible_aliases(set(names))


def checkpoint_step(name: str) -> int | None:
    """The training step that a name or revision spells, such as ``…@step1000``."""
    found = _STEP.findall(name)
    return int(found[-1]) if found else None


def _short(weights: str) -> str:
    return weights[:_SHORT] if re.fullmatch(r"[0-9a-f]{16,}", weights) else weights


def _possible_aliases(names: set[str]) -> list[str]:
    """Names that differ only in case, in how a path is written, or in the organisation before the name."""
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(name.lower().replace("__", "/").rsplit("/", 1)[-1], set()).add(name)
    groups = sorted(", ".join(sorted(group)) for group in alike.values() if len(group) > 1)
    return [f"possibly one subject, kept apart (--aliases puts them together): {group}" for group in groups]
