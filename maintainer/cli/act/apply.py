"""``maintainer apply``: do it, prove each step, record it."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.app import operations
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.act.run_output import RunOutput, exit_code_of
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.spec_options import (
    BUDGET,
    ENGINE,
    FAILURES,
    JOBS,
    ROLLOUT,
    SAVED_PLAN,
    SCHEDULE,
    SELECTION,
    SHARD,
    spec_options,
)
from maintainer.cli.options.value_types import output_option
from maintainer.errors import ProjectError
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import MAX_PLAN_CHARACTERS, from_json


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", required=False, type=click.Path(dir_okay=False, path_type=Path))
@spec_options(SELECTION, SHARD, ENGINE, BUDGET, JOBS, FAILURES, ROLLOUT, SAVED_PLAN, SCHEDULE)
@click.option("--yes", is_flag=True, help="Do not ask. In a pipeline nobody is asked.")
@output_option("json", "jsonl", "github", "junit")
@click.pass_obj
def command(context: CliContext, plan_file: Path | None, spec: RunSpec, yes: bool, output: str) -> int:
    """Do what the policies ask for, prove each rewrite before it commits, and record it.

    With PLAN, a file that `maintainer plan --out` saved: exactly that. A table that was changed since is refused, and
    the others are done.
    """
    if plan_file is None:
        if spec.exact or spec.all_or_nothing:
            option = "--exact" if spec.exact else "--all-or-nothing"
            raise click.UsageError(f"{option} is for a saved PLAN: `maintainer plan --out FILE` makes one")
    elif _chooses(spec):
        raise click.UsageError(
            "with PLAN there is nothing to choose: leave out --select, --exclude, --since, --shard, --budget-..., "
            "--ignore-..."
        )
    project = open_project(context)
    saved = None if plan_file is None else _read_plan(plan_file)
    listener = RunOutput(context, project, output, ask=not yes)
    return exit_code_of(operations.apply(project, spec, saved, listener=listener))


def _chooses(spec: RunSpec) -> bool:
    """Return whether options choose what a saved plan already says: which tables, and what is done to them."""
    chooses_tables = spec.selection.given or spec.shard is not None or spec.budget.bounded
    return chooses_tables or spec.planning.ignore_windows or spec.planning.ignore_every


def _read_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        ProjectError: E642, the file cannot be read.
        Refused: A402, it is no plan or was edited.
    """
    try:
        if path.stat().st_size <= 4 * MAX_PLAN_CHARACTERS:
            return from_json(path.read_text(encoding="utf-8"), where=str(path))
        reason = "it is too large to be a plan of ours"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    raise ProjectError(
        f"the plan cannot be read: {reason}",
        code="E642",
        where=str(path),
        help="`maintainer plan --out FILE` makes one",
    )
