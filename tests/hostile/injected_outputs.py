"""Everything that is written for people with a hostile name or text in it: pages, Markdown, lines of a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timezone

from maintainer.errors import TableError
from maintainer.errors.foreign_text import visible_json
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.progress import (
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TableFinished,
    TableStarted,
)
from maintainer.model.run.results_document import run_to_json
from maintainer.policy.diagnostics import Diagnostic, Severity, Span
from maintainer.policy.project.price_settings import Prices
from maintainer.report.diagnostics_report import (
    DiagnosticsReport,
    render_concise,
    render_full,
    render_json,
    render_sarif,
    render_step_summary,
)
from maintainer.report.findings import render_annotations
from maintainer.report.html.fleet_view import fleet_view
from maintainer.report.html.live_view import LiveView, live_view
from maintainer.report.html.page import (
    Served,
    render_fleet_page,
    render_live_page,
    render_message_page,
    render_run_page,
)
from maintainer.report.html.run_view import ReportProject, run_view
from maintainer.report.plan.plan_markdown import render_failure_markdown, render_plan_markdown
from maintainer.report.plan.plan_text import PlanOptions, render_plan
from maintainer.report.plan.why_text import render_why
from maintainer.report.run.outcome_text import render_steps
from maintainer.report.run.progress_text import ProgressText
from maintainer.report.run.run_findings import render_junit, run_findings, run_markdown
from maintainer.report.run.run_text import render_run
from maintainer.report.status_documents import history_json, status_json, status_prometheus
from maintainer.report.status_text import render_history, render_status
from maintainer.report.style import Style
from tests.hostile.injected_run import (
    injected_comparison,
    injected_history,
    injected_plan,
    injected_run,
    injected_status,
)
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

UTC = timezone.utc
NOW_MS = sample_plans.TEN_PM


def report_pages(text: str) -> tuple[str, ...]:
    plan, outcome = injected_plan(text), injected_run(text)
    project = ReportProject(text, Prices(text, 1.0, 1.0, 1.0))
    return (
        render_run_page(run_view(plan, outcome, {}, UTC, run_folder=text, project=project)),
        render_fleet_page(fleet_view([(plan, outcome)], UTC, unread=(text,), project=project)),
        render_live_page(injected_live_view(text), Served()),
        render_message_page(text, (text, text), Served()),
    )


def injected_live_view(text: str) -> LiveView:
    plan = injected_plan(text)
    events = [
        {"type": kind, "table": table.ref.identifier, "kind": text, "status": text, "num_deleted": text}
        for table in plan.tables
        for kind in ("step_started", "step_finished", "deleting")
    ]
    return live_view(text, text, plan, events, UTC, now_ms=NOW_MS)


def markdown_texts(text: str) -> Iterator[str]:
    yield render_plan_markdown(injected_plan(text), compared=injected_comparison(text))
    yield render_failure_markdown(TableError(text, code="T401", where=text, found=text).render(), [text], text)
    yield run_markdown(injected_run(text))
    yield render_step_summary(injected_findings(text))


def injected_findings(text: str) -> DiagnosticsReport:
    finding = Diagnostic(
        "P201", Severity.ERROR, text or "x", f"policies/{text}.yml".replace("\ud800", ""), Span(1, 1, 1, 2), text
    )
    return DiagnosticsReport((finding,), 1, 1, 0.1)


class ExcerptSources:
    """Sources of excerpts: the text itself, as a file would hold it."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def lines(self, file: str) -> list[str]:
        return self._lines


def progress_lines(text: str) -> str:
    stream = io.StringIO()
    outcome = injected_run(text)
    printer = ProgressText(stream, Style(), tables=[table.ref.identifier for table in outcome.tables], verbose=True)
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
    yield "plan", render_plan(plan, PlanOptions(project=text, saved_to=text, verbose=True))
    yield "why", "".join(render_why(table) for table in plan.tables)
    yield "run", render_run(outcome, run_folder=text)
    yield "steps", render_steps(outcome)
    yield "progress", progress_lines(text)
    yield "history", render_history(injected_history(text))
    yield "status", render_status(injected_status(text), NOW_MS)
    yield "validate", "\n".join(render_full(injected_findings(text), ExcerptSources(text)))
    yield "validate concise", "\n".join(render_concise(injected_findings(text)))
    yield "plan as JSON", visible_json(to_json(plan, indent=2))
    yield "run as JSON", visible_json(run_to_json(outcome, indent=2))
    yield "history as JSON", history_json(injected_history(text))
    yield "status as JSON", status_json(injected_status(text), NOW_MS)
    yield "validate as JSON", render_json(injected_findings(text))
    yield "sarif", render_sarif(injected_findings(text))
    yield "prometheus", status_prometheus(injected_status(text), NOW_MS)
    yield "junit", render_junit(outcome)
    yield "annotations", render_annotations(run_findings(outcome))
