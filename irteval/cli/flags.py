"""The flags that every command has, and the registration that adds them."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from irteval.cli.console import Console
from irteval.errors import IrtevalError

LogLevel = Literal["debug", "info", "warning", "error"]
PANEL = "Every command"


class InterruptedRunError(IrtevalError):
    """The user pressed Ctrl-C."""

    code = "interrupted"
    exit_code = 130


def with_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Make ``function(console, …)`` a command that also takes the flags of every command.

    What the function is given as ``console`` has been set up from these flags. A parameter whose type is a
    dataclass stands for the options that are its fields: a block of options has one home however many
    commands take it.
    """
    taken = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    blocks: dict[str, Any] = {p.name: p.annotation for p in taken if is_dataclass(p.annotation)}
    own = [each for p in taken for each in (_options(p.annotation) if p.name in blocks else [p])]
    common = list(inspect.signature(_common, eval_str=True).parameters.values())

    @functools.wraps(function)
    def command(ctx: typer.Context, **values: Any) -> None:
        console: Console = ctx.obj
        console.command = ctx.command_path.partition(" ")[2]
        _set_up(console, **{parameter.name: values.pop(parameter.name) for parameter in common})
        for name, block in blocks.items():
            values[name] = block(**{field.name: values.pop(field.name) for field in fields(block)})
        try:
            function(console, **values)
        except KeyboardInterrupt:
            raise InterruptedRunError("interrupted") from None

    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *common))]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _options(block: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters."""
    types = get_type_hints(block, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=types[field.name])
        for field in fields(block)
    ]


def read_config(ctx: typer.Context, path: Path | None) -> None:
    """Take a command's flags from a YAML file, as defaults that the command line goes before.

    Raises:
        typer.BadParameter: the file can't be read, or names a flag that the command hasn't got.
    """
    if path is None:
        return
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise typer.BadParameter(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise typer.BadParameter(f"{path}: wanted a mapping of flags to values")
    known = {name: parameter for parameter in ctx.command.params for name in _names(parameter)}
    defaults = {}
    for name, value in content.items():
        parameter = known.get(str(name).replace("_", "-"))
        if parameter is None:
            raise typer.BadParameter(f"{path}: {ctx.command_path} has no flag '{name}'")
        # YAML reads a bare on or off as a truth value, which only a flag without a value can take.
        is_choice = isinstance(value, bool) and not getattr(parameter, "is_flag", False)
        defaults[parameter.name] = ("on" if value else "off") if is_choice else value
    ctx.default_map = defaults


def _names(parameter: Any) -> list[str]:
    """The names of a parameter as a settings file spells them: long flags without their dashes."""
    return [option.lstrip("-").replace("_", "-") for option in parameter.opts]


def _common(
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON document on stdout.", rich_help_panel=PANEL),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of whatever is drawn.", rich_help_panel=PANEL)] = 0,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="Where to compute.", rich_help_panel=PANEL)
    ] = "auto",
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, no remarks.", rich_help_panel=PANEL)
    ] = False,
    log_level: Annotated[
        LogLevel, typer.Option(help="At debug, errors come with a traceback.", rich_help_panel=PANEL)
    ] = "warning",
    config: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file of a command's flags.",
            is_eager=True,
            callback=read_config,
            rich_help_panel=PANEL,
        ),
    ] = None,
) -> None:
    """The flags of every command; only the signature is used."""


def _set_up(
    console: Console,
    *,
    as_json: bool,
    seed: int,
    device: str,
    quiet: bool,
    log_level: LogLevel,
    config: Path | None,
) -> None:
    console.as_json, console.quiet = as_json, quiet
    console.seed, console.device = seed, device
    console.debug = log_level == "debug"
    form = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=log_level.upper(), stream=sys.stderr, format=form, force=True)
