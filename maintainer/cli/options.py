"""Options that several commands share, how they are read, and the one ``RunSpec`` that they fill.

A new option that more than one command takes goes here.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from maintainer.app.engine_access import ENGINES, EngineOptions
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions, Shard
from maintainer.cli.context import OUTPUT, CliContext, find_project_root
from maintainer.cli.stage_lines import lines_of
from maintainer.engine.session_options import SILENT, StageListener
from maintainer.errors import MaintainerError
from maintainer.errors.foreign_text import printable
from maintainer.execution.fleet.fleet_bounds import parse_batches
from maintainer.model.plan.lanes import Lane
from maintainer.planning.plan_input import PlanOptions
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.project.project_settings import Budget
from maintainer.policy.table_names import is_glob
from maintainer.policy.yaml.discovery import table_in_first_lines
from maintainer.policy.yaml.yaml_reader import MAX_FILE_BYTES
from maintainer.units import MAX_DURATION_SECONDS, UnitError, parse_duration, parse_size

F = TypeVar("F", bound=Callable[..., Any])


class ReadBy(click.ParamType[Any]):
    """A value that a function reads; what the function refuses is a usage error that names the option."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:  # noqa: ANN401
        """Read the text of the command line; a default that is a value already stays as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except UnitError as error:
            self.fail(f"{error.message}: {error.help}", param, ctx)
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZE = ReadBy("size", parse_size)
DURATION = ReadBy("duration", parse_duration)
FILE = click.Path(dir_okay=False, path_type=Path)


def _key_and_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def pause(at_most_seconds: int) -> ReadBy:
    """Return the type of a pause between two looks, or of a limit: from one second to ``at_most_seconds``."""

    def read(text: str) -> int:
        seconds = parse_duration(text)
        if not 1 <= seconds <= at_most_seconds:
            raise ValueError(f"from 1s to {at_most_seconds // 86_400}d")
        return seconds

    return ReadBy("duration", read)


def output_option(*forms: str) -> Callable[[F], F]:
    """Add ``-o``, ``--output`` to a command: ``text``, the default, for people, or one of ``forms``."""
    forms_and_text = click.Choice(["text", *forms])
    return click.option("-o", "--output", type=forms_and_text, default="text", show_default=True, callback=keep_output)


def keep_output(context: click.Context, _param: click.Parameter, value: str) -> str:
    """Keep what ``-o`` asks for where the end of the command finds it: an error is printed in that form, too."""
    context.meta[OUTPUT] = value
    return value


_MAX_COMPLETIONS = 200
_VERSION = re.compile(r"@[0-9]+\Z")


def is_policy_file(text: str) -> bool:
    """Tell whether a file is named where a table or a plan is expected."""
    return text.endswith((".yml", ".yaml")) and os.path.isfile(text)


def table_of_file(path: Path) -> str | None:
    """Return the table that a policy file names in its first lines, if that can be told."""
    try:
        return table_in_first_lines(path.read_bytes()[:MAX_FILE_BYTES] + b"\n")
    except OSError:
        return None


class TableName(StringParamType):
    """A table of the project; completes from its policy files."""

    name = "table"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Refuse a policy file, which is chosen by the table that it names or as `path:`, and a glob for one table."""
        text = super().convert(value, param, ctx)
        if is_policy_file(text):
            own = f"path:{text}" if isinstance(param, click.Option) else table_of_file(Path(text)) or "the name in it"
            self.fail(f"{text} is a policy file; write {own}", param, ctx)
        if ctx is not None and isinstance(param, click.Argument) and is_glob(text) and not self._is_table(ctx, text):
            pattern = shlex.quote(_VERSION.sub("", text))
            selects = any("--select" in option.opts for option in ctx.command.params)
            way_out = f"{ctx.command_path} -s {pattern} selects" if selects else f"maintainer list -s {pattern} names"
            self.fail(f"{text} is a glob, and this takes one table: {way_out} those that fit", param, ctx)
        return text

    def _spellings(self, ctx: click.Context) -> list[tuple[str, str, str]]:
        """Return what each table of a policy file may be called; nothing if the project cannot be read."""
        root = ctx.obj.project_root if isinstance(ctx.obj, CliContext) else find_project_root(Path.cwd())
        try:
            tables = load_project(root, keeps_policies=False).tables
        except MaintainerError:
            return []
        return [(table.ref.identifier, table.written, table.ref.location) for table in tables]

    def _is_table(self, ctx: click.Context, text: str) -> bool:
        """Whether a table or a folder has this very name: what is a glob elsewhere may be part of it."""
        name = _VERSION.sub("", text)
        return os.path.isdir(name) or any(name in names for names in self._spellings(ctx))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the tables that begin like what was typed."""
        # By its name, as its file writes it, or as a path: whichever the person has begun to type.
        spellings = self._spellings(ctx)
        matches = (next((name for name in names if name.startswith(incomplete)), None) for names in spellings)
        return [CompletionItem(name) for name in sorted(filter(None, matches))][:_MAX_COMPLETIONS]


Options = tuple[Callable[..., Any], ...]

SELECTION: Options = (
    click.option(
        "-s",
        "--select",
        multiple=True,
        metavar="SPEC",
        type=TableName(),
        help="Tables: a name, a glob, tag:, path:, owner:, state:modified, result:failed, due, drifted, @file. "
        "A space means or, a comma means and.",
    ),
    click.option("--exclude", multiple=True, metavar="SPEC", help="Tables to leave out, written as for --select."),
    click.option("--since", metavar="REF", help="The Git commit that state:modified compares with."),
    click.option("--allow-empty", is_flag=True, help="Do not fail when no table is selected."),
)
SHARD: Options = (
    click.option(
        "--shard",
        metavar="I/N",
        type=ReadBy("shard", Shard.parse),
        help="Take part I of N of the selection, to divide it among several drivers.",
    ),
)
ENGINE: Options = (
    click.option("--master", metavar="URL", help="The Spark master. Default: local[*], in this process."),
    click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        type=ReadBy("setting", _key_and_value),
        help="A setting for the Spark session. Repeatable.",
    ),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="transaction (default) proves a rewrite before it commits. command uses Delta's own commands and proves "
        "afterwards.",
    ),
    click.option(
        "--remote",
        metavar="URL",
        help="A Spark Connect server, sc://host:port; implies --engine command. Default: SPARK_REMOTE.",
    ),
)
SPREAD: Options = (
    click.option(
        "--spread/--no-spread",
        default=None,
        help="Who reads, writes and proves the bins of lanes copy and local: Spark's executors, or this process.  "
        "[default: executors, where --master is not local]",
    ),
)
BUDGET: Options = (
    click.option("--budget-bytes", type=SIZE, help="Rewrite at most this much, best first."),
    click.option(
        "--budget-files", metavar="N", type=click.IntRange(0), help="Rewrite at most this many files, best first."
    ),
    click.option("--budget-time", type=DURATION, help="Rewrite only what should fit into this time, best first."),
)


def jobs_option(help: str) -> Callable[[F], F]:
    """Add ``-j``, ``--jobs`` to a command."""
    return click.option("-j", "--jobs", type=click.IntRange(1, 64), help=help)


JOBS: Options = (jobs_option("Tables to work on at once.  [default: 2, on object stores 8; fewer with little memory]"),)
FAILURES: Options = (
    click.option("--fail-fast", is_flag=True, help="Start no more tables after the first failure."),
    click.option("--max-failures", type=click.IntRange(min=1), help="Start no more tables after this many failures."),
)
ROLLOUT: Options = (
    click.option(
        "--batches",
        metavar="SIZES",
        type=ReadBy("sizes", parse_batches),
        help="Start tables in batches, such as 1,5,20%; the last size repeats. The next batch starts when no table of "
        "the one before failed.",
    ),
    click.option(
        "--timeout", "timeout_seconds", type=pause(MAX_DURATION_SECONDS), help="Stop after this time, such as 2h."
    ),
)
SAVED_PLAN: Options = (
    click.option(
        "--exact", is_flag=True, help="With PLAN: apply nothing if any table has another version than planned."
    ),
    click.option("--all-or-nothing", is_flag=True, help="With PLAN: apply nothing if the plan is stale for any table."),
)
SCHEDULE: Options = (
    click.option("--ignore-window", is_flag=True, help="Ignore the policies' maintenance windows."),
    click.option("--ignore-every", is_flag=True, help="Ignore the policies' every: all steps are due."),
    click.option(
        "--lane",
        "lanes",
        multiple=True,
        type=click.Choice([lane.value for lane in Lane]),
        help="Ways in which files may be rewritten, in place of optimize.lanes; spark is always allowed. Repeatable.",
    ),
)


def spec_options(*groups: Options) -> Callable[[F], F]:
    """Add groups of options to a command, which takes all of them as ``spec``."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def command_with_spec(*args: Any, **values: Any) -> Any:  # noqa: ANN401
            own = {name: values.pop(name) for name in names}
            return command(*args, spec=_spec(own), **values)

        params: list[click.Parameter] = command_with_spec.__dict__.setdefault("__click_params__", [])
        first = len(params)
        for option in reversed([option for group in groups for option in group]):
            option(command_with_spec)
        names = [param.name for param in params[first:] if param.name]
        return command_with_spec  # type: ignore[return-value]

    return decorate


def _spec(values: dict[str, Any]) -> RunSpec:
    """Make the specification; what no option says has the specification's own default.

    Raises:
        click.UsageError: Options that exclude each other.
    """

    def popped(*names: str) -> dict[str, Any]:
        return {name: values.pop(name) for name in names if name in values}

    selection = SelectionOptions(**popped("select", "exclude", "since", "allow_empty"))
    engine = _engine(**popped("master", "conf", "engine", "remote", "spread"))
    budget = Budget(*(values.pop(name, None) for name in ("budget_bytes", "budget_files", "budget_time")))
    lanes = tuple(map(Lane, values.pop("lanes", ())))
    planning = PlanOptions(values.pop("ignore_window", False), values.pop("ignore_every", False), lanes=lanes)
    if values.pop("fail_fast", False):
        if values["max_failures"] is not None:
            raise click.UsageError("use --fail-fast or --max-failures, not both: --fail-fast means --max-failures 1")
        values["max_failures"] = 1
    return RunSpec(selection, engine=engine, budget=budget, planning=planning, **values)


def _engine(**given: Any) -> EngineOptions:  # noqa: ANN401
    if given.get("remote") is not None and given.get("master") is not None:
        raise click.UsageError("--master starts Spark and --remote connects to a server: use one of them")
    return EngineOptions(
        **given, stages=stage_lines(), on_warning=lambda text: click.echo(f"warning: {printable(text)}", err=True)
    )


def stage_lines() -> StageListener:
    """Return what says on stderr what the running command waits for; silent outside of one."""
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(context.obj, CliContext):
        return SILENT
    return lines_of(context, quiet=context.obj.verbosity < 0, color=context.obj.color_stderr)
