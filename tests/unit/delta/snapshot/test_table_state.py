"""From log actions to facts: no Spark in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from maintainer.delta.log.actions import LoggedFile, num_records
from maintainer.delta.log.replay.version_replay import LogState
from maintainer.delta.snapshot.log_reader import facts_of
from maintainer.model.table.table_facts import DataFile, DeletionVector, Protocol, TableFacts, TableRef

PHYSICAL = {"delta.columnMapping.physicalName": "col-1"}
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "Day", "type": "string", "nullable": True, "metadata": PHYSICAL},
    ],
}
STATE = LogState(
    version=7,
    metadata={
        "id": "a-b",
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["Day"],
        "configuration": {"b": "2", "a": "1"},
    },
    protocol={"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": ["z", "y"]},
)


def facts_with(files: Iterable[LoggedFile]) -> TableFacts:
    collected = {"type": "struct", "fields": SCHEMA["fields"][:1]}
    return facts_of(TableRef("/t"), "file:/t", STATE, 99, files, collected)


def add(path: str, **more: Any) -> LoggedFile:
    return LoggedFile.of({"path": path, "size": 5, "modificationTime": 6, "partitionValues": {"col-1": "x"}, **more})


def test_facts_have_logical_names_and_sorted_parts() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "abc", "offset": 4, "sizeInBytes": 9, "cardinality": 2}
    facts = facts_with(
        iter([
            add("b", stats='{"numRecords":3}', deletionVector=vector, tags={"t": "2", "s": "1"}),
            add("a", partitionValues={"col-1": None}),
        ]),
    )  # fmt: skip
    assert facts.files == (
        DataFile("a", 5, 6, (("Day", None),)),
        DataFile("b", 5, 6, (("Day", "x"),), 3, DeletionVector("uabc@4", 2, 9), (("s", "1"), ("t", "2"))),
    )
    assert (facts.version, facts.committed_at_ms, facts.table_id, facts.columns) == (7, 99, "a-b", ("id", "Day"))
    assert (facts.properties, facts.protocol) == ((("a", "1"), ("b", "2")), Protocol(3, 7, (), ("y", "z")))
    assert (facts.partition_columns, facts.columns_with_stats) == (("Day",), ("id",))


def test_files_of_one_partition_share_its_values() -> None:
    facts = facts_with([add("a"), add("b")])
    assert facts.files[0].partition_values is facts.files[1].partition_values


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        (None, None),
        ("", None),
        ("{}", None),
        ('{"numRecords":12}', 12),
        ('{"numRecords":0,"minValues":{}}', 0),
        ('{ "numRecords" : 8 }', 8),
        ('{"minValues":{"numRecords":1},"numRecords":2}', 2),
        ('{"minValues":{"numRecords":1}}', None),
        ('{"numRecords":null}', None),
        ('{"numRecords":12.0}', 12),
        ('{"numRecords":12.5}', None),
        ('{"numRecords":1e300}', None),
        ('{"numRecords":-1.0}', None),
        ('{"numRecords":"12"}', None),
        ('{"numRecords":true}', None),
    ],
)
def test_num_records(stats: str | None, expected: int | None) -> None:
    assert num_records(stats) == expected
