"""``maintainer ledger``: what is done about the ledger itself."""

from __future__ import annotations

import click

from maintainer.app.engine_access import open_engine
from maintainer.app.lookback.rebuild_ledger import RebuildEnd, RebuildRequest, rebuild_ledger
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.selection.table_selection import Look, choose
from maintainer.cli.command_project import now_ms, open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.spec_options import ENGINE, SELECTION, spec_options
from maintainer.cli.options.value_types import DURATION
from maintainer.cli.printing import warn
from maintainer.errors import ExitCode
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.text_layout import count, named, printable

MAX_NAMED = 10


@click.group("ledger")
def command() -> None:
    """Take care of the ledger: the Delta table with one row for each step of each run."""


@command.command("rebuild")
@spec_options(SELECTION, ENGINE)
@click.option(
    "--older-than",
    type=DURATION,
    default="1d",
    show_default=True,
    help="Runs of other machines that began later are left out: they may still append their rows themselves.",
)
@click.option("--dry-run", is_flag=True, help="Only say which rows are missing.")
@click.pass_obj
def rebuild(context: CliContext, spec: RunSpec, older_than: int, dry_run: bool) -> int:
    """Fill up the ledger from run folders and from the tables' own histories, for example after it was lost.

    Only missing rows are appended, so it may be run at any time and again. A row from a run folder is complete; one
    from a history has no prediction and no proof. The column `source` says where a row is from.
    """
    project = open_project(context)
    policies = choose(project.loaded.resolved(), project.loaded, spec.selection, command="ledger", look=Look.NEVER)

    def on_table(policy: ResolvedPolicy) -> None:
        if context.verbosity >= 0:
            click.echo(f"reading the history of {printable(policy.table.identifier)}", err=True)

    request = RebuildRequest(
        policies,
        now_ms(),
        older_than,
        dry_run,
        on_table,
    )
    with open_engine(spec.engine) as opened:
        end = rebuild_ledger(project, opened, request)
    _report(end, project.ledger_location, dry_run=dry_run)
    return ExitCode.FINDINGS if end.unread else ExitCode.OK


def _report(end: RebuildEnd, location: str, *, dry_run: bool) -> None:
    rows = end.rebuilt
    done = "would be appended" if dry_run else "appended"
    click.echo(
        f"{count(rows.from_folders + rows.from_history, 'row')} {done}: {rows.from_folders:,} from run folders, "
        f"{rows.from_history:,} from histories of tables; {rows.already:,} were there"
    )
    click.echo(f"ledger: {printable(location)}")
    if rows.later:
        runs = named(rows.later, MAX_NAMED)
        click.echo(f"left for later, they may still be running elsewhere: {runs} (--older-than)", err=True)
    if end.waiting:
        click.echo(f"the next apply appends the rows of: {named(end.waiting, MAX_NAMED)}", err=True)
    for line in end.unread:
        warn(f"not read: {line}")
