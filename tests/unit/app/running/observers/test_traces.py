"""Traces over real HTTP on this machine: OTLP protobuf, read by OpenTelemetry's own classes."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from maintainer.app.project_folders import Project
from maintainer.app.running.observers import event_thread, observed_run
from maintainer.app.running.observers.traces import traces_endpoint
from maintainer.app.running.run_listener import RunListener
from maintainer.model.plan.plan import Problem
from maintainer.model.run.progress import ProgressEvent, StepFinished, StepStarted, TableFinished, TableStarted
from tests.support.http_receiver import Receiver, http_receiver
from tests.support.policies.projects import write_project
from tests.support.runs.sample_plans import full_plan
from tests.support.runs.sample_runs import RUN, progress_events

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
QUICK = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}


def observed(root: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> list[Problem]:
    """Run the sample's events with this environment; return what was not delivered."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write_project(root, {"policies/t.yml": "table: s.t\n"})
    problems: list[Problem] = []
    with observed_run.observed_run(Project.load(root, None), full_plan(), RunListener(), problems.append) as sink:
        if sink is not None:  # where nothing listens there is nothing to hand events to
            for event in progress_events():
                sink(event)
    return problems


def spans_of(receiver: Receiver) -> list[Any]:
    spans = []
    for path, headers, body in receiver.posts:
        assert path == "/v1/traces"
        types = [value for name, value in headers.items() if name.lower() == "content-type"]
        assert types == ["application/x-protobuf"]
        request = ExportTraceServiceRequest.FromString(body)
        spans += [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return spans


def value_of(attribute: Any) -> object:
    return getattr(attribute.value, attribute.value.WhichOneof("value"))


def attributes_of(span: Any) -> dict[str, object]:
    return {attribute.key: value_of(attribute) for attribute in span.attributes}


def of_kind(kind: type[ProgressEvent]) -> list[Any]:
    return [event for event in progress_events() if isinstance(event, kind)]


def test_a_run_becomes_spans_of_run_tables_and_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as receiver:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "TRACEPARENT": f"00-{TRACE}-{PARENT}-01"}
        assert observed(tmp_path, monkeypatch, environment) == []
    spans = spans_of(receiver)
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    by_id = {span.span_id: span for span in spans}
    (run,) = [span for span in spans if span.name == "maintainer run"]
    assert run.parent_span_id.hex() == PARENT
    assert attributes_of(run)["maintainer.run_id"] == RUN
    tables = [span for span in spans if span.name.startswith("table ")]
    began = {event.table for event in of_kind(TableStarted)}
    refused = {event.outcome.ref.identifier for event in of_kind(TableFinished) if event.outcome.problem is not None}
    assert {str(attributes_of(span)["maintainer.table"]) for span in tables} == began | refused
    assert {span.parent_span_id for span in tables} == {run.span_id}
    steps = [span for span in spans if span is not run and span not in tables]
    finished = {event.outcome.step_id: event for event in of_kind(StepFinished)}
    assert len(steps) == len(of_kind(StepStarted))
    for span in steps:
        assert by_id[span.parent_span_id] in tables
    for event in of_kind(StepStarted):
        outcome = finished[event.step_id].outcome
        (span,) = [
            span for span in steps if span.name == event.kind and attributes_of(span)["maintainer.table"] == event.table
        ]
        figures = attributes_of(span)
        assert figures["maintainer.outcome"] == outcome.status.value
        assert figures["maintainer.files_removed"] == sum(commit.num_files_removed for commit in outcome.commits)
        assert figures["maintainer.bytes_added"] == sum(commit.bytes_added for commit in outcome.commits)
        assert figures.get("maintainer.version") == outcome.version_after
        assert span.start_time_unix_nano == event.at_ms * 1_000_000
        assert span.end_time_unix_nano == finished[event.step_id].at_ms * 1_000_000
        failed = outcome.status.value in ("failed", "verify_failed", "unknown", "incomplete")
        assert (span.status.code == 2) == failed
    assert any(span.status.code == 2 for span in spans)


def test_the_resource_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as receiver:
        environment = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces",
            "OTEL_SERVICE_NAME": "nightly",
        }
        assert observed(tmp_path, monkeypatch, environment) == []
    request = ExportTraceServiceRequest.FromString(receiver.posts[0][2])
    resource = {attribute.key: value_of(attribute) for attribute in request.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "nightly"


def test_a_receiver_that_refuses_is_said_once_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with http_receiver((400,)) as receiver:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **QUICK}
        (problem,) = observed(tmp_path, monkeypatch, environment)
    assert problem.code == "E657"
    assert "spans were not taken" in problem.what
    assert problem.where == f"127.0.0.1:{receiver.port}"
    assert capfd.readouterr().err == ""


def test_a_receiver_that_is_down_or_slow_holds_the_run_within_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    down = observed(tmp_path, monkeypatch, {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", **QUICK})
    assert [problem.code for problem in down] == ["E657"]
    monkeypatch.setattr(observed_run, "CLOSE_SECONDS", 0.2)
    with http_receiver(hold=threading.Event()) as receiver:
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_TIMEOUT")
        started = time.monotonic()
        slow = observed(tmp_path / "slow", monkeypatch, {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
        assert time.monotonic() - started < event_thread.CLOSE_SECONDS  # the server holds its answer for 30 seconds
    assert ["took too long" in problem.what for problem in slow] == [True]


def test_without_the_package_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintainer.app.running.observers.event_thread.find_spec", lambda name: None)
    (problem,) = observed(tmp_path, monkeypatch, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert (problem.code, problem.help) == ("E629", "pip install 'maintainer[otel]'")


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:secret@collector:4318/path"}, "collector:4318"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, None),
    ],
)
def test_only_when_configured(environment: dict[str, str], host: str | None) -> None:
    assert traces_endpoint(environment) == host
