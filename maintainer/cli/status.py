"""``maintainer status``: one line a table: state, small files, last optimize, last vacuum, last proof, what is next."""

from __future__ import annotations

import click

from maintainer.app.engine_access import open_engine
from maintainer.app.insight import history_rows, running_tables, status_row
from maintainer.app.make_plan import PlanRequest, TableLook, make_plan
from maintainer.app.selection import Look, SelectionOptions, choose, narrowed
from maintainer.cli.context import CliContext
from maintainer.cli.engine_options import engine_options, parse_engine_options
from maintainer.cli.plan import DEFAULT_PLAN_JOBS
from maintainer.cli.project import local_zone, now_ms, open_project
from maintainer.cli.selection import selection_options
from maintainer.model.auto_compact import SESSION_ENABLED
from maintainer.model.insight import HistoryRow, StatusRow
from maintainer.report.status_prometheus import status_prometheus
from maintainer.report.status_text import render_status, status_json
from maintainer.report.style import Style

MAX_PAST_STEPS = 10_000


@click.command("status")
@selection_options
@engine_options
@click.option("-o", "--output", type=click.Choice(["text", "json", "prometheus"]), default="text", show_default=True)
@click.option(
    "--scheduled",
    is_flag=True,
    help="Only tables that a run is working on, or whose files the next apply would rewrite.",
)
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=DEFAULT_PLAN_JOBS, show_default=True)
@click.pass_obj
def command(
    context: CliContext,
    select_: tuple[str, ...],
    exclude: tuple[str, ...],
    since: str | None,
    allow_empty: bool,
    master: str | None,
    conf: tuple[str, ...],
    output: str,
    scheduled: bool,
    jobs: int,
) -> None:
    """Show the state of each table at one look. Nothing is changed."""
    project = open_project(context)
    chosen = SelectionOptions(select_, exclude, since, allow_empty)
    policies = choose(project.loaded.resolved(), project.loaded, chosen, command="status", look=Look.COMES)
    past: dict[str, list[HistoryRow]] = {}
    steps, unread = history_rows(project.runs_dir, limit=MAX_PAST_STEPS)
    for step in steps:
        past.setdefault(step.table, []).append(step)
    rows: list[StatusRow] = []

    at_ms = now_ms()
    running = running_tables(project.runs_dir, at_ms)
    with open_engine(parse_engine_options(master, conf)) as opened:
        in_session = opened.session_setting(SESSION_ENABLED)

        def look_at(look: TableLook) -> None:
            table = look.policy.table.identifier
            rows.append(status_row(look, past.get(table, []), in_session, running.get(table)))

        plan = make_plan(project, opened.engine, PlanRequest(policies, at_ms, jobs=jobs, on_table=look_at))
    wanted = {str(table.ref) for table in narrowed(plan, project.loaded, chosen, command="status").tables}
    rows = sorted((row for row in rows if row.table in wanted), key=lambda row: row.table)
    if scheduled:
        rows = [row for row in rows if row.scheduled or row.running]
    if output == "json":
        click.echo(status_json(rows, at_ms), nl=False)
    elif output == "prometheus":
        click.echo(status_prometheus(rows, at_ms), nl=False)
    else:
        click.echo(render_status(rows, at_ms, Style(context.color), tz=local_zone()), nl=False)
    for line in unread:
        click.echo(f"warning: a run could not be read: {line}", err=True)
