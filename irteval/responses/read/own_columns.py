"""What a long table itself says of its items and subjects, beside their responses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from irteval.responses.read.cells import Cells
from irteval.responses.read.values import Coded, merge, read_texts

# Columns that checks and banks look at; others stay aside.
OF_ITEMS = ("content_hash", "native_id", "prompt_hash")
OF_SUBJECTS = ("harness", "harness_version")


def own_columns(cells: Cells, names: Sequence[str], of: Coded) -> pd.DataFrame | None:
    """Columns of the tables with one value for each id, one row an id; None where there are none.

    A column with several values for an id, or that some of the tables lack, is left aside.

    Args:
        cells: of all rows of all tables.
        names: columns to look for.
        of: the ids of the cells, subjects or items.
    """
    tables = [source.table for source in cells.sources]
    found = {}
    for name in names:
        if all(name in source.aside for source in cells.sources):
            values = merge([read_texts(table, name) for table in tables])
            code = np.zeros(len(of.texts), dtype=np.int32)
            code[of.codes] = values.codes
            if (code[of.codes] == values.codes).all():
                found[name] = np.array(values.texts, dtype=object)[code]
    return pd.DataFrame(found, index=pd.Index(of.texts)) if found else None


def beside_own(side: pd.DataFrame | None, own: pd.DataFrame | None) -> pd.DataFrame | None:
    """The rows of a side table with the own columns that it lacks."""
    if side is None or own is None:
        return own if side is None else side
    lacking = [name for name in own if name not in side]
    return side.join(own[lacking].reindex(side.index)) if lacking else side
