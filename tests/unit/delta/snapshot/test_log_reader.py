"""When Kernel's answer is taken, when it is remembered, and when Spark's reader must be asked: without a JVM."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from maintainer.delta.jvm import DeltaJvm, TableFolder
from maintainer.delta.snapshot.log_reader import LogReader
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import TableFacts, TableRef

REF = TableRef("/lake/t")
METADATA = {
    "id": "a-b",
    "schemaString": json.dumps({"type": "struct", "fields": []}),
    "partitionColumns": [],
    "configuration": {},
}


class FakePath:
    """A Hadoop path."""

    def __init__(self, text: str) -> None:
        self.text = text

    def toUri(self) -> FakePath:
        return self

    def getFileSystem(self, conf: object) -> FakePath:
        return self

    def getUri(self) -> FakePath:
        return self

    def getScheme(self) -> str:
        return "file"

    def toString(self) -> str:
        return self.text


@dataclass
class FakeTable:
    """The bridge to one table with its commit files on disk: its state, and how often Kernel was asked."""

    folder: Path
    num_commits: int = 0
    metadata: dict[str, Any] = field(default_factory=lambda: dict(METADATA))
    protocol: dict[str, Any] = field(default_factory=lambda: {"minReaderVersion": 1, "minWriterVersion": 2})
    broken: Exception | None = None
    reads: int = 0

    @property
    def root(self) -> FakePath:
        return FakePath(f"file:{self.folder}")

    def commit(self, written_at: int, *, again: bool = False) -> None:
        """Write the next commit file, or the newest one again; its time is in seconds."""
        self.num_commits += 0 if again else 1
        file = self.folder / "_delta_log" / f"{self.num_commits - 1:020d}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
        os.utime(file, (written_at, written_at))

    def take_back(self) -> None:
        """Remove the newest commit file."""
        self.num_commits -= 1
        (self.folder / "_delta_log" / f"{self.num_commits:020d}.json").unlink()

    def folder_at(self, root: FakePath) -> TableFolder:
        return TableFolder(self, None, root, FakePath(root.text + "/_delta_log"), lambda: None)

    def makeQualified(self, path: FakePath) -> FakePath:
        return path

    def kernel_snapshot(self, folder: TableFolder) -> FakeTable:
        if self.broken:
            raise self.broken
        self.reads += 1
        return self

    def getVersion(self) -> int:
        return self.num_commits - 1

    def kernel_state(self, snapshot: FakeTable) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.metadata, self.protocol

    def kernel_timestamp(self, folder: TableFolder, snapshot: FakeTable) -> int:
        return 77

    def kernel_adds(self, folder: TableFolder, snapshot: FakeTable) -> Iterator[dict[str, Any]]:
        for version in range(self.num_commits):
            yield {"path": f"f{version}", "size": 1, "modificationTime": 2, "stats": '{"numRecords":3}'}


@pytest.fixture
def table(tmp_path: Path) -> FakeTable:
    made = FakeTable(tmp_path)
    made.commit(100)
    return made


def reader_of(table: FakeTable) -> Callable[..., TableFacts | None]:
    reader, jvm = LogReader(cast(DeltaJvm, table)), cast(DeltaJvm, table)
    return lambda ref=REF: reader.facts(ref, TableStorage(jvm, table.folder_at(table.root)))


def test_a_version_is_read_once_and_a_new_commit_is_seen(table: FakeTable) -> None:
    look = reader_of(table)
    first = look()
    assert first is not None
    assert (first.version, first.location, first.committed_at_ms) == (0, f"file:{table.folder}", 77)
    assert [(file.path, file.physical_records) for file in first.files] == [("f0", 3)]
    assert look() is first
    assert look(TableRef("named")) == replace(first, ref=TableRef("named"))
    assert table.reads == 1
    table.commit(200)
    again = look()
    assert again is not None
    assert (again.version, len(again.files), table.reads) == (1, 2, 2)


def test_a_table_made_anew_with_as_many_versions_is_read_again(table: FakeTable) -> None:
    look = reader_of(table)
    look()
    table.commit(101, again=True)
    table.metadata = {**METADATA, "id": "c-d"}
    facts = look()
    assert facts is not None
    assert (facts.table_id, table.reads) == ("c-d", 2)


def test_what_kernel_cannot_read_is_left_to_spark_and_not_remembered(table: FakeTable) -> None:
    look = reader_of(table)
    assert look() is not None
    table.commit(200)
    table.broken = RuntimeError("Kernel does not read this")
    assert look() is None
    table.take_back()
    assert look() is None
    table.broken = None
    assert look() is not None


def raised(name: str, message: str) -> Exception:
    """An exception of Java's by its class."""
    return cast(Exception, type(name, (Exception,), {})(message))


@pytest.mark.parametrize(
    "failure",
    [
        raised("AWSServiceThrottledException", "Slow (Service: S3, Status Code: 503, Request ID: 1):SlowDown"),
        raised("ConnectTimeoutException", "Connect to h:5 failed: timed out"),
    ],
)
def test_a_store_without_an_answer_is_not_asked_again_by_spark(table: FakeTable, failure: Exception) -> None:
    look = reader_of(table)
    table.broken = failure
    with pytest.raises(type(failure)):
        look()
    table.broken = raised("AccessDeniedException", "Access Denied (Service: S3, Status Code: 403, Request ID: 1)")
    assert look() is None


@pytest.mark.parametrize(
    ("protocol", "configuration", "taken"),
    [
        ({"readerFeatures": ["deletionVectors", "columnMapping"]}, {}, True),
        ({"readerFeatures": ["deletionVectors", "fromTheFuture"]}, {}, False),
        ({"readerFeatures": ["catalogManaged"]}, {}, False),
        ({"minReaderVersion": 99, "readerFeatures": []}, {}, False),
        ({"writerFeatures": ["fromTheFuture"]}, {}, True),
        ({"writerFeatures": ["clustering", "domainMetadata"]}, {}, False),
        ({}, {"delta.checkpoint.writeStatsAsJson": "false"}, False),
        ({}, {"delta.checkpoint.writeStatsAsJson": "TRUE"}, True),
    ],
)
def test_only_what_both_readers_see_alike_is_taken(
    table: FakeTable, protocol: dict[str, Any], configuration: dict[str, str], taken: bool
) -> None:
    table.protocol |= protocol
    table.metadata["configuration"] = configuration
    assert (reader_of(table)() is not None) == taken
