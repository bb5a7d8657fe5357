"""What a reader of logs is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from irteval.responses.logs.records import Records

HEAD = 4096


@dataclass(frozen=True)
class ItemList:
    """The full list of a benchmark's items, in the order of its file ``name``."""

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may need to know beyond the file.

    Attributes:
        items: the full list of items.
        metric: the one that is asked for; None for the default one.
        notes: takes what a person should be told; the same text counts once.
    """

    items: ItemList | None = None
    metric: str | None = None
    notes: dict[str, None] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Tell something of a file."""
        self.notes[text] = None


class LogReader(Protocol):
    """Reads one format of evaluation logs."""

    name: str

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a file is of this format, judged by its name and its first 4,096 bytes."""
        ...

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records of a file, a batch at a time.

        Raises:
            InputError: the file is broken, or is not what its beginning promised.
        """
        ...
