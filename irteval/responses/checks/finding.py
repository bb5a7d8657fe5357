"""What a check finds: one statement, how grave it is, whom it concerns, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["note", "warning", "fatal"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning", "fatal")

# So many ids are listed, and so many findings of one check; the others are counted.
LISTED_IDS = 10
LISTED_FINDINGS = 20


class Named(NamedTuple):
    """Some ids: the first few, and how many there are."""

    ids: tuple[str, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, ids: Sequence[str], positions: Sequence[int] | Any = None) -> Named:
        """Of these ids, or of those at some positions."""
        if positions is None:
            return cls(tuple(ids[:LISTED_IDS]), len(ids))
        return cls(tuple(ids[int(position)] for position in positions[:LISTED_IDS]), len(positions))

    def to_json(self) -> dict[str, Any]:
        """The ids that are listed, and the count of all."""
        return {"count": self.total, "ids": list(self.ids)}


NOBODY = Named()


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know of a response matrix.

    Attributes:
        check: which check found it.
        severity: ``note`` may be as it should; ``warning`` likely is not; ``fatal``: the data can't be used.
        what: one sentence.
        subjects, items: whom it concerns.
        benchmark: where it holds for one alone.
        figures: the numbers that it rests on, by name.
    """

    check: str
    severity: Severity
    what: str
    subjects: Named = NOBODY
    items: Named = NOBODY
    benchmark: str | None = None
    figures: Mapping[str, float | int | str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values, without what does not apply."""
        content: dict[str, Any] = {"check": self.check, "severity": self.severity, "what": self.what}
        if self.benchmark is not None:
            content["benchmark"] = self.benchmark
        for name, named in (("subjects", self.subjects), ("items", self.items)):
            if named.total:
                content[name] = named.to_json()
        return content | ({"figures": dict(self.figures)} if self.figures else {})


def listed(findings: Sequence[Finding]) -> list[Finding]:
    """The first findings of a check, and where there are more a last one that counts them."""
    if len(findings) <= LISTED_FINDINGS:
        return list(findings)
    left_out = findings[LISTED_FINDINGS:]
    gravest = max((finding.severity for finding in left_out), key=SEVERITIES.index)
    more = Finding(findings[0].check, gravest, f"{len(left_out)} more findings of this kind")
    return [*findings[:LISTED_FINDINGS], more]


def counted(number: int, what: str) -> str:
    """``1 item``, ``2 items``."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
