"""From responses to an item bank: the primary fit, the scorer's fits, and what it keeps of the source."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pandas as pd

from irteval.bank import FitReport, ItemBank
from irteval.calibrate.calibration import Calibration, calibrate
from irteval.calibrate.source import score_model
from irteval.errors import ConvergenceError, InputError
from irteval.responses import ResponseMatrix

OF_ITEMS = ("prompt_hash", "cost")  # what was sent, which a live run is compared with; what asking costs
SCORER_DIMS = ((48, (2, 4)), (20, (1, 2)), (2, (1,)))  # least number of subjects, dimensions mixed


def fit(
    responses: ResponseMatrix,
    *,
    response_model: str = "2pl",
    dims: int = 1,
    estimator: str = "auto",
    priors: bool = True,
    device: str = "auto",
    seed: int = 0,
    metric: str = "score",
    name: str | None = None,
    dates: Mapping[str, str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> ItemBank:
    """Calibrate an item bank.

    Whatever the primary response model, the bank also holds the signed two-parameter fits that the default
    scorer
    mixes: in 2 and 4 dimensions from 48 subjects on, in 1 and 2 from 20 on, else in 1.

    Args:
        responses: of M subjects to N items; items without any answer are kept.
        response_model: ``1pl`` or ``2pl``.
        dims: K of the primary fit.
        estimator: ``auto``, ``variational`` or ``grid``.
        priors: hierarchical priors on the primary fit's item parameters.
        device: ``auto``, ``cpu`` or ``cuda``.
        seed: for whatever is drawn at random.
        metric: name of the score, kept in the bank.
        name: of the bank, and of its benchmark where the responses name none.
        dates: ISO dates by name, kept in the bank.
        progress: called with a line before each part of the work.

    Raises:
        InputError: responses that can't carry a fit.
        ConvergenceError: a fit without its certificate.
    """
    began = time.perf_counter()
    tell = progress or (lambda line: None)
    answering = int((responses.subject_counts() > 0).sum())
    if answering < 2:
        raise InputError(f"{answering} subject(s) with answers, wanted at least 2", field="subject")
    tell(f"fitting the {response_model} in {dims} dimension{'s' if dims > 1 else ''}")
    primary = calibrate(
        responses,
        response_model=response_model,
        dims=dims,
        estimator=estimator,
        priors=priors,
        device=device,
        seed=seed,
    )
    wanted = next(sizes for least, sizes in SCORER_DIMS if answering >= least)
    fits: dict[str, Calibration] = {}
    warnings = list(primary.warnings)
    for k in wanted:
        same = response_model == "2pl" and k == dims
        if same and priors and primary.estimator == "variational":
            fits[f"k{k}"] = primary
            continue
        tell(f"fitting the scorer's 2pl in {k} dimension{'s' if k > 1 else ''}")
        try:
            # A primary 2PL by another estimator has the short name already.
            fits[f"scorer_k{k}" if same else f"k{k}"] = calibrate(
                responses, dims=k, estimator="variational", device=device, seed=seed
            )
        except ConvergenceError as error:
            if k == wanted[-1] and not fits:
                raise
            warnings.append(f"the scorer goes without its fit in {k} dimensions: {error}")
    benchmarks = responses.benchmarks or (name or ItemBank.UNNAMED,) * len(responses.items)
    tell("summarising the source")
    model = score_model(responses, fits, benchmarks, seed)
    return ItemBank.build(
        responses.items,
        primary.parameters,
        benchmarks=benchmarks,
        item_table=_item_table(responses),
        further={k: v.parameters for k, v in fits.items() if v is not primary},
        score_model=model,
        subjects=responses.subjects,
        name=name,
        metric=metric,
        dates=dates,
        calibration=f"{primary.estimator}, priors {'on' if priors else 'off'}",
        fit_report=FitReport(
            response_model=response_model,
            dims=dims,
            subjects=responses.shape[0],
            items=responses.shape[1],
            cells=responses.cells,
            converged=primary.converged,
            iterations=primary.iterations,
            seconds=time.perf_counter() - began,
            warnings=tuple(warnings),
        ),
    )


def _item_table(responses: ResponseMatrix) -> pd.DataFrame:
    """What the bank keeps of each item: how often it was answered, its mean, and what identifies it."""
    table = pd.DataFrame({"times_answered": responses.item_counts(), "mean": responses.item_means()})
    known = pd.DataFrame() if responses.item_table is None else responses.item_table
    for name in OF_ITEMS:
        if name in known:
            table[name] = known[name].to_numpy()
    return table
