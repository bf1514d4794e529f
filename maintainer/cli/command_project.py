"""Loads the project for the commands that act on tables, and shows every policy error when there are any."""

from __future__ import annotations

import time

import click

from maintainer.app.project_folders import PolicyProblems, Project
from maintainer.cli.context import CliContext
from maintainer.report.diagnostics_report import DiagnosticsReport, ProjectSources, render_full
from maintainer.report.style import Style


def open_project(context: CliContext) -> Project:
    """Load the project of a command.

    Raises:
        PolicyProblems: Policy files have errors; all of them have been printed to stderr.
        ProjectError: There is no project, or no such environment.
    """
    started = time.monotonic()
    try:
        return Project.load(context.project_root, context.env)
    except PolicyProblems as problems:
        loaded = problems.loaded
        report = DiagnosticsReport(
            loaded.diagnostics, loaded.files_read, loaded.policy_count, time.monotonic() - started
        )
        for block in render_full(report, ProjectSources(loaded.root), Style(context.color_stderr)):
            click.echo(block, err=True)
        raise


def now_ms() -> int:
    """Return the time of this machine, milliseconds since 1970 UTC; read once in a command and passed on."""
    return time.time_ns() // 1_000_000
