"""How good is it on subjects it has not seen? Held-out splits, methods, errors and coverage."""

from irteval.validation.run import held_out_scores, validate

__all__ = ["held_out_scores", "validate"]
