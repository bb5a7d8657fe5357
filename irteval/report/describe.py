"""What a response table, a bank or a run folder holds: as plain values, and as a table of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table

from irteval.bank import ItemBank
from irteval.estimate.result import Estimate
from irteval.journal import SETTINGS_FILE, RunFolder
from irteval.responses import ResponseMatrix

DIGITS = 4
HAVE_TABLES = ("estimates", "checks")


def responses(matrix: ResponseMatrix) -> dict[str, Any]:
    """Size, gaps, spread of scores, and what no fit can learn from."""
    item_means, subject_means = matrix.item_means(), matrix.subject_means()
    return {
        "kind": "responses",
        "subjects": len(matrix.subjects),
        "items": len(matrix.items),
        "cells": matrix.cells,
        "share_observed": matrix.density,
        "benchmarks": dict(Counter(matrix.benchmarks or ())),
        "has_trials": matrix.trials is not None,
        "has_probabilities": matrix.probability is not None,
        "categories": matrix.categories,
        "subject_scores": _spread(subject_means),
        "item_means": _spread(item_means),
        "items_all_passed": int((item_means == 1).sum()),
        "items_none_passed": int((item_means == 0).sum()),
        "items_without_answer": int(np.isnan(item_means).sum()),
        "subjects_without_answer": int(np.isnan(subject_means).sum()),
    }


def bank(folder: Path) -> dict[str, Any]:
    """What a bank is of, how it was made, and how its items are spread.

    Raises:
        InputError: the folder holds no bank, or a damaged one.
    """
    return calibrated(ItemBank.load(folder))


def calibrated(item_bank: ItemBank) -> dict[str, Any]:
    """The same of a bank that is loaded."""
    info = item_bank.info
    source = item_bank.score_model.source if item_bank.score_model else {}
    return {
        "kind": "bank",
        "name": info.name,
        "items": len(item_bank),
        "benchmarks": dict(Counter(item_bank.benchmarks)),
        "metric": info.metric,
        "subjects": info.subjects.count,
        "response_model": info.response_model,
        "dims": info.dims,
        "fits": list(item_bank.fits),
        "calibration": info.calibration,
        "slope": _deciles(item_bank.parameters.slope[:, 0]) if info.dims == 1 else None,
        "difficulty": _deciles(item_bank.parameters.difficulty) if info.dims == 1 else None,
        "source_scores": {name: _spread(np.asarray(own.scores)) for name, own in source.items()},
        "reliability": {name: own.reliability for name, own in source.items()},
        "dates": info.dates,
        "versions": info.versions,
        "content_hash": info.content_hash,
    }


def is_run(folder: Path) -> bool:
    """Whether a folder is a run folder."""
    return (folder / SETTINGS_FILE).is_file()


def run(folder: Path) -> dict[str, Any]:
    """Settings of a run, how far it is, and its last estimates.

    Raises:
        InputError: the folder holds no run, or a damaged one.
    """
    place = RunFolder.open(folder)
    told = {(line.subject, line.item) for line in place.told()}
    asked = {(line.subject, line.item) for line in place.asked() if line.status == "asked"}
    return {
        "kind": "run",
        "settings": place.settings,
        "subjects": len({subject for subject, _ in told | asked}),
        "told": len(told),
        "pending": len(asked - told),
        "estimates": (place.estimates() or {}).get("estimates", []),
        "notes": place.notes,
    }


def estimates(content: Mapping[str, Any]) -> list[Estimate]:
    """The estimates in a run's description."""
    return [_estimate(document) for document in content["estimates"]]


def table(content: Mapping[str, Any], title: str | None = None) -> Table:
    """One row a value, for a terminal; nested values in one line."""
    shown = Table(box=SIMPLE_HEAD, title=title, title_justify="left", show_header=False, show_edge=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in content.items():
        if name not in HAVE_TABLES and value not in (None, [], {}):
            shown.add_row(name.replace("_", " "), _text(value))
    return shown


def _estimate(document: dict[str, Any]) -> Estimate:
    groups = tuple(_estimate(group) for group in document["groups"])
    return Estimate(**(document | {"interval": tuple(document["interval"]), "groups": groups}))


def _spread(values: NDArray[np.float64]) -> dict[str, float] | None:
    return _quantiles(values, {"min": 0, "median": 0.5, "max": 1})


def _deciles(values: NDArray[np.float64]) -> dict[str, float] | None:
    """Without the tails: the difficulty of an item that tells nothing may be anywhere."""
    return _quantiles(values, {"10 %": 0.1, "median": 0.5, "90 %": 0.9})


def _quantiles(values: NDArray[np.float64], shares: Mapping[str, float]) -> dict[str, float] | None:
    """Quantiles of the finite values, by name."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    return {name: float(np.quantile(finite, share)) for name, share in shares.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, Mapping):
        between = "\n" if any(isinstance(inner, Mapping) for inner in value.values()) else ", "
        return between.join(f"{name} {_text(inner)}" for name, inner in value.items() if inner is not None)
    if isinstance(value, list):
        return "; ".join(_text(inner) for inner in value)
    return str(value)
