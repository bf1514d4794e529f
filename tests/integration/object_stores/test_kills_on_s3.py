"""A machine dies at a named moment of an apply whose table, state and ledger lie on S3; another one goes on.

Where the moment is a request, the server does it after the machine is gone: a commit and a deletion that land late.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector

from tests.support.faults.blows import Blow, victim
from tests.support.faults.held_apply import POINTS
from tests.support.runs.command_host import CommandHost
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.s3_projects import (
    ENVIRONMENT,
    S3Project,
    ledger_rows,
    project_beside,
    store_of,
    two_minutes_later,
    uri,
)
from tests.support.stores.s3_server import S3Server
from tests.support.stores.sick_store import Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

POLICY = """\
optimize: {lanes: [local], quietAfterUpdates: 0s}
vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}
"""
MAX_APPLIES = 5
LAST_POINT = list(POINTS)[-1]
NUM_OLD, NUM_NEW = 5, 3
COMMIT = f"/{NUM_OLD + 1 + NUM_NEW:020}.json"
"""Of the compaction, after the commits of the writers and the one of another engine's compaction."""

IN_FLIGHT = {
    "new file on its way": lambda name: FaultRule(Fault.HELD, "PUT", f"/tables/{name}/", ".parquet"),
    "commit on its way": lambda name: FaultRule(Fault.HELD, "PUT", f"/tables/{name}/", COMMIT),
    "deletion on its way": lambda name: FaultRule(Fault.HELD, "POST", "/lake"),
}
ON_STORES = [point for point in POINTS if point not in ("published", "middle of the deletion")]
"""The two others are the commit and the deletion on their way."""


def prepared(root: Path, server: S3Server, host: CommandHost, name: str) -> S3Project:
    """A table with small files to compact and files to delete, which the log removed seconds ago."""
    project = project_beside(root, server, name, POLICY, host)
    project.append(name, NUM_OLD, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    project.table(name).optimize.compact()
    project.append(name, NUM_NEW)
    time.sleep(4)
    return project


def data_files(server: S3Server, name: str) -> dict[str, int]:
    """The size of each data file in the table's folder, by its name."""
    files = store_of(server).get_file_info(FileSelector(f"lake/tables/{name}"))
    return {file.base_name: file.size for file in files if file.base_name.endswith(".parquet")}


def check_whole(project: S3Project, name: str, rows: Counter[tuple[object, ...]]) -> None:
    """No row is lost, each live file is there as the log says, and no commit was made twice."""
    assert project.rows(name) == rows
    stored = data_files(project.server, name)
    for add in pa.table(project.table(name).get_add_actions()).to_pylist():
        assert stored[add["path"]] == add["size_bytes"]
    stamps = Counter((stamp, commit["operation"]) for stamp, commit in stamped(project, name))
    assert {key: count for key, count in stamps.items() if count > 1} == {}


def stamped(project: S3Project, name: str) -> list[tuple[str, dict[str, object]]]:
    """The commits with a stamp of ours, and the stamps."""
    commits = project.table(name).history()
    return [(str(commit["userMetadata"]), commit) for commit in commits if commit.get("userMetadata")]


@pytest.mark.parametrize("point", [*ON_STORES, *IN_FLIGHT])
def test_a_machine_that_dies_loses_nothing_and_another_one_converges(
    server: S3Server, host: CommandHost, tmp_path: Path, point: str
) -> None:
    name = point.replace(" ", "-")
    project = prepared(tmp_path, server, host, name)
    rows = project.rows(name)
    environment = {
        **ENVIRONMENT, "MAINTAINER_HOME": str(tmp_path / "dead"), "MAINTAINER_JARS": folder_with_connector("s3"),
    }  # fmt: skip
    rule = server.faults.add(IN_FLIGHT[point](name)) if point in IN_FLIGHT else None
    held_at = LAST_POINT if rule else point
    with victim(project.root, held_at, 0, tmp_path / "held", environment=environment) as held:
        if rule is None:
            held.wait_until_held()
        else:
            assert rule.met.wait(240), held.said()
        assert held.strike(Blow.BOTH_KILLED, lambda: None) == -signal.SIGKILL
    check_whole(project, name, rows)
    if rule is not None:
        rule.released.set()
        assert rule.done.wait(30)
    server.faults.clear()
    check_whole(project, name, rows)
    two_minutes_later(project, name)

    steps: list[object] = [None]
    for _ in range(MAX_APPLIES):
        if not steps:
            break
        version = project.table(name).version()
        done = project.run("apply", "--yes", "-o", "json")
        assert (done.returncode, done.document["problems"]) == (0, []), done.out
        steps = [step for table in done.document["tables"] for step in table["steps"]]
        check_whole(project, name, rows)
    assert (steps, project.table(name).version()) == ([], version)
    assert len(project.table(name).file_uris()) == 1
    rows_of_ledger = ledger_rows(project, name)
    compactions = [row for row in rows_of_ledger if row[:2] == (uri(name), "compact")]
    assert 1 <= len(compactions) <= 2, rows_of_ledger
    assert sum(status == "succeeded" for *_, status in compactions) <= 1
