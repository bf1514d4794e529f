"""``maintainer ui``: serves the reports on this machine alone and read-only."""

from __future__ import annotations

import contextlib

import click

from maintainer.app.lookback.served_pages import ServedPages
from maintainer.cli.context import CliContext, open_project
from maintainer.cli.options import DURATION
from maintainer.cli.ui.page_server import PageServer


@click.command("ui")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    show_default=True,
    help="The port on 127.0.0.1; 0 takes a free port.",
)
@click.option(
    "--since", default="30d", type=DURATION, show_default=True, help="How far back the page of all tables goes."
)
@click.pass_obj
def ui_command(context: CliContext, port: int, since: int) -> None:
    """Show reports, and a run in progress, in a browser. The pages are read-only.

    Only this machine can open the pages, until Ctrl-C. They are those of `report`, and follow a run while it goes on.
    """
    project = open_project(context)
    with PageServer(ServedPages(project, since).page_at, port) as server:
        click.echo(f"reports of {project.loaded.project.name}: {server.url}   (Ctrl-C ends this)")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)
    click.echo("stopped", err=True)
