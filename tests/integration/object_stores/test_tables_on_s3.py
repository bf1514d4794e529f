"""Tables, state and ledger on an S3 server: the first apply; a second engine reads what it left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector

from tests.support.stores.fetched_state import store_of
from tests.support.stores.s3_projects import S3Project, make_project, uri
from tests.support.stores.s3_server import S3Server, s3_server
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.long]

LEDGER = "s3://lake/_maintainer/ledger"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server("lake") as server:
        yield server


def ledger_rows(project: S3Project) -> list[tuple[str, str, str]]:
    rows = project.table(LEDGER).to_pyarrow_table().to_pylist()
    return sorted((row["table"], row["kind"], row["status"]) for row in rows)


def test_apply_compacts_a_table_and_makes_the_ledger(server: S3Server, tmp_path: Path) -> None:
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    project.append("orders", 6)
    rows = project.rows("orders")
    assert (len(project.table("orders").file_uris()), sum(rows.values())) == (6, 60)
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert done.document["counts"]["done"] == 1
    assert (len(project.table("orders").file_uris()), project.rows("orders")) == (1, rows)
    assert project.table("orders").version() == 6
    assert ledger_rows(project) == [(uri("orders"), "compact", "succeeded")]


def test_a_trash_is_refused(server: S3Server, tmp_path: Path) -> None:
    project = make_project(tmp_path, server, {"orders": "vacuum: {retention: 7d, trash: 7d}"})
    project.append("orders", 1)
    done = project.run("plan", "-o", "json")
    (table,) = done.document["tables"]
    assert (done.returncode, table["problem"]["code"]) == (1, "T431"), done.out


def test_a_vacuum_deletes_what_the_log_removed_and_nothing_else(server: S3Server, tmp_path: Path) -> None:
    policy = "vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}"
    project = make_project(tmp_path, server, {"orders": policy})
    project.append("orders", 6, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    rows, old = project.rows("orders"), set(project.table("orders").file_uris())
    project.table("orders").optimize.compact()
    (new,) = project.table("orders").file_uris()
    assert data_files(project) == old | {new}
    time.sleep(2)  # a command that begins at once would find nothing that is old enough
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert data_files(project) == {new}, done.out
    assert project.rows("orders") == rows
    assert ("vacuum", "succeeded") in {row[1:] for row in ledger_rows(project)}


def data_files(project: S3Project) -> set[str]:
    """The Parquet files that lie in the table's folder, listed by another client."""
    files = store_of(project.server).get_file_info(FileSelector("lake/tables/orders"))
    return {f"s3://{file.path}" for file in files if file.path.endswith(".parquet")}


@pytest.mark.parametrize(
    ("policy", "num_files"),
    [
        ("optimize: {}", 1),
        ("optimize: {zorder: {columns: [id], mode: full}}", 1),
        ("optimize: {lanes: [local, spark], codec: zstd}", 1),
    ],
)
def test_the_lane_local_rewrites_files_of_a_store(
    server: S3Server, tmp_path: Path, policy: str, num_files: int
) -> None:
    project = make_project(tmp_path, server, {"orders": policy})
    project.append("orders", 6)
    rows = project.rows("orders")
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert (len(project.table("orders").file_uris()), project.rows("orders")) == (num_files, rows)
    (lanes,) = project.table(LEDGER).to_pyarrow_table().column("lanes").to_pylist()
    assert "local" in str(lanes)
    assert "spark" not in str(lanes).lower()


@pytest.mark.parametrize("fault", [Fault.CUTS, Fault.CHANGES])
def test_a_new_file_that_the_store_does_not_hold_as_written_is_not_committed(
    server: S3Server, tmp_path: Path, fault: Fault
) -> None:
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    project.append("orders", 6)
    rows = project.rows("orders")
    rule = server.faults.add(FaultRule(fault, "PUT", "/orders/", ".parquet", ALWAYS))
    done = project.run("apply", "--yes", "-o", "json")
    assert rule.num_met == 1
    assert (done.returncode != 0, "C702" in done.out + done.err) == (True, True), done.out
    assert (project.table("orders").version(), project.rows("orders")) == (5, rows)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_what_the_store_refuses_to_this_process_goes_to_spark(server: S3Server, tmp_path: Path, method: str) -> None:
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    project.append("orders", 6)
    rows = project.rows("orders")
    rule = server.faults.add(FaultRule(Fault.REFUSES, method, "/orders/", ".parquet", times=1))
    done = project.run("apply", "--yes", "-o", "json")
    assert (rule.num_met, done.returncode, done.document["problems"]) == (1, 0, []), done.err
    assert (len(project.table("orders").file_uris()), project.rows("orders")) == (1, rows)
    (lanes,) = project.table(LEDGER).to_pyarrow_table().column("lanes").to_pylist()
    assert "spark" in str(lanes)
