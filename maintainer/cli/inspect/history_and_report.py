"""``maintainer history`` and ``report``: runs and steps from the run folders, as text and as one HTML file.

With TABLE, ``history`` shows them beside what anyone else committed. ``report`` needs no Spark.
"""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.app.engine_access import EngineOptions
from maintainer.app.lookback.run_history import fleet_page, history_rows, rows_of_table, run_page
from maintainer.app.lookback.table_history import beside_ours, ledger_rows, table_commits
from maintainer.app.project_folders import Project, local_zone
from maintainer.app.selection.recorded_tables import CurrentTable, current_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.context import CliContext, now_ms, open_project, warn, writing
from maintainer.cli.options import DURATION, ENGINE, TableName, output_option, spec_options
from maintainer.errors import MaintainerError
from maintainer.journal.folder.atomic_files import write_atomically
from maintainer.journal.folder.run_folder import is_run_id, run_folders
from maintainer.model.run.history_rows import HistoryRow
from maintainer.policy.project.project_settings import ledger_ref
from maintainer.policy.table_names import identity
from maintainer.report.status_documents import history_csv, history_json
from maintainer.report.status_text import no_steps, render_history
from maintainer.report.style import Style

MAX_ROWS = 100_000


@click.command("history")
@click.argument("table", required=False, type=TableName())
@click.option("--since", type=DURATION, help="Only the last days or hours, such as 7d.")
@click.option("--failed", is_flag=True, help="Only steps that did not succeed.")
@click.option("--ours", is_flag=True, help="Only our own steps: the table's log is not read.")
@click.option("--ledger", is_flag=True, help="Read the ledger, which knows the runs of every machine, with Spark.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_ROWS), default=200, show_default=True, help="At most this many steps."
)
@spec_options(ENGINE)
@output_option("json", "csv")
@click.pass_obj
def history_command(
    context: CliContext,
    table: str | None,
    spec: RunSpec,
    since: int | None,
    failed: bool,
    ours: bool,
    ledger: bool,
    limit: int,
    output: str,
) -> None:
    """Show the steps of past runs, newest first; with TABLE only that table's, beside everyone else's commits.

    The log of a table on this machine is read as it is, of one elsewhere with Spark; --ours leaves it out.
    Steps are found by the table's id, also those under a name that it had before.
    """
    project = open_project(context)
    ref = project.loaded.resolve_table(table).table if table else None
    earliest = None if since is None else now_ms() - since * 1000
    with_others = ref is not None and not (ours or failed)
    known = current_tables((ref,), project.runs_dir)[ref.identifier] if ref else None
    rows_wanted = MAX_ROWS if with_others else limit
    unread: list[str] = []
    if ledger:
        rows = ledger_rows(
            project, table=known, since_ms=earliest, failed=failed, limit=rows_wanted, options=spec.engine
        )
    else:
        of_table = rows_of_table(known, project.root)
        rows, unread = history_rows(
            project.runs_dir, of_table=of_table, since_ms=earliest, failed=failed, limit=rows_wanted
        )
    if rows and known is not None and known.doubt is not None:
        warn(known.doubt)
    if known is not None and with_others:
        rows = _with_others(project, known, rows, spec.engine, since_ms=earliest, limit=limit)[:limit]
    if output == "json":
        click.echo(history_json(rows), nl=False)
    elif output == "csv":
        click.echo(history_csv(rows), nl=False)
    else:
        text = render_history(rows, Style(context.color), tz=local_zone(), one_table=ref is not None)
        if not rows and not (since or failed or ledger):
            text = no_steps(len(run_folders(project.runs_dir)))
        click.echo(text, nl=False)
    for line in unread:
        warn(f"a run could not be read: {line}")


def _with_others(
    project: Project,
    table: CurrentTable,
    rows: list[HistoryRow],
    engine: EngineOptions,
    *,
    since_ms: int | None,
    limit: int,
) -> list[HistoryRow]:
    """Return our rows and the table's other commits; ours alone, with a warning, where its log cannot be read."""
    try:
        others = table_commits(table, since_ms=since_ms, limit=limit, options=engine)
    except (MaintainerError, OSError, ValueError) as error:
        why = error.what if isinstance(error, MaintainerError) else str(error)
        warn(f"commits of others are not shown, the table's log cannot be read: {why}")
        return rows
    is_ledger = identity(table.ref) == identity(ledger_ref(project.ledger_location, project.root))
    return beside_ours(
        rows,
        others.commits,
        table.ref.identifier,
        is_ledger=is_ledger,
        runs_here=lambda run_id: is_run_id(run_id) and (project.runs_dir / run_id).is_dir(),
    )


MAX_FLEET_RUNS = 400


@click.command("report")
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--fleet", is_flag=True, help="All runs together: each table over time.")
@click.option("--since", default="30d", type=DURATION, show_default=True, help="With --fleet: how far back.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the file.")
@click.pass_obj
def report_command(context: CliContext, run: str | None, fleet: bool, since: int, out: Path | None) -> None:
    """Write a report as one HTML file: of RUN (the newest if left out), or of the fleet.

    The file needs no network and no script. Its path is printed.
    """
    project = open_project(context)
    if fleet:
        if run is not None:
            raise click.UsageError("--fleet is about all runs: leave out RUN")
        earliest = now_ms() - 1000 * since
        path = out or project.runs_dir.parent / "fleet.html"
        page = fleet_page(
            project.runs_dir, local_zone(), since_ms=earliest, most_runs=MAX_FLEET_RUNS, beside=path.parent.absolute()
        )
    else:
        folder, page = run_page(project.runs_dir, Path(run).name if run else None, local_zone())
        path = out or folder / "report.html"
    with writing(path, "the report"):
        write_atomically(path, page.encode("utf-8", "replace"))
    click.echo(str(path))
