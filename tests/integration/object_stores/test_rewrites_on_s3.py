"""What the commit of a small rewrite asks a store for, and what its checksum files say; a second client reads them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileSystem

from tests.support.runs.command_host import CommandHost
from tests.support.stores.s3_projects import S3Project, project_beside, store_of
from tests.support.stores.s3_server import S3Server
from tests.support.stores.sick_store import Fault
from tests.support.stores.store_rewrites import CHECKED, COMMITTED, INTENT

pytestmark = [pytest.mark.spark]

WORK = "tests.support.stores.store_rewrites:"

MAX_REQUESTS = 18
"""Of a look at the log, the start of a transaction and its commit, with the files around it. Delta alone takes 121."""

DELTAS_OWN = ["spark.databricks.delta.lastCommitVersionInSession"]
"""What Delta leaves in a session that commits."""


@pytest.fixture(scope="module")
def store(shared_server: S3Server) -> FileSystem:
    return store_of(shared_server)


def table(root: Path, server: S3Server, name: str, num_files: int) -> S3Project:
    project = project_beside(root, server, name, "optimize: {}", None)
    project.append(name, num_files)
    return project


def checksum(store: FileSystem, name: str, version: int) -> dict[str, Any]:
    with store.open_input_stream(f"lake/tables/{name}/_delta_log/{version:020}.crc") as file:
        document: dict[str, Any] = json.loads(file.read())
    return document


def rewritten(host: CommandHost, server: S3Server, name: str, *, validated: bool) -> dict[str, Any]:
    done: dict[str, Any] = host.call(f"{WORK}rewrite", f"s3a://lake/tables/{name}", server.url, validated)
    return done


def requests_of_commit(server: S3Server) -> Counter[str]:
    """Requests before the first data file is looked at, and from the INTENT to the commit's end, by method."""
    paths = [path for _, path, _ in server.faults.requests]
    first_data = next(number for number, path in enumerate(paths) if ".parquet" in path)
    intent, committed = (next(n for n, path in enumerate(paths) if path.endswith(name)) for name in (INTENT, COMMITTED))
    parts = (*server.faults.requests[:first_data], *server.faults.requests[intent + 1 : committed])
    return Counter(method for method, _, _ in parts)


def test_a_commit_takes_few_requests_and_leaves_both_checksum_files(
    server: S3Server, host: CommandHost, store: FileSystem, tmp_path: Path
) -> None:
    project = table(tmp_path, server, "counted", 8)
    rewritten_before = table(tmp_path / "first", server, "before", 2)
    rows = project.rows("counted")
    # The first commit of a process tries the bucket's conditions, and reads each commit of its table.
    rewritten(host, server, "before", validated=False)
    assert len(rewritten_before.table("before").file_uris()) == 1
    server.faults.clear()
    done = rewritten(host, server, "counted", validated=False)
    asked = requests_of_commit(server)
    commits = asked.total() - 8  # the log itself is read once
    assert commits <= MAX_REQUESTS, asked
    assert (done["version"], done["verdict"], done["rows"], done["settings"]) == (8, "pass", 80, DELTAS_OWN)
    # Each file that one version has alone is opened, the old ones where they were fetched; no Spark job counts.
    opened = Counter(method for method, path, _ in requests_of_checks(server) if path.endswith(".parquet"))
    assert (done["jobs_of_checks"], opened) == (0, Counter({"GET": 1}))
    assert len(requests_of_checks(server)) <= 1 + 5  # and looks at two commits and the folder
    proven = host.call(f"{WORK}prove", "s3a://lake/tables/counted", 8)
    levels = ("actions", "files", "inputs", "rows", "statistics")
    assert proven == {"jobs": 0, "found": [[level, "proven"] for level in levels]}
    assert project.rows("counted") == rows
    for version, num_files in ((7, 8), (8, 1)):
        said = checksum(store, "counted", version)
        theirs = project.table("counted")
        theirs.load_as_version(version)
        sizes = pa.table(theirs.get_add_actions()).column("size_bytes").to_pylist()
        assert (said["numFiles"], said["tableSizeBytes"]) == (num_files, sum(sizes)) == (len(sizes), sum(sizes))
        assert (said["setTransactions"], said["domainMetadata"]) == ([], [])


def requests_of_checks(server: S3Server) -> list[tuple[str, str, Fault | None]]:
    requests = list(server.faults.requests)
    committed = next(number for number, (_, path, _) in enumerate(requests) if path.endswith(COMMITTED))
    checked = next(number for number, (_, path, _) in enumerate(requests) if path.endswith(CHECKED))
    return requests[committed + 1 : checked]


@pytest.mark.long
def test_behind_a_checkpoint_the_checksum_files_are_true_and_kernel_writes_the_next_checkpoint(
    server: S3Server, host: CommandHost, store: FileSystem, tmp_path: Path
) -> None:
    project = project_beside(tmp_path, server, "cut", "optimize: {}", None)
    project.append("cut", 4, **{"delta.checkpointInterval": "4"})
    log = "lake/tables/cut/_delta_log"
    assert store.get_file_info(f"{log}/{3:020}.checkpoint.parquet").is_file  # delta-rs makes one then
    rows = project.rows("cut")
    done = rewritten(host, server, "cut", validated=True)
    assert (done["version"], done["verdict"], done["rows"]) == (4, "pass", 40)
    # By Kernel beside a copy of the log: on the store nothing is renamed, and each file is one request.
    written = [path.rpartition("/")[2] for method, path, _ in server.faults.requests if method == "PUT"]
    log_files = [f"{4:020}.json", f"{4:020}.checkpoint.parquet", "_last_checkpoint", f"{4:020}.crc"]
    assert [name for name in written if name in log_files] == log_files
    reads = Counter(path for method, path, _ in requests_of_checks(server) if method == "GET" and "checkpoint" in path)
    assert not reads, reads
    assert host.call(f"{WORK}validate", "s3a://lake/tables/cut", [3, 4]) == [True, True]
    with store.open_input_stream(f"{log}/_last_checkpoint") as file:
        assert json.loads(file.read())["version"] == 4
    assert (checksum(store, "cut", 3)["numFiles"], checksum(store, "cut", 4)["numFiles"]) == (4, 1)
    assert (checksum(store, "cut", 3)["setTransactions"], checksum(store, "cut", 3)["domainMetadata"]) == ([], [])
    checkpoint = pq.read_table(f"{log}/{4:020}.checkpoint.parquet", filesystem=store)
    assert len(checkpoint) - checkpoint["add"].null_count == 1
    assert project.rows("cut") == rows


@pytest.mark.long
def test_the_checksum_file_behind_an_alter_table_is_one_request_and_true(
    server: S3Server, host: CommandHost, store: FileSystem, tmp_path: Path
) -> None:
    table(tmp_path, server, "altered", 3)
    assert host.call(f"{WORK}alter", "s3a://lake/tables/altered", "delta.checkpointInterval", "50") == 3
    names = Counter((method, path.rpartition("/")[2]) for method, path, _ in server.faults.requests)
    written = {name: count for (method, name), count in names.items() if method == "PUT" and name.endswith(".crc")}
    assert written == {f"{2:020}.crc": 1, f"{3:020}.crc": 1}
    assert not [name for method, name in names if ".tmp" in name or (method == "DELETE" and "probe" not in name)]
    assert host.call(f"{WORK}validate", "s3a://lake/tables/altered", [2, 3]) == [True, True]


@pytest.mark.long
def test_what_a_stream_wrote_survives_in_the_checksum_files_and_delta_finds_them_true(
    server: S3Server, host: CommandHost, store: FileSystem, tmp_path: Path
) -> None:
    source, target, checkpoint = (f"s3a://lake/tables/{name}" for name in ("source", "streamed", "checkpoint"))
    host.call(f"{WORK}stream_appends", source, target, checkpoint, [[0, 40], [40, 80]])
    for file in store.get_file_info(FileSelector("lake/tables/streamed/_delta_log")):
        if file.path.endswith(".crc"):
            store.delete_file(file.path)
    project = project_beside(tmp_path, server, "streamed", "optimize: {}", None)
    done = rewritten(host, server, "streamed", validated=True)
    version = done["version"]
    assert (done["verdict"], done["rows"], done["settings"]) == ("pass", 80, DELTAS_OWN)
    assert host.call(f"{WORK}validate", target, [version - 1, version]) == [True, True]
    for number in (version - 1, version):
        said = checksum(store, "streamed", number)
        assert [txn["version"] for txn in said["setTransactions"]] == [1]
        assert [domain["domain"] for domain in said["domainMetadata"]] == ["delta.rowTracking"]
        assert said["inCommitTimestampOpt"] > 0
    host.call(f"{WORK}stream_appends", source, target, checkpoint, [[80, 120]])
    assert project.rows("streamed") == Counter((number,) for number in range(120))
