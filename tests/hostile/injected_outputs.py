"""Everything that is written for people with a hostile name or text in it: pages, Markdown, lines of a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC

from tests.hostile.injected_run import (
    injected_comparison,
    injected_history,
    injected_plan,
    injected_run,
    injected_status,
)
from tests.support.product import (
    Diagnostic,
    DiagnosticsReport,
    KnownTable,
    Page,
    PlannedNames,
    PlanTextOptions,
    Prices,
    ProgressText,
    ReportProject,
    RunFinished,
    RunFold,
    RunStarted,
    Served,
    Severity,
    SourceSpan,
    StepFinished,
    StepStarted,
    Style,
    TableError,
    TableFinished,
    TableStarted,
    fleet_tables,
    fleet_view,
    history_json,
    live_view,
    message_page,
    render_annotations,
    render_concise,
    render_failure_markdown,
    render_full,
    render_history,
    render_json,
    render_page,
    render_plan,
    render_plan_markdown,
    render_run,
    render_sarif,
    render_status,
    render_step_summary,
    render_steps,
    render_why,
    run_findings,
    run_markdown,
    run_to_json,
    run_view,
    status_json,
    status_prometheus,
    table_page,
    to_json,
    visible_json,
)
from tests.support.product import render_run_junit as render_junit
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

UTC = UTC
NOW_MS = sample_plans.TEN_PM


def report_pages(text: str) -> tuple[str, ...]:
    plan, outcome = injected_plan(text), injected_run(text)
    project = ReportProject(text, Prices(text, 1.0, 1.0, 1.0))
    table = fleet_tables([(plan, outcome)], UTC, quarantined={})[0]
    record = KnownTable(table, plan.tables[0], NOW_MS, injected_history(text), None)
    return (
        render_page(table_page(record, UTC)),
        render_page(run_view(plan, outcome, {}, UTC, run_folder=text, project=project)),
        render_page(fleet_view([(plan, outcome)], UTC, unread=(text,), project=project)),
        render_page(injected_live_view(text), Served()),
        render_page(message_page(text, (text, text)), Served()),
    )


def injected_live_view(text: str) -> Page:
    plan = injected_plan(text)
    events = [StepStarted(NOW_MS, table.ref.identifier, table.step_id(step), text, 1) for table, step in plan.steps()]
    return live_view(text, text, plan, RunFold.of(events), UTC, now_ms=NOW_MS)


def markdown_texts(text: str) -> Iterator[str]:
    yield render_plan_markdown(injected_plan(text), compared=injected_comparison(text))
    yield render_failure_markdown(TableError(text, code="T401", where=text, found=text).render(), [text], text)
    yield run_markdown(injected_run(text))
    yield render_step_summary(injected_findings(text))


def injected_findings(text: str) -> DiagnosticsReport:
    finding = Diagnostic(
        "P201", Severity.ERROR, text or "x", f"policies/{text}.yml".replace("\ud800", ""), SourceSpan(1, 1, 1, 2), text
    )
    return DiagnosticsReport((finding,), 1, 1, 0.1)


def progress_lines(text: str) -> str:
    stream = io.StringIO()
    outcome = injected_run(text)
    printer = ProgressText(
        stream, Style(), planned=PlannedNames([table.ref.identifier for table in outcome.tables]), verbose=True
    )
    printer(RunStarted(NOW_MS, samples.RUN, 1, 1, 1, text))
    for table in outcome.tables:
        name = table.ref.identifier
        printer(TableStarted(NOW_MS, name, 1))
        for number, step in enumerate(table.steps, start=1):
            printer(StepStarted(NOW_MS, name, step.step_id, step.kind, number))
            printer(StepFinished(NOW_MS, name, number, step))
        printer(TableFinished(NOW_MS, table))
    printer(RunFinished(NOW_MS, outcome))
    printer.close()
    return stream.getvalue()


def terminal_texts(text: str) -> Iterator[tuple[str, str]]:
    plan, outcome = injected_plan(text), injected_run(text)
    error = TableError(text, code="T401", where=text, found=text, allowed=text, help=text)
    yield "error", error.render()
    yield "line of a log", str(error)
    yield "plan", render_plan(plan, PlanTextOptions(project=text, saved_to=text, verbose=True))
    yield "why", "".join(render_why(table) for table in plan.tables)
    yield "run", render_run(outcome, run_folder=text)
    yield "steps", render_steps(outcome)
    yield "progress", progress_lines(text)
    yield "history", render_history(injected_history(text))
    yield "status", render_status(injected_status(text), NOW_MS)
    yield "validate", "\n".join(render_full(injected_findings(text), lambda file: text.split("\n")))
    yield "validate concise", "\n".join(render_concise(injected_findings(text)))
    yield "plan as JSON", visible_json(to_json(plan))
    yield "run as JSON", visible_json(run_to_json(outcome))
    yield "history as JSON", history_json(injected_history(text))
    yield "status as JSON", status_json(injected_status(text), NOW_MS)
    yield "validate as JSON", render_json(injected_findings(text))
    yield "sarif", render_sarif(injected_findings(text))
    yield "prometheus", status_prometheus(injected_status(text), NOW_MS)
    yield "junit", render_junit(outcome)
    yield "annotations", render_annotations(run_findings(outcome))
