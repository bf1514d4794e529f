from __future__ import annotations

import json
from typing import Any

import pytest

from maintainer.delta.log.actions import LoggedFile, PartitionNames, data_file
from maintainer.delta.storage.log_paths import partition_spelling as one_spelling
from maintainer.model.table.table_facts import DataFile


@pytest.mark.parametrize(
    ("value", "type_name", "expected"),
    [
        (None, "string", None),
        ("", "string", ""),
        ("", "integer", None),
        ("", "timestamp", None),
        (" ", "string", " "),
        ("2000-01-01T12:00:00.000000Z", "timestamp", "2000-01-01 12:00:00"),
        ("2000-01-01 12:00:00", "timestamp_ntz", "2000-01-01 12:00:00"),
        ("2000-01-01T13:00:00+01:00", "timestamp", "2000-01-01 12:00:00"),
        ("2000-01-01 12:00:00.5", "timestamp", "2000-01-01 12:00:00.500000"),
        ("0099-01-01 00:00:00", "timestamp", "0099-01-01 00:00:00"),
        ("2000-01-01T12:00:00.000000Z", "string", "2000-01-01T12:00:00.000000Z"),
        ("no time", "timestamp", "no time"),
    ],
)
def test_one_spelling(value: str | None, type_name: str, expected: str | None) -> None:
    """Spark reads an empty text of a text column as it is; as null would mix it with what is not equal to it."""
    assert one_spelling(value, type_name) == expected


def test_values_by_logical_name_in_the_tables_order() -> None:
    mapped = {"name": "At", "type": "timestamp", "metadata": {"delta.columnMapping.physicalName": "col-1"}}
    schema = {"fields": [{"name": "k", "type": "string", "metadata": {}}, mapped]}

    def names(*columns: str) -> PartitionNames:
        return PartitionNames.of({"schemaString": json.dumps(schema), "partitionColumns": columns})

    stored = {"k": "", "col-1": "2000-01-01T12:00:00Z"}
    assert names("at", "k").values_of(stored) == (("at", "2000-01-01 12:00:00"), ("k", ""))
    assert names("at", "k").values_of(None) == (("at", None), ("k", None))
    assert names().values_of({}) == ()


def test_the_texts_of_the_log_are_kept_beside_the_one_spelling() -> None:
    fields = [{"name": name, "type": kind, "metadata": {}} for name, kind in (("ts", "timestamp"), ("k", "integer"))]
    schema = json.dumps({"type": "struct", "fields": fields})
    names = PartitionNames.of({"schemaString": schema, "partitionColumns": ("ts", "k")})

    def file(**stored: str | None) -> DataFile:
        return data_file({"path": "a", "partitionValues": stored}, names)

    plain = file(ts="2020-05-05 00:00:00", k="1")
    assert (plain.stored_values, plain.partition_texts) == (None, plain.partition_values)
    zoned = file(ts="2020-05-05T00:00:00Z", k="01")
    assert zoned.partition_values == (("ts", "2020-05-05 00:00:00"), ("k", "01"))
    assert zoned.partition_texts == (("ts", "2020-05-05T00:00:00Z"), ("k", "01"))
    assert file(ts="", k="1").partition_values == file(ts=None, k="1").partition_values
    assert file(ts="", k="1").partition_texts != file(ts=None, k="1").partition_texts
    # A value that is missing is null to readers, and not null in the log.
    lost, null = file(k="1"), file(ts=None, k="1")
    assert lost.partition_values == null.partition_values
    assert (lost.lost_columns, null.lost_columns, file().lost_columns) == (("ts",), (), ("ts", "k"))
    assert (lost.partition_texts, null.partition_texts) == ((("k", "1"),), (("ts", None), ("k", "1")))


def test_files_of_one_partition_share_its_values_and_tags_are_not_taken_for_them() -> None:
    schema = json.dumps({"type": "struct", "fields": [{"name": "k", "type": "string", "metadata": {}}]})
    names = PartitionNames.of({"schemaString": schema, "partitionColumns": ("k",)})
    shared: dict[Any, Any] = {}
    action = {"path": "a", "partitionValues": {"k": "v"}, "tags": {"k": "v"}}
    first, second = LoggedFile.of(action).data_file(names, shared), LoggedFile.of(action).data_file(names, shared)
    assert first.partition_values is second.partition_values
    assert first.partition_values == first.tags == (("k", "v"),)
    bare = data_file({"path": "b"}, PartitionNames((), ()))
    assert (bare.partition_values, bare.tags, bare.stored_values) == ((), (), None)
