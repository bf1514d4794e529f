"""`result:` asks the last run, and only the last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maintainer.cli.main import run
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus, run_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.policies.projects import write_project

NAMES = {status: f"s.{status.value}" for status in TableStatus}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {f"policies/{name}.yml": f"table: {name}\n" for name in [*NAMES.values(), "s.new"]}
    return write_project(tmp_path, files)


@pytest.fixture
def with_ledger(root: Path) -> Path:
    log = root / ".maintainer" / "ledger" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").touch()
    return root


def test_the_ledger_is_counted_apart(with_ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--project", str(with_ledger), "list"]) == 0
    out, err = capsys.readouterr()
    assert ".maintainer/ledger" in out
    assert err == f"{len(NAMES) + 1} tables and our own ledger\n"
    assert run(["--project", str(with_ledger), "list", "-s", "tag:maintainer-ledger"]) == 0
    assert capsys.readouterr().err == "our own ledger\n"


def test_a_retry_counts_the_ledger_apart(
    with_ledger: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(with_ledger, "20261121T010000Z-bbbb")
    tables = [TableRef("s.failed"), TableRef(".maintainer/ledger", str(with_ledger / ".maintainer" / "ledger"))]
    outcome = RunOutcome(folder.name, 0, 1.0, tuple(TableOutcome(ref, TableStatus.FAILED) for ref in tables))
    (folder / "results.json").write_text(run_to_json(outcome))
    plans = tuple(TablePlan(ref, "p", "d") for ref in tables)
    (folder / "plan.json").write_text(to_json(Plan(0, 1, plans)))
    monkeypatch.setenv("JAVA_HOME", str(with_ledger / "no-java"))
    assert run(["--project", str(with_ledger), "retry", "--yes"]) != 0
    assert "1 table and our own ledger of run 20261121T010000Z-bbbb\n" in capsys.readouterr().err


def write_run(root: Path, run_id: str, *, all_done: bool = False) -> Path:
    """A run folder in which each table ended in another way."""
    folder = root / ".maintainer" / "runs" / run_id
    folder.mkdir(parents=True)
    tables = tuple(
        TableOutcome(TableRef(name), TableStatus.DONE if all_done else status) for status, name in NAMES.items()
    )
    (folder / "results.json").write_text(run_to_json(RunOutcome(run_id, 0, 1.0, tables)))
    (folder / "plan.json").write_text(to_json(Plan(0, 1, ())))
    return folder


def chosen(root: Path, capsys: pytest.CaptureFixture[str], selector: str) -> set[str]:
    assert run(["--project", str(root), "list", "-o", "json", "-s", selector]) == 0
    return {table["table"].removeprefix("s.") for table in json.loads(capsys.readouterr().out)["tables"]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("failed", {"failed", "verify_failed"}),
        ("verify_failed", {"verify_failed"}),
        ("success", {"done", "up_to_date"}),
        ("skipped", {"yielded", "not_reached"}),
        ("interrupted", {"interrupted"}),
        ("refused", {"blocked", "unsupported"}),
    ],
)
def test_how_a_table_ended_in_the_last_run(
    root: Path, capsys: pytest.CaptureFixture[str], value: str, expected: set[str]
) -> None:
    write_run(root, "20261120T010000Z-aaaa", all_done=True)
    write_run(root, "20261121T010000Z-bbbb")
    assert chosen(root, capsys, f"result:{value}") == expected


def test_a_table_that_was_in_no_run_ended_in_no_way(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(root, "20261121T010000Z-bbbb")
    every = " ".join(
        f"result:{value}" for value in ("failed", "success", "skipped", "waiting", "interrupted", "refused")
    )
    assert chosen(root, capsys, every) == {status.value for status in TableStatus}


def test_without_a_run_nothing_is_guessed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--project", str(root), "list", "-s", "result:failed"]) == 2
    assert "error[E624]: `result:` asks for the last run, and there is none" in capsys.readouterr().err


def test_a_last_run_that_cannot_be_read_is_not_replaced_by_an_older_one(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(root, "20261120T010000Z-aaaa")
    (write_run(root, "20261121T010000Z-bbbb") / "results.json").write_text("{")
    assert run(["--project", str(root), "list", "-s", "result:failed"]) == 2
    assert "error[E624]: the last run cannot be read" in capsys.readouterr().err
