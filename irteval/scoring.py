"""Full scores from answers that are already there, however their items were chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri

from irteval.bank import ItemBank
from irteval.cohort import Cohort
from irteval.errors import InputError
from irteval.estimate.result import Estimate
from irteval.files import read_json
from irteval.journal import ESTIMATES_FILE
from irteval.responses import ResponseMatrix
from irteval.session import KNOWN_SUBJECT

UNKNOWN_CHOICE = (
    "how the items were chosen is unknown (no probability and step): the interval rests on the model alone"
)
CELLS = 1_000_000  # subjects times items that are scored together


def score(
    bank: ItemBank, responses: ResponseMatrix, *, level: float = 0.95, device: str = "cpu"
) -> list[Estimate]:
    """The full score of every subject from whichever items it answered.

    Where the responses carry the ``probability`` and ``step`` of a designed sample, the design-based part of
    the estimate is used; a missing probability marks an item that was chosen rather than drawn.

    Args:
        bank: the calibrated items.
        responses: of the subjects to score; items that the bank does not hold are left out.
        level: of the intervals.
        device: where the arithmetic runs.

    Raises:
        BankMismatchError: the responses are not of the bank's items.
        InputError: scores without item ids, a level outside (0, 1), no subject.
    """
    if not isinstance(responses, ResponseMatrix):
        size = len(responses) if hasattr(responses, "__len__") else 1
        raise InputError(
            f"{size} scores without item ids, wanted a ResponseMatrix that names the items", field="responses"
        )
    if not 0 < level < 1:
        raise InputError(f"{level}, wanted a fraction between 0 and 1", field="level")
    known = bank.match(responses)
    if not known.subjects:
        raise InputError("no subject, wanted at least one", field="subject")
    size = max(1, CELLS // len(bank))
    parts = [
        known.take(subjects=np.arange(start, min(start + size, len(known.subjects))))
        for start in range(0, len(known.subjects), size)
    ]
    return [estimate for part in parts for estimate in _score(bank, part, level, device)]


def recorded_score(
    bank: ItemBank, responses: ResponseMatrix, subject: str, level: float
) -> tuple[float, float]:
    """The interval of one subject's full score; lower and upper limit meet where every item has an answer.

    Raises:
        InputError: no such subject.
    """
    if subject not in responses.subjects:
        raise InputError(f"subject '{subject}' has no recorded responses", field="rival")
    row = np.array([responses.subjects.index(subject)])
    (estimate,) = score(bank, responses.take(subjects=row), level=level)
    return estimate.interval


def earlier_scores(path: Path, level: float) -> dict[str, tuple[float, float]]:
    """The intervals of the subjects of an earlier run, at ``level``.

    Args:
        path: a run folder, or a file with the document of ``--json``.
        level: the intervals' widths are those of a normal error at it.

    Raises:
        InputError: there are no estimates.
    """
    file = path / ESTIMATES_FILE if path.is_dir() else path
    document = read_json(file) if file.is_file() else None
    estimates = document.get("estimates") if isinstance(document, dict) else None
    if not estimates:
        raise InputError("no estimates, wanted a run that has ended", file=str(file), field="rival")
    found = {}
    for estimate in estimates:
        low, high = estimate["interval"]
        scale = ndtri((1 + level) / 2) / ndtri((1 + estimate["level"]) / 2)
        centre, half_width = (low + high) / 2, scale * (high - low) / 2
        limits = np.clip([centre - half_width, centre + half_width], 0, 1)
        found[estimate["subject"]] = (float(limits[0]), float(limits[1]))
    return found


def _score(bank: ItemBank, responses: ResponseMatrix, level: float, device: str) -> list[Estimate]:
    cohort = Cohort(bank, responses.subjects, device=device)
    if responses.step is not None and responses.probability is not None:
        _replay_design(cohort, responses.to_frame(), bank)
    else:
        cohort.adopt(torch.as_tensor(responses.dense(), device=cohort.device))
    look = cohort.look(torch.arange(len(responses.subjects), device=cohort.device), level)
    designed = cohort.design_score(look.rows).draws > 0
    counts = responses.subject_counts()
    warnings = []
    for r, subject in enumerate(responses.subjects):
        lines = []
        if counts[r] == 0:
            lines.append("no answer to any item of the bank: the estimate is that of an unknown subject")
        elif counts[r] < len(bank) and not designed[r]:
            lines.append(UNKNOWN_CHOICE)
        if bank.knows_subject(subject):
            lines.append(KNOWN_SUBJECT)
        warnings.append(tuple(lines))
    return cohort.estimates(look, warnings)


def _replay_design(cohort: Cohort, answers: pd.DataFrame, bank: ItemBank) -> None:
    """Ask and tell again, step by step, so that every prediction is made from earlier steps alone."""
    place = {subject: row for row, subject in enumerate(cohort.subjects)}
    for _, part in answers.groupby(["step", "subject"], sort=True):
        row = place[part["subject"].iloc[0]]
        items = torch.as_tensor(bank.index(part["item"]), device=cohort.device)
        cohort.restore(row, items.tolist(), part["probability"].tolist(), int(cohort.steps[row]))
        y = torch.as_tensor(part["score"].to_numpy(np.float64), device=cohort.device)
        cohort.tell(torch.tensor([row], device=cohort.device), items[None], y[None])
