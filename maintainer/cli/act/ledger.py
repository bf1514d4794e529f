"""``maintainer ledger``: what is done about the ledger itself."""

from __future__ import annotations

import click

from maintainer.app.engine_access import open_engine
from maintainer.app.lookback.rebuild_ledger import RebuildEnd, RebuildRequest, rebuild_ledger
from maintainer.app.selection.table_selection import Look, choose
from maintainer.cli.command_project import now_ms, open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.engine_options import engine_options, given_engine
from maintainer.cli.options.selection_options import given_selection, selection_options
from maintainer.errors import ExitCode
from maintainer.report.text.text_layout import count, printable
from maintainer.units import UnitError, parse_duration

MAX_NAMED = 10


@click.group("ledger")
def command() -> None:
    """Take care of the ledger: the Delta table with one row for each step of each run."""


@command.command("rebuild")
@selection_options
@engine_options
@click.option(
    "--older-than",
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="Runs of other machines that began later are left out: they may still append their rows themselves.",
)
@click.option("--dry-run", is_flag=True, help="Only say which rows are missing.")
@click.pass_obj
def rebuild(
    context: CliContext,
    older_than: str,
    dry_run: bool,
) -> int:
    """Fill up the ledger from run folders and from the tables' own histories, as when it was lost.

    Only rows that it has not are appended, so that it may be run at any time and again. A row from a run folder is
    whole; one from a history has no prediction and no proof. The column `source` tells where a row is from.
    """
    project = open_project(context)
    policies = choose(project.loaded.resolved(), project.loaded, given_selection(), command="ledger", look=Look.NEVER)
    request = RebuildRequest(
        policies,
        now_ms(),
        _seconds(older_than),
        dry_run,
        lambda policy: _say(context, f"reading the history of {printable(policy.table.identifier)}"),
    )
    with open_engine(given_engine()) as opened:
        end = rebuild_ledger(project, opened, request)
    _report(end, project.ledger_location, dry_run=dry_run)
    return ExitCode.FINDINGS if end.unread else ExitCode.OK


def _report(end: RebuildEnd, location: str, *, dry_run: bool) -> None:
    found = end.rebuilt
    missing = found.from_folders + found.from_history
    done = "would be appended" if dry_run else "appended"
    click.echo(
        f"{count(missing, 'row')} {done}: {found.from_folders:,} from run folders, "
        f"{found.from_history:,} from histories of tables; {found.already:,} were there"
    )
    click.echo(f"ledger: {printable(location)}")
    if found.later:
        click.echo(
            f"left for later, they may still be running elsewhere: {_named(found.later)} (--older-than)", err=True
        )
    if end.waiting:
        click.echo(f"their rows wait, the next apply appends them: {_named(end.waiting)}", err=True)
    for line in end.unread:
        click.echo(f"warning: not read: {printable(line)}", err=True)


def _named(runs: tuple[str, ...]) -> str:
    more = f" and {len(runs) - MAX_NAMED:,} more" if len(runs) > MAX_NAMED else ""
    return ", ".join(runs[:MAX_NAMED]) + more


def _say(context: CliContext, text: str) -> None:
    if context.verbosity >= 0:
        click.echo(text, err=True)


def _seconds(text: str) -> int:
    try:
        return parse_duration(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--older-than") from error
