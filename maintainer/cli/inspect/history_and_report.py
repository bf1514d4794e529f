"""``maintainer history`` and ``report``: runs and steps from the run folders, as text and as HTML.

With TABLE, ``history`` shows them beside what anyone else committed. ``report`` needs no Spark.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from maintainer.app.lookback.run_history import DEFAULT_ROWS, UNREAD_CODE, HistoryQuery
from maintainer.app.lookback.table_history import MAX_ROWS, recorded_steps
from maintainer.app.project_folders import local_zone
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.written_report import write_report
from maintainer.cli.context import CliContext, now_ms, open_project, print_as, print_elsewhere, warn
from maintainer.cli.options import DURATION, ENGINE, FILE, TableName, output_option, spec_options
from maintainer.errors import ExitCode
from maintainer.journal.folder.run_folder import run_folders
from maintainer.report.run.run_text import render_requests
from maintainer.report.status_documents import history_csv, history_json
from maintainer.report.status_text import no_steps, render_history
from maintainer.report.style import Style
from maintainer.report.text_layout import printable

_BY_OTHERS = "`maintainer history TABLE` shows who else vacuumed"


@click.command("history")
@click.argument("table", required=False, type=TableName())
@click.option("--since", type=DURATION, help="Only steps of the last days or hours, such as 7d.")
@click.option("--failed", is_flag=True, help="Only steps that did not succeed.")
@click.option("--ours", is_flag=True, help="Only steps of maintainer: the table's log is not read.")
@click.option("--ledger", is_flag=True, help="Read the ledger, which has the runs of every machine. Needs Spark.")
@click.option("--file", metavar="PATH", help="Which run deleted this data file, when and by which rule.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_ROWS),
    default=DEFAULT_ROWS,
    show_default=True,
    help="Show at most this many steps.",
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
    file: str | None,
    limit: int,
    output: str,
) -> int:
    """Show the steps of past runs, newest first. With TABLE, show that table's steps and all its other commits.

    The commits are read from the table's log. If the table is not on this machine, this starts Spark; --ours leaves
    the log out. Steps are found by the table's id, so those under an earlier name are shown too.
    """
    if file is not None and (ledger or not file.strip("./")):
        raise click.UsageError("--file needs the path of a data file" + ", and the ledger has none" * ledger)
    project = open_project(context)
    earliest = None if since is None else now_ms() - since * 1000
    query = HistoryQuery(table, earliest, failed=failed, ours=ours, ledger=ledger, limit=limit, file=file)
    recorded = recorded_steps(project, query, spec.engine)
    if recorded.doubt is not None:
        warn(recorded.doubt)
    for _, problem in recorded.problems:
        warn(problem.what, problem.code)
    rows = recorded.rows

    def text() -> str:
        if file is not None and not rows:
            return f"No run that is recorded here deleted {printable(file)}; {_BY_OTHERS}.\n"
        if not rows and not (since or failed or ledger):
            return no_steps(len(run_folders(project.past_runs_dir)))
        style, verbose = Style(context.color), context.verbosity > 0
        shown = render_history(rows, style, tz=local_zone(), one_table=table is not None, verbose=verbose or bool(file))
        fates = (f"run {row.run_id}: {printable(row.reason or '')}\n" for row in rows if file is not None)
        return shown + "".join(fates) + render_requests(recorded.requests.values() if table is None else ())

    print_elsewhere(context, project)
    as_json = partial(history_json, rows, recorded.problems, recorded.requests)
    print_as(output, json=as_json, csv=lambda: history_csv(rows), text=text)
    return ExitCode.FINDINGS if recorded.problems else ExitCode.OK


@click.command("report")
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--fleet", is_flag=True, help="Report on all runs together: each table over time.")
@click.option("--since", default="30d", type=DURATION, show_default=True, help="With --fleet: how far back to go.")
@click.option("--out", type=FILE, help="Where to write the file.")
@spec_options()
@click.pass_obj
def report_command(
    context: CliContext, run: str | None, spec: RunSpec, fleet: bool, since: int, out: Path | None
) -> int:
    """Write a report as one HTML file: about RUN, the newest run, or with --fleet about all runs.

    The file needs no network, and shows the same without JavaScript. Its path is printed. Where nothing ran, the
    tables are read, and it shows how they are and what a run would do.
    """
    if fleet and run is not None:
        raise click.UsageError("--fleet is about all runs: leave out RUN")
    project = open_project(context)
    since_ms = now_ms() - 1000 * since if fleet else None
    path, unread = write_report(project, spec, run_id=run, since_ms=since_ms, out=out)
    click.echo(str(path))
    for line in unread:
        warn(f"a run could not be read: {line}", UNREAD_CODE)
    return ExitCode.FINDINGS if unread else ExitCode.OK
