"""``maintainer doctor``: check this machine, and name the command that fixes each problem."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from maintainer.app.engine_access import EngineOptions, project_engine
from maintainer.app.selection.managed_search import needs_session, search_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.context import CliContext, now_ms, print_json
from maintainer.cli.options import ENGINE, output_option, spec_options, stage_lines
from maintainer.delta.doctor.doctor_checks import DoctorInput, run_checks
from maintainer.delta.doctor.doctor_model import Check, Status, failed, guarded
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit, ExitCode, NoProject, ProjectError
from maintainer.journal.store.state_access import local_runs_dir, setting_without_effect, try_store
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import is_uri
from maintainer.report.document.blocks import Document, Line, Row, Span, TableBlock
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.style import Role, Style
from maintainer.report.text_layout import alike
from maintainer.units import by_cause, count_of

if TYPE_CHECKING:
    from maintainer.app.project_folders import Project

FORMAT_VERSION = "1"
_ROLES = {Status.OK: Role.GOOD, Status.WARN: Role.WARN, Status.FAIL: Role.BAD}
_WIDEST_NAME = 20


@click.command("doctor")
@output_option("json")
@click.option("--no-spark", is_flag=True, help="Only look at what is here: download nothing, start no session.")
@click.option(
    "--warm",
    is_flag=True,
    help="Prepare an image or a machine: fetch the JARs and write an archive of Java's classes. Later commands then "
    "start in less time. No table and no state is looked at.",
)
@click.option("--notify", is_flag=True, help="Send a test message to the address in `notify` of maintainer.yml.")
@spec_options(ENGINE)
@click.pass_context
def doctor_command(ctx: click.Context, output: str, no_spark: bool, warm: bool, notify: bool, spec: RunSpec) -> None:
    """Check Java, versions, JARs, Spark, storage and permissions. Each failure comes with its fix."""
    if warm and (no_spark or notify):
        raise click.UsageError(f"--warm and {'--no-spark' if no_spark else '--notify'} exclude each other")
    context: CliContext = ctx.obj
    engine = spec.engine
    projects: list[Project] = []
    in_project = guarded("project", lambda: _project(context, projects))
    for project in projects:
        engine = project_engine(project.loaded.project, engine)
    speak = output == "text" and context.verbosity >= 0
    trying = ctx.with_resource(ExitStack())
    stages = stage_lines()

    def say(name: str) -> None:
        trying.close()
        if speak:
            trying.enter_context(stages.waiting(f"trying {name}"))

    looked_at = [] if warm else projects
    in_project += guarded("tables of rules", lambda: _managed(looked_at, engine, say, with_session=not no_spark))
    runs_dir: Path | None = None
    for project in looked_at:
        in_project += _state(project, say)
        in_project += _test_message(project, say) if notify else []
        with suppress(ProjectError):  # the check of the state says it
            runs_dir = local_runs_dir(project.loaded.project)
    subject = DoctorInput(
        root=context.project_root,
        locations=tuple(_address(policy.table) for project in looked_at for policy in project.policies),
        try_spark=not no_spark,
        options=SessionOptions(
            engine.master, engine.conf, remote=engine.remote, record_classes=warm, storage=engine.storage
        ),
        runs_dir=runs_dir,
        ledger=next((_address(project.loaded.ledger) for project in looked_at if project.loaded.ledger), None),
    )
    checks = in_project + run_checks(subject, say)
    trying.close()
    if output == "json":
        print_json({"format_version": FORMAT_VERSION, "checks": [asdict(check) for check in checks]})
    else:
        click.echo(terminal_text(as_document(checks), Style(context.color)), nl=False)
    if any(check.status is Status.FAIL for check in checks):
        ctx.exit(int(ExitCode.FINDINGS))


def _address(ref: TableRef) -> str:
    """Where a table is, in the words of the project."""
    return ref.identifier if is_uri(ref.identifier) else ref.location


def _project(context: CliContext, projects: list[Project]) -> Iterator[Check]:
    from maintainer.app.project_folders import PolicyProblems, Project

    try:
        project = Project.load(context.project_root, context.env)
    except PolicyProblems as problems:
        yield Check("project", Status.FAIL, problems.what, "maintainer validate", problems.code)
        return
    except NoProject:
        yield Check("project", Status.WARN, f"no maintainer.yml at or above {context.project_root}", "maintainer init")
        return
    projects.append(project)
    own, owns = "table has a policy file of its own", "tables have policy files of their own"
    named = sum(not policy.is_ledger for policy in project.policies)
    yield Check("project", Status.OK, f"{project.root}: {count_of(named, own, owns)}")


def _state(project: Project, say: Callable[[str], None]) -> list[Check]:
    """Try the store of a state that lies on one; a folder of this machine is the business of another check."""
    settings = project.loaded.project
    if not is_uri(settings.state):
        return []
    say("state")

    def state_checks() -> Iterator[Check]:
        if name := setting_without_effect(settings):
            what = (
                f"`{name}` has no effect on {settings.state}: only Hadoop knows it, and the state goes without Hadoop"
            )
            fix = (
                "let `state:` name a place that does not need it, or replace it with a setting of docs/object-stores.md"
            )
            yield Check("state settings", Status.WARN, what, fix)
        try_store(settings)
        can = "can be listed, read and written, and no write replaces what another one made meanwhile"
        yield Check("state", Status.OK, f"{settings.state} {can}")

    return guarded("state", state_checks)


def _test_message(project: Project, say: Callable[[str], None]) -> list[Check]:
    """Send a message that somebody wants to see arrive: no address, or one that does not take it, is a failure."""
    from maintainer.app.running.observers.event_thread import NOT_DELIVERED, NotDelivered
    from maintainer.app.running.observers.observed_run import webhook_of

    webhook = webhook_of(project)
    if webhook is None:
        what = "no address to send a test message to: maintainer.yml has no `notify`, or its `url` is empty"
        return [Check("notify", Status.FAIL, what, 'write it as `notify: {url: "${env:NAME}"}`, and set NAME')]
    say("notify")
    try:
        webhook.test(now_ms())
    except NotDelivered as error:
        what = f"the test message to {webhook.where} was not taken: {error}"
        return [Check("notify", Status.FAIL, what, "check the address and the server", NOT_DELIVERED)]
    return [Check("notify", Status.OK, f"{webhook.where} took a test message: look whether it arrived")]


def _managed(
    projects: list[Project], engine: EngineOptions, say: Callable[[str], None], *, with_session: bool
) -> Iterator[Check]:
    """Look for the tables that rules manage; the projects then know them, and they are checked like all others."""
    for at, project in enumerate(projects):
        name, rules = "tables of rules", count_of(len(project.loaded.managing_rules), "rule")
        if project.loaded.has_no_table_yet:
            what = "`roots` in maintainer.yml is empty, so no table is managed"
            yield Check(name, Status.WARN, what, "write there where your tables lie, such as `roots: [/data/lake]`")
        if not project.loaded.searches:
            continue
        if needs_session(project):
            if not with_session:
                yield Check(name, Status.OK, f"not looked for: that needs a session ({rules})")
                continue
            say(name)
        try:
            projects[at] = project = search_tables(project, engine)
        except EnvironmentUnfit:
            continue  # what the session lacks is a check of its own
        problems = project.loaded.problems
        for problem, *others in by_cause(problems, lambda each: (each.error.code, each.error.what, each.error.help)):
            check = failed(f"tables of {problem.table}", problem.error)
            also = f"\n{alike([str(other.table) for other in others])}" if others else ""
            yield replace(check, detail=check.detail + also)
        managed = len(project.loaded.managed.resolutions)
        fix = None if managed else "`maintainer inventory` shows which tables there are, and who looks after them"
        yield Check(name, Status.OK if managed else Status.WARN, f"{count_of(managed, 'table')} by {rules}", fix)


def as_document(checks: Sequence[Check]) -> Document:
    """Return one row per check, below it the way to fix what failed, and a last line that counts."""
    rows = []
    for check in checks:
        head, *below = check.detail.splitlines() or [""]
        if check.fix and check.status is not Status.OK:
            below += textwrap.indent(f"fix: {check.fix}", " " * 5).strip().splitlines()
        word, code = Span(check.status.value, _ROLES[check.status]), f" [{check.code}]" if check.code else ""
        rows += [Row((word, check.name, f"{head}{code}")), *(Row(("", "", line)) for line in below)]
    counts = Counter(check.status for check in checks)
    warnings, failures = count_of(counts[Status.WARN], "warning"), count_of(counts[Status.FAIL], "failure")
    return [TableBlock((), rows, widest=_WIDEST_NAME), Line(f"{counts[Status.OK]} ok, {warnings}, {failures}")]
