"""From tables to a response matrix: put together, choose, settle repeats, join, and tell what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from irteval.errors import InputError
from irteval.responses.layers import missing_of
from irteval.responses.matrix import ResponseMatrix
from irteval.responses.read.benchmarks import resolve_benchmarks
from irteval.responses.read.cells import Cells, Scale, average_variants, collapse_repeats, concatenate
from irteval.responses.read.layout import read_cells
from irteval.responses.read.own_columns import OF_ITEMS, OF_SUBJECTS, beside_own, own_columns
from irteval.responses.read.side_tables import SideTable, join
from irteval.responses.read.table import Table


def assemble(
    tables: Sequence[Table],
    *,
    benchmark: str | None,
    variant: str | Sequence[str],
    trials: int | None,
    scale: Scale,
    items: SideTable | None,
    subjects: SideTable | None,
) -> ResponseMatrix:
    """The matrix of all tables; options as in :func:`irteval.responses.read.read_responses`."""
    if scale not in ("share", "ordinal"):
        raise InputError(f"'{scale}', wanted share or ordinal", field="scale")
    facets = (variant,) if isinstance(variant, str) else tuple(variant)
    single = 1 if trials is None else trials
    cells, notes = _read(tables, scale, facets, single)
    if facets and not cells.layers.keys().isdisjoint({"probability", "step"}):
        raise InputError("a designed sample (probability, step) has no variants", field=facets[0])
    own_of_items = own_columns(cells, OF_ITEMS, cells.item)
    own_of_subjects = own_columns(cells, OF_SUBJECTS, cells.subject)
    item_table = _join(items, cells.item.texts, benchmark, notes)
    cells, benchmarks = resolve_benchmarks(cells, item_table, benchmark, notes)
    subject_ids, item_ids = cells.subject.texts, cells.item.texts
    item_table = beside_own(item_table, own_of_items)
    subject_table = beside_own(_join(subjects, subject_ids, benchmark, notes), own_of_subjects)
    if (missing := missing_of(cells.scores)).any():
        cells = cells.take(np.flatnonzero(~missing))
    cells, repeats = collapse_repeats(cells)
    if repeats:
        notes.append(f"{repeats} responses repeat another one with an equal score and were left out")
    cells, categories = _categories_to_shares(cells, notes) if cells.scale == "ordinal" else (cells, None)
    if facets:
        counts = ", ".join(f"{name} ({len(facet.texts)})" for name, facet in cells.facets.items())
        notes.append(f"a score is the mean over {counts}")
        cells, categories = average_variants(cells), None
    layers: dict[str, Any] = dict(cells.layers)
    if trials is not None:
        layers.setdefault("trials", trials)
    if "trials" in layers:
        _check_trials(cells, layers["trials"], notes)
    return ResponseMatrix.from_cells(
        subject_ids,
        item_ids,
        cells.subject.codes,
        cells.item.codes,
        cells.scores,
        **layers,
        categories=categories,
        benchmarks=benchmarks,
        item_table=None if item_table is None else item_table.reindex(list(item_ids)),
        subject_table=None if subject_table is None else subject_table.reindex(list(subject_ids)),
        notes=tuple(notes),
    )


def _read(
    tables: Sequence[Table], scale: Scale, facets: tuple[str, ...], trials: int
) -> tuple[Cells, list[str]]:
    """The cells of all tables, and a note on each; a function so that the parts are not kept beside them."""
    read = [read_cells(table, scale, facets, trials) for table in tables]
    return concatenate([part for part, _ in read], trials), [note for _, note in read]


def _join(
    side: SideTable | None, ids: Sequence[str], benchmark: str | None, notes: list[str]
) -> pd.DataFrame | None:
    if side is None:
        return None
    frame, note = join(side, ids, benchmark)
    notes.append(note)
    return frame


def _categories_to_shares(cells: Cells, notes: list[str]) -> tuple[Cells, int | None]:
    """Categories 0 … C - 1 as shares k / (C - 1), and C; None where some are not whole (means of ratings)."""
    top = max(1, int(np.ceil(cells.scores.max(initial=0))))
    whole = bool((cells.scores == np.floor(cells.scores)).all())
    notes.append(f"ordered categories 0 to {top}, kept as shares of {top}")
    return replace(cells, scores=cells.scores / top), top + 1 if whole else None


def _check_trials(cells: Cells, trials: Any, notes: list[str]) -> None:
    if cells.scale == "ordinal":
        raise InputError("trials and ordered categories together, wanted one of them", field="trials")
    successes = cells.scores * trials
    rounded = int(np.count_nonzero(np.abs(successes - np.rint(successes)) > 0.01))
    if rounded:
        notes.append(f"{rounded} scores are not k of their n trials and were rounded to the nearest")
