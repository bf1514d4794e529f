from __future__ import annotations

import json

import pytest

from maintainer.delta.log.actions import PartitionNames
from maintainer.delta.storage.log_paths import one_value_of
from maintainer.delta.storage.log_paths import partition_spelling as one_spelling


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


def test_a_bin_keeps_its_partition_value_letter_for_letter() -> None:
    noon = "2000-01-01T12:00:00.000000Z"
    assert one_value_of([{"p": ""}, {"p": ""}]) == {"p": ""}
    assert one_value_of([{"p": None, "q": "1"}, {"p": None, "q": "1"}]) == {"p": None, "q": "1"}
    assert one_value_of([{"p": "2000-01-01 12:00:00"}, {"p": noon}]) is None
    assert one_value_of([]) is None
