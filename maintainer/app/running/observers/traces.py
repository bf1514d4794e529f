"""Traces of a run for OpenTelemetry: a span for the run, each table and each step; the extra ``maintainer[otel]``.

Everything is configured by OpenTelemetry's own environment variables. Spans are sent by OTLP over HTTP, in protobuf,
from threads of the SDK. A parent comes from ``TRACEPARENT``, as orchestrators set it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from maintainer.app.running.observers.event_thread import NotDelivered, ObservedRun, require_extra
from maintainer.model.plan.plan import Problem
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import (
    FAILED_STEPS,
    FAILED_TABLES,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
)
from maintainer.model.run.progress import (
    ProgressEvent,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TableFinished,
    TableStarted,
    Verified,
)
from maintainer.model.run.receipts import Amounts

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span

Attribute = str | int | float | bool | Sequence[str]
Attributes = dict[str, Attribute]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def traces_endpoint(environ: Mapping[str, str]) -> str | None:
    """Return the host that traces go to, without path or user; None where nothing asks for traces."""
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if disabled or environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() == "none":
        return None
    address = next((environ[name] for name in _ENDPOINTS if environ.get(name)), None)
    return None if address is None else urlsplit(address).netloc.rpartition("@")[2] or "the address in OTEL_..."


def traces_of(run: ObservedRun) -> Traces | None:
    """Return what makes spans of a run; None where the environment does not ask for them.

    Raises:
        EnvironmentUnfit: E629, the SDK is missing.
    """
    where = traces_endpoint(run.environ)
    if where is None:
        return None
    require_extra("otel", "opentelemetry.exporter.otlp.proto.http.trace_exporter", "sending traces")
    return Traces(where, run)


class Traces:
    """An observer that makes spans of a run's events. The SDK is loaded with the first event, off the run's thread.

    Args:
        where: The host that spans go to, for messages.
        run: The project, the plan, which knows where tables are, and the environment, for the resource and the parent.
    """

    what = "traces"

    def __init__(self, where: str, run: ObservedRun) -> None:
        self.where = where
        self._project = run.project
        self._environ = run.environ
        self._locations = {
            table.ref.identifier: table.observed.location for table in run.plan.tables if table.observed is not None
        }
        self._provider: TracerProvider | None = None
        self._not_taken: list[int] = []
        self._run: Span | None = None
        self._tables: dict[str, Span] = {}
        self._steps: dict[str, Span] = {}

    def event(self, event: ProgressEvent) -> None:
        """Begin or end the span that the event is about."""
        match event:
            case RunStarted():
                self._begin_run(event)
            case TableStarted():
                self._tables[event.table] = self._begin(self._run, f"table {event.table}", event.at_ms)
            case StepStarted():
                parent = self._tables.get(event.table, self._run)
                self._steps[event.step_id] = self._begin(parent, event.kind, event.at_ms)
            case Verified():
                span = self._steps.get(event.step_id)
                if span is not None:
                    span.add_event("verified", {"maintainer.result": event.result}, event.at_ms * 1_000_000)
            case StepFinished():
                step = self._steps.pop(event.outcome.step_id, None)
                if step is not None:
                    _end(step, _of_step(event), event.at_ms, _problem_of(event.outcome))
            case TableFinished():
                self._end_table(event)
            case RunFinished() if self._run is not None:
                _end(self._run, _of_run(event.outcome), event.at_ms, _run_problem(event.outcome))
            case _:
                pass

    def close(self) -> None:
        """Send what still waits.

        Raises:
            NotDelivered: Some spans were not taken.
        """
        if self._provider is None:
            return
        self._provider.shutdown()
        if self._not_taken:
            raise NotDelivered(f"{sum(self._not_taken):,} spans were not taken by the server")

    def _begin_run(self, event: RunStarted) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        # The exporter logs what goes wrong; here that is said once, at the end, with our own words.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        resource_attributes = self._environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        named = "OTEL_SERVICE_NAME" in self._environ or "service.name" in resource_attributes
        resource = Resource.create({} if named else {"service.name": "maintainer", "service.version": __version__})
        # Not shut down at exit: a server that does not answer must not hold the process.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_counting_exporter(self._not_taken)))
        carrier = {name: self._environ[name.upper()] for name in ("traceparent", "tracestate")
                   if name.upper() in self._environ}  # fmt: skip
        parent = TraceContextTextMapPropagator().extract(carrier)
        tracer = self._provider.get_tracer("maintainer", __version__)
        attributes = _attributes(
            run_id=event.run_id, project=self._project, num_tables=event.num_tables, num_steps=event.num_steps
        )
        start_ns = event.at_ms * 1_000_000
        self._run = tracer.start_span("maintainer run", parent, attributes=attributes, start_time=start_ns)

    def _begin(self, parent: Span | None, name: str, at_ms: int) -> Span:
        from opentelemetry.trace import set_span_in_context

        assert self._provider is not None
        context = None if parent is None else set_span_in_context(parent)
        tracer = self._provider.get_tracer("maintainer", __version__)
        return tracer.start_span(name, context, start_time=at_ms * 1_000_000)

    def _end_table(self, event: TableFinished) -> None:
        table = event.outcome
        name = table.ref.identifier
        span = self._tables.pop(name, None)
        if span is None and table.problem is None:
            return  # nothing was to be done: a fleet has thousands of those
        if span is None:
            span = self._begin(self._run, f"table {name}", event.at_ms)
        for step_id in [step.step_id for step in table.steps if step.step_id in self._steps]:
            _end(self._steps.pop(step_id), {}, event.at_ms, None)  # given up: its own end never came
        _end(span, _of_table(table, self._locations.get(name)), event.at_ms, _table_problem(table))


def _counting_exporter(not_taken: list[int]) -> SpanExporter:
    """Return an exporter that notes how many spans it could not get rid of, each time: the SDK only logs that."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    class Counting(OTLPSpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = SpanExportResult.FAILURE
            try:
                result = super().export(spans)
            finally:
                if result is not SpanExportResult.SUCCESS:
                    not_taken.append(len(spans))
            return result

    return Counting()


def _attributes(**values: Attribute | None) -> Attributes:
    """Return attributes of ours, in our namespace; what is None is left out."""
    return {f"maintainer.{name}": value for name, value in values.items() if value is not None}


def _of_step(event: StepFinished) -> Attributes:
    step, done = event.outcome, Amounts.of(event.outcome.commits)
    return _attributes(
        table=event.table,
        step=step.kind,
        outcome=step.status.value,
        num_commits=len(step.commits),
        files_removed=done.num_files_removed,
        files_added=done.num_files_added,
        bytes_removed=done.bytes_removed,
        bytes_added=done.bytes_added,
        lanes=sorted({use.lane.value for proof in step.proofs for use in proof.lanes}),
        version=step.version_after,
        rows_proven=sum(proof.written.rows for proof in step.proofs if proof.holds) if step.proofs else None,
        files_deleted=step.vacuum.num_files_freed if step.vacuum else None,
        bytes_deleted=step.vacuum.bytes_freed if step.vacuum else None,
    )


def _of_table(table: TableOutcome, location: str | None) -> Attributes:
    return _attributes(
        table=table.ref.identifier,
        outcome=table.status.value,
        policy_file=table.policy_file,
        owner=table.owner,
        location=location,
    )


def _of_run(run: RunOutcome) -> Attributes:
    counts = {f"tables.{status.value}": run.count(status) or None for status in TableStatus}
    return _attributes(exit_code=int(exit_code(run)), **counts)


def _problem_of(step: StepOutcome) -> tuple[str, str] | None:
    return _said(step.error, step.status) if step.status in FAILED_STEPS else None


def _table_problem(table: TableOutcome) -> tuple[str, str] | None:
    return _said(table.first_problem, table.status) if table.status in FAILED_TABLES else None


def _said(problem: Problem | None, status: StepStatus | TableStatus) -> tuple[str, str]:
    return (problem.code, problem.what) if problem is not None else ("", status.value)


def _run_problem(run: RunOutcome) -> tuple[str, str] | None:
    code = exit_code(run)
    return ("", f"exit code {int(code)}") if code else None


def _end(span: Span, attributes: Mapping[str, Any], at_ms: int, problem: tuple[str, str] | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attributes(dict(attributes))
    if problem is not None:
        code, text = problem
        if code:
            span.set_attribute("maintainer.code", code)
        span.set_status(Status(StatusCode.ERROR, text))
    span.end(at_ms * 1_000_000)
