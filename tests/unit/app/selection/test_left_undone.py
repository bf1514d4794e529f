"""What `retry` takes up: what did not end well in the newest run that had it, and what a run never came to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.selection.left_undone import unfinished_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.main import run
from maintainer.errors import ProjectError
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import TableOutcome, TableStatus, run_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

RUN = "20261121T220000Z-7f3a"


def write_run(runs: Path, statuses: Mapping[str, TableStatus | None], run_id: str = RUN) -> None:
    folder = runs / run_id
    folder.mkdir(parents=True, exist_ok=True)
    tables = [sample_plans.quiet(name) for name in statuses]
    ended = tuple(TableOutcome(TableRef(name), status) for name, status in statuses.items() if status is not None)
    (folder / "plan.json").write_text(to_json(sample_plans.plan(*tables)))
    (folder / "results.json").write_text(run_to_json(replace(samples.good_run(), run_id=run_id, tables=ended)))


def test_each_status(tmp_path: Path) -> None:
    statuses: dict[str, TableStatus | None] = {f"t.{status.value}": status for status in TableStatus}
    write_run(tmp_path, {**statuses, "t.killed_before": None})
    rest = unfinished_tables(tmp_path, None)
    assert rest.run_id == RUN
    assert {table.ref.identifier for table in rest.tables} == {
        f"t.{name}"
        for name in ("yielded", "failed", "verify_failed", "blocked", "not_reached", "interrupted", "killed_before")
    }
    assert unfinished_tables(tmp_path, RUN) == rest


def test_no_such_run(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="no run yet"):
        unfinished_tables(tmp_path, None)
    write_run(tmp_path, {"t": TableStatus.DONE})
    with pytest.raises(ProjectError, match="no such run"):
        unfinished_tables(tmp_path, "20200101T000000Z-0000")
    (tmp_path / RUN / "plan.json").write_text(json.dumps({}))
    with pytest.raises(ProjectError, match="cannot be read"):
        unfinished_tables(tmp_path, RUN)


OLDER, OLDEST = "20261120T220000Z-7f3a", "20261119T220000Z-7f3a"
DONE, FAILED, INTERRUPTED = TableStatus.DONE, TableStatus.FAILED, TableStatus.INTERRUPTED


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The runs of a project with policies for four tables."""
    write_project(tmp_path, {f"policies/{name}.yml": f"table: db.{name}\n" for name in ("a", "b", "c", "d")})
    return tmp_path / ".maintainer" / "runs"


def retry(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[set[str], str, str]:
    """Return which tables `retry` hands to apply, what it prints, and what it says besides but for the doubts."""
    chosen: set[str] = set()

    def record(_project: object, spec: RunSpec, **_others: object) -> None:
        chosen.update(spec.tables or ())

    monkeypatch.setattr("maintainer.app.operations.apply", record)
    monkeypatch.setattr("maintainer.cli.act.run_commands.exit_code_of", lambda _result, _output: 0)
    assert run(["--project", str(runs.parents[1]), "retry", "--yes", *arguments]) == 0
    shown = capsys.readouterr()
    said = [line for line in shown.err.splitlines() if "its runs are found by" not in line]
    return chosen, shown.out, "\n".join(said)


def test_a_good_run_in_between_hides_nothing(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(runs, {"db.a": DONE, "db.b": None, "db.c": INTERRUPTED, "db.d": FAILED}, OLDEST)
    write_run(runs, {"db.c": FAILED, "db.d": DONE}, OLDER)
    write_run(runs, {"db.a": DONE})
    chosen, _, said = retry(runs, capsys, monkeypatch)
    assert chosen == {"db.b", "db.c"}  # d was finished since
    assert said == f"1 table of run {OLDER}\n1 table of run {OLDEST}"


def test_a_named_run_is_taken_up_alone_and_the_others_are_named(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(runs, {"db.a": FAILED, "db.b": FAILED}, OLDER)
    write_run(runs, {"db.c": FAILED, "db.d": DONE})
    others = "`maintainer retry` without a run does them all."
    assert retry(runs, capsys, monkeypatch, OLDER) == (
        {"db.a", "db.b"}, "", f"2 tables of run {OLDER}\n1 table of other runs is left undone: {others}",
    )  # fmt: skip
    assert retry(runs, capsys, monkeypatch, RUN)[0] == {"db.c"}
    write_run(runs, {"db.c": DONE})
    chosen, printed, _ = retry(runs, capsys, monkeypatch, RUN)
    assert not chosen
    assert printed == f"Nothing is left of run {RUN}. 2 tables of other runs are left undone: {others}\n"


def test_a_run_that_goes_on_keeps_its_tables(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(runs, {"db.a": FAILED, "db.b": FAILED}, OLDER)
    journal = Journal.open(runs, RUN, lambda: 1)
    write_run(runs, {"db.a": INTERRUPTED, "db.c": TableStatus.NOT_REACHED})
    try:
        chosen, _, said = retry(runs, capsys, monkeypatch)
    finally:
        journal.close()
    assert chosen == {"db.b"}
    assert f"run {RUN} is still going on: what it has not finished is left to it (2 tables)" in said
    chosen, _, said = retry(runs, capsys, monkeypatch)
    assert chosen == {"db.a", "db.b", "db.c"}  # it died


def test_a_run_that_cannot_be_read_may_hide_something(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(runs, {"db.a": FAILED, "db.b": FAILED}, OLDER)
    (runs / OLDER / "plan.json").write_text("{}")
    write_run(runs, {"db.a": DONE})
    chosen, printed, said = retry(runs, capsys, monkeypatch)
    assert not chosen
    assert printed == f"Nothing is left of run {RUN}, or of any run before it that can be read.\n"
    assert f"run {OLDER} cannot be read" in said
    write_run(runs, {f"db.{name}": DONE for name in "abcd"})  # now it has nothing to say
    assert retry(runs, capsys, monkeypatch)[1:] == (f"Nothing is left of run {RUN}, or of any run before it.\n", "")


def test_an_older_run_of_a_table_without_a_policy_is_no_news(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(runs, {"db.gone": FAILED}, OLDER)
    write_run(runs, {"db.a": DONE})
    assert retry(runs, capsys, monkeypatch) == (
        set(), f"Nothing is left of run {RUN}, or of any run before it.\n", "",
    )  # fmt: skip


def test_nothing_left_needs_no_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: db.t\n")
    write_run(tmp_path / ".maintainer" / "runs", {"db.t": TableStatus.DONE, "db.gone": TableStatus.FAILED})
    assert run(["--project", str(tmp_path), "retry", "--yes"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"Nothing is left of run {RUN}, or of any run before it.\n"
    assert "db.gone has no policy any more" in captured.err


def test_a_place_that_the_newest_run_could_not_search_is_searched_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "match: {tables: ['*']}\nmanage: true\n"
    root = write_project(tmp_path, {"maintainer.yml": "version: 1\nroots: [gone, lake]\n", "policies/r.yml": rule})
    runs = root / ".maintainer" / "runs"
    write_run(runs, {"./gone": FAILED, "db.x": DONE})
    chosen, _, said = retry(runs, capsys, monkeypatch)
    assert chosen == {"./gone"}
    assert said == f"all tables of ./gone, which run {RUN} could not search"
    write_run(runs, {"db.x": DONE}, "20261122T220000Z-7f3a")
    assert retry(runs, capsys, monkeypatch)[0] == set()
    assert retry(runs, capsys, monkeypatch, RUN)[0] == {"./gone"}
