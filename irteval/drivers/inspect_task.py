"""Inspect runs the chosen samples: a task of the user's, driven by a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.scorer import Metric, SampleScore, Value, metric
from scipy.special import ndtri

from irteval.drivers.inspect_source import AdaptiveSource, match_samples
from irteval.drivers.live import HarnessError
from irteval.errors import InputError
from irteval.estimate.result import Estimate
from irteval.session import Session


def adaptive_task(
    session: Session,
    spec: str,
    task_args: dict[str, Any] | None = None,
    *,
    parallel: int = 10,
    scorer: str | None = None,
    max_seconds: float | None = None,
) -> Task:
    """A task of Inspect, driven by a session.

    The metrics of the task's scorers give way to the session's estimate: means over chosen samples are no
    scores of the benchmark.

    Args:
        session: of the subject.
        spec: ``package/name`` or ``file.py@name``.
        task_args: arguments of the task.
        parallel: samples in flight.
        scorer: whose value is the score; the bank's metric, else the first one.
        max_seconds: ask nothing more after so long.

    Raises:
        InputError: no such task, or several.
        BankMismatchError: an item that is no sample of the task.
    """
    from inspect_ai._eval.loader import load_tasks
    from inspect_ai._eval.task.task import resolve_scorer_metrics

    try:
        tasks = load_tasks([spec], task_args or {})
    except Exception as error:  # a task's own code may raise anything
        raise InputError(f"{spec}: {type(error).__name__}: {error}", field="task") from None
    if len(tasks) != 1:
        raise InputError(f"{len(tasks)} tasks by the name '{spec}', wanted one", field="task")
    inner = tasks[0]
    own = session.bank.info.metric
    source = AdaptiveSource(
        session,
        match_samples(session.bank, list(inner.dataset), inner.name),
        parallel=parallel,
        scorer=scorer or (None if own == "score" else own),
        max_seconds=max_seconds,
    )
    metrics = [estimate_metric(session)()]
    # `task_with` leaves the scorers' own metrics in place.
    resolve_scorer_metrics(inner.scorer, metrics)
    known = {"bank": session.bank.info.name, "bank_hash": session.bank.info.content_hash, "task": inner.name}
    return task_with(
        inner,
        dataset=source,
        metrics=metrics,
        metadata=(inner.metadata or {}) | {"irteval": known},
        name=inner.name,
    )


def estimate_metric(session: Session) -> Any:
    """A metric of Inspect that says what the session estimates, in place of a mean of what was asked."""

    @metric(name="irt")
    def irt() -> Metric:
        def compute(scores: list[SampleScore]) -> Value:
            estimate = session.estimate()
            return {
                "irt_score": estimate.score,
                "irt_low": estimate.interval[0],
                "irt_high": estimate.interval[1],
                "irt_stderr": estimate.half_width / float(ndtri((1 + estimate.level) / 2)),
                "items_asked": estimate.items_asked,
                "items_total": estimate.items_total,
            }

        return compute

    return irt


def run_inspect(
    session: Session,
    spec: str,
    model: str,
    *,
    task_args: dict[str, Any] | None = None,
    model_args: dict[str, Any] | None = None,
    parallel: int = 10,
    scorer: str | None = None,
    max_seconds: float | None = None,
    log_dir: Path | None = None,
) -> Estimate:
    """Test a subject with a task of Inspect, until its session stops.

    Args:
        session: of the subject; its folder is the journal.
        spec, task_args, parallel, scorer, max_seconds: as in `adaptive_task`.
        model, model_args: as Inspect names them.
        log_dir: for Inspect's log; Inspect's own folder where None.

    Raises:
        HarnessError: the task ended with an error; what was answered is told, and the run can go on.
    """
    from inspect_ai import eval as inspect_eval

    options: dict[str, Any] = {"parallel": parallel, "scorer": scorer, "max_seconds": max_seconds}
    made = adaptive_task(session, spec, task_args, **options)
    if made.sample_source is not None and not made.sample_source.initial_samples():
        return session.write_results()
    (log,) = inspect_eval(
        made,
        model=model,
        model_args=model_args or {},
        log_dir=None if log_dir is None else str(log_dir),
        max_samples=parallel,
        fail_on_error=False,
        display="none",
    )
    if log.status != "success":
        reason = log.error.message if log.error is not None else log.status
        raise HarnessError(f"Inspect's task ended: {reason}; the same command goes on where this one ended")
    estimate = session.write_results()
    return estimate if session.stopped is not None else estimate.with_stop("budget")
