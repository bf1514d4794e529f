"""The command line's entry: a group that loads each command's module only when that command runs.

Start-up must stay cheap: ``--help``, ``validate`` and ``explain`` import neither Spark nor Great Expectations. Errors
become exit codes here and nowhere else; the traceback of a bug of ours goes to a file, never to the terminal. A
command line that is refused is told what to type instead, for words of other tools and tables at a wrong place; that
needs no command to be imported but the one that was refused.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import pkgutil
import re
import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import click

from maintainer.cli.context import GENERAL, context_of, print_failure, with_general_options
from maintainer.cli.stage_lines import say_first_stage
from maintainer.cli.standard_streams import lost_output, open_standard_streams
from maintainer.errors import ExitCode, MaintainerError, ProjectError
from maintainer.errors.foreign_text import printable, without_secrets
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import BUG_CODE


def report_bug(error: Exception, args: list[str]) -> str:
    """Keep the traceback of a bug of ours in a file and return the one message for the terminal."""
    folder = Path(".maintainer")
    name = time.strftime("crash-%Y%m%dT%H%M%SZ.txt", time.gmtime())
    traces = "".join(traceback.format_exception(error))
    text = without_secrets(f"maintainer {__version__}\narguments: {args!r}\n\n{traces}")
    try:
        folder.mkdir(exist_ok=True)
        path = folder.absolute() / name
        path.write_text(text, encoding="utf-8")
        place = str(path)
    except OSError:
        import tempfile

        with tempfile.NamedTemporaryFile(
            "w", prefix="maintainer-", suffix=f"-{name}", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
            place = file.name
    bug = ProjectError(
        f"a bug in maintainer: {_in_words(error)}",
        code=BUG_CODE,
        where=place,
        help="no table is half changed, because changes are whole commits; please report the bug with this file",
    )
    return bug.render()


def _in_words(error: Exception) -> str:
    """Return an exception's kind and first line; Spark's own raise when they are printed after their JVM has ended."""
    try:
        lines = str(error).splitlines()
    except Exception:  # whatever its __str__ raises: the kind is all there is to say
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


_OTHER_VERBS = {
    **dict.fromkeys(("lint", "check"), "validate"),
    **dict.fromkeys(("test", "tests"), "validate --tests"),
    **dict.fromkeys(("dry-run", "diff"), "plan"),
    **dict.fromkeys(("run", "optimize", "compact", "vacuum", "zorder"), "apply"),
    "ls": "list",
    "help": "--help",
}
"""Words that other tools, or the steps themselves, have for commands."""

_OTHER_OPTIONS = {"--dry-run": "'maintainer plan' is the dry run: it changes nothing"}
_SELECT = ("-s", "--select")
_TOO_MANY = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)


def command_advice(word: str, commands: Iterable[str]) -> str | None:
    """Return what to type in place of a command that does not exist; None where nothing is like it."""
    verb = word.lower()
    near = _OTHER_VERBS.get(verb) or next(iter(get_close_matches(verb, list(commands), n=1)), None)
    return f"No such command '{word}'. Did you mean '{near}'?" if near else None


def usage_advice(error: click.UsageError, typed: Sequence[str]) -> str | None:
    """Return a message that says what to type; None where the error says it all.

    Args:
        error: What click, or the command, refused.
        typed: The command's name and what stands behind it.
    """
    if error.ctx is None or error.ctx.parent is None:
        return None
    path, refused = error.ctx.command_path, error.message.removesuffix(".")
    names = {name for parameter in error.ctx.command.params for name in parameter.opts}
    if isinstance(error, click.NoSuchOption):
        if error.option_name in _SELECT and "table" in names:  # its argument
            return f"{refused}: this command takes one table: {path} {_value(error.option_name, typed)}"
        return _OTHER_OPTIONS.get(error.option_name)
    if isinstance(error, click.BadParameter) and error.param is not None and error.param.name == "plan_file":
        return f"{refused}, and PLAN is a file; tables are selected: {path} -s TABLE"
    extra = _TOO_MANY.fullmatch(error.message)
    if extra and "--select" in names:
        return f"{error.message}: tables are selected: {path} -s {shlex.quote(extra[1])}"
    return None


def _value(option: str, typed: Sequence[str]) -> str:
    """Return what was typed behind an option, as far as that can be told."""
    for word, following in zip(typed, [*typed[1:], "TABLE"], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return "TABLE"


_COMMANDS = (
    ("init", "setup_commands", "Make a new project."),
    ("schema", "inspect.policy_commands", "Print the JSON Schema, or explain one key."),
    ("validate", "validate_command", "Check policy files. No Spark, no network."),
    ("explain", "inspect.policy_commands", "Show a table's policy and where it comes from, or what a code means."),
    ("list", "inspect.policy_commands", "List the tables of a selection."),
    ("inventory", "inspect.policy_commands", "List Delta tables, and which policy manages each."),
    ("plan", "act.plan_command", "Show what apply would do, why, and what it costs."),
    ("why", "inspect.show_and_why", "Show each decision about one table."),
    ("show", "inspect.show_and_why", "Show a saved plan or a past run."),
    ("apply", "act.run_commands", "Do what is due, prove each rewrite, record it."),
    ("verify", "act.verify_and_undelete", "Check that a past commit lost no row."),
    ("undelete", "act.verify_and_undelete", "Restore files that a vacuum took away."),
    ("retry", "act.run_commands", "Apply again what earlier runs left undone."),
    ("watch", "act.run_commands", "Check at an interval, and apply what is due."),
    ("status", "inspect.status", "Show the state of each table."),
    ("report", "inspect.history_and_report", "Write one HTML file about a run or the fleet."),
    ("ui", "ui.ui_command", "Show reports, and a run in progress, in a browser."),
    ("history", "inspect.history_and_report", "Show the steps of past runs."),
    ("ledger", "act.ledger_and_leases", "Rebuild a lost ledger."),
    ("leases", "act.ledger_and_leases", "Show which run works on which table, and end a lease."),
    ("stop", "act.run_commands", "Ask a run to stop, also on another machine."),
    ("doctor", "doctor", "Check Java, versions, JARs, storage and permissions."),
    ("demo", "demo_command", "Build a small lake of real data and run each command on it."),
    ("completion", "setup_commands", "Print a completion script for your shell."),
    ("version", "setup_commands", "Print the versions of maintainer, Python and the packages it uses."),
)
COMMANDS = {name: (f"maintainer.cli.{module}:{name}_command", text) for name, module, text in _COMMANDS}
"""Command name to where it is (module and function) and one-line help, in the order of ``--help``."""

_TYPED = "maintainer.typed"
"""Where a context keeps the command's name and what stands behind it."""


class LazyGroup(click.Group):
    """A click group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List names in the order in which they are used, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return it."""
        if cmd_name not in COMMANDS:
            return None
        return with_general_options(pkgutil.resolve_name(COMMANDS[cmd_name][0]))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with; offer the nearest one where there is none."""
        ctx.meta[_TYPED] = tuple(args)
        if args and not ctx.resilient_parsing:  # completion asks for commands, too
            ctx.obj = context_of(ctx)
            quiet = ctx.obj.verbosity < 0 or not {"-q", "--quiet"}.isdisjoint(args)
            say_first_stage(ctx, args, quiet=quiet, color=ctx.obj.color_stderr)
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            advice = command_advice(args[0], COMMANDS)
            if advice is None or args[0] in COMMANDS:
                raise
            raise click.UsageError(advice, ctx) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; say what to type in place of a line that is refused, and print an error as ``-o`` asks."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            advice = usage_advice(error, ctx.meta.get(_TYPED, ()))
            if advice is None:
                raise
            raise click.UsageError(advice, error.ctx) from error
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            print_failure(ctx, error)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands from the table, so that ``--help`` imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="First step: `maintainer demo` shows all of it on a small lake of its own; `maintainer init FOLDER` makes "
    "your project. About a policy key: `maintainer schema optimize.maxFileSize`. About the code of a message: "
    "`maintainer explain T441`.",
)
@click.version_option(__version__, prog_name="maintainer")
def cli() -> None:
    """Policies in Git that keep Delta Lake tables healthy: planned, applied, proven."""


cli.params[:0] = GENERAL


def run(args: list[str]) -> int:
    """Run one command line and return its exit code. Never raises, never exits the process.

    Click's own usage errors end in 2, as ours do. An exception that is not ours is a bug: its traceback goes
    to a file, the terminal gets one message, the code is 70.
    """
    try:
        result: Any = cli.main(args=args, prog_name="maintainer", standalone_mode=False)
        return int(result) if isinstance(result, int) else ExitCode.OK
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        # It quotes the command line.
        usage = io.StringIO()
        error.show(usage)
        lines = without_secrets(usage.getvalue()).expandtabs(4).rstrip("\n").split("\n")
        click.echo("\n".join(map(printable, lines)), err=True)
        return error.exit_code
    except MaintainerError as error:
        click.echo(error.render(), err=True)
        return error.exit_code
    except Exception as error:
        click.echo(report_bug(error, args), err=True)
        return ExitCode.BUG


def main() -> NoReturn:
    """Run the command line of this process and exit with its code; the console script."""
    # A large table is millions of objects, which stay: looking through them each time some thousand more were made
    # takes a third of the time of a plan.
    gc.set_threshold(50_000, 20, 20)
    # Of pandas 3, that it is new to pyspark: nothing here goes through pandas.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    open_standard_streams()
    code = run(sys.argv[1:])
    if (lost := lost_output()) is not None:
        help = "the command did the rest of its work; make room, or write to another place"
        error = ProjectError(f"the output cannot be written: {lost.strerror}", code="E640", help=help)
        click.echo(error.render(), err=True)
        code = code or error.exit_code
    _exit_at_once(code)


def _exit_at_once(code: int) -> NoReturn:
    """End the process as the interpreter does, but for waiting.

    A thread may be asking a store that does not answer: of an interrupted run, or of a table that was given up.
    """
    atexit._run_exitfuncs()  # before these, without a limit, Python would join the threads of executors
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it is closed
            stream.flush()
    os._exit(code)


def job() -> None:
    """Run the command line for job runners that take any ``SystemExit`` as a failure, such as Databricks' wheel tasks.

    Returns after a good run instead of exiting with 0.

    Raises:
        SystemExit: With the exit code, where it is not 0.
    """
    if code := run(sys.argv[1:]):
        raise SystemExit(code)
