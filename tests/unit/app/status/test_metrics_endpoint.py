"""What ``watch --metrics-port`` serves, read over HTTP; dashboard and alert rules ask for nothing else."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.project_folders import Project
from maintainer.app.status.metrics_endpoint import DEFAULT_HOST, MetricsEndpoint, metrics_endpoint
from maintainer.cli.act.run_commands import WatchOutput
from maintainer.cli.context import CliContext
from maintainer.errors import EnvironmentUnfit, ProjectError
from maintainer.model.plan.plan import TablePlan
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.progress import RunFinished, RunStarted, TableFinished, TableStarted
from maintainer.model.table.table_facts import TableRecord, TableRef
from maintainer.policy.resolve.resolved import BUILT_IN
from maintainer.report.status_documents import FIGURES, STATES
from tests.support.policies.projects import write_project
from tests.support.runs.sample_plans import TEN_PM
from tests.support.runs.sample_runs import bad_run, good_run, progress_events
from tests.support.tables.builders import make_facts, make_files, make_policy

EXAMPLES = Path(__file__).resolve().parents[4] / "docs" / "examples"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[MetricsEndpoint]:
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: s.t\n"})
    with metrics_endpoint(Project.load(tmp_path), DEFAULT_HOST, 0) as opened:
        yield opened


def scraped(endpoint: MetricsEndpoint) -> Samples:
    with urllib.request.urlopen(endpoint.url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode("utf-8")
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def look_of(name: str, *, is_ledger: bool = False) -> PlannedTable:
    facts = make_facts(files=make_files(10, 20))
    policy = replace(make_policy(), table=TableRef(name))
    plan = TablePlan(TableRef(name), BUILT_IN.file if is_ledger else "policies/t.yml", "sha256:a", owner="team")
    record = TableRecord(last_optimize_at_ms=3000, last_rewrite_at_ms=1000, last_delete_at_ms=2000)
    return PlannedTable(policy, plan, facts, record, 1, 1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """What is served once everything has happened that can."""
    root = tmp_path_factory.mktemp("project")
    write_project(root, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: s.t\n"})
    with metrics_endpoint(Project.load(root), DEFAULT_HOST, 0) as endpoint:
        endpoint.metrics.table_planned(look_of("s.t"), TEN_PM)
        endpoint.metrics.table_planned(look_of("ledger", is_ledger=True), TEN_PM)
        for event in progress_events():
            endpoint.metrics.event(event)
        return scraped(endpoint)


def test_runs_and_steps_are_counted(endpoint: MetricsEndpoint) -> None:
    before = scraped(endpoint)
    assert before["maintainer_runs_total", (("exit_code", "0"),)] == 0
    for number, event in enumerate(progress_events(), start=1):
        endpoint.metrics.event(event)
        if number == 5:  # both tables have begun
            assert scraped(endpoint)["maintainer_running_tables", ()] == 2
    after = scraped(endpoint)
    assert after["maintainer_running_tables", ()] == 0
    assert after["maintainer_runs_total", (("exit_code", "5"),)] == 1
    assert after["maintainer_last_run_exit_code", ()] == 5
    assert after["maintainer_last_run_timestamp_seconds", ()] == (TEN_PM + 303_000) / 1000
    assert after["maintainer_steps_total", (("kind", "compact"), ("status", "succeeded"))] == 1
    assert after["maintainer_steps_total", (("kind", "zorder"), ("status", "yielded"))] == 1
    assert after["maintainer_step_duration_seconds_count", (("kind", "compact"),)] == 1
    assert after["maintainer_run_tables_total", (("status", "yielded"),)] == 1
    assert after["maintainer_rewritten_files_total", ()] > 0
    assert after["maintainer_rewritten_bytes_total", ()] > after["maintainer_rewritten_files_total", ()]
    assert not any(name.endswith("_created") for name, _ in after)
    endpoint.metrics.event(RunFinished(TEN_PM, good_run()))
    assert scraped(endpoint)["maintainer_runs_total", (("exit_code", "0"),)] == 1


def test_before_the_first_run_there_is_no_last_one(endpoint: MetricsEndpoint) -> None:
    assert [name for name, _ in scraped(endpoint) if name.startswith("maintainer_last_run")] == []
    endpoint.metrics.table_planned(look_of("s.t"), TEN_PM)  # a round that found nothing to do is no run
    assert [name for name, _ in scraped(endpoint) if name.startswith("maintainer_last_run")] == []
    endpoint.metrics.event(RunFinished(TEN_PM, good_run()))
    last = {name: value for (name, _), value in scraped(endpoint).items() if name.startswith("maintainer_last_run")}
    assert last == {
        "maintainer_last_run_timestamp_seconds": TEN_PM / 1000,
        "maintainer_last_run_exit_code": 0,
        "maintainer_last_run_duration_seconds": good_run().duration_seconds,
    }


def test_what_runs_is_a_table_of_the_user_and_of_the_run_that_goes_on(endpoint: MetricsEndpoint) -> None:
    def running() -> float:
        return scraped(endpoint)["maintainer_running_tables", ()]

    endpoint.metrics.event(TableStarted(TEN_PM, "ledger", 1, is_ledger=True))
    assert running() == 0
    endpoint.metrics.event(TableStarted(TEN_PM, "sales.orders", 1))
    assert running() == 1
    endpoint.metrics.event(RunStarted(TEN_PM, "the next one, for this one was lost", 1, 1, 1, "runs/a"))
    assert running() == 0


def test_our_own_ledger_is_not_among_the_tables(endpoint: MetricsEndpoint) -> None:
    ledger = replace(bad_run().tables[0], policy_file=BUILT_IN.file, status=TableStatus.FAILED)
    endpoint.metrics.event(TableFinished(TEN_PM, ledger))
    assert scraped(endpoint)["maintainer_run_tables_total", (("status", "failed"),)] == 0


def test_the_last_look_at_each_table(endpoint: MetricsEndpoint) -> None:
    endpoint.metrics.table_planned(look_of('s."t"\n<b>'), TEN_PM)
    served = scraped(endpoint)
    labels = (("owner", "team"), ("table", 's."t"\\n<b>'))
    assert served["maintainer_table_files", labels] == 2
    assert served["maintainer_table_last_vacuum_timestamp_seconds", labels] == 2
    assert ("maintainer_table_last_proof_ok", labels) not in served
    assert served["maintainer_status_timestamp_seconds", ()] == TEN_PM / 1000
    states = {
        dict(labels)["state"]: value for (name, labels), value in served.items() if name == "maintainer_table_state"
    }
    assert states == {state: float(state == "ok") for state in STATES}
    endpoint.metrics.finished()
    endpoint.metrics.table_planned(look_of('s."t"\n<b>'), TEN_PM + 5000)
    again = scraped(endpoint)
    assert again["maintainer_status_timestamp_seconds", ()] == TEN_PM / 1000 + 5
    assert len(again) == len(served)


def test_a_table_that_is_not_watched_any_more_is_not_served(tmp_path: Path, endpoint: MetricsEndpoint) -> None:
    """A table that was dropped was a problem when it was last looked at, and its alert would stay until a restart."""
    shown = WatchOutput(CliContext(tmp_path), endpoint.metrics)
    for name in ("s.dropped", "s.set_aside"):
        endpoint.metrics.table_planned(look_of(name), TEN_PM)
    shown.round_began({"s.set_aside", "s.new"})
    named = {dict(labels)["table"] for _, labels in scraped(endpoint) if "table" in dict(labels)}
    assert named == {"s.set_aside"}


def expressions() -> list[tuple[str, str]]:
    """Every expression of the dashboard and of the rules for a watch, with where it stands."""
    dashboard = json.loads((EXAMPLES / "grafana_dashboard.json").read_text(encoding="utf-8"))
    named_expressions = [
        (panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())
    ]
    rules = yaml.safe_load((EXAMPLES / "prometheus_watch_rules.yml").read_text(encoding="utf-8"))
    named_expressions += [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]
    return named_expressions


@pytest.mark.parametrize(("place", "expr"), expressions())
def test_dashboard_and_rules_ask_for_what_is_served(served: Samples, place: str, expr: str) -> None:
    labels_of: dict[str, set[str]] = {}
    for name, labels in served:
        labels_of.setdefault(name, set()).update(label for label, _ in labels)
    for figure, _, _ in FIGURES:  # one of a table that nothing is known of has no sample yet
        labels_of.setdefault(f"maintainer_table_{figure}", {"table", "owner"})
    asked = re.findall(r"\bmaintainer_\w+", expr)
    assert asked, place
    for name in asked:
        assert name in labels_of, (place, name)
    known = set().union(*(labels_of[name] for name in asked)) | {"le", "job", "instance"}  # by Prometheus itself
    for grouped in re.findall(r"\b(?:by|without|on) ?\(([^)]*)\)", expr):
        assert {label.strip() for label in grouped.split(",")} <= known, (place, grouped)
    for matched in re.findall(r"\{([^}]*)\}", expr):
        assert set(re.findall(r'(\w+)\s*[=!]~?"', matched)) <= known, (place, matched)
    states = [state for text in re.findall(r'state=~?"([^"$]+)"', expr) for state in text.split("|")]
    assert set(states) <= set(STATES)
    assert expr.count("(") == expr.count(")")


def test_no_rule_needs_a_last_run_to_say_that_there_was_none() -> None:
    rule = dict(expressions())["MaintainerNoRun"]
    assert re.match(r"maintainer_info unless on\(job, instance\) \(time\(\) - maintainer_last_run_timestamp_", rule)


def test_the_dashboard_can_be_imported() -> None:
    dashboard: dict[str, Any] = json.loads((EXAMPLES / "grafana_dashboard.json").read_text(encoding="utf-8"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) > 8
    assert dashboard["id"] is None
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in dashboard["panels"]]
    covered = [(x + dx, y + dy) for x, y, w, h in places for dx in range(w) for dy in range(h)]
    assert len(covered) == len(set(covered)), "panels lie over one another"
    assert max(x + w for x, _, w, _ in places) <= 24


def test_a_port_that_is_taken(endpoint: MetricsEndpoint, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((DEFAULT_HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ProjectError) as caught, metrics_endpoint(Project.load(tmp_path), DEFAULT_HOST, port):
            pass
    assert (caught.value.code, caught.value.where) == ("E638", f"127.0.0.1:{port}")
    for host in ("nowhere.invalid", "not a host", "\udc80"):
        with pytest.raises(ProjectError) as caught, metrics_endpoint(Project.load(tmp_path), host, 0):
            pass
        assert caught.value.code == "E638"


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: s.t\n"})
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(EnvironmentUnfit) as caught, metrics_endpoint(Project.load(tmp_path), DEFAULT_HOST, 0):
        pass
    assert (caught.value.code, caught.value.help) == ("E629", "pip install 'maintainer[metrics]'")


def test_the_page_names_what_is_counted(served: Samples) -> None:
    page = (EXAMPLES.parent / "alerts.md").read_text(encoding="utf-8")
    page = page[page.index("### From a watch") : page.index("### Ready rules")]
    named = set(re.findall(r"`(maintainer_\w+)`", page))
    counted = {re.sub(r"_(bucket|count|sum)$", "", name) for name, _ in served}
    assert named == {
        name
        for name in counted
        if not name.startswith(("maintainer_table_", "maintainer_ledger_", "maintainer_status_"))
    }


@pytest.mark.parametrize(
    ("bound", "named", "status"),
    [
        (DEFAULT_HOST, "evil.example.org", 421),
        (DEFAULT_HOST, "evil.example.org:80", 421),
        (DEFAULT_HOST, "[", 421),
        (DEFAULT_HOST, "localhost:9000", 200),
        (DEFAULT_HOST, "[::1]:9000", 200),
        ("localhost", "LOCALHOST", 200),
        # Bound to the network on purpose, where a scraper may have any name for it.
        ("0.0.0.0", "scraped.example.org:9000", 200),
    ],
)
def test_no_page_of_another_site_reads_it_by_a_name_of_its_own(
    tmp_path: Path, bound: str, named: str, status: int
) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: s.t\n"})
    with metrics_endpoint(Project.load(tmp_path), bound, 0) as opened:
        port = urllib.parse.urlsplit(opened.url).port
        assert port is not None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/metrics", headers={"Host": named})
        answer = connection.getresponse()
        assert answer.status == status
        assert (b"maintainer_" in answer.read()) is (status == 200)
        connection.close()
