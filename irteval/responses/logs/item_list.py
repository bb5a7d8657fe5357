"""The full list of a benchmark's items, so that those that nobody solved, in no file, are counted."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from irteval.errors import InputError
from irteval.files import read_json
from irteval.responses.logs.reader import ItemList
from irteval.responses.read import open_table
from irteval.responses.read.layout import ITEM, find_column
from irteval.responses.read.table import text_of
from irteval.responses.read.values import read_ids

_ALIASES = (*ITEM, "instance_id", "native_id", "id")


def read_item_list(path: str | os.PathLike[str]) -> ItemList:
    """Ids in a table (parquet, CSV, JSON lines), in a JSON array of texts, or one a line of a text file.

    Raises:
        InputError: no such file, no ids in it, or an id that is there twice.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file", file=str(file))
    if file.suffix.lower() == ".json":
        ids = _ids_in(read_json(file), str(file))
    elif file.suffix.lower() == ".txt":
        ids = [line.strip() for line in text_of(file).decode().splitlines() if line.strip()]
    else:
        table = open_table(file)
        column = find_column(table.names, _ALIASES) or (table.names[0] if len(table.names) == 1 else None)
        if column is None:
            raise table.error(f"no column of ids, wanted one of {', '.join(_ALIASES)}")
        coded = read_ids(table, column)
        ids = [coded.texts[code] for code in coded.codes]
    if not ids:
        raise InputError("no ids, wanted the full list of items", file=str(file))
    repeated, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise InputError(f"'{repeated}' is there {times} times, wanted each item once", file=str(file))
    return ItemList(str(file), tuple(ids))


def _ids_in(document: Any, file: str) -> list[str]:
    """Ids in a JSON array, of texts or of objects with an id."""
    if isinstance(document, list):
        found = [
            next((entry[name] for name in _ALIASES if name in entry), None)
            if isinstance(entry, dict)
            else entry
            for entry in document
        ]
        ids = [name for name in found if isinstance(name, str)]
        if len(ids) == len(found):
            return ids
    raise InputError("wanted a JSON array of ids, or of objects with one", file=file)


def read_aliases(path: str | os.PathLike[str]) -> dict[str, str]:
    """Names of subjects that mean the same: a JSON object, or a table of ``alias`` and ``subject``.

    Raises:
        InputError: no such file, or no names in it.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file", file=str(file))
    if file.suffix.lower() == ".json":
        document = read_json(file)
        if not isinstance(document, dict) or not all(isinstance(name, str) for name in document.values()):
            raise InputError("wanted a JSON object of names", file=str(file))
        return document
    table = open_table(file)
    for name in ("alias", "subject"):
        if name not in table.names:
            raise table.error(f"no such column among {', '.join(table.names)}", field=name)
    alias, subject = read_ids(table, "alias"), read_ids(table, "subject")
    return {
        alias.texts[a]: subject.texts[s]
        for a, s in zip(alias.codes.tolist(), subject.codes.tolist(), strict=True)
    }
