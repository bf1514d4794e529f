"""The fingerprint's expressions, without an engine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.delta.proof.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.model.run.outcome import Fingerprint


def _schema(**columns: Any) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": kind, "metadata": {}} for name, kind in columns.items()]}


def test_two_hashes_with_different_prefixes_over_index_null_and_value() -> None:
    found = hashed_columns(_schema(a="long", b="string"))
    assert found.hashes == (
        "xxhash64('maintainer-a', if(isnull(`a`), -1, 0), `a`, if(isnull(`b`), -2, 1), `b`)",
        "xxhash64('maintainer-b', if(isnull(`a`), -1, 0), `a`, if(isnull(`b`), -2, 1), `b`)",
    )
    assert found.uncovered == ()


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        ("double", "`c`, if(`c` = 0, cast(`c` AS STRING), '')"),
        ("decimal(38,10)", "`c`"),
        ("variant", "to_json(`c`), schema_of_variant(`c`)"),
        (
            {"type": "struct", "fields": [{"name": "x.y", "type": "long", "metadata": {}}]},
            "if(isnull(`c`.`x.y`), -1, 0), `c`.`x.y`",
        ),
        (
            {"type": "array", "elementType": "long"},
            "size(`c`), transform(`c`, e0 -> xxhash64('maintainer-a', if(isnull(e0), -1, 0), e0))",
        ),
        (
            {"type": "map", "keyType": "long", "valueType": "long"},
            "size(`c`), array_sort(transform(map_entries(`c`), e0 -> xxhash64('maintainer-a', "
            "if(isnull(e0.key), -1, 0), e0.key, if(isnull(e0.value), -2, 1), e0.value)))",
        ),
    ],
)
def test_encodings(kind: Any, encoding: str) -> None:
    found = hashed_columns(_schema(c=kind))
    assert found.hashes[0] == f"xxhash64('maintainer-a', if(isnull(`c`), -1, 0), {encoding})"
    assert found.uncovered == ()


def test_nested_lambdas_have_names_of_their_own() -> None:
    kind = {"type": "array", "elementType": {"type": "array", "elementType": "float"}}
    text = hashed_columns(_schema(c=kind)).hashes[0]
    assert "transform(`c`, e0 -> " in text
    assert "transform(e0, e1 -> " in text
    assert "if(e1 = 0, cast(e1 AS STRING), '')" in text


def test_names_are_quoted_and_extra_expressions_are_hashed() -> None:
    text = hashed_columns(_schema(**{"a`b.c": "long"}), ("_metadata.row_id",)).hashes[0]
    assert "`a``b.c`" in text
    assert text.endswith("if(isnull(_metadata.row_id), -2, 1), _metadata.row_id)")


def test_collated_strings_are_hashed_by_their_bytes() -> None:
    schema = _schema(c="string")
    schema["fields"][0]["metadata"] = {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}
    assert "cast(`c` AS BINARY)" in hashed_columns(schema).hashes[0]


def test_a_type_nobody_knows_is_named_once_and_its_nulls_are_covered() -> None:
    found = hashed_columns(_schema(a="long", geo={"type": "array", "elementType": "geometry(4326)"}, b="geography"))
    assert found.uncovered == ("geo", "b")
    assert "if(isnull(`b`), -3, 2)" in found.hashes[0]


@given(st.lists(st.integers(min_value=0, max_value=2**64 - 1), max_size=20))
def test_partial_sums_add_up_exactly(hashes: list[int]) -> None:
    mask = 2**22 - 1
    parts = tuple(sum((one >> (22 * place)) & mask for one in hashes) for place in range(3))
    assert combine(len(hashes), parts) == Fingerprint(len(hashes), (sum(hashes),))


def test_sums_are_three_parts_a_hash() -> None:
    assert sum_expressions(("h0",)) == (
        "coalesce(sum(h0 & 4194303L), 0L) AS s0_0",
        "coalesce(sum(shiftrightunsigned(h0, 22) & 4194303L), 0L) AS s0_1",
        "coalesce(sum(shiftrightunsigned(h0, 44) & 4194303L), 0L) AS s0_2",
    )
