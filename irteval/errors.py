"""Errors that a user can act on: each says in one line what was found and what was wanted."""

from __future__ import annotations


class IrtevalError(Exception):
    """Base class of every error that irteval raises on purpose.

    ``file``, ``line`` and ``field`` locate the fault where there is a place to point at; ``code`` is a
    short stable name for programs.
    """

    code = "error"
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        message = r"\n".join(message.splitlines())  # a name quoted from a damaged file can hold line breaks
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.field = field

    def __str__(self) -> str:
        place = [str(self.file)] if self.file is not None else []
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.field is not None:
            place.append(f"field '{self.field}'")
        return f"{', '.join(place)}: {self.message}" if place else self.message

    def to_json(self) -> dict[str, str | int | None]:
        """The value of the key ``error`` in a ``--json`` document."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "field": self.field,
        }


class InputError(IrtevalError):
    """A file, table or argument that can't be used as it stands."""

    code = "bad_input"
    exit_code = 2


class BankMismatchError(IrtevalError):
    """The item bank does not hold the items that it is asked to score."""

    code = "bank_mismatch"
    exit_code = 4


class ConvergenceError(IrtevalError):
    """A fit that did not reach its certificate: its numbers are not returned."""

    code = "not_converged"
