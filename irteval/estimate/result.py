"""The answer to "what would the whole benchmark have said?": a score, its interval, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """The full-benchmark score of one subject, as the ``estimates`` of every ``--json`` document list it.

    Attributes:
        subject: the subject's id.
        benchmark: the benchmark's name; ``total`` for the mean over a suite.
        score: estimated mean over all items, observed ones as observed; a fraction in [0, 1].
        interval: lower and upper limit at ``level``, fractions in [0, 1].
        level: nominal coverage of the interval, such as .95.
        items_asked: items with an answer.
        items_total: items of the benchmark.
        ability: posterior mean of theta under the bank's primary response model, one value a dimension.
        ability_se: its posterior standard deviations.
        method: name of the score estimator.
        stopped: why the session ended: ``target``, ``difference``, ``rank``, ``budget``, ``bank_empty``,
            ``interrupted``; None while it goes on or where nothing was being asked.
        extrapolating: the subject is beyond, or unlike, the calibrated ones.
        warnings: one line each.
        groups: the same for each benchmark of a suite.
    """

    subject: str
    benchmark: str
    score: float
    interval: tuple[float, float]
    level: float
    items_asked: int
    items_total: int
    ability: tuple[float, ...]
    ability_se: tuple[float, ...]
    method: str
    stopped: str | None = None
    extrapolating: bool = False
    warnings: tuple[str, ...] = ()
    groups: tuple[Estimate, ...] = ()

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.interval[1] - self.interval[0]) / 2

    def to_json(self) -> dict[str, Any]:
        """The estimate as plain JSON values, key by key as the attributes stand."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("interval", "ability", "ability_se", "warnings"):
            document[name] = list(document[name])
        document["groups"] = [group.to_json() for group in self.groups]
        return document

    def with_stop(self, stopped: str | None) -> Estimate:
        """The same estimate with the reason why its session ended."""
        return replace(self, stopped=stopped)
