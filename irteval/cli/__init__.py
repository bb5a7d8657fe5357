"""The command line: ``irteval COMMAND …``. One file a command; each parses and calls the package."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from irteval import __version__
from irteval.cli import demo, fit, import_, run, score, session, show, validate
from irteval.cli.console import Console
from irteval.errors import IrtevalError

app = typer.Typer(
    name="irteval",
    help="Full-benchmark scores of language models from a few adaptively chosen items.",
    epilog="Exit codes: 0 done, 1 unexpected error, 2 bad input or usage, 3 a subject missed --target, "
    "4 the bank does not fit the items.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("import")(import_.import_)
app.command("show")(show.show)
app.command("fit")(fit.fit)
app.command("run")(run.run)
app.add_typer(session.app, name="session")
app.command("score")(score.score)
app.command("validate")(validate.validate)


class UsageError(IrtevalError):
    """A command line that can't be understood."""

    code = "usage"
    exit_code = 2


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit with its code.

    Args:
        arguments: without the program's name; those of the process where None.
    """
    sys.exit(invoke(sys.argv[1:] if arguments is None else arguments))


def invoke(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; every error ends as one line, and one JSON document."""
    console = Console(as_json="--json" in arguments)
    try:
        code = app(list(arguments), prog_name="irteval", standalone_mode=False, obj=console)
    except typer.TyperException as error:
        return console.fail(UsageError(_usage(error)))
    except IrtevalError as error:
        return console.fail(error)
    except Exception as error:
        if console.debug:
            traceback.print_exc()
        text = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return console.fail(IrtevalError(text))
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().replace("Value error, ", "").rstrip(". ")
    return f"{message} (see {context.command_path if context else 'irteval'} --help)"
