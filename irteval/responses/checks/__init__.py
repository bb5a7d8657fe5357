"""Checks of a response matrix: one a file, each from the matrix to a list of findings."""

from irteval.responses.checks.finding import Finding
from irteval.responses.checks.report import CheckReport, check_responses

__all__ = ["CheckReport", "Finding", "check_responses"]
