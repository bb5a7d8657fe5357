"""Full-benchmark scores of language models from a few adaptively chosen items, with intervals that hold.

    import irteval as ie

    bank = ie.fit(ie.read_responses("responses.parquet"))
    session = ie.Session(bank, subject="new-checkpoint", budget=50)

Names are imported when they are first used, so that ``import irteval`` stays quick: no torch, no pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irteval.bank import ItemBank
    from irteval.calibrate.fit import fit
    from irteval.drivers.replay import replay as run
    from irteval.estimate.result import Estimate
    from irteval.responses.checks import check_responses
    from irteval.responses.importing import import_logs
    from irteval.responses.matrix import ResponseMatrix
    from irteval.responses.read import read_responses
    from irteval.scoring import score
    from irteval.session import Response, Session
    from irteval.validation import validate

from irteval.errors import BankMismatchError, ConvergenceError, InputError, IrtevalError

__version__ = "0.1.0"

__all__ = [
    "BankMismatchError",
    "ConvergenceError",
    "Estimate",
    "InputError",
    "IrtevalError",
    "ItemBank",
    "Response",
    "ResponseMatrix",
    "Session",
    "__version__",
    "check_responses",
    "fit",
    "import_logs",
    "read_responses",
    "run",
    "score",
    "validate",
]

# Public name -> (module, name there).
_HOMES = {
    "Estimate": ("irteval.estimate.result", "Estimate"),
    "ItemBank": ("irteval.bank", "ItemBank"),
    "Response": ("irteval.session", "Response"),
    "ResponseMatrix": ("irteval.responses.matrix", "ResponseMatrix"),
    "Session": ("irteval.session", "Session"),
    "check_responses": ("irteval.responses.checks", "check_responses"),
    "fit": ("irteval.calibrate.fit", "fit"),
    "import_logs": ("irteval.responses.importing", "import_logs"),
    "read_responses": ("irteval.responses.read", "read_responses"),
    "run": ("irteval.drivers.replay", "replay"),
    "score": ("irteval.scoring", "score"),
    "validate": ("irteval.validation", "validate"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'irteval' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
