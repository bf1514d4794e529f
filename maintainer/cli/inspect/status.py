"""``maintainer status``: one line a table: state, small files, last optimize, last vacuum, last proof, what is next."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import click

from maintainer.app import operations
from maintainer.app.project_folders import local_zone
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.status_look import StatusLook
from maintainer.cli.context import CliContext, open_project, print_as, print_elsewhere, warn
from maintainer.cli.options import ENGINE, SELECTION, jobs_option, output_option, pause, spec_options
from maintainer.cli.standard_streams import has_no_reader
from maintainer.errors import ExitCode
from maintainer.execution.cancellation import StopSwitch, signals_stop
from maintainer.model.run.exit_codes import look_exit_code
from maintainer.report.status_documents import status_json, status_prometheus
from maintainer.report.status_text import problem_line, render_status
from maintainer.report.style import Style, full_screen
from maintainer.report.text_layout import when

MAX_LOOKS = 1_000_000


@click.command("status")
@spec_options(SELECTION, ENGINE)
@output_option("json", "prometheus")
@click.option(
    "--scheduled",
    is_flag=True,
    help="Only tables that a run works on now, or whose files the next apply would rewrite.",
)
@click.option("--watch", "watch_", is_flag=True, help="Repeat until Ctrl-C.")
@click.option(
    "--interval",
    type=pause(86_400),
    default="10s",
    show_default=True,
    help="With --watch: how long to wait between two checks.",
)
@click.option("--looks", type=click.IntRange(1, MAX_LOOKS), help="With --watch: stop after this many checks.")
@jobs_option("Tables to read at once.  [default: 2, on object stores 16]")
@click.pass_obj
def status_command(
    context: CliContext,
    spec: RunSpec,
    output: str,
    scheduled: bool,
    watch_: bool,
    interval: int,
    looks: int | None,
    jobs: int | None,
) -> int:
    """Show the state of each table in one line. Nothing is changed.

    Delta tables in the same folders that no policy names are listed as unmanaged.
    """
    if watch_ and output != "text":
        raise click.UsageError("--watch shows text: for a program, run `status -o json` as often as it needs")
    if looks is not None and not watch_:
        raise click.UsageError("--looks goes with --watch")
    project = open_project(context)
    spec = replace(spec, jobs=jobs)
    switch = StopSwitch()

    def text_of(status: StatusLook) -> str:
        style, verbose = Style(context.color), context.verbosity > 0
        text = render_status(status.rows, status.at_ms, style, tz=local_zone(), verbose=verbose)
        return text if status.ledger is None else f"{text}{problem_line(status.ledger)}\n"

    with operations.status(project, spec, scheduled=scheduled) as read_status:
        if watch_:
            with signals_stop(switch):
                status = _watch(read_status, text_of, switch, interval, looks, color=context.color)
        else:
            status = read_status()
    print_elsewhere(context, project)
    print_as(
        output,
        json=lambda: status_json(status.rows, status.at_ms, status.everything_wrong),
        prometheus=lambda: status_prometheus(status.rows, status.at_ms),
        text=lambda: "" if watch_ else text_of(status),
    )
    if output != "text" and status.ledger is not None:
        click.echo(problem_line(status.ledger), err=True)
    for table, problem in status.problems:
        if table is None:
            warn(problem.what, problem.code)
    if switch.stop_reason is None:
        return look_exit_code(problem for _, problem in status.everything_wrong)
    return ExitCode.TERMINATED if switch.terminated else ExitCode.INTERRUPTED


def _watch(
    read_status: Callable[[], StatusLook],
    text_of: Callable[[StatusLook], str],
    switch: StopSwitch,
    pause_seconds: int,
    most_looks: int | None,
    *,
    color: bool,
) -> StatusLook:
    """Look until stopped or unread, or so often. On a terminal each look replaces the last one, and the last stays."""
    on_terminal = sys.stdout.isatty()
    with full_screen(sys.stdout, color=color) if on_terminal else nullcontext() as show:
        for number in range(1, (most_looks or MAX_LOOKS) + 1):
            status = read_status()
            text = f"status at {when(status.at_ms, local_zone())}, every {pause_seconds}s\n{text_of(status)}"
            if show is not None:
                show(text)
            else:
                click.echo(("" if number == 1 else "\n") + text, nl=False)
                sys.stdout.flush()
            if number == most_looks or has_no_reader(sys.stdout) or switch.wait(pause_seconds):
                break
    if on_terminal:
        click.echo(text, nl=False)
    return status
