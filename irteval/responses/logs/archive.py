"""Members of a zip archive, read in memory, bounded: nothing is written to disk.

Newer archives hold members compressed by zstandard (method 93), which Python's ``zipfile`` can't read
before 3.14.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

import zstandard

from irteval.errors import InputError

_ZSTANDARD = 93
_LOCAL = struct.Struct("<4s5H3I2H")
# A member may expand to this much, or to this many times its compressed size, but never beyond the limit.
_FREE = 2**26
_RATIO = 200
_LIMIT = 2**30


class Archive:
    """A zip archive whose members are read one at a time.

    Raises:
        InputError: the file is no zip archive or is cut short, or a member's name leads out of it.
    """

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            raise InputError(f"not a readable archive (cut short?): {error}", file=self._name) from None
        self.names = tuple(self._zip.namelist())
        for name in self.names:
            parts = PurePosixPath(name.replace("\\", "/")).parts
            if ".." in parts or name.startswith(("/", "\\")):
                raise InputError(f"the member '{name[:60]}' leads out of the archive", file=self._name)
        self._file = open(path, "rb")  # noqa: SIM115 (closed with the archive)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()
        self._file.close()

    def read(self, name: str) -> bytes:
        """The content of a member.

        Raises:
            InputError: the member is damaged, or expands beyond all measure.
        """
        info = self._zip.getinfo(name)
        limit = min(max(_FREE, _RATIO * info.compress_size), _LIMIT)
        if info.file_size > limit:
            raise self._error(name, f"expands to {info.file_size:,} bytes, wanted at most {limit:,}")
        raw = self._raw(info)
        if info.compress_type == zipfile.ZIP_STORED:
            content = raw
        elif info.compress_type == zipfile.ZIP_DEFLATED:
            content = self._inflated(name, raw, limit)
        elif info.compress_type == _ZSTANDARD:
            content = self._unzstd(name, raw, limit)
        else:
            raise self._error(
                name, f"is compressed by method {info.compress_type}, wanted zstandard or deflate"
            )
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._error(name, "is damaged: its size or checksum is another")
        return content

    def _raw(self, info: zipfile.ZipInfo) -> bytes:
        if info.flag_bits & 1:
            raise self._error(info.filename, "is encrypted")
        self._file.seek(max(info.header_offset, 0))  # a damaged directory can make it negative
        header = self._file.read(_LOCAL.size)
        if info.header_offset < 0 or len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
            raise self._error(info.filename, "is not where the directory says")
        *_, name_size, extra_size = _LOCAL.unpack(header)
        self._file.seek(name_size + extra_size, 1)
        return self._file.read(min(info.compress_size, _LIMIT))

    def _inflated(self, name: str, raw: bytes, limit: int) -> bytes:
        expand = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = expand.decompress(raw, limit + 1)
        except zlib.error as error:
            raise self._error(name, f"is damaged: {error}") from None
        return self._within(name, content, limit)

    def _unzstd(self, name: str, raw: bytes, limit: int) -> bytes:
        # Window sizes above 128 MiB are refused by the library itself.
        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        try:
            content = reader.read(limit + 1)
        except zstandard.ZstdError as error:
            raise self._error(name, f"is damaged: {error}") from None
        return self._within(name, content, limit)

    def _within(self, name: str, content: bytes, limit: int) -> bytes:
        if len(content) > limit:
            raise self._error(name, f"expands to more than {limit:,} bytes")
        return content

    def _error(self, name: str, message: str) -> InputError:
        return InputError(f"the member '{name[:60]}' {message}", file=self._name)
