"""A deletion on a store: a second reader confirms it, a log that changes stops it; requests have a bound."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from obstore.store import S3Store

from tests.support.faults.blows import Blow, victim
from tests.support.faults.held_apply import POINTS
from tests.support.runs.command_host import CommandHost
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.s3_projects import (
    ENVIRONMENT,
    S3Project,
    project_beside,
    s3_host,
    two_minutes_later,
    uri,
)
from tests.support.stores.s3_server import S3Server, s3_server
from tests.support.stores.sick_store import Fault, FaultRule
from tests.support.stores.store_rewrites import BEGUN, CHECKED, COMMITTED, INTENT

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

VACUUM = "tests.support.stores.store_rewrites:vacuum"

NUM_COMMITS = 7
"""Six appends and a compaction, no checkpoint."""

MAX_SECOND_READER = 2 + NUM_COMMITS
"""Requests of the second reader: two lists, and one for each commit that no checkpoint has."""

MAX_OTHERS = 40
"""Requests of all the rest: Delta opens the log and commits twice, each file is looked for before and after."""

MANY_PARTITIONS, FEW_FILES = 3_000, 5
LAST_POINT = list(POINTS)[-1]

MAX_LISTS_OF_AN_UNDELETE = 40
"""For 2,100 files in as many folders: their versions, what lies there afterwards, and the state."""

AT_ONCE = 1_000
"""Keys that one request of S3 can delete."""


def table(root: Path, server: S3Server, name: str) -> tuple[S3Project, set[str]]:
    """A table whose six files a second engine replaced by one; returns the files that are live."""
    project = project_beside(root, server, name, "optimize: {}", None)
    project.append(name, NUM_COMMITS - 1, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    project.table(name).optimize.compact()
    return project, set(project.table(name).file_uris())


def vacuum(
    host: CommandHost, server: S3Server, name: str, *, forgotten: str | None = None, overwritten: int | None = None
) -> Any:
    return host.call(VACUUM, f"s3a://lake/tables/{name}", server.url, forgotten, overwritten)


def data_files(project: S3Project, name: str) -> set[str]:
    """The Parquet files that lie in the table's folder, listed by another client."""
    from pyarrow.fs import FileSelector, S3FileSystem

    store = S3FileSystem(
        access_key="key", secret_key="secret", region="us-east-1", endpoint_override=project.server.url
    )
    files = store.get_file_info(FileSelector(f"lake/tables/{name}", recursive=True))
    return {f"s3://{file.path}" for file in files if file.path.endswith(".parquet") and "_delta_log" not in file.path}


def requests_between(server: S3Server, first: str, last: str) -> Counter[str]:
    """How many of each method the server saw between two marks."""
    paths = [path for _, path, _ in server.faults.requests]
    start, end = (next(n for n, path in enumerate(paths) if path.endswith(name)) for name in (first, last))
    return Counter(method for method, _, _ in server.faults.requests[start + 1 : end])


def test_a_second_reader_confirms_a_deletion(host: CommandHost, server: S3Server, tmp_path: Path) -> None:
    project, live = table(tmp_path, server, "confirmed")
    rows = project.rows("confirmed")
    done = vacuum(host, server, "confirmed")
    assert (done["deleted"], done["code"]) == (NUM_COMMITS - 1, None)
    assert (data_files(project, "confirmed"), project.rows("confirmed")) == (live, rows)
    by_reader = requests_between(server, INTENT, COMMITTED)
    assert 0 < by_reader.total() <= MAX_SECOND_READER, by_reader
    whole = requests_between(server, BEGUN, CHECKED)
    assert whole.total() - by_reader.total() <= MAX_OTHERS, whole - by_reader


@pytest.mark.long
def test_few_files_in_many_partitions_go_by_few_requests(host: CommandHost, server: S3Server, tmp_path: Path) -> None:
    name = "partitioned"
    project, numbers = project_beside(tmp_path, server, name, "optimize: {}", None), list(range(MANY_PARTITIONS))
    retention = {"delta.deletedFileRetentionDuration": "interval 1 second"}
    rows = pa.table({"id": numbers, "p": numbers})
    write_deltalake(uri(name), rows, partition_by=["p"], storage_options=project.options, configuration=dict(retention))
    project.table(name).delete(f"p < {FEW_FILES}")
    live = set(project.table(name).file_uris())
    server.faults.clear()
    assert vacuum(host, server, name)["deleted"] == FEW_FILES
    assert data_files(project, name) == live
    by_reader, whole = requests_between(server, INTENT, COMMITTED), requests_between(server, BEGUN, CHECKED)
    assert 0 < by_reader.total() <= 2 + 2, by_reader
    assert whole.total() - by_reader.total() <= MAX_OTHERS, whole - by_reader


@pytest.mark.long
def test_a_file_that_the_store_keeps_is_named_and_recorded_and_the_others_go(tmp_path: Path) -> None:
    """S3 answers a deletion of many for each key. The server may not delete in one folder."""
    policy = "vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}"
    retention = {"delta.deletedFileRetentionDuration": "interval 1 second"}
    with s3_server("lake", obeys_modes=True) as server, s3_host(server, tmp_path) as host:
        project = project_beside(tmp_path, server, "kept", policy, host)
        for rows in ([0, 1, 2], [3]):
            write_deltalake(
                uri("kept"), pa.table({"id": rows, "p": rows}), mode="append", partition_by=["p"],
                storage_options=project.options, configuration=dict(retention),
            )  # fmt: skip
        project.table("kept").delete("p < 3")
        before, live = data_files(project, "kept"), set(project.table("kept").file_uris())
        (kept,) = (file for file in before if "/p=1/" in file)
        time.sleep(2)
        folder = server.folder / "tables" / "kept" / "p=1"
        folder.chmod(0o555)
        done = project.run("apply", "--yes", "-o", "json")
        assert data_files(project, "kept") == live | {kept}
        (step,) = (step for table in done.document["tables"] for step in table["steps"])
        assert (done.returncode, step["status"], step["vacuum"]["num_files_deleted"]) == (1, "incomplete", 2), done.out
        (named,) = step["vacuum"]["remaining"]
        assert named.startswith(f"p=1/{kept.rpartition('/')[2]} (InternalError: "), named
        assert named.endswith("permission denied)"), named
        (end,) = [commit for commit in project.table("kept").history() if commit["operation"] == "VACUUM END"]
        assert (end["operationParameters"]["status"], end["operationMetrics"]["numDeletedFiles"]) == ("FAILED", "2")
        folder.chmod(0o755)
        assert project.run("apply", "--yes").returncode == 0
        assert data_files(project, "kept") == live


VACUUM_NOW = "vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}"
FINAL = "final: the bucket keeps no versions"
VERSIONED = "the bucket keeps older versions, from which `maintainer undelete` brings files back"


def test_what_a_vacuum_hid_in_a_bucket_with_versions_comes_back_and_nothing_else(tmp_path: Path) -> None:
    """One file came back and went again, another was written over: what is newest in their places stays."""
    with s3_server("lake", keeps_versions=True) as server, s3_host(server, tmp_path) as host:
        project = project_beside(tmp_path, server, "hidden", VACUUM_NOW, host)
        project.append("hidden", 6, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
        rows, old = project.rows("hidden"), set(project.table("hidden").file_uris())
        project.table("hidden").optimize.compact()
        live = set(project.table("hidden").file_uris())
        time.sleep(2)
        planned = project.run("plan")
        assert VERSIONED in planned.out, planned.out
        done = project.run("apply", "--yes", "-o", "json")
        assert data_files(project, "hidden") == live, done.err
        (step,) = (step for table in done.document["tables"] for step in table["steps"])
        assert (step["vacuum"]["num_files_deleted"], step["vacuum"]["num_marked"]) == (6, 6)
        written, removed, *others = sorted(old)
        bucket = bucket_of(server)
        for uri_ in (written, removed):
            obstore.put(bucket, uri_.removeprefix("s3://lake/"), b"somebody else's")
        obstore.delete(bucket, removed.removeprefix("s3://lake/"))
        run = done.document["run_id"]
        back = project.run("undelete", uri("hidden"), "--run", run, "--yes")
        assert back.returncode == 1, back.err
        assert "4 files" in back.out, back.out
        assert f"{written.rpartition('/')[2]} (there is another file in its place)" in back.out
        assert f"{removed.rpartition('/')[2]} (something newer is in its place)" in back.out
        assert "set `suspend:` in the policy, or RESTORE" in back.out
        assert data_files(project, "hidden") == live | {written, *others}
        assert bytes(obstore.get(bucket, written.removeprefix("s3://lake/")).bytes()) == b"somebody else's"
        assert project.rows("hidden") == rows
        again = project.run("undelete", uri("hidden"), "--run", run, "--yes")
        assert (again.returncode, data_files(project, "hidden")) == (1, live | {written, *others})
        history = project.run("history", uri("hidden"), "-o", "json").document["history"]
        undeleted = [row for row in history if row["step"] == "undelete"]
        assert [row["num_files_added"] for row in undeleted] == [4, 4]


def test_without_versions_a_plan_says_that_a_deletion_is_final_and_undelete_that_nothing_comes_back(
    host: CommandHost, server: S3Server, tmp_path: Path
) -> None:
    project = project_beside(tmp_path, server, "final", VACUUM_NOW, host)
    project.append("final", 3, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    project.table("final").optimize.compact()
    time.sleep(2)
    planned = project.run("plan")
    assert FINAL in planned.out, planned.out
    done = project.run("apply", "--yes", "-o", "json")
    assert done.returncode == 0, done.err
    refused = project.run("undelete", uri("final"), "--run", done.document["run_id"], "--yes")
    assert (refused.returncode, "error[T431]: no delete marker is recorded" in refused.err) == (1, True), refused.err
    unknown = project.run("undelete", uri("final"), "--run", "20200101T000000Z-ffff", "--yes")
    assert (unknown.returncode, "error[T430]: no record of this run" in unknown.err) == (1, True), unknown.err


def test_after_a_kill_in_the_middle_another_machine_brings_back_what_was_recorded_and_names_the_rest(
    tmp_path: Path,
) -> None:
    """The second of three requests is on its way when the machine dies, and is done after that."""
    num_files, name = 2 * AT_ONCE + 100, "killed"
    environment = {
        **ENVIRONMENT, "MAINTAINER_HOME": str(tmp_path / "dead"), "MAINTAINER_JARS": folder_with_connector("s3"),
    }  # fmt: skip
    with s3_server("lake", keeps_versions=True) as server, s3_host(server, tmp_path) as host:
        project, numbers = project_beside(tmp_path, server, name, VACUUM_NOW, host), list(range(num_files + 1))
        write_deltalake(
            uri(name), pa.table({"id": numbers, "p": numbers}), partition_by=["p"], storage_options=project.options,
            configuration={"delta.deletedFileRetentionDuration": "interval 1 second"},
        )  # fmt: skip
        project.table(name).delete(f"p < {num_files}")
        before, live = data_files(project, name), set(project.table(name).file_uris())
        end = time.monotonic() + 120
        while f"Deletes {num_files:,} files" not in project.run("plan").out:  # kept for twice the longest write
            assert time.monotonic() < end
            time.sleep(2)
        server.faults.clear()
        start = server.faults.add(FaultRule(Fault.SLOW, "PUT", suffix=f"/tables/{name}/_delta_log/{2:020}.json"))
        first = server.faults.add(FaultRule(Fault.SLOW, "POST", suffix="/lake", since=start))
        second = server.faults.add(FaultRule(Fault.HELD, "POST", suffix="/lake", since=first))
        with victim(project.root, LAST_POINT, 0, tmp_path / "held", environment=environment) as held:
            assert second.met.wait(240), held.said()
            assert held.strike(Blow.BOTH_KILLED, lambda: None) == -signal.SIGKILL
        second.released.set()
        assert second.done.wait(60)
        server.faults.clear()
        left = data_files(project, name)
        assert len(left) == len(before) - 2 * AT_ONCE
        two_minutes_later(project, name)
        (run,) = {row["run_id"] for row in project.run("history", "-o", "json").document["history"]}
        server.faults.clear()
        back = project.run("undelete", uri(name), "--run", run, "--yes")
        paths = [(method, path.strip("/")) for method, path, _ in server.faults.requests]
        lists, looks = paths.count(("GET", "lake")), sum(path.endswith(".parquet") for _, path in paths)
        assert (lists <= MAX_LISTS_OF_AN_UNDELETE, looks) == (True, 0), (lists, looks)
        assert back.returncode == 1, back.err
        assert f"{AT_ONCE:,} files" in back.out, back.out
        assert f"and {AT_ONCE - 20:,} more that were not brought back" in back.out
        named = [line for line in back.out.splitlines() if line.startswith("  not brought back: ")]
        assert all("hides it, and the store's tools can remove that" in line for line in named), back.out
        there = data_files(project, name)
        assert (len(there), there >= left, live <= there) == (len(left) + AT_ONCE, True, True)
        assert project.rows(name) == Counter([(num_files, num_files)])


def bucket_of(server: S3Server) -> S3Store:
    """The bucket, past the relay."""
    return S3Store(
        "lake", endpoint=server.own_url, access_key_id="key", secret_access_key="secret", region="us-east-1",
        client_options={"allow_http": True},
    )  # fmt: skip


def test_an_add_that_our_replay_forgets_stops_the_deletion(host: CommandHost, server: S3Server, tmp_path: Path) -> None:
    project, live = table(tmp_path, server, "forgotten")
    before = data_files(project, "forgotten")
    (path,) = (uri.rpartition("/")[2] for uri in live)
    done = vacuum(host, server, "forgotten", forgotten=path)
    assert done["code"] == "A452"
    assert f"only in that of Delta Kernel: {path}" in done["found"]
    assert (data_files(project, "forgotten"), project.table("forgotten").version()) == (before, NUM_COMMITS - 1)


def test_a_commit_that_was_overwritten_stops_the_deletion(host: CommandHost, server: S3Server, tmp_path: Path) -> None:
    project, _ = table(tmp_path, server, "overwritten")
    before = data_files(project, "overwritten")
    done = vacuum(host, server, "overwritten", overwritten=1)
    assert (done["code"], done["found"]) == ("C701", f"{1:020}.json was overwritten")
    assert data_files(project, "overwritten") == before
    # The next look reads what lies there now.
    again = vacuum(host, server, "overwritten")
    assert (again["deleted"], again["code"]) == (NUM_COMMITS - 1, None)
