"""Scores as logs spell them: numbers, booleans, letter grades and texts become numbers, or are told apart.

======================  =========================================
found                   read as
======================  =========================================
number, numeric text    itself
true, yes / false, no   1 / 0
C, I, P, N              1, 0, 0.5, 0: correct, incorrect, partial, no answer
null, NaN, blank        missing
list                    not one number
object                  several numbers: one has to be chosen by its key
other text              unreadable
======================  =========================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irteval.responses.read.values import BLANK, NO, NUMBER, YES

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0) | dict.fromkeys([*BLANK, "-nan", "+nan"], math.nan)
_NUMBER = re.compile(NUMBER)


class State(IntEnum):
    """How a score was read."""

    NUMBER = 0
    ABSENT = 1
    MISSING = 2
    NOT_SCALAR = 3
    NEEDS_KEY = 4
    UNREADABLE = 5
    UNSCORED = 6


class Scores(NamedTuple):
    """R scores: the numbers (NaN where none), how each was read, and the first text that was no number."""

    numbers: NDArray[np.float64]
    states: NDArray[np.int8]
    unreadable: str = ""


def read_scores(values: Sequence[Any]) -> Scores:
    """The numbers that these scores stand for; nothing is bounded here."""
    kinds = set(map(type, values))
    if kinds <= {float, int, bool}:
        try:
            numbers = np.array(values, dtype=np.float64)
        except OverflowError:  # whole numbers beyond any float
            numbers = np.array([_number(value)[0] for value in values])
        states = np.where(np.isnan(numbers), State.MISSING, State.NUMBER).astype(np.int8)
        return Scores(numbers, states)
    read = [_number(value) for value in values]
    states = np.array([state for _, state in read], dtype=np.int8)
    unreadable = states == State.UNREADABLE
    first = str(values[int(np.argmax(unreadable))])[:60] if unreadable.any() else ""
    return Scores(np.array([number for number, _ in read], dtype=np.float64), states, first)


def _number(value: Any) -> tuple[float, State]:
    if isinstance(value, bool | int | float):
        try:
            number = float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf, State.NUMBER
        return number, State.MISSING if math.isnan(number) else State.NUMBER
    if value is None:
        return math.nan, State.MISSING
    if isinstance(value, str):
        return _number_of_text(value)
    return math.nan, State.NEEDS_KEY if isinstance(value, dict) else State.NOT_SCALAR


def _number_of_text(value: str) -> tuple[float, State]:
    text = value.strip()
    if text in GRADES:
        return GRADES[text], State.NUMBER
    word = text.lower()
    if word in _WORDS:
        number = _WORDS[word]
        return number, State.MISSING if math.isnan(number) else State.NUMBER
    if _NUMBER.match(text):
        return float(text.replace(",", ".")), State.NUMBER
    return math.nan, State.UNREADABLE
