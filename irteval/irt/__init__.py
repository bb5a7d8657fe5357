"""Response functions: pure maths on tensors, one file a response model."""

from irteval.irt.parameters import ItemParameters

__all__ = ["ItemParameters"]
