"""The live drivers of ``run``: from options to a harness, one function a driver."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from irteval.cli.console import Console
from irteval.cli.driving import Options

if TYPE_CHECKING:
    from irteval.bank import ItemBank
    from irteval.drivers.live import Harness
    from irteval.drivers.ranks import RankedHarness
    from irteval.estimate.result import Estimate
    from irteval.session import Session


@dataclass(frozen=True)
class Live:
    """A run with a live driver.

    Attributes:
        bank, bank_path: what is tested with.
        out: the run folder; None keeps nothing.
        settings: of the session.
        at_once: as in `irteval.drivers.live.run_live`.
        subjects: who is named to be tested.
        driver: its name.
        options: of the live drivers.
    """

    bank: ItemBank
    bank_path: Path
    out: Path | None
    settings: Mapping[str, Any]
    at_once: int | None
    subjects: Sequence[str] | None
    driver: str
    options: Options

    @property
    def work(self) -> Path | None:
        """Where a driver keeps files of its own."""
        from irteval.journal import WORK_FOLDER

        return None if self.out is None else self.out / WORK_FOLDER

    def wanted(self, name: str, flag: str) -> Any:
        """An option that the driver can't do without."""
        if not getattr(self.options, name):
            raise typer.BadParameter(f"wanted with --driver {self.driver}", param_hint=f"'{flag}'")
        return getattr(self.options, name)

    def subject(self, default: str) -> str:
        """Who is tested: one subject."""
        named = self.subjects or [default]
        if len(named) > 1:
            raise typer.BadParameter("one subject a run with a live driver", param_hint="'--subject'")
        return str(named[0])

    def drive(self, console: Console, harness: Harness, subject: str, **kept: Any) -> Estimate:
        """Test one subject; the run in the folder goes on where there is one with the same settings.

        Args:
            console: shows progress.
            harness: what answers.
            subject: who is tested.
            kept: settings of the driver that the answers depend on.
        """
        from irteval.drivers.live import run_live

        with self.session(console, subject, **kept) as session, console.bar("items answered") as progress:
            return run_live(
                session,
                harness,
                at_once=self.at_once,
                concurrency=self.options.concurrency,
                max_seconds=self.options.max_seconds,
                progress=progress,
            )

    @contextmanager
    def session(self, console: Console, subject: str, **kept: Any) -> Iterator[Session]:
        """The session in the run folder, a new one where there is none."""
        from irteval.session import Session

        if self.out is None:
            yield Session(self.bank, subject, device=console.device, **self.settings)
            return
        session = Session.create_or_resume(
            self.out,
            self.bank,
            self.bank_path,
            subject,
            {"name": self.driver, **kept},
            device=console.device,
            **self.settings,
        )
        console.notes(session.folder.notes if session.folder else [])
        try:
            yield session
        finally:
            session.close()


def command(console: Console, live: Live) -> list[Estimate]:
    """``--driver command``."""
    from irteval.drivers.command import CommandHarness

    line = live.wanted("command", "--command")
    with tempfile.TemporaryDirectory() as scratch:
        harness = CommandHarness(line, live.work or Path(scratch), live.options.timeout)
        return [live.drive(console, harness, live.subject("subject"), command=line)]


def openai(console: Console, live: Live) -> list[Estimate]:
    """``--driver openai``."""
    from irteval.drivers.openai import OpenAIHarness
    from irteval.drivers.prompts import read_prompts

    options = live.options
    kept = {
        "model": live.wanted("model", "--model"),
        "base_url": options.base_url,
        "api": options.api,
        "scoring": options.scoring,
        "pattern": options.pattern,
        "options": key_values(options.model_args, "-M"),
    }
    by_choice = str(options.scoring).startswith("choice")
    prompts = read_prompts(live.wanted("prompts", "--prompts"), live.bank, by_choice=by_choice)
    # One item a request: a slot that is free is filled at once.
    settings = dict(live.settings) | {"batch": live.settings["batch"] or options.concurrency}
    one_by_one = replace(live, at_once=1, settings=settings)
    harness = OpenAIHarness(
        prompts,
        **kept,
        timeout=options.timeout or 120.0,
        retries=options.retries,
        prices=options.prices,
        folder=live.work,
        connections=options.concurrency,
    )
    return [one_by_one.drive(console, harness, live.subject(kept["model"]), **kept)]


def lm_eval(console: Console, live: Live) -> list[Estimate]:
    """``--driver lm-eval``; with ``--checkpoints`` one after the other, tasks loaded once; under ``torchrun``
    the first rank alone says what came out."""
    from irteval.drivers.lm_eval import LmEvalTasks, TaskOptions
    from irteval.drivers.ranks import Ranks

    options, ranks = live.options, Ranks()
    if ranks.rank:
        console.quiet = True
    arguments = key_values(options.model_args, "-M")
    tasks = LmEvalTasks(
        live.bank,
        [name for name in str(options.tasks or "").split(",") if name],
        include_path=options.include_path,
        options=_task_options(TaskOptions, options.task_args),
        metadata=arguments,
        metric=options.metric,
    )
    if options.checkpoints is None:
        if options.from_previous:
            raise typer.BadParameter("wanted with --checkpoints", param_hint="'--from-previous'")
        estimates = [_lm_eval_subject(console, live, tasks, arguments)]
    else:
        estimates = _lm_eval_series(console, live, tasks, arguments, options.checkpoints)
    if ranks.rank:
        raise typer.Exit
    return estimates


def _lm_eval_series(
    console: Console, live: Live, tasks: Any, arguments: dict[str, Any], pattern: str
) -> list[Estimate]:
    """Checkpoints, one after the other."""
    estimates: list[Estimate] = []
    for path in _in_order(pattern):
        own = replace(live, out=live.out and live.out / Path(path).name)
        if live.options.from_previous and estimates:
            own = replace(own, settings=dict(own.settings) | _prior(estimates[-1]))
        console.say(f"checkpoint {path}")
        estimates.append(_lm_eval_subject(console, own, tasks, arguments | {"pretrained": path}))
    return estimates


def _prior(previous: Estimate) -> dict[str, Any]:
    """The settings of a session that starts from another subject's ability."""
    # Rounded, so that a run that goes on has the settings that it began with.
    return {
        "prior_mean": [round(value, 6) for value in previous.ability],
        "prior_sd": [round(value, 6) for value in previous.ability_se],
    }


def _lm_eval_subject(console: Console, live: Live, tasks: Any, arguments: dict[str, Any]) -> Estimate:
    from irteval.drivers.lm_eval import LmEvalHarness
    from irteval.drivers.lm_eval_output import write_lm_eval_files
    from irteval.drivers.ranks import RankedHarness, Ranks

    model, ranks = live.options.model or "hf", Ranks()
    harness = LmEvalHarness(tasks, model, arguments, folder=None if ranks.rank else live.work)
    names = ("pretrained", "model", "path")
    subject = live.subject(next((str(arguments[name]) for name in names if name in arguments), model))
    kept = {"model": model, "model_args": arguments, "tasks": sorted(tasks.tasks), **asdict(tasks.options)}
    if ranks.size == 1:
        estimate = live.drive(console, harness, subject, **kept)
    else:
        estimate = _drive_together(console, live, RankedHarness(harness, ranks), subject, kept)
    if live.out is not None and ranks.rank == 0:
        files = write_lm_eval_files(harness, estimate, live.out / "lm-eval")
        console.say(f"lm-eval's files: {files[0].parent}")
    return estimate


def _drive_together(
    console: Console, live: Live, harness: RankedHarness, subject: str, kept: dict[str, Any]
) -> Estimate:
    """Under ``torchrun``: the first rank tests, the others serve it and learn its estimate."""
    if live.options.concurrency > 1:
        raise typer.BadParameter("wanted 1: ranks answer together", param_hint="'--concurrency'")
    ranks = harness.ranks
    ranks.join()
    estimate: Estimate | None = None
    if ranks.rank:
        harness.serve()
    else:
        try:
            estimate = live.drive(console, harness, subject, **kept)
        except BaseException:
            harness.finish()
            ranks.broadcast(None)
            raise
        harness.finish()
    estimate = ranks.broadcast(estimate)
    if estimate is None:  # the first rank has said why
        raise typer.Exit(1)
    return estimate


def inspect(console: Console, live: Live) -> list[Estimate]:
    """``--driver inspect``."""
    from irteval.errors import InputError

    try:
        from irteval.drivers.inspect_task import run_inspect
    except ModuleNotFoundError as error:
        if error.name != "inspect_ai":
            raise
        raise InputError("needs inspect-ai: pip install 'irteval[inspect]'", field="driver") from None

    options = live.options
    model, spec = live.wanted("model", "--model"), live.wanted("tasks", "--tasks")
    kept = {
        "model": model,
        "model_args": key_values(options.model_args, "-M"),
        "task_args": key_values(options.task_args, "-T"),
    }
    parallel = max(options.concurrency, live.at_once or 1)
    own = replace(live, settings=dict(live.settings) | {"batch": parallel})
    with own.session(console, live.subject(model), tasks=spec, **kept) as session:
        estimate = run_inspect(
            session,
            spec,
            **kept,
            parallel=parallel,
            scorer=options.metric,
            max_seconds=options.max_seconds,
            log_dir=live.out and live.out / "logs",
        )
    return [estimate]


def _task_options(make: Callable[..., Any], pairs: Sequence[str] | None) -> Any:
    given = key_values(pairs, "-T")
    known = make.__dataclass_fields__  # type: ignore[attr-defined]
    if unknown := sorted(given.keys() - set(known)):
        wanted = f"'{unknown[0]}', wanted one of {', '.join(known)}"
        raise typer.BadParameter(wanted, param_hint="'-T'")
    return make(**given)


def _in_order(pattern: str) -> list[str]:
    """Paths that match, by the numbers in their names: step_900 before step_1000."""
    found = glob(pattern)
    if not found:
        raise typer.BadParameter(f"nothing matches '{pattern}'", param_hint="'--checkpoints'")
    return sorted(
        found, key=lambda path: [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", Path(path).name)]
    )


def key_values(pairs: Sequence[str] | None, flag: str) -> dict[str, Any]:
    """``KEY=VALUE`` words as a mapping; values are read as YAML: ``true``, ``64``, ``["a", "b"]``."""
    import yaml

    values: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"'{pair}', wanted KEY=VALUE", param_hint=f"'{flag}'")
        try:
            values[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            values[key] = value
    return values


# A new driver is a function and a line here.
DRIVERS: dict[str, Callable[[Console, Live], list[Estimate]]] = {
    "command": command,
    "openai": openai,
    "lm-eval": lm_eval,
    "inspect": inspect,
}
