"""Which metric is read: one a benchmark, asked for or by a stated default, never filled in from another.

The default is, among the metrics whose scores are all shares in [0, 1] that are better when higher, what
the harness itself puts first (the headline scorer of Inspect, the main metric of a HELM schema), else the
first of ``METRICS`` that is there, else the first by name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irteval.errors import InputError

ALL = "all"
METRICS = (
    "acc_norm",
    "acc",
    "exact_match",
    "em",
    "quasi_exact_match",
    "prompt_level_strict_acc",
    "pass@1",
    "resolved",
    "score",
    "is_correct",
    "preference",
    "f1",
)
_LISTED = 5


def check_metric(metric: str | None, known: Collection[str]) -> None:
    """Refuse a metric that no log has.

    Raises:
        InputError: with the metrics that are there.
    """
    if metric in (None, ALL) or metric in known:
        return
    inner = [name for name in known if name.startswith(f"{metric}.")]
    if inner:
        message = f"'{metric}' holds several values by name, wanted one of {listed(inner)}"
    else:
        message = f"no metric '{metric}', wanted one of {listed(sorted(known))}"
    raise InputError(message, field="metric")


def default_metric(there: Sequence[str], fit: Collection[str], main: Sequence[str]) -> str | None:
    """The metric of a benchmark where none is asked for.

    Args:
        there: metrics that some record has.
        fit: those of them whose scores are all shares in [0, 1], better when higher.
        main: what the harness puts first, best first.

    Returns:
        None where there is no metric at all; one that does not fit where none does.
    """
    for name in (*main, *METRICS, *sorted(fit)):
        if name in fit:
            return name
    return min(there, default=None)


def listed(names: Sequence[str]) -> str:
    """Names for people: the first five, and how many more."""
    shown = ", ".join(names[:_LISTED])
    return f"{shown} and {len(names) - _LISTED} more" if len(names) > _LISTED else shown
