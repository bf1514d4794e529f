"""Which tables have their checkpoints written through Kernel, when one is due, and what a checksum file says."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from maintainer.delta.jvm import DeltaJvm, DirectAccess, UnstartedSession
from maintainer.delta.log.actions import LoggedFile
from maintainer.delta.log.replay.version_replay import LogState
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.delta.transaction.small_log_files import (
    MAX_FILES,
    checksum_of,
    is_kernels,
    write_missing_checksum,
)
from maintainer.model.table.log_names import checkpoint_interval
from tests.support.tables.builders import make_facts, make_file
from tests.support.tables.sick_tables import let_rest, make_table


def metadata(**configuration: str) -> dict[str, Any]:
    return {"configuration": {key.replace("__", "."): value for key, value in configuration.items()}}


@pytest.mark.parametrize(
    ("configuration", "features", "num_files", "expected"),
    [
        ({}, None, 1, True),
        ({"delta__enableChangeDataFeed": "true"}, ["changeDataFeed", "deletionVectors"], MAX_FILES, True),
        ({}, None, MAX_FILES + 1, False),
        ({}, None, None, False),
        ({"delta__checkpointPolicy": "classic"}, None, 1, False),
        ({"delta__checkpoint__writeStatsAsStruct": "false"}, None, 1, False),
        ({}, ["v2Checkpoint"], 1, False),
        ({}, ["inCommitTimestamp"], 1, False),
        ({}, ["a feature of tomorrow"], 1, False),
    ],
)
def test_small_plain_tables_are_kernels(
    configuration: dict[str, str], features: list[str] | None, num_files: int | None, expected: bool
) -> None:
    protocol = {"minWriterVersion": 7, "writerFeatures": features}
    assert is_kernels(metadata(**configuration), protocol, num_files) is expected


def test_the_interval_is_the_tables() -> None:
    assert checkpoint_interval(metadata()["configuration"]) == 10
    assert checkpoint_interval(metadata(delta__checkpointInterval="3")["configuration"]) == 3
    assert checkpoint_interval(metadata(delta__checkpointInterval="-3")["configuration"]) == 0


def add(path: str, cardinality: int | None = None) -> dict[str, Any]:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": cardinality}
    return {"path": path, "size": 10, **({} if cardinality is None else {"deletionVector": vector})}


def replayed(*actions: dict[str, Any], configuration: dict[str, str] | None = None) -> LogState:
    log = LogState(1, {"id": "a", "configuration": configuration or {}}, {"minWriterVersion": 2})
    log.take(actions)
    return log


def checksum(log: LogState | None, *adds: dict[str, Any], features: list[str] | None = None) -> dict[str, Any] | None:
    return checksum_of(adds, {"id": "a", "configuration": {}}, {"writerFeatures": features}, log)


def test_what_is_not_known_is_left_out_and_never_empty() -> None:
    said = checksum(None, add("x"), add("y"))
    assert said is not None
    assert (said["numFiles"], said["tableSizeBytes"], said["numMetadata"], said["numProtocol"]) == (2, 20, 1, 1)
    assert {"setTransactions", "domainMetadata", "inCommitTimestampOpt", "numDeletedRecordsOpt"}.isdisjoint(said)
    assert (said["metadata"]["id"], said["protocol"]) == ("a", {"writerFeatures": None})


def test_a_replay_knows_the_newest_transaction_of_each_writer_and_the_domains_that_are_left() -> None:
    domains = [{"domain": name, "configuration": "{}", "removed": gone} for name, gone in (("a", False), ("b", True))]
    log = replayed({"txn": {"appId": "s", "version": 1}}, {"txn": {"appId": "s", "version": 2}},
                   *({"domainMetadata": domain} for domain in domains))  # fmt: skip
    said = checksum(log)
    assert said is not None
    assert (said["setTransactions"], said["domainMetadata"]) == ([{"appId": "s", "version": 2}], [domains[0]])
    nothing = checksum(replayed())
    assert nothing is not None
    assert (nothing["setTransactions"], nothing["domainMetadata"]) == ([], [])


def test_of_too_many_nothing_is_said_as_delta_does() -> None:
    txns = [{"txn": {"appId": str(number), "version": 1}} for number in range(101)]
    domains = [{"domainMetadata": {"domain": str(number), "configuration": ""}} for number in range(11)]
    for log, said in (
        (replayed(*txns[:100], *domains[:10]), {"setTransactions", "domainMetadata"}),
        (replayed(*txns, *domains), set()),
        (replayed(configuration={"delta.setTransactionRetentionDuration": "1 day"}), {"domainMetadata"}),
    ):
        assert {"setTransactions", "domainMetadata"} & (checksum(log) or {}).keys() == said


def test_the_time_of_a_commit_is_its_own_where_the_table_has_such() -> None:
    on = {"delta.enableInCommitTimestamps": "true"}
    said = checksum(replayed({"commitInfo": {"inCommitTimestamp": 7}}, configuration=on))
    assert said is not None
    assert said["inCommitTimestampOpt"] == 7


def test_deleted_rows_are_counted_in_deltas_bins() -> None:
    counts = (1, 9, 10, 2**31 - 2, 2**31 - 1)
    adds = [add("none"), *(add(str(count), count) for count in counts)]
    said = checksum(None, *adds, features=["deletionVectors"])
    assert said is not None
    assert (said["numDeletedRecordsOpt"], said["numDeletionVectorsOpt"]) == (sum(counts), 5)
    assert said["deletedRecordCountsHistogramOpt"] == {"deletedRecordCounts": [1, 2, 1, 0, 0, 0, 0, 0, 1, 1]}


def test_a_table_whose_files_may_be_others_has_none() -> None:
    assert checksum(None, add("x"), features=["catalogManaged"]) is None
    assert checksum(None, add("x"), features=["a feature of tomorrow"]) is None
    # The same file in another spelling, perhaps: then the log has fewer files than a replay by text.
    assert checksum(replayed({"remove": {"path": "a%20b"}}), add("a b")) is None
    assert checksum(replayed({"add": LoggedFile.of(add("x"))}, {"remove": {"path": "x"}})) is None


def never(*anything: object) -> Any:
    raise AssertionError("a JVM was asked for")


class Table:
    """A table of delta-rs on this disk, whose newest commit is older than the seconds that are left to its writer."""

    def __init__(self, path: Path) -> None:
        make_table(path, 3)
        let_rest(path)
        self.log = path / "_delta_log"
        self.theirs = deltalake.DeltaTable(str(path))
        self.jvm = DeltaJvm(UnstartedSession(never, never, never, False, {}, DirectAccess({}, frozenset({"file"}))))
        facts = make_facts(files=[make_file(str(number)) for number in range(3)], version=2)
        table_id = str(self.theirs.metadata().id)
        self.facts = replace(facts, location=path_uri(str(path)), table_id=table_id)
        self.checksum = self.log / f"{2:020d}.crc"

    def listed(self) -> dict[str, StoredFile]:
        return TableStorage(self.jvm, self.facts.location).log_files()

    def write(self, listed: dict[str, StoredFile] | None = None) -> list[str]:
        """Write what is missing; the checksum files that there are then."""
        write_missing_checksum(LiveFilesReader(self.jvm), self.facts, listed or self.listed())
        return sorted(file.name for file in self.log.glob("*.crc"))


def test_a_version_that_has_none_gets_a_checksum_of_all_its_commits_without_a_jvm(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    assert table.write() == [table.checksum.name]
    said = json.loads(table.checksum.read_text(encoding="utf-8"))
    sizes = pa.table(table.theirs.get_add_actions()).column("size_bytes").to_pylist()
    assert (said["numFiles"], said["tableSizeBytes"], said["metadata"]["id"]) == (3, sum(sizes), table.facts.table_id)
    assert (said["setTransactions"], said["domainMetadata"]) == ([], [])


def test_a_checksum_of_another_writer_stays_as_it_is_also_where_it_came_after_the_look(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    before = table.listed()
    table.checksum.write_text("theirs", encoding="utf-8")
    for listed in (before, table.listed()):
        assert table.write(listed) == [table.checksum.name]
        assert table.checksum.read_text(encoding="utf-8") == "theirs"


def test_none_is_written_in_the_seconds_of_its_writer_nor_of_another_table(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    os.utime(table.log / f"{2:020d}.json")
    assert table.write() == []
    let_rest(tmp_path / "t")
    table.facts = replace(table.facts, table_id="another")
    assert table.write() == []
