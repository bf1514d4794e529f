"""Lineage over real HTTP on this machine: every event fits OpenLineage's own schema classes."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.observers import event_thread, observed_run
from maintainer.app.running.observers.lineage import dataset_name, lineage_target
from maintainer.app.running.run_listener import RunListener
from maintainer.model.plan.plan import Problem
from maintainer.model.run.progress import ProgressEvent, StepFinished, StepStarted
from tests.support.http_receiver import Receiver, http_receiver
from tests.support.policies.projects import write_project
from tests.support.runs.sample_plans import full_plan
from tests.support.runs.sample_runs import progress_events

URL = "OPENLINEAGE_URL"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library sets variables of its own from the ones that it is given: none of them may stay."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def observed(root: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> list[Problem]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write_project(root, {"policies/t.yml": "table: s.t\n"})
    monkeypatch.chdir(root)
    problems: list[Problem] = []
    with observed_run.observed_run(Project.load(root, None), full_plan(), RunListener(), problems.append) as sink:
        if sink is not None:  # where nothing listens there is nothing to hand events to
            for event in progress_events():
                sink(event)
    return problems


def events_of(receiver: Receiver) -> list[dict[str, Any]]:
    assert {path for path, _, _ in receiver.posts} == {"/api/v1/lineage"}
    return [json.loads(body) for _, _, body in receiver.posts]


def check_form(event: dict[str, Any]) -> None:
    """What the specification requires of a run event: its classes take every part, and required fields are there."""
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

    made = RunEvent(
        eventType=RunState[event["eventType"]],
        eventTime=event["eventTime"],
        run=Run(event["run"]["runId"]),
        job=Job(event["job"]["namespace"], event["job"]["name"]),
        producer=event["producer"],
        inputs=[InputDataset(dataset["namespace"], dataset["name"]) for dataset in event["inputs"]],
        outputs=[OutputDataset(dataset["namespace"], dataset["name"]) for dataset in event["outputs"]],
    )
    assert made.run.runId == str(UUID(event["run"]["runId"]))
    assert event["schemaURL"].startswith("https://openlineage.io/spec/")
    parts = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    kinds = ("facets", "inputFacets", "outputFacets")
    facets = [facet for part in parts for kind in kinds for facet in (part.get(kind) or {}).values()]
    assert {facet["_producer"] for facet in facets} >= {event["producer"]}  # the library adds facets of its own
    assert all(facet["_schemaURL"].startswith("https://openlineage.io/spec/") for facet in facets)


def of_kind(kind: type[ProgressEvent]) -> list[Any]:
    return [event for event in progress_events() if isinstance(event, kind)]


def test_every_step_is_a_run_that_reads_and_writes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as receiver:
        assert observed(tmp_path, monkeypatch, {URL: receiver.url, "OPENLINEAGE_NAMESPACE": "lake"}) == []
    events = events_of(receiver)
    for event in events:
        check_form(event)
    assert {event["job"]["namespace"] for event in events} == {"lake"}
    whole = [event for event in events if event["job"]["name"] == f"{tmp_path.name}.run"]
    assert [event["eventType"] for event in whole] == ["START", "ABORT"]  # somebody stopped it
    of_steps: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event not in whole:
            of_steps.setdefault(event["run"]["runId"], []).append(event)
            assert event["run"]["facets"]["parent"]["run"]["runId"] == whole[0]["run"]["runId"]
    locations = {table.ref.identifier: table.observed.location for table in full_plan().tables if table.observed}
    started = [event for event in of_kind(StepStarted) if event.table in locations]
    assert len(of_steps) == len(started)
    finished = {event.outcome.step_id: event.outcome for event in of_kind(StepFinished)}
    rewrites = 0
    for first, (begun, *others) in zip(started, of_steps.values(), strict=True):
        outcome = finished[first.step_id]
        assert begun["eventType"] == "START"
        assert begun["job"]["name"] == f"{tmp_path.name}.{first.table}.{first.kind}"
        end = others[-1]
        assert end["eventType"] in ("COMPLETE", "FAIL", "ABORT")
        assert (end["eventType"] == "COMPLETE") == (outcome.status.value in ("succeeded", "nothing_left"))
        (output,) = end["outputs"]
        assert (output["namespace"], output["name"]) == dataset_name(locations[first.table])
        if outcome.commits and first.kind not in ("set_properties", "vacuum"):
            rewrites += 1
            assert len(others) == len(outcome.commits)  # each commit is an event, the last one the end
            (source,) = end["inputs"]
            assert (source["namespace"], source["name"]) == (output["namespace"], output["name"])
            assert source["facets"]["version"]["datasetVersion"] == str(outcome.version_before)
            assert output["facets"]["version"]["datasetVersion"] == str(outcome.version_after)
            assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
            written = output["outputFacets"]["outputStatistics"]
            assert written["fileCount"] == sum(commit.num_files_added for commit in outcome.commits)
            assert written["size"] == sum(commit.bytes_added for commit in outcome.commits)
            read = source["inputFacets"]["inputStatistics"]
            assert read["fileCount"] == sum(commit.num_files_removed for commit in outcome.commits)
            proofs = [commit.proof for commit in outcome.commits]
            if all(proofs):
                assert read["rowCount"] == written["rowCount"] == sum(proof.read.rows for proof in proofs if proof)
        if outcome.error is not None:
            assert end["run"]["facets"]["errorMessage"]["message"].startswith(outcome.error.code)
    assert rewrites


def test_a_receiver_that_refuses_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with http_receiver((403,)) as receiver:
        (problem,) = observed(tmp_path, monkeypatch, {URL: f"http://user:planted@127.0.0.1:{receiver.port}"})
    assert problem.code == "E657"
    assert problem.where == f"127.0.0.1:{receiver.port}"
    shown = capfd.readouterr()
    assert "planted" not in f"{problem.what} {shown.err}"
    assert shown.err == ""


def test_a_slow_receiver_holds_the_run_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed_run, "CLOSE_SECONDS", 0.2)
    with http_receiver(hold=threading.Event()) as receiver:
        started = time.monotonic()
        (problem,) = observed(tmp_path, monkeypatch, {URL: receiver.url})
        assert time.monotonic() - started < event_thread.CLOSE_SECONDS
    assert "took too long" in problem.what


def test_without_the_package_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintainer.app.running.observers.event_thread.find_spec", lambda name: None)
    (problem,) = observed(tmp_path, monkeypatch, {URL: "http://127.0.0.1:1"})
    assert (problem.code, problem.help) == ("E629", "pip install 'maintainer[openlineage]'")


def test_only_when_configured(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    (home / ".openlineage").mkdir(parents=True)
    here.mkdir()
    assert lineage_target({}, home, here) is None
    assert lineage_target({URL: "http://user:secret@marquez:5000/path"}, home, here) == "marquez:5000"
    assert lineage_target({"OPENLINEAGE__TRANSPORT__TYPE": "console"}, home, here) == "OPENLINEAGE__TRANSPORT"
    (here / "openlineage.yml").write_text("transport: {type: console}\n")
    assert lineage_target({}, home, here) == str(here / "openlineage.yml")
    assert lineage_target({"OPENLINEAGE_DISABLED": "true"}, home, here) is None


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("file:/lake/iot%20a/readings", "file", "/lake/iot a/readings"),
        ("file:///lake/orders/", "file", "/lake/orders"),
        ("s3a://bucket/lake/orders", "s3://bucket", "lake/orders"),
        ("abfss://c@acct.dfs.core.windows.net/lake/o", "abfss://c@acct.dfs.core.windows.net", "lake/o"),
        ("gs://bucket/o", "gs://bucket", "o"),
        ("hdfs://nn:8020/lake/o", "hdfs://nn:8020", "lake/o"),
    ],
)
def test_names_of_datasets(location: str, namespace: str, name: str) -> None:
    assert dataset_name(location) == (namespace, name)
