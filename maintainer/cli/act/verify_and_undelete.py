"""``maintainer verify`` and ``undelete``: prove a commit after the fact, bring back what a vacuum moved away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from maintainer.app import operations
from maintainer.app.project_folders import Project
from maintainer.app.running.verify_commits import VerifyRequest, VerifyTarget, parse_target, verification_json
from maintainer.app.selection.chosen_tables import chosen_tables, named_policy
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.act.run_output import YES, is_approved, require_approval
from maintainer.cli.context import CliContext, open_project, print_as, warn
from maintainer.cli.options import ENGINE, SELECTION, TableName, output_option, spec_options
from maintainer.errors import ExitCode
from maintainer.errors.foreign_text import printable
from maintainer.model.run.commit_verdict import CheckResult, TableVerification, VerifyRun
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.table_search import TableProblem
from maintainer.policy.table_names import is_uri, may_be_an_end, name_key, table_ref, whole_name_needed
from maintainer.report.findings import render_annotations
from maintainer.report.run.verify_text import render_verify, verify_findings, verify_junit, verify_line
from maintainer.report.style import Style
from maintainer.units import count_of, format_size

EXIT_CODES = {
    CheckResult.WRONG: ExitCode.VERIFICATION_FAILED,
    CheckResult.NOT_CHECKED: ExitCode.FINDINGS,
    CheckResult.SPELLED_ANEW: ExitCode.FINDINGS,
    CheckResult.PROVEN: ExitCode.OK,
    CheckResult.FILES_ONLY: ExitCode.OK,
}


@click.command("verify")
@click.argument("table", metavar="[TABLE[@VERSION]]", required=False, type=TableName())
@spec_options(SELECTION, ENGINE)
@click.option(
    "--content",
    type=click.Choice(["fingerprint", "exact"]),
    default="fingerprint",
    show_default=True,
    help="How to compare rows. fingerprint compares hashes; exact also compares every value and needs a shuffle.",
)
@click.option("--accept", metavar="REASON", help="End the quarantine of TABLE, and record why that is safe.")
@output_option("json", "junit", "github")
@click.pass_obj
def verify_command(
    context: CliContext, table: str | None, spec: RunSpec, content: str, accept: str | None, output: str
) -> int:
    """Check that a past commit lost no row, also one that another tool made. No table is changed.

    Without a version it takes the newest maintenance rewrite. Exit code: 0 proven, 5 wrong, 1 could not be checked.
    """
    if table is None and accept is not None:
        raise click.UsageError("--accept needs one TABLE")
    if accept is not None and not accept.strip():
        raise click.UsageError("--accept needs a reason, which is recorded")
    if table is not None and spec.selection.given:
        raise click.UsageError("name a TABLE or select tables, not both")
    project = open_project(context)
    if table is not None:
        target = _target(project, table)
        written = str(target.ref)
        if not (_is_known(project, target.ref) or is_uri(written) or written.startswith("/")):
            loaded = search_tables(project, spec.engine).loaded
            called = loaded.called(written)
            if called is None and loaded.search is not None and loaded.search.problems and may_be_an_end(written):
                raise loaded.search.problems[0].error
            if called is not None and accept is not None:
                raise whole_name_needed(table, called)
            target = replace(target, ref=called or target.ref)
        targets: tuple[VerifyTarget, ...] = (target,)
        problems: tuple[TableProblem, ...] = ()
    else:
        chosen = chosen_tables(search_tables(project, spec.engine), spec, command="verify").with_a_table()
        problems = chosen.problems
        targets = tuple(VerifyTarget(policy.table, is_ledger=policy.is_ledger) for policy in chosen.policies)
    style = Style(context.color_stderr)

    def print_result(table: TableVerification) -> None:
        if output == "text" and len(targets) > 1 and context.verbosity >= 0:
            click.echo(verify_line(table, style), err=True)

    request = VerifyRequest(targets, problems, exact=content == "exact", accept=accept, on_table=print_result)
    run = operations.verify(project, spec, request, lambda problem: warn(problem.what, problem.code))
    print_as(
        output,
        json=lambda: verification_json(run),
        junit=lambda: verify_junit(run),
        github=lambda: render_annotations(verify_findings(run)) + render_verify(run),
        text=lambda: render_verify(run, Style(context.color), verbose=context.verbosity > 0),
    )
    return _exit_code(run, accepted=accept is not None)


def _target(project: Project, text: str) -> VerifyTarget:
    """Read ``TABLE[@VERSION]``; refuse a version that is no number, unless a table is called so.

    Raises:
        click.UsageError: What stands behind the `@` is neither a version nor a part of a name.
    """
    if _is_known(project, whole := _ref(project, text)):
        return VerifyTarget(whole)
    target = parse_target(text, lambda name: _ref(project, name))
    name, at, version = text.rpartition("@")
    if at and target.version is None and _is_known(project, _ref(project, name)) and not _is_known(project, target.ref):
        raise click.UsageError(
            f"a version is a number, as in {name}@12, not {version!r}; `maintainer history` has them"
        )
    return target


def _is_known(project: Project, ref: TableRef) -> bool:
    is_named = any(table.key == name_key(ref) for table in project.loaded.tables)
    return is_named or (ref.is_path and Path(ref.location).is_dir())


def _ref(project: Project, name: str) -> TableRef:
    ref = table_ref(name, project.root)
    return next((table.ref for table in project.loaded.tables if table.key == name_key(ref)), ref)


def _exit_code(run: VerifyRun, *, accepted: bool) -> ExitCode:
    results = {table.result for table in run.tables}
    codes = (code for result, code in EXIT_CODES.items() if result in results and not accepted)
    return next(codes, ExitCode.OK)


MAX_NAMED = 20


@click.command("undelete")
@click.argument("table", type=TableName())
@click.option(
    "--run",
    "run_id",
    required=True,
    metavar="ID",
    help="The run whose vacuum took the files away; see `maintainer history`.",
)
@spec_options(ENGINE)
@YES
@click.pass_obj
def undelete_command(context: CliContext, table: str, spec: RunSpec, run_id: str, yes: bool) -> int:
    """Restore the files that a vacuum took away. No existing file is overwritten.

    With `vacuum.trash` they come back from the trash. In an S3 bucket that keeps versions the run's delete markers are
    removed, by the version ids in its record, each only while nothing newer is in its place. `maintainer history`
    lists it as a run.
    """
    require_approval(yes=yes, command="maintainer undelete", first="it overwrites no file that exists")
    project = open_project(context)
    project, policy = named_policy(project, table, spec.engine, managed=False, whole=True)
    name = policy.table.identifier
    if not is_approved(f"Bring back what run {run_id} took out of {name}?", yes=yes):
        return ExitCode.FINDINGS
    receipt = operations.undelete(project, spec, policy, run_id)
    size = format_size(receipt.bytes_restored)
    restored = f"{count_of(receipt.num_files_restored, 'file')} ({size})"
    click.echo(f"{printable(name)}: {restored} of run {printable(run_id)} are back in its folder")
    for line in receipt.refused[:MAX_NAMED]:
        click.echo(f"  not brought back: {printable(line)}")
    if len(receipt.refused) > MAX_NAMED:
        click.echo(f"  and {len(receipt.refused) - MAX_NAMED:,} more that were not brought back")
    click.echo(
        "The next vacuum takes them again: set `suspend:` in the policy, or RESTORE the version that needs them."
    )
    return ExitCode.FINDINGS if receipt.refused else ExitCode.OK
