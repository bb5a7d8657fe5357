"""Every format that can be read; a new one is a new file and a line here."""

from __future__ import annotations

from pathlib import Path

from irteval.errors import InputError
from irteval.responses.logs.alpaca_eval import AlpacaEval
from irteval.responses.logs.every_eval_ever import EveryEvalEver
from irteval.responses.logs.helm import Helm
from irteval.responses.logs.inspect_log import InspectLog
from irteval.responses.logs.lighteval import Lighteval
from irteval.responses.logs.lm_eval import LmEval
from irteval.responses.logs.olmes import Olmes
from irteval.responses.logs.open_llm_leaderboard import OpenLlmLeaderboard
from irteval.responses.logs.reader import LogReader
from irteval.responses.logs.resolved_lists import ResolvedLists
from irteval.responses.logs.tables import Tables

TABLES: LogReader = Tables()
# Tried in this order: the first that recognises a file reads it.
READERS: tuple[LogReader, ...] = (
    Olmes(),
    LmEval(),
    InspectLog(),
    Helm(),
    Lighteval(),
    OpenLlmLeaderboard(),
    EveryEvalEver(),
    AlpacaEval(),
    ResolvedLists(),
    TABLES,
)
AUTO = "auto"


def reader_named(name: str) -> LogReader:
    """The reader of this format.

    Raises:
        InputError: there is none.
    """
    for reader in READERS:
        if reader.name == name:
            return reader
    listed = ", ".join(reader.name for reader in READERS)
    raise InputError(f"no format '{name}', wanted one of {AUTO}, {listed}", field="format")


def reader_of(path: Path, head: bytes) -> LogReader | None:
    """The reader that recognises a file by its name and beginning, None of no log."""
    return next((reader for reader in READERS if reader.recognises(path, head)), None)
