"""Reader of a pandas data frame."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from irteval.responses.read.table import Table, check_names, in_memory, to_array


def table_of(frame: pd.DataFrame) -> Table:
    """The table in a data frame; an index of text comes first, and rows are numbered from 1 in messages.

    Raises:
        InputError: a column name that repeats, or no rows.
    """
    if frame.index.dtype.kind not in "iuf":  # text names the rows, numbers only count them
        frame = frame.reset_index(allow_duplicates=True)
    frame = frame.rename(columns=str)
    check_names(list(frame.columns), None)
    columns = pa.table({name: to_array(frame[name]) for name in frame.columns})
    return in_memory(columns, None, lambda row: row + 1)
