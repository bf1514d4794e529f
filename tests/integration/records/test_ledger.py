"""The ledger on real Delta: appended once, read back by SQL and by an engine that shares nothing with Spark."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support.product import DeltaJvm, LedgerRow, LedgerTable, MaintainerError, SessionLease, worker_session
from tests.support.tables.builders import NOW_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]

ROW = LedgerRow(
    run_id="r1", table="sales.orders", table_id="id", location="file:/lake/orders", step_id="sales.orders/compact",
    kind="compact", status="succeeded", reason="12 small files", version_before=4, version_after=5,
    num_files_removed=12, num_files_added=1, bytes_removed=2**41, bytes_added=2**40, predicted_files_removed=12,
    predicted_files_added=1, predicted_bytes_removed=2**41, predicted_bytes_added=2**41, started_at_ms=NOW_MS + 123,
    duration_seconds=1.5, proof_level="fingerprint", proof_result="pass", policy_file="policies/orders.yml",
    policy_digest="sha256:x", git_commit="3f2c1a9", environment=None, owner="team", error_code=None, error=None,
)  # fmt: skip


@pytest.mark.every_run
def test_rows_are_appended_once_and_read_by_sql_and_by_another_engine(spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / ".maintainer" / "ledger")
    ledger = LedgerTable(spark, location)
    assert ledger.rows() == ()
    later = replace(ROW, run_id="r2", table="hr.staff", step_id="hr.staff/vacuum", started_at_ms=NOW_MS + 5000)
    ledger.append("r1", (ROW,))
    ledger.append("r2", (later,))
    ledger.append("r1", (ROW,))  # offered again after a crash

    assert ledger.rows() == (later, ROW)
    assert ledger.rows(table="sales.orders") == (ROW,)
    assert ledger.rows(table="x' OR 1=1 --") == ()
    assert ledger.rows(limit=1) == (later,)
    by_sql = spark.sql(
        f"SELECT `table`, started_at, bytes_removed FROM delta.`{location}` ORDER BY started_at"
    ).collect()
    assert [(row[0], row[2]) for row in by_sql] == [("sales.orders", 2**41), ("hr.staff", 2**41)]
    foreign = sorted(deltalake.DeltaTable(location).to_pyarrow_table().to_pylist(), key=lambda row: row["run_id"])
    assert [row["run_id"] for row in foreign] == ["r1", "r2"]
    assert int(foreign[0]["started_at"].timestamp() * 1000) == NOW_MS + 123


@pytest.mark.every_run
def test_an_append_on_a_local_disk_starts_no_spark_job(spark: SparkSession, tmp_path: Path) -> None:
    ledger = LedgerTable(spark, str(tmp_path / "ledger"))
    store = spark.sparkContext._jsc.sc().statusStore()
    ledger.append("r0", (replace(ROW, run_id="r0"),))  # Delta makes the table, with the checksum of an empty one
    before = int(store.jobsList(None).size())
    for number in (1, 2, 2):
        ledger.append(f"r{number}", (replace(ROW, run_id=f"r{number}"),))
    assert int(store.jobsList(None).size()) == before
    foreign = deltalake.DeltaTable(str(tmp_path / "ledger"))
    assert foreign.version() == 2
    assert sorted(foreign.to_pyarrow_table().column("run_id").to_pylist()) == ["r0", "r1", "r2"]
    assert foreign.metadata().configuration == {"delta.dataSkippingNumIndexedCols": "0"}


@pytest.mark.long
def test_what_is_past_its_retention_leaves_the_log_when_a_checkpoint_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each run appends a commit, so a log that nobody cleans up grows without end."""
    ledger, log = LedgerTable(spark, str(tmp_path / "ledger")), tmp_path / "ledger" / "_delta_log"
    runs = [f"r{number:02}" for number in range(42)]
    for number, run_id in enumerate(runs):
        if number == 25:
            for file in log.iterdir():
                os.utime(file, (file.stat().st_mtime - 40 * 86_400,) * 2)
        ledger.append(run_id, (replace(ROW, run_id=run_id),))
    versions = sorted(int(file.stem) for file in log.glob("*.json"))
    assert versions == list(range(20, 42)), "20 is the newest checkpoint of those past 30 days"
    assert sorted(file.name[:20] for file in log.glob("*.checkpoint.parquet")) == [f"{n:020}" for n in (20, 30, 40)]
    assert all(int(file.stem) >= 20 for file in log.glob("0*.crc"))
    foreign = deltalake.DeltaTable(str(tmp_path / "ledger"))
    assert sorted(foreign.to_pyarrow_table().column("run_id").to_pylist()) == runs


@pytest.mark.parametrize("change", [
    "DROP COLUMN lanes",
    "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "ADD CONSTRAINT named CHECK (run_id <> 'nobody')",
])  # fmt: skip
def test_a_ledger_that_somebody_changed_is_appended_by_spark(spark: SparkSession, tmp_path: Path, change: str) -> None:
    location = str(tmp_path / "ledger")
    ledger = LedgerTable(spark, location)
    ledger.append("r1", (ROW,))
    if change.startswith("DROP"):
        mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
        spark.sql(f"ALTER TABLE delta.`{location}` SET TBLPROPERTIES ({mapped})")
    spark.sql(f"ALTER TABLE delta.`{location}` {change}")
    later = replace(ROW, run_id="r2", lanes="local", started_at_ms=NOW_MS + 5000)
    users = spark.newSession()
    users.createDataFrame([(1,)], "a int")
    ledger.append("r2", (later,))
    ledger.append("r2", (later,))
    assert ledger.rows() == (later, ROW)
    assert type(spark).getActiveSession() is users, "the active session of pyspark stays the user's"


def test_an_append_that_another_process_makes_at_the_same_moment_is_made_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two later runs find the same rows waiting in a folder; the other one's commit lands right before ours."""
    location = str(tmp_path / "ledger")
    LedgerTable(spark, location).append("r0", (replace(ROW, run_id="r0"),))
    commit, commits = DeltaJvm.commit, []

    def beside(jvm: DeltaJvm, txn: object, actions: object, operation: object, tags: object) -> int:
        commits.append(operation)
        if len(commits) == 1:
            LedgerTable(spark, location).append("r1", (replace(ROW, run_id="r1"),))
        return commit(jvm, txn, actions, operation, tags)

    monkeypatch.setattr(DeltaJvm, "commit", beside)
    LedgerTable(spark, location).append("r1", (replace(ROW, run_id="r1"),))
    assert len(commits) == 2
    foreign = deltalake.DeltaTable(location)
    assert (foreign.version(), foreign.to_pyarrow_table().num_rows) == (1, 2)
    assert len(list(Path(location).glob("*.parquet"))) == 2, "the file of the append that lost is gone"


@pytest.mark.every_run
def test_a_commit_that_landed_without_an_answer_keeps_its_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(tmp_path / "ledger")
    commit = DeltaJvm.commit

    def lost(jvm: DeltaJvm, txn: object, actions: object, operation: object, tags: object) -> int:
        commit(jvm, txn, actions, operation, tags)
        raise OSError("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaJvm, "commit", lost)
        with pytest.raises(MaintainerError):
            LedgerTable(spark, location).append("r1", (ROW,))
    LedgerTable(spark, location).append("r1", (ROW,))
    foreign = deltalake.DeltaTable(location)
    assert (foreign.version(), foreign.to_pyarrow_table().num_rows) == (0, 1)


def test_rows_of_a_table_under_its_older_names_are_found_by_its_id(spark: SparkSession, tmp_path: Path) -> None:
    ledger = LedgerTable(spark, str(tmp_path / "ledger"))
    renamed = replace(ROW, run_id="r0", table="sales.old_orders", started_at_ms=NOW_MS)
    other = replace(ROW, run_id="r3", table="hr.staff", table_id="id-staff")
    unread = replace(ROW, run_id="r4", table="hr.staff", table_id=None, location=None)
    for row in (renamed, ROW, other, unread):
        ledger.append(row.run_id, (row,))
    assert ledger.rows(table="sales.orders", table_id="id") == (ROW, renamed)
    assert ledger.rows(table="sales.orders") == (ROW,)
    assert set(ledger.rows(table="hr.staff", table_id="id-staff")) == {other, unread}


def test_two_runs_may_make_the_ledger_at_the_same_moment(lease: SessionLease, tmp_path: Path) -> None:
    location = str(tmp_path / "ledger")
    errors: list[BaseException] = []

    def append(run_id: str) -> None:
        try:
            LedgerTable(worker_session(lease), location).append(run_id, (replace(ROW, run_id=run_id),))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=(f"r{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert sorted(deltalake.DeltaTable(location).to_pyarrow_table()["run_id"].to_pylist()) == ["r0", "r1", "r2"]


def test_a_ledger_that_cannot_be_written_is_an_error_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MaintainerError) as caught:
        LedgerTable(spark, str(tmp_path / "file" / "ledger")).append("r1", (ROW,))
    assert caught.value.where == str(tmp_path / "file" / "ledger")


def test_a_damaged_ledger_has_a_code_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    location = tmp_path / "ledger"
    ledger = LedgerTable(spark, str(location))
    assert ledger.mark() is None
    ledger.append("r1", (ROW,))
    ledger.append("r2", (replace(ROW, run_id="r2"),))
    now = ledger.mark()
    assert now is not None
    assert (now.version, now.table_id) == (1, str(deltalake.DeltaTable(str(location)).metadata().id))
    assert (ledger.steps_of("r2"), ledger.steps_of("r3")) == (frozenset({ROW.step_id}), frozenset())
    lost = next(location.glob("*.parquet"))
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(MaintainerError, match="the ledger is damaged") as caught:
        ledger.mark()
    assert caught.value.code == "E656"
    assert lost.name in (caught.value.found or "")
    lost.write_bytes(content)  # what is left behind is read after the test


def test_a_log_that_cannot_be_read_is_damage_too(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "ledger" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("")
    with pytest.raises(MaintainerError) as caught:
        LedgerTable(spark, str(tmp_path / "ledger")).mark()
    assert caught.value.code == "E656"


def test_a_first_append_that_was_cut_off_is_done_again(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "ledger" / "_delta_log"
    log.mkdir(parents=True)
    (tmp_path / "ledger" / "part-00000-cut-off.snappy.parquet").write_bytes(b"PAR1")
    (log / ".00000000000000000000.json.tmp").write_text("")
    ledger = LedgerTable(spark, str(tmp_path / "ledger"))
    assert ledger.mark() is None
    ledger.append("r1", (ROW,))
    assert ledger.rows() == (ROW,)
