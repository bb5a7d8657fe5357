"""How a text, or the log-likelihoods of choices, become a score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from irteval.drivers.prompts import Prompt
from irteval.errors import InputError

NUMBER = r"-?\d+(?:\.\d+)?"
Scoring: TypeAlias = Literal["exact", "regex", "choice", "choice-norm"]


class TextScore:
    """1 where the answer is one of the targets, blanks around both aside.

    Args:
        pattern: of what is compared: in the answer its last match, of that the first group where it has one.
            The whole answer where None.

    Raises:
        InputError: a pattern that is no regular expression.
    """

    def __init__(self, pattern: str | None = None) -> None:
        try:
            self.pattern = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise InputError(f"{error}: {pattern}", field="pattern") from None

    def __call__(self, answer: str, prompt: Prompt) -> float:
        """The score of an answer."""
        given = answer
        if self.pattern is not None:
            matches = list(self.pattern.finditer(answer))
            if not matches:
                return 0.0
            given = matches[-1].group(1 if self.pattern.groups else 0) or ""
        return float(given.strip() in [target.strip() for target in prompt.targets])


def choice_score(log_likelihoods: Sequence[float], prompt: Prompt, *, by_length: bool) -> float:
    """1 where the right choice has the largest log-likelihood, a byte of its text where ``by_length``
    (the ``acc`` and ``acc_norm`` of lm-eval)."""
    choices = prompt.choices or []
    sizes = [len(choice.encode()) if by_length else 1 for choice in choices]
    values = [value / size for value, size in zip(log_likelihoods, sizes, strict=True)]
    return float(max(range(len(values)), key=values.__getitem__) == prompt.right_choice)
