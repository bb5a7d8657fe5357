"""What Inspect's entry point loads: ``inspect eval irteval/adaptive -T task=… -T bank=… --model …``."""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task


@task
def adaptive(
    task: str,
    bank: str,
    task_args: dict[str, Any] | None = None,
    subject: str | None = None,
    budget: int | None = None,
    target: float | None = None,
    level: float = 0.95,
    criterion: str = "score",
    errors: str = "missing",
    seed: int = 0,
    parallel: int = 10,
    scorer: str | None = None,
) -> Task:
    """A task of which only the samples run that the bank's session asks for.

    Args:
        task: ``package/name`` or ``file.py@name``, as on Inspect's command line.
        bank: folder of the item bank.
        task_args: arguments of the task.
        subject: who is tested; part of the seed of every draw. The model by default.
        budget, target, level, criterion, errors, seed: of the session.
        parallel: samples in flight; they are also what is chosen at once.
        scorer: whose value is the score; the first one by default.
    """
    # Inspect loads this module to see which tasks there are: what takes long to import waits.
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import get_model

    from irteval.bank import ItemBank
    from irteval.drivers.inspect_task import adaptive_task
    from irteval.errors import IrtevalError
    from irteval.session import Session

    try:
        name = subject or str(get_model())
    except ValueError:  # called from Python, before Inspect knows of a model
        raise PrerequisiteError("no model is set: name the subject with `subject`") from None
    try:
        session = Session(
            ItemBank.load(bank),
            name,
            budget=budget,
            target=target,
            level=level,
            criterion=criterion,
            errors=errors,
            seed=seed,
            batch=parallel,
        )
        return adaptive_task(session, task, task_args, parallel=parallel, scorer=scorer)
    except IrtevalError as error:
        raise PrerequisiteError(str(error)) from None
