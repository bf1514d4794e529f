"""Ten thousand commits to read, ten thousand objects to delete: how often the store is asked, and what is left."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import obstore
import pytest
from obstore.store import S3Store
from pyarrow.fs import FileSelector

from tests.support.runs.command_host import CommandHost
from tests.support.stores.s3_projects import S3Project, ledger_rows, project_beside, store_of, uri
from tests.support.stores.s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from tests.support.stores.sick_store import Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(900)]

MANY = 10_000
FILES_OF_A_REQUEST = 1_000
"""A deletion looks before each request whether it shall go on."""

SPARE = 50
"""Requests beside one for each commit: for lists, the end of the log, and the state."""


def put_all(server: S3Server, objects: Iterable[tuple[str, bytes]]) -> None:
    """Write objects of the bucket, many at once."""
    store = S3Store(
        "lake", endpoint=server.own_url, access_key_id=ACCESS_KEY, secret_access_key=SECRET_KEY, region=REGION,
        client_options={"allow_http": True},
    )  # fmt: skip
    with ThreadPoolExecutor(16) as writers:
        for written in [writers.submit(obstore.put, store, name, content) for name, content in objects]:
            written.result()


def commit_of(name: str, version: int, actions: list[dict[str, object]]) -> tuple[str, bytes]:
    """A commit of a table: its object and the content."""
    return f"tables/{name}/_delta_log/{version:020}.json", "\n".join(map(json.dumps, actions)).encode()


def add_of(path: str, size: int) -> dict[str, object]:
    """What a log says of a new file of no rows."""
    return {
        "add": {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True,
                "stats": '{"numRecords": 0}'}
    }  # fmt: skip


def remove_of(path: str, size: int) -> dict[str, object]:
    """What a log says of a file that went long ago."""
    return {
        "remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True,
                   "partitionValues": {}, "size": size}
    }  # fmt: skip


def test_each_of_ten_thousand_commits_is_read_once(server: S3Server, tmp_path: Path) -> None:
    name = "long-log"
    project = project_beside(tmp_path, server, name, "optimize: {}", None)
    project.append(name, 1)
    commits = []
    for version in range(1, MANY):
        actions = [add_of(f"f{version}", 100)]
        if version % 10 == 0:
            actions.append(remove_of(f"f{version - 1}", 100))
        commits.append(commit_of(name, version, actions))
    put_all(server, commits)
    num_files = 1 + (MANY - 1) - (MANY - 1) // 10
    server.faults.clear()
    status = project.run("status", "-o", "json")
    (row,) = [row for row in status.document["tables"] if row["table"] == uri(name)]
    assert (row["version"], row["num_files"]) == (MANY - 1, num_files), status.err
    log = f"/tables/{name}/_delta_log/"
    assert MANY <= server.faults.num_requests("GET", ".json", log) <= MANY + SPARE
    table = project.table(name)
    assert (table.version(), len(table.file_uris())) == (MANY - 1, num_files)


def removed_long_ago(project: S3Project, name: str, count: int) -> set[str]:
    """Give a table of one file that many more, which its log has removed; return their names."""
    project.append(name, 1, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    names = [f"part {number}%41.parquet" if number % 100 == 0 else f"part-{number}.parquet" for number in range(count)]
    put_all(project.server, ((f"tables/{name}/{file}", b"PAR1") for file in names))
    commits = [[add_of(quote(file), 4) for file in names], [remove_of(quote(file), 4) for file in names]]
    put_all(project.server, (commit_of(name, version, actions) for version, actions in enumerate(commits, start=1)))
    time.sleep(2)
    return set(names)


def data_files(server: S3Server, name: str) -> set[str]:
    """The names of the Parquet files in the table's folder."""
    files = store_of(server).get_file_info(FileSelector(f"lake/tables/{name}"))
    return {file.base_name for file in files if file.base_name.endswith(".parquet")}


def test_ten_thousand_objects_go_by_few_requests_past_503s_and_a_lost_answer(
    server: S3Server, host: CommandHost, tmp_path: Path
) -> None:
    name = "many-removed"
    policy = "vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}"
    project = project_beside(tmp_path, server, name, policy, host)
    removed = removed_long_ago(project, name, MANY)
    rows, live = project.rows(name), data_files(server, name) - removed
    assert (len(live), len(data_files(server, name))) == (1, MANY + 1)
    server.faults.clear()
    rules = [
        server.faults.add(FaultRule(fault, "POST", "/lake", times=times))
        for fault, times in ((Fault.SLOW_DOWN, 2), (Fault.LOST_ANSWER, 1))
    ]
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err or done.out
    assert [rule.num_met for rule in rules] == [2, 1]
    requests = [path for method, path, _ in server.faults.requests if method == "POST" and path.strip("/") == "lake"]
    # What was refused or lost is sent again; the state, which is there too, deletes an object or two.
    assert 0 <= len(requests) - sum(rule.times for rule in rules) - MANY // FILES_OF_A_REQUEST <= 2
    assert server.faults.num_requests("DELETE", ".parquet", f"/tables/{name}/") == 0
    assert data_files(server, name) == live
    assert project.rows(name) == rows
    (end,) = [commit for commit in project.table(name).history() if commit["operation"] == "VACUUM END"]
    assert int(end["operationMetrics"]["numDeletedFiles"]) == MANY
    assert (uri(name), "vacuum", "succeeded") in ledger_rows(project, name)
