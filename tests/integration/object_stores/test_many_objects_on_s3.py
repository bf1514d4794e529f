"""Ten thousand commits to read: how often the store is asked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from tests.support.stores.s3_projects import project_beside, uri
from tests.support.stores.s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

MANY = 10_000
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
