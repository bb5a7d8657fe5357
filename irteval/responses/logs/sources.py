"""Which files a source holds: folders are walked, links that lead out of them and loops are not followed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from irteval.errors import InputError
from irteval.responses.logs.reader import HEAD

_LFS = b"version https://git-lfs.github.com/spec/"
_BLOCK = 2**20


@dataclass
class Found:
    """What was met on the way.

    Attributes:
        copies: files that equal an earlier one, with that one.
        skipped: files that can't be read, by the reason.
    """

    copies: list[tuple[Path, Path]] = field(default_factory=list)
    skipped: dict[str, list[Path]] = field(default_factory=dict)

    def skip(self, path: Path, reason: str) -> None:
        """Leave a file out, for this reason."""
        self.skipped.setdefault(reason, []).append(path)


def files(sources: Sequence[Path], found: Found) -> Iterator[tuple[Path, bool]]:
    """The files of all sources, each once, and whether it was named itself; folders in order of name.

    Raises:
        InputError: a source that is not there.
    """
    seen: set[Path] = set()
    for source in sources:
        if not source.exists():
            raise InputError("no such file or folder", file=str(source))
        if not source.is_dir() and not source.is_file():
            raise InputError("no regular file", file=str(source))
        listed = _walk(source, found) if source.is_dir() else iter([source])
        for path in listed:
            real = path.resolve()
            if real not in seen:
                seen.add(real)
                yield path, not source.is_dir()


def _walk(folder: Path, found: Found) -> Iterator[Path]:
    root = folder.resolve()

    def closed(error: OSError) -> None:
        found.skip(Path(error.filename), error.strerror or "can't be read")

    for place, below, names in os.walk(folder, onerror=closed):
        below[:] = sorted(name for name in below if not name.startswith("."))
        linked = [name for name in below if os.path.islink(os.path.join(place, name))]
        for name in linked:
            found.skip(Path(place, name), "a link to a folder")
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith("."):
                continue
            if not path.is_file():
                found.skip(path, "no regular file, or a link that leads nowhere")
            elif path.is_symlink() and not path.resolve().is_relative_to(root):
                found.skip(path, "a link out of the folder")
            else:
                yield path


def head_of(path: Path, named: bool, found: Found) -> bytes:
    """The first bytes of a file; empty, and noted, of one that only points to its content.

    Raises:
        InputError: a file that was named itself points to its content, is empty, or can't be read.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        if named:
            raise InputError(error.strerror or "can't be read", file=str(path)) from None
        found.skip(path, error.strerror or "can't be read")
        return b""
    problem = ""
    if head.startswith(_LFS):
        problem = "a git-LFS pointer, not the file: fetch it with `git lfs pull`"
    elif not head:
        problem = "an empty file"
    if problem and named:
        raise InputError(problem, file=str(path))
    if problem:
        found.skip(path, problem)
    return b"" if problem else head


class Copies:
    """Finds files with equal content; only those of equal size are read for it."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[Path]] = {}
        self._digests: dict[Path, bytes] = {}

    def earlier(self, path: Path) -> list[Path]:
        """The earlier files that this one equals."""
        others = self._by_size.setdefault(path.stat().st_size, [])
        same = [other for other in others if self._digest(other) == self._digest(path)]
        others.append(path)
        return same

    def _digest(self, path: Path) -> bytes:
        if path not in self._digests:
            digest = hashlib.blake2b(digest_size=16)
            with open(path, "rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
            self._digests[path] = digest.digest()
        return self._digests[path]
