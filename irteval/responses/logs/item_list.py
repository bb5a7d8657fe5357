"""The full list of a benchmark's items, so that those that nobody solved, in no file, are counted."""

from __future__ import annotations

import os
from pathlib import Path

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
        document = read_json(file)
        if not isinstance(document, list) or not all(isinstance(name, str) for name in document):
            raise InputError("wanted a JSON array of ids", file=str(file))
        ids = document
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
    if len(set(ids)) != len(ids):
        repeated = next(name for k, name in enumerate(ids) if name in ids[:k])
        raise InputError(f"'{repeated}' is there twice, wanted each item once", file=str(file))
    return ItemList(str(file), tuple(ids))


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
