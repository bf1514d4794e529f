"""``maintainer apply``: do it, prove each step, record it."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.app import operations
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.act.run_output import RunOutput, exit_code_of
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.engine_options import engine_options, given_engine
from maintainer.cli.options.selection_options import given_selection, given_shard, selection_options, shard_option
from maintainer.cli.options.shared_options import budget_options, given_budget, output_option
from maintainer.errors import ProjectError
from maintainer.execution.fleet.rollout import BatchSize, parse_batches
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import MAX_PLAN_CHARACTERS, from_json
from maintainer.planning.planner import PlanOptions
from maintainer.units import UnitError, parse_duration


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", required=False, type=click.Path(dir_okay=False, path_type=Path))
@selection_options
@shard_option
@engine_options
@budget_options
@click.option("--yes", is_flag=True, help="Do not ask. In a pipeline nobody is asked.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Tables at once.")
@click.option("--fail-fast", is_flag=True, help="Start no further table after the first that fails.")
@click.option("--max-failures", type=click.IntRange(min=1), help="Start no further table after so many failures.")
@click.option(
    "--batches",
    metavar="SIZES",
    help="Start tables in batches, such as 1,5,20%; the last size is repeated. The next batch is started when all of "
    "the one before ended well and proven.",
)
@click.option("--timeout", metavar="DURATION", help="Stop after this time, such as 2h.")
@click.option("--exact", is_flag=True, help="With PLAN: demand the very versions that were planned, or refuse all.")
@click.option(
    "--all-or-nothing", is_flag=True, help="With PLAN: refuse all of it if one table is not as it was planned."
)
@click.option("--ignore-window", is_flag=True, help="Run as if every window were open.")
@click.option("--ignore-every", is_flag=True, help="Run as if every step were due.")
@output_option("json", "jsonl", "github", "junit")
@click.pass_obj
def command(
    context: CliContext,
    plan_file: Path | None,
    yes: bool,
    jobs: int,
    fail_fast: bool,
    max_failures: int | None,
    batches: str | None,
    timeout: str | None,
    exact: bool,
    all_or_nothing: bool,
    ignore_window: bool,
    ignore_every: bool,
    output: str,
) -> int:
    """Do what the policies ask for, prove each rewrite before it commits, and record it.

    With PLAN, a file that `maintainer plan --out` saved: exactly that. A table that was changed since is refused, and
    the others are done.
    """
    refuse_two_bounds(fail_fast=fail_fast, max_failures=max_failures)
    if (exact or all_or_nothing) and plan_file is None:
        option = "--exact" if exact else "--all-or-nothing"
        raise click.UsageError(f"{option} is for a saved PLAN: `maintainer plan --out FILE` makes one")
    project = open_project(context)
    spec = RunSpec(
        given_selection(),
        given_shard(),
        engine=given_engine(),
        budget=given_budget(),
        planning=PlanOptions(ignore_windows=ignore_window, ignore_every=ignore_every),
        jobs=jobs,
        fail_fast=fail_fast,
        max_failures=max_failures,
        batches=_batches(batches),
        timeout_seconds=_seconds(timeout),
        exact=exact,
        all_or_nothing=all_or_nothing,
    )
    saved = None
    if plan_file is not None:
        _refuse_beside_a_plan(spec)
        saved = _read_plan(plan_file)
    listener = RunOutput(context, project, output, ask=not yes)
    return exit_code_of(operations.apply(project, spec, saved, listener=listener))


def refuse_two_bounds(*, fail_fast: bool, max_failures: int | None) -> None:
    """Refuse two answers to the question how many tables may fail."""
    if fail_fast and max_failures is not None:
        raise click.UsageError("--fail-fast and --max-failures exclude each other: the first is the second with 1")


def _read_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        ProjectError: E642, the file cannot be read.
        Refused: A402, it is no plan or was edited.
    """
    try:
        if path.stat().st_size > 4 * MAX_PLAN_CHARACTERS:
            raise ProjectError(
                "the plan cannot be read: it is too large to be a plan of ours",
                code="E642",
                where=str(path),
                help="`maintainer plan --out FILE` makes one",
            )
        return from_json(path.read_text(encoding="utf-8"), where=str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ProjectError(
            f"the plan cannot be read: {reason}",
            code="E642",
            where=str(path),
            help="`maintainer plan --out FILE` makes one",
        ) from error


def _refuse_beside_a_plan(spec: RunSpec) -> None:
    """Refuse options that choose: a saved plan already says which tables, and what is done to them."""
    chooses = spec.selection.given or spec.shard is not None or spec.budget.bounded
    if chooses or spec.planning.ignore_windows or spec.planning.ignore_every:
        raise click.UsageError(
            "with PLAN there is nothing to choose: leave out --select, --exclude, --since, --shard, --budget-..., "
            "--ignore-..."
        )


def _batches(text: str | None) -> tuple[BatchSize, ...] | None:
    if text is None:
        return None
    try:
        return parse_batches(text)
    except UnitError as error:
        raise click.BadParameter(f"{error.message}: {error.help}", param_hint="--batches") from error


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    try:
        return float(parse_duration(duration))
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--timeout") from error
