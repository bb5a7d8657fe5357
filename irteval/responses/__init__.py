"""What was observed: the response matrix, and readers that fill one from tables."""

from irteval.responses.matrix import ResponseMatrix
from irteval.responses.read import read_responses

__all__ = ["ResponseMatrix", "read_responses"]
