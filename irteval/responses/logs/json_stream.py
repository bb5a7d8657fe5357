"""One big JSON document, read an element at a time: memory holds an element, never the file."""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from irteval.errors import InputError
from irteval.responses.logs.json_lines import is_text

BLOCK = 2**18
LONGEST_VALUE = 2**28
_SPACE = " \t\r\n"
# No keyword or escape of JSON is longer: an error further from the window's end is one.
_LOOK_AHEAD = 32


def array_elements(path: Path) -> Iterator[tuple[int, Any]]:
    """Line and value of every element of a document that is one array.

    Raises:
        InputError: the document is no array, or is broken or cut short; with its line.
    """
    with open(path, "rb") as file:
        text = _Text(file, str(path))
        text.expect("[", "a JSON array")
        yield from text.elements()
        text.finish()


def object_members(
    path: Path, streamed: Collection[str], skipped: Collection[str] = ()
) -> Iterator[tuple[str, int, Any]]:
    """Name, line and value of every member of a document that is one object.

    An array under a name in ``streamed`` is given element by element; one in ``skipped`` is not given.

    Raises:
        InputError: the document is no object, or is broken or cut short; with its line.
    """
    with open(path, "rb") as file:
        text = _Text(file, str(path))
        text.expect("{", "a JSON object")
        if text.take("}"):
            text.finish()
            return
        while True:
            name, _ = text.value()
            if not isinstance(name, str):
                raise text.error("a member without a name")
            text.expect(":", "':' after a name")
            if name in streamed and text.take("["):
                for line, value in text.elements():
                    yield name, line, value
            else:
                value, line = text.value()
                if name not in skipped:
                    yield name, line, value
            if text.take("}"):
                text.finish()
                return
            text.expect(",", "',' or '}' after a member")


class _Text:
    """A window on the text of a file, with a place in it."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._json = json.JSONDecoder()
        self._window, self._at, self._line, self._ended = "", 0, 1, False

    def error(self, message: str) -> InputError:
        return InputError(f"not JSON: {message}", file=self._name, line=self._line)

    def take(self, mark: str) -> bool:
        """Step over ``mark`` if it is what comes next."""
        self._skip_space()
        if self._at < len(self._window) and self._window[self._at] == mark:
            self._at += 1
            return True
        return False

    def expect(self, mark: str, wanted: str) -> None:
        if not self.take(mark):
            raise self.error(f"wanted {wanted}" + (", and the file ends" if self._ended_here() else ""))

    def finish(self) -> None:
        self._skip_space()
        if not self._ended_here():
            raise self.error("more text after the document")

    def elements(self) -> Iterator[tuple[int, Any]]:
        """Elements up to the end of an array whose opening bracket was taken."""
        if self.take("]"):
            return
        while True:
            value, line = self.value()
            yield line, value
            if self.take("]"):
                return
            self.expect(",", "',' or ']' after an element")

    def value(self) -> tuple[Any, int]:
        """The next value, and the line it begins on."""
        self._skip_space()
        line = self._line
        while True:
            try:
                value, end = self._json.raw_decode(self._window, self._at)
            except RecursionError:
                raise self.error("nested too deeply") from None
            except json.JSONDecodeError as error:
                # What can't be read may only be cut off by the window: read on until it is whole.
                cut_off = error.msg.startswith("Unterminated") or error.pos + _LOOK_AHEAD > len(self._window)
                if not (cut_off and self._read_on()):
                    self._move(min(error.pos, len(self._window)))
                    raise self.error(error.msg) from None
                continue
            except ValueError:  # a whole number of more digits than Python converts
                raise self.error("a number that is too long") from None
            # A number at the end of the window may go on beyond it.
            if end < len(self._window) or not self._read_on():
                if "\\u" in self._window[self._at : end] and not is_text(value):
                    raise self.error("half a character (a surrogate)")
                self._move(end)
                return value, line

    def _skip_space(self) -> None:
        while True:
            end = self._at
            while end < len(self._window) and self._window[end] in _SPACE:
                end += 1
            self._move(end)
            if end < len(self._window) or not self._read_on():
                return

    def _move(self, end: int) -> None:
        self._line += self._window.count("\n", self._at, end)
        self._at = end

    def _ended_here(self) -> bool:
        return self._ended and self._at >= len(self._window)

    def _read_on(self) -> bool:
        """Lengthen the window, by as much as it holds at least; False at the end of the file."""
        if self._ended:
            return False
        size = max(BLOCK, len(self._window) - self._at)
        if size > LONGEST_VALUE:
            raise self.error("one value of more than 256 MiB")
        block = self._file.read(size)
        self._ended = not block
        try:
            more = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError:
            raise self.error("bytes that are not UTF-8") from None
        self._window, self._at = self._window[self._at :] + more, 0
        return bool(more) or not self._ended
