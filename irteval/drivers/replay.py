"""Replay: recorded responses stand in for the subject, many subjects at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.bank import ItemBank
from irteval.cohort import Asked, Cohort, Look
from irteval.errors import InputError
from irteval.estimate.result import Estimate
from irteval.journal import JournalLine, RunFolder, now
from irteval.responses import ResponseMatrix
from irteval.session import KNOWN_SUBJECT, SessionSettings, run_settings, trajectory_row

CELLS = 1_000_000  # subjects times items that are followed together


def replay(
    bank: ItemBank,
    responses: ResponseMatrix,
    *,
    subjects: Sequence[str] | None = None,
    out: str | PathLike[str] | None = None,
    bank_path: str | PathLike[str] | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> list[Estimate]:
    """Test recorded subjects as if they were being asked.

    An item that a subject has no recorded response to is never asked of it; it stays part of the full score.

    Args:
        bank: the calibrated items.
        responses: recorded responses.
        subjects: who is tested; every subject where None.
        out: run folder; a run with the same settings that is there already goes on.
        bank_path: where the bank is saved; kept in the run folder.
        device: where the arithmetic runs.
        progress: called with the number of finished and of all subjects.
        settings: the attributes of `irteval.session.SessionSettings`.

    Returns:
        One estimate a subject, in their order.

    Raises:
        BankMismatchError: the responses are not of the bank's items.
        InputError: an unknown subject, a setting outside its range.
    """
    chosen = SessionSettings(**settings)
    known = bank.match(responses)
    names = list(responses.subjects) if subjects is None else list(subjects)
    place = {name: row for row, name in enumerate(known.subjects)}
    for name in names:
        if name not in place:
            raise InputError(f"subject '{name}' has no recorded responses", field="subject")
    folder = None
    if out is not None:
        document = run_settings(bank, bank_path or bank.info.name, subjects=names, **asdict(chosen))
        folder = RunFolder.create_or_resume(out, document)
    done: list[Estimate] = []
    rows: list[dict[str, Any]] = []
    size = max(1, CELLS // len(bank)) if chosen.criterion != "fisher" else len(names)
    try:
        for start in range(0, len(names), max(size, 1)):
            part = names[start : start + size]
            recorded = known.take(subjects=np.array([place[name] for name in part])).dense()
            run = _Replay(bank, part, recorded, chosen, folder, device)
            done += run.finish()
            rows += run.trajectory
            if progress is not None:
                progress(len(done), len(names))
        if folder is not None:
            folder.write_trajectory(pd.DataFrame(rows))
            folder.write_estimates({"estimates": [estimate.to_json() for estimate in done]})
    finally:
        if folder is not None:
            folder.close()
    return done


class _Replay:
    """Subjects in lockstep: those that were, and are next, asked equally many items are planned together."""

    def __init__(
        self,
        bank: ItemBank,
        subjects: Sequence[str],
        recorded: NDArray[np.float64],
        settings: SessionSettings,
        folder: RunFolder | None,
        device: str,
    ) -> None:
        self.bank, self.subjects, self.settings, self.folder = bank, subjects, settings, folder
        self.cohort = Cohort(
            bank,
            subjects,
            criterion=settings.criterion,
            seed=settings.seed,
            available=~np.isnan(recorded),
            cost=settings.item_costs(bank),
            shares=settings.shares,
            prior=settings.prior,
            device=device,
        )
        self.recorded = torch.as_tensor(recorded, device=self.cohort.device)
        self.budget = min(settings.budget or len(bank), len(bank))
        self.goal = settings.goal
        self.trajectory: list[dict[str, Any]] = []
        self.estimates: list[Estimate | None] = [None] * len(subjects)

    def finish(self) -> list[Estimate]:
        """Ask until every subject has stopped."""
        if self.folder is not None:
            self._restore(self.folder)
        active = torch.arange(len(self.subjects), device=self.cohort.device)
        while len(active):
            active = torch.cat([self._round(rows) for rows in self._alike(active)])
        return [estimate for estimate in self.estimates if estimate is not None]

    def _alike(self, active: Tensor) -> Iterator[Tensor]:
        """Groups for `Cohort.plan`; nobody's batch is cut short because another subject has fewer items."""
        count = torch.minimum(self._room(active), self.cohort.wanted(active, self.settings.batch))
        keys = torch.stack([self.cohort.asked[active], count], 1)
        groups, member = torch.unique(keys, dim=0, return_inverse=True)
        for group in range(len(groups)):
            yield active[member == group]

    def _room(self, rows: Tensor) -> Tensor:
        return torch.minimum(self.budget - self.cohort.asked[rows], self.cohort.open_items()[rows])

    def _round(self, rows: Tensor) -> Tensor:
        """Look, stop who may stop, ask the others; returns those who go on."""
        room = self._room(rows)
        over = room < 1
        stop = over.clone()
        if self.goal is not None or self.folder is not None or bool(over.any()):
            stop = self._look(rows, over)
        going = rows[~stop]
        if len(going):
            plan = self.cohort.plan(going, int(room[~stop].min()), self.settings.batch)
            self._answer(going, plan)
        return going

    def _look(self, rows: Tensor, over: Tensor) -> Tensor:
        look = self.cohort.look(rows, self.settings.level, self.goal)
        stop = look.decision.stop | over
        if not bool(stop.any()) and self.folder is None:
            return stop
        open_items = self.cohort.open_items()[rows]
        for r, estimate in enumerate(self._note(look)):
            if bool(stop[r]):
                empty = "bank_empty" if int(open_items[r]) == 0 else "budget"
                self.estimates[int(rows[r])] = estimate.with_stop(look.reason(r, self.goal) or empty)
        return stop

    def _note(self, look: Look) -> list[Estimate]:
        """Estimates of a look, which go into the trajectory."""
        rows = look.rows.tolist()
        estimates = self.cohort.estimates(look, [self._warnings(row) for row in rows])
        self.trajectory += [
            trajectory_row(estimate, int(self.cohort.steps[row]))
            for row, estimate in zip(rows, estimates, strict=True)
            if estimate.items_asked
        ]
        return estimates

    def _warnings(self, row: int) -> tuple[str, ...]:
        missing = int(self.recorded[row].isnan().sum())
        lines = [f"{missing} items have no recorded response and could not be asked"] if missing else []
        if self.bank.knows_subject(self.subjects[row]):
            lines.append(KNOWN_SUBJECT)
        return tuple(lines)

    def _answer(self, rows: Tensor, plan: Asked) -> None:
        y = self.recorded[rows].gather(1, plan.items)
        if self.folder is not None:
            # Asked before told: after a kill between the two the step is known as it was drawn.
            self.folder.append_asked(self._lines(rows, plan, None))
            self.folder.append_told(self._lines(rows, plan, y))
        self.cohort.tell(rows, plan.items, y)

    def _lines(self, rows: Tensor, plan: Asked, y: Tensor | None) -> list[JournalLine]:
        time = now()
        scores = torch.full_like(plan.inclusion, torch.nan) if y is None else y
        return [
            JournalLine(
                time=time,
                subject=self.subjects[row],
                item=self.bank.items[item],
                score=None if y is None else score,
                status="asked" if y is None else "ok",
                step=plan.step,
                probability=None if np.isnan(probability) else probability,
            )
            for row, items, values, inclusion in zip(
                rows.tolist(), plan.items.tolist(), scores.tolist(), plan.inclusion.tolist(), strict=True
            )
            for item, score, probability in zip(items, values, inclusion, strict=True)
        ]

    def _restore(self, folder: RunFolder) -> None:
        """Ask and tell again what the folder holds.

        A step that was asked and not told at all is drawn anew: the same items, the draw being a function of
        seed, subject and step. Of a step that was told in part, the rest is told now.
        """
        position = {name: row for row, name in enumerate(self.subjects)}
        told = {(line.subject, line.item) for line in folder.told()}
        steps: dict[int, dict[int, dict[str, JournalLine]]] = {}
        for line in folder.asked():
            if line.subject in position:
                rows = steps.setdefault(line.step or 0, {})
                rows.setdefault(position[line.subject], {})[line.item] = line
        for step, rows in sorted(steps.items()):
            known = {
                row: asked
                for row, asked in sorted(rows.items())
                if any((self.subjects[row], item) in told for item in asked)
            }
            if known:
                before = torch.tensor(list(known), device=self.cohort.device)
                self._note(self.cohort.look(before, self.settings.level, self.goal))
            late = [line for row, asked in known.items() for line in self._restore_step(row, step, asked)]
            folder.append_told(line for line in late if (line.subject, line.item) not in told)

    def _restore_step(self, row: int, step: int, asked: dict[str, JournalLine]) -> list[JournalLine]:
        """Ask and tell one step of one subject again; returns the lines that telling it makes."""
        items = torch.as_tensor(self.bank.index(asked), device=self.cohort.device)[None]
        inclusion = [np.nan if line.probability is None else line.probability for line in asked.values()]
        self.cohort.restore(row, items[0].tolist(), inclusion, step)
        rows = torch.tensor([row], device=self.cohort.device)
        y = self.recorded[rows].gather(1, items)
        self.cohort.tell(rows, items, y)
        drawn = torch.tensor([inclusion], dtype=torch.float64, device=self.cohort.device)
        return self._lines(rows, Asked(items, drawn, step), y)
