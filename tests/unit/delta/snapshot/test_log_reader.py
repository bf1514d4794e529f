"""When the replay's answer is taken, when it is remembered, and when Spark's reader must be asked: without a JVM."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from maintainer.delta.log.replay.version_replay import replay_version
from maintainer.delta.snapshot import log_reader
from maintainer.delta.snapshot.log_reader import LogReader
from maintainer.delta.storage.failures.store_answers import BucketMissing, KeysRefused
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import TableFacts, TableRef
from tests.support.tables.local_vacuum import LocalTable

REF = TableRef("/lake/t")
METADATA = {
    "id": "a-b",
    "schemaString": json.dumps({"type": "struct", "fields": []}),
    "partitionColumns": [],
    "configuration": {},
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
Look = Callable[..., TableFacts | None]


class Table(LocalTable):
    """A table on this disk, and how often its log was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.location = self.root_uri
        self.log = path / "_delta_log"
        self.reads = 0

    def commit(self, version: int, *actions: Mapping[str, Any], at: int = 77) -> Path:
        """Write a commit that adds a file; its time is in seconds."""
        add = {"path": f"f{version}", "size": 1, "modificationTime": 2, "stats": '{"numRecords":3}'}
        self.log.mkdir(exist_ok=True)
        file = self.log / f"{version:020d}.json"
        file.write_text("".join(json.dumps(action) + "\n" for action in (*actions, {"add": add})))
        os.utime(file, (at, at))
        return file


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path)
    made.commit(0, {"metaData": METADATA}, {"protocol": PROTOCOL})
    return made


@pytest.fixture
def look(table: Table, monkeypatch: pytest.MonkeyPatch) -> Look:
    whole, reader = replay_version, LogReader()

    def counted(*arguments: Any) -> Any:
        table.reads += 1
        return whole(*arguments)

    monkeypatch.setattr(log_reader, "replay_version", counted)
    return lambda ref=REF: reader.facts(ref, cast(TableStorage, table))


def test_a_version_is_read_once_and_a_new_commit_is_seen(table: Table, look: Look) -> None:
    first = look()
    assert first is not None
    assert (first.version, first.location, first.committed_at_ms) == (0, table.root_uri, 77_000)
    assert [(file.path, file.physical_records) for file in first.files] == [("f0", 3)]
    assert look() is first
    assert look(TableRef("named")) == replace(first, ref=TableRef("named"))
    assert table.reads == 1
    table.commit(1)
    again = look()
    assert again is not None
    assert (again.version, len(again.files), table.reads) == (1, 2, 2)


def test_a_table_made_anew_with_as_many_versions_is_read_again(table: Table, look: Look) -> None:
    look()
    table.commit(0, {"metaData": {**METADATA, "id": "c-d"}}, {"protocol": PROTOCOL}, at=78)
    facts = look()
    assert facts is not None
    assert (facts.table_id, table.reads) == ("c-d", 2)


def test_what_cannot_be_replayed_is_left_to_spark_and_not_remembered(table: Table, look: Look) -> None:
    assert look() is not None
    damaged = table.commit(1)
    damaged.write_text('{"add":')
    assert look() is None
    damaged.unlink()
    assert look() is not None
    assert table.reads == 3


def raised(name: str, message: str) -> Exception:
    """An exception of Java's by its class."""
    return cast(Exception, type(name, (Exception,), {})(message))


@pytest.mark.parametrize(
    "failure",
    [
        raised("AWSServiceThrottledException", "Slow (Service: S3, Status Code: 503, Request ID: 1):SlowDown"),
        raised("ConnectTimeoutException", "Connect to h:5 failed: timed out"),
        KeysRefused("s3a://lake: status code: 403 Forbidden, SignatureDoesNotMatch: The signature does not match"),
        BucketMissing("s3a://lakee: status code: 404 Not Found, NoSuchBucket: The specified bucket does not exist"),
    ],
)
def test_a_store_without_an_answer_is_not_asked_again_by_spark(
    table: Table, look: Look, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fails(error: Exception) -> Callable[..., Any]:
        def replay(*arguments: Any) -> Any:
            raise error

        return replay

    monkeypatch.setattr(log_reader, "replay_version", fails(failure))
    with pytest.raises(type(failure)):
        look()
    refused = raised("AccessDeniedException", "Access Denied (Service: S3, Status Code: 403, Request ID: 1)")
    monkeypatch.setattr(log_reader, "replay_version", fails(refused))
    assert look() is None


@pytest.mark.parametrize(
    ("protocol", "taken"),
    [
        ({"readerFeatures": ["deletionVectors", "columnMapping"]}, True),
        ({"readerFeatures": ["deletionVectors", "fromTheFuture"]}, False),
        ({"readerFeatures": ["catalogManaged"]}, False),
        ({"minReaderVersion": 99, "readerFeatures": []}, False),
        ({"writerFeatures": ["fromTheFuture"]}, True),
        ({"writerFeatures": ["clustering", "domainMetadata"]}, True),
    ],
)
def test_what_needs_a_feature_that_is_not_known_is_left_to_spark(
    table: Table, look: Look, protocol: dict[str, Any], taken: bool
) -> None:
    table.commit(1, {"protocol": PROTOCOL | protocol})
    assert (look() is not None) == taken
