"""Files and folders that are written whole or not at all.

Everything goes to a hidden temporary neighbour first, is flushed to disk, and takes its name by a rename.
Whoever reads sees the old content or the new one; a full disk leaves the old one and no litter.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from irteval.errors import InputError


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` to ``path``, whole or not at all; an existing file is replaced.

    Raises:
        OSError: the disk is full or the place can't be written; what was there stays as it was.
    """
    with replace_file(path) as file:
        file.write(content)


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write into, which takes the name ``path`` when all is written; an existing one is replaced.

    Raises:
        OSError: the disk is full or the place can't be written; what was there stays as it was.
    """
    target = Path(path)
    with _temporary(target, _remove_file) as temporary:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    _flush_folder(target.parent)


def write_folder(
    path: str | os.PathLike[str], files: Mapping[str, bytes], *, replaces: Collection[str] = ()
) -> None:
    """Write a folder that holds exactly ``files`` (name to content), whole or not at all.

    An existing folder is replaced where all of its files are named in ``replaces``: what someone else put
    there is never deleted. POSIX has no portable way to exchange two folders, so the old one steps aside
    under a hidden name for the moment between two renames, and back if the second one fails.

    Raises:
        InputError: the folder exists and holds a file that is not in ``replaces``.
        OSError: the disk is full or the place can't be written; what was there stays as it was.
    """
    target = Path(path)
    check_folder(target, replaces)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(target, _remove_folder) as temporary:
        temporary.mkdir()
        for name, content in files.items():
            _write_flushed(temporary / name, content)
        _flush_folder(temporary)
        _take_name(temporary, target)
    _flush_folder(target.parent)


def check_folder(path: str | os.PathLike[str], replaces: Collection[str] = ()) -> None:
    """Check that ``write_folder`` would take this place, before long work whose result goes there.

    Raises:
        InputError: the folder exists and holds a file that is not in ``replaces``, or it is a file.
    """
    target = Path(path)
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError("a file of this name exists, wanted a folder", file=str(target))
    present = {entry.name for entry in target.iterdir()}
    if present and not replaces:
        raise InputError("exists already: overwrite it, or name another folder", file=str(target))
    if others := sorted(present.difference(replaces)):
        raise InputError(f"holds '{others[0]}' and is not replaced: name another folder", file=str(target))


def append_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Append ``content`` and flush it to disk; a write that fails leaves the file as long as it was.

    Raises:
        OSError: the disk is full or the place can't be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        before = os.fstat(descriptor).st_size
        try:
            written = 0
            while written < len(content):
                written += os.write(descriptor, content[written:])
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def json_bytes(document: Any) -> bytes:
    """A document as indented JSON with a final newline: the same bytes for the same document.

    Keys keep their order, numpy values are plain numbers, and what is not finite becomes null.
    """
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(document, option=options)


def read_json(path: str | os.PathLike[str]) -> Any:
    """The document in a JSON file.

    Raises:
        InputError: there is no such file, or it is no JSON; names the file and the line.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", file=str(path)) from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", file=str(path), line=error.lineno) from None


def _take_name(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target``, which may be an existing folder."""
    if not target.exists():
        os.rename(temporary, target)
        return
    aside = _neighbour(target)
    os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except OSError:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _temporary(target: Path, remove: Callable[[Path], None]) -> Iterator[Path]:
    """A free hidden name beside ``target``; whatever still bears it afterwards is removed."""
    temporary = _neighbour(target)
    try:
        yield temporary
    finally:
        remove(temporary)


def _neighbour(target: Path) -> Path:
    absolute = Path(os.path.abspath(target))
    return absolute.with_name(f".{absolute.name}.{secrets.token_hex(4)}.tmp")


def _remove_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def _remove_folder(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _write_flushed(path: Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
