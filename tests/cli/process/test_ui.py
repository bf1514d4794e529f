"""``ui``: pages of the project on this machine alone, read-only, also while a run goes on; Ctrl-C ends it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from maintainer.journal.event_log import EVENTS_FILE, EventLog
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import run_to_json
from maintainer.model.run.progress import StepStarted
from maintainer.model.run.run_events import RecordOpened, line_of
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

REPOSITORY = str(Path(__file__).parents[3])
LATER = "20261122T220000Z-0abc"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_project(
        tmp_path / "lake", {"policies/t.yml": "table: sales.orders\n", "maintainer.yml": "version: 1\nname: acme <b>\n"}
    )
    folder = root / ".maintainer" / "runs" / samples.RUN
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(to_json(sample_plans.full_plan()))
    (folder / "results.json").write_text(run_to_json(samples.good_run()))
    return root


@contextmanager
def served(root: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "maintainer", "ui", "--port", "0", "--since", "36500d", *options]
    environment = {**os.environ, "PYTHONPATH": REPOSITORY}
    # A shell lets what it starts in the background ignore Ctrl-C, and processes inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield process, int(line.split("http://127.0.0.1:")[1].split("/")[0])
        finally:
            process.kill()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_pages_are_served_to_this_machine_alone_and_ctrl_c_ends_it(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    with served(root) as (process, port):
        status, fleet = ask(port, "/")
        assert status == 200
        assert "acme &lt;b&gt;" in fleet
        assert f'href="/run/{samples.RUN}"' in fleet
        (table,) = re.findall(r'href="(/table/sales-orders-[0-9a-f]{8})"', fleet)
        status, page = ask(port, table)
        assert (status, "Its policy, and where each value is written" in page) == (200, True)
        status, page = ask(port, f"/run/{samples.RUN}")
        assert status == 200
        assert "812,440,193 rows were compared" in page
        assert ask(port, "/", Host=f"localhost:{port}")[0] == 200
        # A name of another site that leads here gets nothing, nor does a path or a method that is none of ours.
        assert ask(port, "/", Host="evil.example") == (421, "Only requests to this machine are answered.")
        assert [
            ask(port, path)[0] for path in ("/run/../../etc/passwd", "/table/x", "/run/20200101T000000Z-0000", "/x")
        ] == [404] * 4
        assert ask(port, "/", method="POST")[0] == 501
        assert ask(port, "/", method="HEAD") == (200, "")
        assert "No run goes on" in ask(port, "/live")[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_run_that_goes_on_is_shown_while_it_works(root: Path) -> None:
    folder = root / ".maintainer" / "runs" / LATER
    folder.mkdir()
    log = EventLog(folder / EVENTS_FILE)
    try:
        log.append(line_of(RecordOpened(sample_plans.TEN_PM, LATER, 1)), durable=True)
        with served(root) as (_, port):
            assert "A run begins" in ask(port, "/live")[1]
            (folder / "plan.json").write_text(to_json(sample_plans.full_plan()))
            name = sample_plans.orders().ref.identifier
            log.append(line_of(StepStarted(sample_plans.TEN_PM, name, f"{name}/compact", StepKind.COMPACT, 1)))
            page = ask(port, "/live")[1]
            assert '<span class="work">working</span></td><td data-l="what">compact</td>' in page
            assert '<meta http-equiv="refresh" content="3">' in page
            assert 'href="/live"' in ask(port, "/")[1]
    finally:
        log.close()


def test_a_port_that_is_taken_and_a_project_without_runs_are_said(root: Path, tmp_path: Path) -> None:
    with served(root) as (_, port):
        command = [sys.executable, "-m", "maintainer", "ui", "--port", str(port)]
        done = subprocess.run(
            command, cwd=root, env={**os.environ, "PYTHONPATH": REPOSITORY}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.startswith("error[E690]: the reports cannot be served at this port")
    empty = write_project(tmp_path / "empty", {"policies/t.yml": "table: sales.orders\n"})
    with served(empty) as (_, port):
        status, page = ask(port, "/")
        assert status == 200
        assert "No apply ran in this time" in page
        assert "<code>maintainer report</code> shows the tables as they are, and what a run would do." in page


def test_a_damaged_plan_is_a_message(root: Path) -> None:
    (root / ".maintainer" / "runs" / samples.RUN / "plan.json").write_text(json.dumps({"format_version": "x"}))
    with served(root) as (_, port):
        assert ask(port, f"/run/{samples.RUN}")[0] == 404
