"""Values of a column: ids stay text, scores and other numbers are read in all their spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from irteval.responses.read.table import Table

YES = ["true", "t", "yes", "y"]
NO = ["false", "f", "no", "n"]
BLANK = ["", "nan", "na", "n/a", "null", "none", "<na>"]
NUMBER = r"^[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


class Coded(NamedTuple):
    """Texts by number: cell c has ``texts[codes[c]]``; they are unique, sorted and all in use."""

    texts: tuple[str, ...]
    codes: NDArray[np.int32]


def read_ids(table: Table, name: str) -> Coded:
    """The ids in a column, as text that is never parsed.

    Raises:
        InputError: a missing or blank id, or ids stored as numbers with a fraction, dates or the like:
            their text can't be known.
    """
    column = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        raise table.error("no id, wanted text", 0, name)
    if not (pa.types.is_integer(kind) or _is_text(kind)):
        raise table.error(f"ids of type {kind}, wanted text (ids are never parsed)", field=name)
    texts, codes = _dictionary(column)
    blank = np.array([text is None or not text.strip() for text in texts], dtype=np.bool_)
    if (codes < 0).any() or blank.any():
        without = (codes < 0) | np.append(blank, False)[codes]
        if without.any():
            raise table.error("no id, wanted text", int(np.argmax(without)), name)
    return recode(texts, codes)


def read_texts(table: Table, name: str) -> Coded:
    """The texts in any column; a missing one is the empty text."""
    texts, codes = _dictionary(table.column(name))
    return recode(
        [*("" if text is None else text for text in texts), ""], np.where(codes < 0, len(texts), codes)
    )


def merge(parts: Sequence[Coded]) -> Coded:
    """Several columns, one below the other."""
    if len(parts) == 1:
        return parts[0]
    values = [value for part in parts for value in part.texts]
    offsets = np.cumsum([0, *(len(part.texts) for part in parts[:-1])])
    codes = [part.codes + np.int32(offset) for part, offset in zip(parts, offsets, strict=True)]
    return recode(values, np.concatenate(codes))


def _dictionary(column: Any) -> tuple[list[str | None], NDArray[np.int32]]:
    """Distinct texts of a column, and which one each row has; -1 where it has none."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.num_chunks == 0:
        return [], np.empty(0, dtype=np.int32)
    chunks = column.unify_dictionaries().chunks
    codes = [pc.fill_null(chunk.indices.cast(pa.int32()), -1).to_numpy() for chunk in chunks]
    return chunks[0].dictionary.cast(pa.string()).to_pylist(), np.concatenate(codes)


def recode(texts: Sequence[str | None], codes: NDArray[np.int32]) -> Coded:
    """The same texts, sorted, without repeats and without those that no row uses."""
    used = np.zeros(len(texts), dtype=np.bool_)
    used[codes] = True
    values = sorted({text for text, is_used in zip(texts, used, strict=True) if is_used and text is not None})
    rank = {text: position for position, text in enumerate(values)}
    new = np.array([rank.get(text, -1) if text is not None else -1 for text in texts], dtype=np.int32)
    return Coded(tuple(values), new[codes])


class UnreadableError(ValueError):
    """A value that is not what was wanted: which, and at what position of its column if at one."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def read_numbers(column: Any, wanted: str) -> NDArray[Any]:
    """The numbers in an arrow column; true and yes are 1, false and no are 0, blank and NaN are missing.

    Text may use a decimal comma.

    Returns:
        An array of the column's own type where that is of integers and none is missing, else float64 with
        NaN for missing.

    Raises:
        UnreadableError: a value that is no number; ``wanted`` is in its message.
    """
    if pa.types.is_dictionary(column.type) and not _is_text(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    kind = column.type
    if pa.types.is_integer(kind) and column.null_count == 0:
        return np.asarray(column.to_numpy())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not _is_text(kind):
        raise UnreadableError(f"values of type {kind}, wanted {wanted}")
    texts, codes = _dictionary(column)
    numbers, bad = _parse([*texts, None])  # code -1, no text, finds the last: missing
    if bad.any() and bad[codes].any():
        position = int(np.argmax(bad[codes]))
        raise UnreadableError(f"'{texts[codes[position]]}', wanted {wanted}", position)
    return numbers[codes]


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _parse(texts: Sequence[str | None]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The number that each text spells (NaN where it says missing), and where it spells none."""
    text = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(pa.array(texts, pa.string()), "")))
    text = pc.if_else(pc.is_in(text, pa.array(YES)), "1", text)
    text = pc.if_else(pc.is_in(text, pa.array(NO)), "0", text)
    is_number = pc.match_substring_regex(text, NUMBER)
    bad = pc.invert(pc.or_(is_number, pc.is_in(text, pa.array(BLANK))))
    plain = pc.replace_substring(pc.replace_substring_regex(text, r"^\+", ""), ",", ".")
    numbers = pc.if_else(is_number, plain, pa.scalar(None, pa.string())).cast(pa.float64())
    return numbers.to_numpy(zero_copy_only=False).astype(np.float64), bad.to_numpy(zero_copy_only=False)
