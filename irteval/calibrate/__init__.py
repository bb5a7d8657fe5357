"""Calibration: item parameters and abilities from responses, one estimator a file."""

from irteval.calibrate.calibration import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
