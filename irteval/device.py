"""Where tensors live: the device behind the names that the command line and the fits take."""

from __future__ import annotations

import torch

from irteval.errors import InputError


def torch_device(name: str) -> torch.device:
    """The device of a name: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.

    Raises:
        InputError: another name, or CUDA where there is none.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"'{name}', wanted auto, cpu or cuda", field="device")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("no CUDA device is available, wanted one", field="device")
    return torch.device("cuda" if name != "cpu" and available else "cpu")
