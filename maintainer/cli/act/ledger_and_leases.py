"""``maintainer ledger`` and ``leases``: what is done about the ledger itself, and who works on which table now."""

from __future__ import annotations

import click

from maintainer.app.engine_access import open_engine, project_engine
from maintainer.app.lookback.ledger_access import rebuild_ledger
from maintainer.app.running.apply_plan import open_journal
from maintainer.app.running.run_control import break_leases_on, leases_now
from maintainer.app.selection.chosen_tables import chosen_tables
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.context import CliContext, now_ms, open_project, warn
from maintainer.cli.options import DURATION, ENGINE, SELECTION, TableName, spec_options
from maintainer.errors import ExitCode
from maintainer.journal.ledger.ledger_rebuild import Rebuilt
from maintainer.model.plan.plan import as_problem
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.text_layout import printable
from maintainer.units import count_of, named

MAX_NAMED = 10


@click.group("ledger")
def ledger_command() -> None:
    """Rebuild the ledger, the Delta table with one row for each step of each run."""


@ledger_command.command("rebuild")
@spec_options(SELECTION, ENGINE)
@click.option(
    "--older-than",
    type=DURATION,
    default="1d",
    show_default=True,
    help="Leave out runs of other machines that began later: they may still append their rows themselves.",
)
@click.option("--dry-run", is_flag=True, help="Only show which rows are missing.")
@click.pass_obj
def rebuild(context: CliContext, spec: RunSpec, older_than: int, dry_run: bool) -> int:
    """Add missing rows to the ledger, from run folders and from the tables' histories.

    For example after the ledger was lost. Rows that exist stay as they are, so it is safe to repeat. A row from a run
    folder is complete; one from a history has no prediction and no proof. The column `source` shows where a row is
    from.
    """
    project = search_tables(open_project(context), spec.engine)
    chosen = chosen_tables(project, spec, command="ledger").with_a_table()

    def on_table(policy: ResolvedPolicy) -> None:
        if context.verbosity >= 0:
            click.echo(f"reading the history of {printable(policy.table.identifier)}", err=True)

    since_ms = now_ms() - 1000 * older_than
    with open_engine(project_engine(project.loaded.project, spec.engine)) as opened:
        end = rebuild_ledger(
            project, opened, chosen.policies, young_since_ms=since_ms, dry_run=dry_run, on_table=on_table
        )
    _report(end, project.loaded.project.ledger_as_written, dry_run=dry_run)
    for problem in chosen.problems:
        warn(f"not read: {problem.table}: {as_problem(problem.error).what}; {problem.error.help}", problem.error.code)
    return ExitCode.FINDINGS if end.unread or chosen.problems else ExitCode.OK


def _report(end: Rebuilt, location: str, *, dry_run: bool) -> None:
    done = "would be appended" if dry_run else "appended"
    origins = f"{end.from_folders:,} from run folders, {end.from_history:,} from histories of tables"
    number = count_of(end.from_folders + end.from_history, "row")
    click.echo(f"{number} {done}: {origins}; {end.already:,} were there")
    click.echo(f"ledger: {printable(location)}")
    if end.later:
        runs = named(end.later, MAX_NAMED)
        click.echo(f"left for later, they may still be running elsewhere: {runs} (--older-than)", err=True)
    if end.waiting:
        click.echo(f"the next apply appends the rows of: {named(end.waiting, MAX_NAMED)}", err=True)
    for line in end.unread:
        warn(f"not read: {line}")


@click.group("leases")
def leases_command() -> None:
    """Show or end leases. With a lease a run keeps other runs off a table while it works on it."""


@leases_command.command("list")
@click.pass_obj
def list_leases(context: CliContext) -> int:
    """Show which run works on which table, and until when its lease lasts. Nothing is changed."""
    project = open_project(context)
    now = now_ms()
    held = leases_now(project, now)
    for lease in held:
        left = f"ends in {(lease.expires_at_ms - now) // 1000} s if it is not renewed"
        click.echo(f"{printable(lease.table)}: run {printable(lease.run_id)} on {printable(lease.host)}, {left}")
    if not held:
        click.echo("No run works on a table now.")
    return ExitCode.OK


@leases_command.command("break")
@click.argument("table", type=TableName())
@click.option("--reason", required=True, metavar="TEXT", help="Why; this is recorded.")
@click.pass_obj
def break_(context: CliContext, table: str, reason: str) -> int:
    """End the lease on TABLE, whichever run has it.

    Use it when a run is dead and its lease keeps others out. Should the run be alive, no data is harmed: it checks its
    lease right before each commit, and commits nothing more. `maintainer history` lists it as a run.
    """
    if not reason.strip():
        raise click.UsageError("--reason needs a reason, which is recorded")
    project = open_project(context)
    with open_journal(project) as journal:
        broken = break_leases_on(project, journal, table, reason.strip())
    for lease in broken:
        holder = f"run {printable(lease.run_id)} on {printable(lease.host)}"
        click.echo(f"broken: {printable(lease.table)}, held by {holder}")
    if not broken:
        click.echo(f"No run has a lease on {printable(table)}; nothing was changed.")
        return ExitCode.FINDINGS
    click.echo(f"{count_of(len(broken), 'lease')} ended; the next apply may work on the table.")
    return ExitCode.OK
