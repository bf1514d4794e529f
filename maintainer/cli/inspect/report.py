"""``maintainer report``: a run or the fleet as one HTML file. No Spark."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.app.lookback.report_pages import fleet_page, run_page
from maintainer.app.project_folders import local_zone
from maintainer.cli.command_project import now_ms, open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.value_types import DURATION
from maintainer.cli.printing import writing
from maintainer.journal.folder.atomic_files import write_atomically

MAX_FLEET_RUNS = 400


@click.command("report")
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--fleet", is_flag=True, help="All runs together: each table over time.")
@click.option("--since", default="30d", type=DURATION, show_default=True, help="With --fleet: how far back.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the file.")
@click.pass_obj
def command(context: CliContext, run: str | None, fleet: bool, since: int, out: Path | None) -> None:
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
