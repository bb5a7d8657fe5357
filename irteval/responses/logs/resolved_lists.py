"""Reader of lists of solved items, as SWE-bench writes them: what is not in the list was not solved.

``results.json`` of a submission has ``resolved`` and, of items that have no answer, ``no_generation`` and
``no_logs``; the report of an evaluation has ``resolved_ids``, ``unresolved_ids``, ``error_ids``,
``empty_patch_ids``, ``submitted_ids``. Which items were asked is known from a list of all items, or from a
report that names the unresolved ones too; without either the item set is unknown, and so is every failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from irteval.errors import InputError
from irteval.files import read_json
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run

_LARGEST = 2**28
_RESOLVED = ("resolved", "resolved_ids")
_UNRESOLVED = ("unresolved_ids", "unresolved", "empty_patch_ids", "no_generation", "no_logs")
_FAILED = ("error_ids", "error")
_FOLDERS = ("results", "evaluation", "logs")


class ResolvedLists:
    """Lists of resolved items, one subject a file."""

    name = "resolved-list"

    def recognises(self, path: Path, head: bytes) -> bool:
        """JSON objects with ``resolved`` or ``resolved_ids``."""
        if path.suffix != ".json" or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return False
        if any(b'"%s"' % key.encode() in head for key in _RESOLVED):
            return True
        # A long list may stand before it.
        return (b'_ids"' in head or b'"no_' in head) and b'"resolved' in path.read_bytes()[:_LARGEST]

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records.

        Raises:
            InputError: no list of ids, ids that the list of items has not, or no way to know the item set.
        """
        document = read_json(path) if path.stat().st_size <= _LARGEST else None
        if not isinstance(document, dict):
            raise InputError("wanted a JSON object of at most 256 MiB", file=str(path))
        resolved = _ids(path, document, _RESOLVED)
        if resolved is None:
            raise InputError("no list of resolved ids", file=str(path), field=_RESOLVED[0])
        unresolved = _ids(path, document, _UNRESOLVED) or []
        failed = dict.fromkeys(name for name in _ids(path, document, _FAILED) or [] if name not in resolved)
        asked = dict.fromkeys([*resolved, *unresolved, *failed])
        if options.items is not None:
            unknown = [name for name in asked if name not in set(options.items.ids)]
            if unknown:
                raise InputError(
                    f"'{unknown[0]}' is not in the list of items {options.items.name}", file=str(path)
                )
            submitted = _ids(path, document, ("submitted_ids",))
            asked = dict.fromkeys(options.items.ids if submitted is None else [*submitted, *asked])
        elif not isinstance(document.get("unresolved_ids", document.get("unresolved")), list):
            raise InputError(
                "item set unknown: what was not resolved is nowhere; give all items with --items",
                file=str(path),
            )
        builder, run, solved = RecordBuilder(str(path)), _run(path), set(resolved)
        empty = set(_ids(path, document, ("empty_patch_ids", "no_generation")) or [])
        for number, name in enumerate(asked, start=1):
            if name in failed:
                builder.add(run, name, number, {}, status="error")
            else:
                builder.add(run, name, number, {"resolved": name in solved}, empty=name in empty)
        yield from builder.flush()


def _ids(path: Path, document: Mapping[str, Any], keys: tuple[str, ...]) -> list[str] | None:
    """The ids under these keys, None where none of them holds a list."""
    found: list[str] | None = None
    for key in keys:
        ids = document.get(key)
        if not isinstance(ids, list):
            continue
        if not all(isinstance(name, str) for name in ids):
            raise InputError("wanted a list of ids", file=str(path), field=key)
        found = [*(found or []), *ids]
    return found


def _run(path: Path) -> Run:
    """The subject is named by the file; of ``…/<subject>/results/results.json``, by the folder."""
    folders = [part for part in path.resolve().parent.parts if part not in _FOLDERS]
    named = path.stem not in ("results", "report", "resolved")
    return Run(
        file=str(path),
        subject=path.stem.replace("__", "/", 1) if named else folders[-1],
        harness="resolved-list",
        main_metrics=("resolved",),
    )
