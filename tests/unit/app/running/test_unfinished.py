"""What `retry` takes up: everything of a run that did not end well, and what it never came to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.selection.last_run import unfinished_tables
from maintainer.cli.main import run
from maintainer.errors import ProjectError
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import TableOutcome, TableStatus
from maintainer.model.run.results_document import run_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.runs import sample_runs as samples

RUN = "20261121T220000Z-7f3a"


def write_run(runs: Path, statuses: dict[str, TableStatus | None]) -> None:
    folder = runs / RUN
    folder.mkdir(parents=True)
    tables = [samples.quiet(name) for name in statuses]
    ended = tuple(TableOutcome(TableRef(name), status) for name, status in statuses.items() if status is not None)
    (folder / "plan.json").write_text(to_json(samples.plan(*tables)))
    (folder / "results.json").write_text(run_to_json(replace(samples.good_run(), run_id=RUN, tables=ended)))


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


def test_nothing_left_needs_no_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: db.t\n")
    write_run(tmp_path / ".maintainer" / "runs", {"db.t": TableStatus.DONE, "db.gone": TableStatus.FAILED})
    assert run(["--project", str(tmp_path), "retry", "--yes"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"Nothing is left of run {RUN}.\n"
    assert "db.gone has no policy any more" in captured.err
