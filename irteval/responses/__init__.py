"""What was observed: the response matrix, and readers that fill one from tables."""

from irteval.responses.matrix import ResponseMatrix

__all__ = ["ResponseMatrix"]
