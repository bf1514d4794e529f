"""``maintainer validate --tests``: the project's files, and the tests of its policies."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.cli.validate_scope import Checked, findings_of
from maintainer.policy.project import load_project
from maintainer.report.layout import count


def check_project_and_tests(root: Path, env: str | None, verbosity: int) -> Checked:
    """Check a project, and run its tests if it has no errors; says on stderr how many ran.

    Raises:
        ProjectError: There is no project, or no such environment.
    """
    from maintainer.app.policy_tests import run_policy_tests  # planning is loaded only when it is asked for

    project = load_project(root, env)
    if project.has_errors:
        click.echo("tests were not run, because the policies have errors", err=True)
        return Checked(findings_of(project), project.files_read, project.policy_count)
    report = run_policy_tests(project)
    if verbosity >= 0:
        where = f"policies/_tests/ ({count(report.files, 'file')})"
        passed = report.tests - report.failed
        click.echo(f"{count(report.tests, 'test')} in {where}: {passed} passed, {report.failed} failed", err=True)
    findings = tuple(sorted([*findings_of(project), *report.diagnostics]))
    return Checked(findings, project.files_read + report.files, project.policy_count)
