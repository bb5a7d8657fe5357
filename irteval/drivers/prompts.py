"""Prompts and targets of items, as JSON lines: what the driver of a server sends and compares with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from irteval.bank import ItemBank
from irteval.errors import BankMismatchError, InputError

Text = Annotated[str, Field(min_length=1)]


class Prompt(BaseModel):
    """One item, as it is sent.

    Attributes:
        item: its id in the bank.
        prompt: text; or ``messages``, those of a chat.
        target: the right answer, or several of which any will do; for a choice, its number from 0 or its
            text.
        choices: for a choice by log-likelihood: what may follow the prompt, a leading space included.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    item: Text
    prompt: Text | None = None
    messages: list[dict[str, Any]] | None = None
    target: str | int | list[str]
    choices: list[Text] | None = Field(default=None, min_length=2)

    @model_validator(mode="after")
    def _check(self) -> Prompt:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("wanted prompt or messages, one of them")
        return self

    @property
    def targets(self) -> list[str]:
        """The right answers."""
        return self.target if isinstance(self.target, list) else [str(self.target)]

    @property
    def right_choice(self) -> int:
        """Number of the right choice; −1 where it is none of them."""
        choices = self.choices or []
        if isinstance(self.target, int):
            return self.target if self.target < len(choices) else -1
        wanted = [target.strip() for target in self.targets]
        return next((k for k, choice in enumerate(choices) if choice.strip() in wanted), -1)


def read_prompts(path: Path, bank: ItemBank, *, by_choice: bool) -> dict[str, Prompt]:
    """The prompts of a bank's items, by item.

    Args:
        path: JSON lines.
        bank: whose items are wanted; others in the file are left out.
        by_choice: whether they are answered by log-likelihood.

    Raises:
        InputError: a line that is no prompt, or an item twice; names file, line and field.
        BankMismatchError: the bank has an item that the file lacks.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(error), file=str(path)) from None
    prompts: dict[str, Prompt] = {}
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        prompt = _parse(line, path, number)
        if prompt.item in prompts:
            raise InputError(f"item '{prompt.item}' twice", file=str(path), line=number, field="item")
        if by_choice and (prompt.prompt is None or prompt.right_choice < 0):
            wanted = "wanted a prompt with choices and the right one as target"
            raise InputError(wanted, file=str(path), line=number, field="choices")
        prompts[prompt.item] = prompt
    _check_complete(prompts, bank.items, path)
    return {item: prompts[item] for item in bank.items}


def _check_complete(prompts: dict[str, Prompt], items: Sequence[str], path: Path) -> None:
    missing = [item for item in items if item not in prompts]
    if missing:
        raise BankMismatchError(
            f"no prompt for {len(missing)} of the bank's {len(items)} items, first '{missing[0]}'",
            file=str(path),
            field="item",
        )


def _parse(line: str, path: Path, number: int) -> Prompt:
    try:
        return Prompt.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else None
        raise InputError(first["msg"], file=str(path), line=number, field=field) from None
