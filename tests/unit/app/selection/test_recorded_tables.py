"""What past runs say about a table is found by its id: after a rename, in a copy, and when another takes its place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.selection.recorded_tables import RecordedTable, TableIndex
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.main import run
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.storage.file_store import java_quote
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import StepStatus, TableOutcome, TableStatus, run_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.support.writers import recorded_events

RUN, OLDER_RUN = "20261121T220000Z-7f3a", "20261120T220000Z-7f3a"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"policies/orders.yml": "table: lake/orders\n"})


def table(root: Path, name: str) -> Path:
    path = root / "lake" / name
    for number in range(2):
        deltalake.write_deltalake(path, pa.table({"a": [number]}), mode="append")
    return path


def renamed(root: Path, written: str) -> None:
    """Only the policy: what it calls its table from now on."""
    shutil.rmtree(root / "policies")
    write_project(root, {"policies/sales_orders.yml": f"table: {written}\n"})


def ref_of(root: Path, name: str) -> TableRef:
    return TableRef(name, str(root / name)) if "/" in name and ":" not in name else TableRef(name)


def write_run(
    root: Path,
    name: str,
    path: Path | None,
    *,
    run_id: str = RUN,
    status: TableStatus = TableStatus.FAILED,
    location: str | None = None,
) -> None:
    """A run in which a table was compacted under a name; where there is no path and no location it was not read."""
    journal = Journal.open(root / ".maintainer" / "runs", run_id, lambda: 1)
    sample = sample_plans.orders()
    assert sample.observed is not None
    observed = None
    if path is not None:
        table_id = str(deltalake.DeltaTable(path).metadata().id)
        observed = replace(sample.observed, location=f"file:{path}", table_id=table_id)
    if location is not None:
        observed = replace(sample.observed, location=location, table_id="0b7c9f3e-on-a-store")
    plan = TablePlan(ref_of(root, name), "policies/orders.yml", "sha256:a", observed)
    step = replace(samples.properties_done(), step_id=f"{name}/set_properties", status=StepStatus.FAILED)
    outcome = TableOutcome(plan.ref, status, (step,))
    ended = replace(samples.good_run(), run_id=run_id, tables=(outcome,))
    recorded_events.table_finished(journal, outcome, key=(observed.table_id, observed.location) if observed else None)
    journal.finished()
    journal.close()
    folder = root / ".maintainer" / "runs" / run_id
    (folder / "plan.json").write_text(to_json(sample_plans.plan(plan)))
    (folder / "results.json").write_text(run_to_json(ended))


def history(root: Path, capsys: pytest.CaptureFixture[str], name: str) -> tuple[list[tuple[str, str]], str]:
    """Our own steps of a table: run and name; and what was said beside them."""
    assert run(["--project", str(root), "history", name, "--ours", "-o", "json"]) == 0
    shown = capsys.readouterr()
    return [(row["run_id"], row["table"]) for row in json.loads(shown.out)["history"]], shown.err


def failed(root: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(["--project", str(root), "list", "-o", "json", "-s", "result:failed", "--allow-empty"]) == 0
    return [table["table"] for table in json.loads(capsys.readouterr().out)["tables"]]


def taken_up(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], str]:
    """What `retry` hands to apply, and what it says."""
    chosen: list[frozenset[str]] = []

    def record(project: Project, spec: RunSpec, **_others: object) -> None:
        known = search_tables(project, EngineOptions())
        managed = {policy.table.identifier for policy in known.policies}
        chosen.append((spec.tables or frozenset()) & managed)

    monkeypatch.setattr("maintainer.app.operations.apply", record)
    monkeypatch.setattr("maintainer.cli.act.run_commands.exit_code_of", lambda _result, _output: 0)
    assert run(["--project", str(root), "retry", "--yes"]) == 0
    shown = capsys.readouterr()
    return {name for names in chosen for name in names}, shown.err


class TestARename:
    @pytest.mark.parametrize("how", ["moved", "linked", "encoded", "catalog"])
    def test_a_table_keeps_its_past(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        path = table(root, "orders")
        before = "sales.orders" if how == "catalog" else "lake/orders"
        write_run(root, before, path)
        written = "lake/sales orders"
        if how == "linked":
            (root / "lake" / "sales orders").symlink_to(path)
        elif how == "encoded":
            path.rename(root / "lake" / "sales orders")
            written = f"file://{root}/lake/sales orders"
        else:
            path.rename(root / "lake" / "sales orders")
        renamed(root, written)
        shown = "lake/sales orders"
        assert history(root, capsys, shown) == ([(RUN, before)], "")
        assert failed(root, capsys) == [shown]
        assert taken_up(root, capsys, monkeypatch)[0] == {shown}

    def test_a_name_of_a_catalog_that_a_later_run_met(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = table(root, "orders")
        write_run(root, "sales.orders", path, run_id=OLDER_RUN)
        write_run(root, "sales.all_orders", path)
        renamed(root, "sales.all_orders")
        assert history(root, capsys, "sales.all_orders") == (
            [(RUN, "sales.all_orders"), (OLDER_RUN, "sales.orders")], "",
        )  # fmt: skip

    def test_a_policy_that_only_has_the_old_name_inherits_nothing(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = table(root, "orders")
        write_run(root, "lake/orders", path)
        path.rename(root / "lake" / "sales_orders")
        table(root, "orders")
        assert history(root, capsys, "lake/orders") == ([], "")
        assert failed(root, capsys) == []
        chosen, said = taken_up(root, capsys, monkeypatch)
        assert chosen == set()
        assert "lake/orders is another table now, with another id, and is left out" in said


def test_a_table_that_a_rule_excludes_by_another_name_is_not_taken_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_project(tmp_path, {"maintainer.yml": "roots: [by_link, lake]\n"})
    (root / "by_link").symlink_to(root / "lake")
    write_run(root, "by_link/orders", table(root, "orders"))
    every = "match: {tables: ['*']}\nmanage: true\n"
    write_project(root, {"policies/every.yml": every})
    assert taken_up(root, capsys, monkeypatch)[0] == {"by_link/orders"}
    write_project(root, {"policies/every.yml": every.replace("]}", "], exclude: [lake/orders]}")})
    assert taken_up(root, capsys, monkeypatch)[0] == set()


class TestOnAStore:
    @pytest.mark.parametrize("name", ["a b/orders", "50%", "Öl/orders", "a%20b"])
    def test_a_name_that_an_address_spells_otherwise_has_its_past(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        written, location = f"s3://lake/{name}", f"s3://lake/{java_quote(name)}"
        renamed(root, written)
        write_run(root, written, None, location=location)
        assert history(root, capsys, written)[0] == [(RUN, written)]
        assert failed(root, capsys) == [written]
        assert taken_up(root, capsys, monkeypatch)[0] == {written}


class TestAnotherTableAtTheSamePlace:
    @pytest.mark.parametrize("name", ["lake/orders", "sales.orders"])
    def test_inherits_nothing(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        path = table(root, "orders")
        write_run(root, name, path)
        renamed(root, name)
        assert history(root, capsys, name) == ([(RUN, name)], "")
        shutil.rmtree(path)
        table(root, "orders")
        assert history(root, capsys, name) == ([], "")
        assert failed(root, capsys) == []
        assert taken_up(root, capsys, monkeypatch)[0] == set()


class TestACopy:
    def test_has_a_past_of_its_own(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = table(root, "orders")
        write_run(root, "lake/orders", path)
        shutil.copytree(path, root / "lake" / "copy")
        write_project(root, {"policies/copy.yml": "table: lake/copy\n"})
        assert history(root, capsys, "lake/copy") == ([], "")
        assert history(root, capsys, "lake/orders") == ([(RUN, "lake/orders")], "")
        assert failed(root, capsys) == ["lake/orders"]
        assert taken_up(root, capsys, monkeypatch)[0] == {"lake/orders"}


class TestWithoutAnId:
    def test_a_table_that_was_not_read_then_is_found_by_its_place(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = table(root, "orders")
        write_run(root, "lake/orders", None)
        (root / "lake" / "link").symlink_to(path)
        renamed(root, "lake/link")
        assert failed(root, capsys) == ["lake/link"]
        assert taken_up(root, capsys, monkeypatch)[0] == {"lake/link"}

    @pytest.mark.parametrize("damage", ["gone", "damaged"])
    def test_a_table_that_cannot_be_read_now_is_found_by_its_place_and_this_is_said(
        self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, damage: str
    ) -> None:
        path = table(root, "orders")
        write_run(root, "lake/orders", path)
        if damage == "gone":
            shutil.rmtree(path)
        else:
            for commit in (path / "_delta_log").glob("*.json"):
                commit.write_text("{")
        note = "warning: the id of lake/orders cannot be read here: its runs are found by its place\n"
        assert history(root, capsys, "lake/orders") == ([(RUN, "lake/orders")], note)
        assert failed(root, capsys) == ["lake/orders"]
        assert taken_up(root, capsys, monkeypatch) == ({"lake/orders"}, f"{note}1 table of run {RUN}\n")

    def test_a_catalogs_name_elsewhere_goes_by_the_id_that_the_newest_run_met(
        self, root: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = table(root, "orders")
        write_run(root, "sales.orders", path)
        shutil.rmtree(path)
        renamed(root, "sales.orders")
        rows, said = history(root, capsys, "sales.orders")
        assert rows == [(RUN, "sales.orders")]
        assert "its runs are found by its place" in said

    def test_the_newest_checksum_tells_the_id_where_old_commits_are_gone(
        self, root: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = table(root, "orders")
        write_run(root, "lake/orders", path)
        table_id = deltalake.DeltaTable(path).metadata().id
        os.unlink(path / "_delta_log" / f"{0:020d}.json")
        (path / "_delta_log" / f"{1:020d}.crc").write_text(json.dumps({"metadata": {"id": str(table_id)}}))
        assert history(root, capsys, "lake/orders") == ([(RUN, "lake/orders")], "")


def test_nothing_of_it_starts_spark(root: Path, capsys: pytest.CaptureFixture[str]) -> None:

    path = table(root, "orders")
    write_run(root, "lake/orders", path)
    script = (
        "import sys; from maintainer.cli.main import run; "
        f"run(['--project', {str(root)!r}, 'history', 'lake/orders', '--ours']); "
        f"run(['--project', {str(root)!r}, 'list', '-s', 'result:failed']); "
        "sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "1 table\n")


def plan_at(path: Path, *, name: str | None = None, read: bool = True) -> Plan:
    """The plan of a run that met a table at a path, under a policy's name."""
    observed = sample_plans.orders().observed
    assert observed is not None
    if read:
        table_id = str(deltalake.DeltaTable(path).metadata().id)
        observed = replace(observed, location=f"file:{path}", table_id=table_id)
    table = replace(
        sample_plans.orders(), ref=TableRef(name or path.name, str(path)), observed=observed if read else None
    )
    return sample_plans.plan(table)


class TestAnIndexOverRuns:
    def test_a_renamed_and_moved_table_is_one_and_its_copy_another(self, root: Path) -> None:
        path = table(root, "orders")
        first, unread = plan_at(path), plan_at(path, read=False)
        shutil.copytree(path, root / "lake" / "copy")
        copy = plan_at(root / "lake" / "copy")
        index = TableIndex([copy, first])
        keys = [index.key_of(RecordedTable.of_plan(plan.tables[0])) for plan in (first, unread, copy)]
        assert keys[0] == keys[1] != keys[2]
        shutil.rmtree(root / "lake" / "copy")
        path.rename(root / "lake" / "moved")
        moved = plan_at(root / "lake" / "moved")
        index = TableIndex([moved, first])
        assert len({index.key_of(RecordedTable.of_plan(plan.tables[0])) for plan in (moved, first)}) == 1

    def test_a_table_without_a_record_is_none_of_them(self, root: Path) -> None:
        path, other = table(root, "orders"), table(root, "other")
        index = TableIndex([plan_at(path)])
        for plan in (plan_at(other), plan_at(other, read=False), plan_at(other, name="orders")):
            assert index.key_of(RecordedTable.of_plan(plan.tables[0])) is None

    def test_copies_with_one_id_are_not_compared_with_one_another(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, looked_at = table(root, "orders"), list[str]()
        names = [f"copy{number}" for number in range(12)]
        for name in names:
            shutil.copytree(path, root / "lake" / name)
        real = StoragePlaces.may_hold

        def counted(places: StoragePlaces, location: str, table_id: str) -> bool:
            looked_at.append(location)
            return real(places, location, table_id)

        monkeypatch.setattr(StoragePlaces, "may_hold", counted)
        plans = [plan_at(root / "lake" / name) for name in names]
        index = TableIndex([*plans, *plans])
        assert len({index.key_of(RecordedTable.of_plan(plan.tables[0])) for plan in plans}) == len(names)
        assert len(looked_at) == len(set(looked_at)) < len(names)
