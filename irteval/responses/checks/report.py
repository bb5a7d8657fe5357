"""All checks of a response matrix, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from irteval.responses.checks.blocks import blocks
from irteval.responses.checks.consensus import consensus
from irteval.responses.checks.constants import constants
from irteval.responses.checks.coverage import coverage
from irteval.responses.checks.duplicate_items import duplicate_items
from irteval.responses.checks.finding import SEVERITIES, Finding, Severity
from irteval.responses.checks.sample import MOST
from irteval.responses.checks.similar_items import similar_items
from irteval.responses.checks.similar_subjects import similar_subjects
from irteval.responses.checks.versions import versions
from irteval.responses.matrix import ResponseMatrix

SAMPLE = "sample"


@dataclass(frozen=True)
class CheckReport:
    """What the checks found, the gravest first.

    Attributes:
        findings: what a person should know.
        checks: the names of the checks that were made.
    """

    findings: tuple[Finding, ...]
    checks: tuple[str, ...]

    @property
    def worst(self) -> Severity | None:
        """The gravest severity; None where nothing was found."""
        return max((finding.severity for finding in self.findings), key=SEVERITIES.index, default=None)

    @property
    def usable(self) -> bool:
        """Whether the data can be used at all."""
        return self.worst != "fatal"

    def to_json(self) -> dict[str, Any]:
        """Plain values: ``worst``, ``counts`` by severity, ``checks`` made, ``findings``."""
        counts = {
            severity: sum(finding.severity == severity for finding in self.findings)
            for severity in SEVERITIES
        }
        return {
            "worst": self.worst,
            "counts": counts,
            "checks": list(self.checks),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a finding: check, severity, benchmark, what, subjects, items (counts)."""
        return pd.DataFrame(
            [
                (f.check, f.severity, f.benchmark, f.what, f.subjects.total, f.items.total)
                for f in self.findings
            ],
            columns=["check", "severity", "benchmark", "what", "subjects", "items"],
        )


def check_responses(responses: ResponseMatrix, seed: int = 0) -> CheckReport:
    """Check a response matrix for what breaks public logs without an error.

    Coverage, constant answers, equal contents and unlinked blocks are looked for in every cell. The checks of
    patterns and pairs look at 5,000 subjects and 5,000 items at most (the consensus at 2,000 subjects, and
    5,000 items a benchmark), drawn with ``seed`` where there are more, which a note then says.
    """
    checks: Mapping[str, Callable[[ResponseMatrix], list[Finding]]] = {
        "constant answers": constants,
        "unlinked blocks": blocks,
        "duplicate items": duplicate_items,
        "consensus": partial(consensus, seed=seed),
        "near-duplicate subjects": partial(similar_subjects, seed=seed),
        "near-identical items": partial(similar_items, seed=seed),
        "harness versions": partial(versions, seed=seed),
    }
    findings = coverage(responses)
    if any(finding.severity == "fatal" for finding in findings):
        return CheckReport(tuple(findings), ("coverage",))
    for check in checks.values():
        findings += check(responses)
    findings += _sampled(responses)
    in_order = sorted(findings, key=lambda finding: -SEVERITIES.index(finding.severity))
    return CheckReport(tuple(in_order), ("coverage", *checks))


def _sampled(responses: ResponseMatrix) -> list[Finding]:
    """Says where patterns and pairs were looked for in a part only."""
    sizes = zip(("subjects", "items"), responses.shape, strict=True)
    parts = [f"{MOST:,} of {size:,} {what}" for what, size in sizes if size > MOST]
    if not parts:
        return []
    what = f"patterns and pairs were looked for among {' and '.join(parts)}, drawn at random"
    return [Finding(SAMPLE, "note", what)]
