"""Secrets in errors, policies, options and variables: no output of any kind shows one, in whatever spelling."""

from __future__ import annotations

import base64
import json
import logging
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.hostile.planted_secrets import SECRETS, PlantedSecret, spellings
from tests.support.policies.projects import write_project
from tests.support.product import (
    Failure,
    HistoryRow,
    Journal,
    MaintainerError,
    Plan,
    PlanTextOptions,
    PythonLogs,
    RunFinished,
    RunOutcome,
    TableError,
    TableFinished,
    TableOutcome,
    TableRecord,
    TableRef,
    TableStatus,
    event_line,
    first_secret,
    history_csv,
    history_json,
    load_project,
    problem_of,
    render_annotations,
    render_history,
    render_page,
    render_plan,
    render_plan_markdown,
    render_run,
    rows_of,
    run,
    run_findings,
    run_fleet,
    run_markdown,
    run_to_json,
    run_view,
    storage_error,
    to_json,
    without_secrets,
    write_log4j_config,
)
from tests.support.product import render_run_junit as render_junit
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of
from tests.support.tables.builders import NOW_MS
from tests.support.writers import recorded_events

UTC = UTC
RUN_ID = "20261121T220000Z-7f3a"
FORMS = ("full", "concise", "json", "github", "junit", "sarif")
every_secret = pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.name)


def hits(planted: PlantedSecret, text: str) -> list[str]:
    return [spelling for spelling in sorted(spellings(planted.secret)) if spelling in text]


def _table_plan(error: MaintainerError) -> Plan:
    problem = replace(sample_plans.gone(), problem=problem_of(error))
    blocked = replace(
        sample_plans.leads(), blocked=(replace(sample_plans.leads().blocked[0], text=f"refused: {error.found}"),)
    )
    return sample_plans.plan(problem, blocked, sample_plans.orders())


def _outcome(error: MaintainerError, bug: Exception) -> RunOutcome:
    bad = samples.bad_run()
    tables = [
        TableOutcome(TableRef("crm.gone"), TableStatus.FAILED, problem=problem_of(error), policy_file="policies/x.yml"),
        replace(bad.tables[1], problem=problem_of(bug)),
    ]
    for table in bad.tables[2:]:
        steps = tuple(
            replace(
                step,
                error=problem_of(bug),
                note=f"skipped: {bug}",
                assertions=tuple(replace(check, error=str(bug), observed=str(bug)) for check in step.assertions),
            )
            for step in table.steps
        )
        tables.append(replace(table, steps=steps))
    return replace(bad, tables=tuple(tables), problems=(problem_of(error), problem_of(bug)))


def outputs_of_a_run(planted: PlantedSecret) -> Iterator[tuple[str, str]]:
    """Every way in which a run and a plan are written, with the text in what engine, storage and our bugs said."""
    error = storage_error([Failure("AccessDeniedException", "", f"(403) {planted.text}")], where=f"lake/{planted.text}")
    assert error is not None
    bug = RuntimeError(planted.text)
    plan, outcome = _table_plan(error), _outcome(error, bug)
    yield "message", error.render()
    yield "line", str(error)
    yield "plan.json", to_json(plan)
    yield "plan as text", render_plan(plan, PlanTextOptions(verbose=True))
    yield "plan as Markdown", render_plan_markdown(plan)
    yield "results.json", run_to_json(outcome)
    yield "run as text", render_run(outcome)
    yield "annotations", render_annotations(run_findings(outcome))
    yield "step summary", run_markdown(outcome)
    yield "junit", render_junit(outcome)
    yield "report", render_page(run_view(plan, outcome, {}, UTC, run_folder="runs/x"))
    yield "ledger", "\n".join(row.to_json() for row in rows_of(plan, outcome))
    yield (
        "events for machines",
        event_line(RunFinished(NOW_MS, outcome))
        + "".join(event_line(TableFinished(NOW_MS, table)) for table in outcome.tables),
    )
    row = HistoryRow(NOW_MS, "t", "COPY INTO", "", reason=planted.text, error=planted.text, by=planted.text)
    yield "history.csv", history_csv([row])
    yield "history.json", history_json([row])
    yield "history", render_history([row])


NUM_OUTPUTS = 16


def test_there_are_enough_and_each_is_seen_where_nothing_takes_it_out() -> None:
    assert len(SECRETS) >= 20
    for planted in SECRETS:
        assert planted.secret in planted.text
        for text in (planted.text, base64.b64encode(b"ab" + planted.text.encode()).decode()):
            assert hits(planted, text), planted.name


@every_secret
def test_no_output_of_a_run_shows_it(planted: PlantedSecret) -> None:
    outputs = dict(outputs_of_a_run(planted))
    assert len(outputs) == NUM_OUTPUTS
    assert {name: leaked for name, text in outputs.items() if (leaked := hits(planted, text))} == {}
    # The rest of what was said is still there, so that the search was in the right place.
    assert not [name for name, text in outputs.items() if "***" not in text.replace("\\*", "*")]


@every_secret
def test_nothing_in_a_run_folder_has_it(planted: PlantedSecret, tmp_path: Path) -> None:
    """A run in memory with the real journal: one table meets a storage error, one a bug, one loses its file."""
    lake = FakeLake()
    tables = [lake.table(f"s.t{number}", (1, 2), (3,)) for number in range(3)]
    plan = plan_all(*(plan_of(table, compact(table)) for table in tables))

    def fail_storage(_: object) -> None:
        raise TableError(f"cannot be read: {planted.text}", code="T405", where=planted.text, found=planted.text)

    def fail_by_a_bug(_: object) -> None:
        raise RuntimeError(planted.text)

    lake.at("commit", fail_storage, table="s.t0")
    lake.at("write", fail_by_a_bug, table="s.t1")
    lake.at("landed", fail_by_a_bug, table="s.t2")
    journal = Journal.open(tmp_path / "runs", RUN_ID, lambda: NOW_MS)
    facts = tables[0].facts()
    journal.quarantine(facts, planted.text)
    recorded_events.verified(journal, facts, "s.t0/compact", 2, "error", planted.text)
    journal.accept(facts, TableRecord(unproven_versions=(2,)), reason=planted.text, by="somebody")
    journal.folder.write_assertions("s.t0", {"success": False, "error": planted.text, "results": [{"x": planted.text}]})
    run_fleet(plan, lake, journal=journal, verifier=PlainVerifier())
    journal.close()
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    assert {"events.jsonl", "results.json", "traceback.txt", "s.t0.json"} <= files.keys()
    assert {name: leaked for name, text in files.items() if (leaked := hits(planted, text))} == {}
    assert sum("***" in text for text in files.values()) >= 4


@pytest.mark.parametrize(
    "planted", [planted for planted in SECRETS if planted.in_a_policy], ids=lambda planted: planted.name
)
def test_a_policy_with_it_is_refused_and_never_quoted(
    planted: PlantedSecret, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_yaml = json.dumps(planted.text)
    block = planted.text.replace("\n", "\n  ")
    texts = {
        "a": f"table: s.a\ndescription: {as_yaml}\n",
        "b": f"table: s.b\nunknownKey: {as_yaml}\n",
        "c": f"table: s.c\ntags: [{as_yaml}]\nowner: {as_yaml}\n",
        "d": f"table: {as_yaml}\n",
        "e": f"table: s.e # {planted.text.splitlines()[0]}\ndescription: |\n  {block}\n",
    }
    root = write_project(tmp_path, {f"policies/{name}.yml": text for name, text in texts.items()})
    shown = ""
    for form in FORMS:
        code = run(["--project", str(root), "validate", "-o", form])
        captured = capsys.readouterr()
        assert code == 1
        shown += captured.out + captured.err
    for command in (["plan"], ["explain", "s.a"], ["list"], ["list", "-o", "json"]):
        code = run(["--project", str(root), *command])
        captured = capsys.readouterr()
        assert code == 2, captured.err
        shown += captured.out + captured.err
    assert hits(planted, shown) == []
    loaded = load_project(root, environ={})
    assert {(finding.file, finding.code) for finding in loaded.diagnostics if finding.is_error} == {
        (f"policies/{name}.yml", "Y123") for name in texts
    }


@every_secret
def test_the_command_line_never_says_it_again(
    planted: PlantedSecret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAINTAINER_SECRET", planted.text)
    write_project(
        tmp_path, {"policies/t.yml": "table: s.t\n", "policies/u.yml": 'table: "s.${env:MAINTAINER_SECRET}"\n'}
    )
    commands = (
        [planted.text],
        ["plan", f"--{planted.text}"],
        ["plan", planted.text],
        ["plan", "--conf", planted.text],
        ["plan", "--select", planted.text],
        ["--env", planted.text, "plan"],
        ["explain", planted.text],
        ["show", planted.text],
        ["validate", planted.text],
        ["apply", planted.text],
        ["schema", planted.text],
        ["validate"],
    )
    shown = ""
    for command in commands:
        code = run(command)
        captured = capsys.readouterr()
        assert code in (1, 2), (command, captured.err)
        assert "Traceback" not in captured.err
        shown += captured.out + captured.err
    assert hits(planted, shown) == []


@every_secret
def test_a_bug_leaves_a_file_without_it(
    planted: PlantedSecret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(planted.text)

    monkeypatch.setattr("maintainer.cli.setup_commands._installed", broken)
    assert run(["version"]) == 70
    (file,) = (tmp_path / ".maintainer").glob("crash-*.txt")
    captured = capsys.readouterr()
    assert hits(planted, captured.out + captured.err + file.read_text(encoding="utf-8")) == []


PASSWORDS = st.text(string.ascii_letters + string.digits + "/+=@:!$&()*,;~%-._", min_size=4, max_size=48)


@given(PASSWORDS, st.sampled_from(["s3", "s3a", "gs", "https", "hdfs", "oss"]), st.sampled_from(["://", ":/"]))
@example("1/2/abcd", "s3a", "://")
@settings(max_examples=400, deadline=None)
def test_the_password_of_a_url_is_one_with_any_characters(password: str, scheme: str, slashes: str) -> None:
    # Of a server these are a port and a path.
    assume(scheme.startswith(("s3", "gs")) or not re.match(r"[0-9]{1,5}/", password))
    url = f"{scheme}{slashes}reader:{password}@lake/sales/orders"
    for text in (url, f"cannot open {url}: (403)", f"table: '{url}'", f"[{url}]"):
        assert without_secrets(text) == text.replace(f"reader:{password}", "***")
        assert first_secret(text) is not None


@given(PASSWORDS)
@settings(max_examples=15, deadline=None)
def test_no_output_of_a_run_shows_any_password_of_a_url(password: str) -> None:
    planted = PlantedSecret("generated", f"s3a://reader:{password}Z9@lake/sales", f"{password}Z9")
    assert {name: leaked for name, text in outputs_of_a_run(planted) if (leaked := hits(planted, text))} == {}


HARMLESS = (
    "http://host:8080/a@b",
    "hdfs://nn:9000/lake/orders@5",
    "jdbc:postgresql://db:5432/meta?mail=a@b",
    "http://[::1]:8080/a@b",
    "file:/C:/Users/a@b/lake",
    "s3a://lake/a:b/orders@5",
    "auth.tokens: no such table",
    "secret_santa.orders: 3 files",
    "column token (string) was added",
    "unexpected token: `AND`",
    "abfss://container@account.dfs.core.windows.net/lake/t",
    "git@github.com:o/r.git",
    "s3a://lake/tokens/2026",
    "Z-order by access_token, design, signature",
    "sha256:" + "0123456789abcdef" * 4,
    "part-00000-5c0e3f0a-1b2c-4d5e-8f90-123456789abc-c000.snappy.parquet",
    "the password policy of this table is unknown",
    "signal: 9, assigned, basic, sassafras",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_sounds_like_one_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "unit", ["token", "://", "://a:", "sig", "eyJ", "jdbc:oracle:thin:", "-----BEGIN", "key=", "A", "\\"]
)
def test_long_texts_take_no_longer_than_they_are(unit: str) -> None:
    """A pattern that looks back again and again would take hours for these."""
    text = (unit * (300_000 // len(unit)))[:300_000]
    assert len(without_secrets(text)) <= len(text) + 10


@every_secret
def test_what_is_without_secrets_stays_as_it_is(planted: PlantedSecret) -> None:
    once = without_secrets(planted.text)
    assert without_secrets(once) == once
    assert once.count("\n") == planted.text.count("\n")


@every_secret
def test_what_python_logs_of_the_engine_is_without_it(planted: PlantedSecret, tmp_path: Path) -> None:
    """py4j logs each broken call with what the JVM answered; those records go to `spark.log`."""
    logs = PythonLogs(tmp_path / "spark.log")
    try:
        logging.getLogger("py4j").error("An error occurred while calling o1.load: %s", planted.text)
    finally:
        logs.restore()
    text = (tmp_path / "spark.log").read_text(encoding="utf-8")
    assert "An error occurred while calling" in text
    assert hits(planted, text) == []


LOGGED = {
    "spark.hadoop.fs.s3a.secret.key=planted1 ok": "planted1",
    "GET https://h/x?sv=1&sig=planted2%2B&se=1 ok": "planted2",
    "cannot open s3a://reader:planted3@lake/x ok": "planted3",
    'said {"password": "planted4"} ok': "planted4",
    "sent Bearer planted5 ok": "planted5",
    "jdbc:x?user=a&password=planted6 ok": "planted6",
    "cannot open s3a://reader:wJal/planted7@lake/x ok": "planted7",
}


def test_the_log_of_the_jvm_leaves_out_what_its_configuration_says(tmp_path: Path) -> None:
    """The expression that log4j is given, read back from the file as log4j reads it."""
    layout = ElementTree.parse(write_log4j_config(tmp_path)).find(".//PatternLayout")
    assert layout is not None
    # Without it log4j writes each exception once more, past the pattern.
    assert layout.attrib["alwaysWriteExceptions"] == "false"
    match = re.search(r"%replace\{%m%n%ex\}\{(.+)\}\{\$1\*\*\*\}$", layout.attrib["pattern"])
    assert match is not None
    assert not set("{}") & set(match[1]), "log4j would read a brace as its own"
    expression = re.compile(match[1])
    for text, secret in LOGGED.items():
        shown = expression.sub(r"\g<1>***", text)
        assert secret not in shown
        assert "***" in shown
        assert shown.endswith((" ok", "ok"))
    for text in (
        "hdfs://nn:9000/lake/t",
        "hdfs://nn:9000/lake/t@5",
        "abfss://c@acct.dfs.core.windows.net/t",
        "auth.tokens: no such table",
    ):
        assert expression.sub(r"\g<1>***", text) == text
