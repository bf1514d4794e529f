"""``maintainer show`` and ``why``: a saved plan or a past run, and every decision about one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import click

from maintainer.app import operations
from maintainer.app.engine_access import EngineOptions, project_engine
from maintainer.app.lookback.run_history import history_row
from maintainer.app.lookback.table_history import hook_rows
from maintainer.app.planning.plan_output import decisions_text
from maintainer.app.project_folders import local_zone
from maintainer.app.running.restore_files import UNDELETE_FILE, undelete_rows
from maintainer.app.running.verify_commits import VERIFICATION_FILE, verification_from_json, verification_json
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.context import CliContext, open_project, print_as
from maintainer.cli.options import ENGINE, TableName, output_option, spec_options
from maintainer.errors import MaintainerError, ProjectError, unread
from maintainer.journal.folder.atomic_files import read_document
from maintainer.journal.folder.run_folder import PLAN_FILE, RESULTS_FILE
from maintainer.journal.memory.past_runs import read_run
from maintainer.journal.store.state_access import runs_dir_of
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.run.auto_compaction import RUN_PREFIX
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunOutcome, run_from_json, run_to_json
from maintainer.policy.project.policy_project import load_project
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import PlanTextOptions, render_plan
from maintainer.report.run.run_text import render_run, render_steps
from maintainer.report.run.verify_text import render_verify
from maintainer.report.status_documents import history_json
from maintainer.report.status_text import render_history
from maintainer.report.style import Style

_WHERE_HOOKS_ARE = "`maintainer history TABLE` lists the hook's commits that the table's log still has"
_WHAT_CAN_BE_SHOWN = "name a plan that `maintainer plan --out` saved, or a run that `maintainer history` lists"


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@output_option("json", "markdown")
@click.pass_obj
def show_command(context: CliContext, file: Path, output: str) -> None:
    """Show a saved plan or a past run. FILE is a plan file, a run folder, its results.json, or a run id.

    An id of auto compaction, which has no run folder, shows its commit: from the table's log if that is on this
    machine, else from the ledger, with Spark.
    """
    if str(file).startswith(RUN_PREFIX) and not file.exists():
        _show_hook(context, str(file), output)
        return
    path = _find(context, file)
    if path.name == RESULTS_FILE and not path.is_file():
        # A run that brought files back, or that verified, has no plan and no results.
        for name, show in ((UNDELETE_FILE, _show_undelete), (VERIFICATION_FILE, _show_verification)):
            if (path.parent / name).is_file():
                show(context, path.parent / name, output)
                return
    text = _read(path)
    if path.name != RESULTS_FILE:
        _show_plan(context, from_json(text, where=str(path)), path, output)
        return
    with _checked(path, "not the results of a run"):
        # Of a run that was killed the events beside the results know more.
        outcome = read_run(path.parent).outcome if (path.parent / PLAN_FILE).is_file() else run_from_json(text)
    _show_run(context, outcome, path, output)


@contextmanager
def _checked(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise ProjectError(what, code="E643", where=str(path), found=str(error), help=_WHAT_CAN_BE_SHOWN) from error


def _show(output: str, what: str, **forms: Callable[[], str]) -> None:
    if output not in forms:
        raise click.UsageError(f"{what} is shown as text or json")
    print_as(output, **forms)


def _show_plan(context: CliContext, plan: Plan, path: Path, output: str) -> None:
    options = PlanTextOptions(saved_to=str(path), verbose=context.verbosity > 0, tz=local_zone())
    print_as(
        output,
        json=lambda: to_json(plan),
        markdown=lambda: render_plan_markdown(plan),
        text=lambda: render_plan(plan, options, Style(context.color)),
    )


def _show_run(context: CliContext, outcome: RunOutcome, path: Path, output: str) -> None:
    style, verbose = Style(context.color), context.verbosity > 0

    def text() -> str:
        end = render_run(outcome, style, run_folder=str(path.parent))
        return render_steps(outcome, style, verbose=verbose) + end

    _show(output, "a run", json=lambda: run_to_json(outcome), text=text)


def _show_hook(context: CliContext, run_id: str, output: str) -> None:
    """Show the commits of one call of the hook, which has no run folder."""
    if output == "markdown":
        raise click.UsageError("a commit of the hook is shown as text or json")
    project = open_project(context)
    rows = hook_rows(project, run_id, project_engine(project.loaded.project, EngineOptions()))
    if not rows:
        what = "no log of the project's tables here, and no row of the ledger, has a commit of this call of the hook"
        raise ProjectError(what, code="E643", where=run_id, help=_WHERE_HOOKS_ARE)
    print_as(output, json=lambda: history_json(rows), text=lambda: _history(context, rows))


def _show_undelete(context: CliContext, path: Path, output: str) -> None:
    text = _read(path)
    with _checked(path, "not the record of an undelete"):
        rows = [history_row(row) for row in undelete_rows(text)]
    _show(output, "an undelete", json=lambda: text, text=lambda: _history(context, rows))


def _history(context: CliContext, rows: Sequence[HistoryRow]) -> str:
    return render_history(rows, Style(context.color), tz=local_zone())


def _show_verification(context: CliContext, path: Path, output: str) -> None:
    with _checked(path, "not the record of a verification"):
        run = verification_from_json(_read(path))
    text = partial(render_verify, run, Style(context.color), verbose=context.verbosity > 0)
    _show(output, "a verification", json=lambda: verification_json(run), text=text)


def _find(context: CliContext, file: Path) -> Path:
    """Find the file that is meant: itself, the results in a run folder, or those of a run of this project."""
    for folder in _folders(context):
        candidate = folder / file
        if candidate.is_dir():
            return candidate / RESULTS_FILE
        if candidate.is_file():
            return candidate
    what = "there is no such file and no such run"
    raise ProjectError(what, code="E643", where=str(file), help=_WHAT_CAN_BE_SHOWN)


def _folders(context: CliContext) -> Iterator[Path]:
    """Yield where a file or run may be: here, the default folder of runs, and the one that maintainer.yml names."""
    yield Path()
    yield context.project_root / ".maintainer" / "runs"
    with suppress(MaintainerError):  # whoever shows a file need not have a project, nor a whole one
        yield runs_dir_of(load_project(context.project_root, context.env, keeps_policies=False).project, every_run=True)


def _read(path: Path) -> str:
    try:
        return read_document(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(unread("the file", error), code="E642", where=str(path), help=_WHAT_CAN_BE_SHOWN) from error


@click.command("why")
@click.argument("table", type=TableName())
@spec_options(ENGINE)
@click.pass_obj
def why_command(context: CliContext, table: str, spec: RunSpec) -> int:
    """Show each decision about one table, also what is not done, with the policy line behind it."""
    project = open_project(context)
    decisions = operations.why(project, spec, table)
    verbose, style = context.verbosity > 0, Style(context.color)
    said = (decisions.policy, decisions.plan, decisions.auto_compact)
    click.echo(decisions_text(project, *said, verbose=verbose, style=style), nl=False)
    return plan_exit_code(decisions.plan)
