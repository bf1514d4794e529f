"""The fingerprint's expressions, without an engine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.delta.proof.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.model.run.receipts import Fingerprint


def _schema(**columns: Any) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": kind, "metadata": {}} for name, kind in columns.items()]}


def test_two_hashes_with_different_prefixes_over_index_null_and_value() -> None:
    hashed = hashed_columns(_schema(a="long", b="string"))
    assert hashed.hashes == (
        "xxhash64('maintainer-a', if(isnull(`a`), -1, 0), `a`, if(isnull(`b`), -2, 1), `b`)",
        "xxhash64('maintainer-b', if(isnull(`a`), -1, 0), `a`, if(isnull(`b`), -2, 1), `b`)",
    )
    assert hashed.uncovered == ()


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
    hashed = hashed_columns(_schema(c=kind))
    assert hashed.hashes[0] == f"xxhash64('maintainer-a', if(isnull(`c`), -1, 0), {encoding})"
    assert hashed.uncovered == ()


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
    hashed = hashed_columns(_schema(a="long", geo={"type": "array", "elementType": "geometry(4326)"}, b="geography"))
    assert hashed.uncovered == ("geo", "b")
    assert "if(isnull(`b`), -3, 2)" in hashed.hashes[0]


@given(st.lists(st.integers(min_value=0, max_value=2**64 - 1), max_size=20))
def test_partial_sums_add_up_exactly(hashes: list[int]) -> None:
    mask = 2**22 - 1
    parts = tuple(sum((digest >> (22 * place)) & mask for digest in hashes) for place in range(3))
    assert combine(len(hashes), parts) == Fingerprint(len(hashes), (sum(hashes),))


def test_sums_are_three_parts_a_hash() -> None:
    assert sum_expressions(("h0",)) == (
        "coalesce(sum(h0 & 4194303L), 0L) AS s0_0",
        "coalesce(sum(shiftrightunsigned(h0, 22) & 4194303L), 0L) AS s0_1",
        "coalesce(sum(shiftrightunsigned(h0, 44) & 4194303L), 0L) AS s0_2",
    )


ZERO_AS_TEXT = "`c`, if(`c` = 0, cast(`c` AS STRING), '')"


@pytest.mark.parametrize(
    ("kind", "plain", "collated"),
    [
        *((kind, "`c`", "`c`") for kind in ("boolean", "byte", "short", "integer", "long", "date", "timestamp",
                                            "timestamp_ntz", "binary", "decimal(3,1)", "interval day to second")),
        *((kind, "`c`", "cast(`c` AS BINARY)") for kind in ("string", "char(3)", "varchar(4)")),
        *((kind, ZERO_AS_TEXT, ZERO_AS_TEXT) for kind in ("float", "double")),
        ("void", None, None),
        ("null", None, None),
        ({"type": "udt", "sqlType": "string"}, "`c`", "cast(`c` AS BINARY)"),
    ],
)  # fmt: skip
def test_every_type_that_is_covered_has_its_encoding(kind: Any, plain: str | None, collated: str | None) -> None:
    for metadata, encoding in (("{}", plain), ('{"__COLLATIONS": {}}', collated)):
        schema = {"fields": [{"name": "c", "type": kind, "metadata": json.loads(metadata)}]}
        hashed = hashed_columns(schema)
        arguments = "if(isnull(`c`), -1, 0)" + ("" if encoding is None else f", {encoding}")
        assert hashed.hashes[0] == f"xxhash64('maintainer-a', {arguments})"
        assert hashed.uncovered == ()


@pytest.mark.parametrize("kind", ["geometry", {"type": "matrix"}])
def test_columns_of_other_types_are_named_once_and_their_nulls_hashed(kind: Any) -> None:
    schema = _schema(a=kind, b={"type": "struct", "fields": _schema(x=kind, y=kind)["fields"]}, c="long")
    hashed = hashed_columns(schema)
    assert hashed.uncovered == ("a", "b")
    assert hashed.hashes[0].startswith("xxhash64('maintainer-a', if(isnull(`a`), -1, 0), if(isnull(`b`), -2, 1), ")


def test_what_is_in_maps_in_lists_has_names_of_its_own() -> None:
    inner = {"type": "array", "elementType": "long"}
    kind = {"type": "map", "keyType": inner, "valueType": {"type": "map", "keyType": "long", "valueType": inner}}
    text = hashed_columns(_schema(c={"type": "array", "elementType": kind})).hashes[0]
    for expected in (
        "transform(`c`, e0 -> ",
        "array_sort(transform(map_entries(e0), e1 -> ",
        "transform(e1.key, e2 -> ",
        "array_sort(transform(map_entries(e1.value), e2 -> ",
        "if(isnull(e1.key), -1, 0)",
        "if(isnull(e1.value), -2, 1)",
        "transform(e2.value, e3 -> ",
    ):
        assert expected in text


def test_more_expressions_come_after_the_columns() -> None:
    text = hashed_columns(_schema(a="long", b="long"), ("x.y", "z")).hashes[0]
    assert text.endswith("if(isnull(`b`), -2, 1), `b`, if(isnull(x.y), -3, 2), x.y, if(isnull(z), -4, 3), z)")


def test_partial_sums_are_put_together_three_by_three() -> None:
    assert combine(7, (1, 2, 3, 4, 5, 6)) == Fingerprint(7, (1 + 2 * 2**22 + 3 * 2**44, 4 + 5 * 2**22 + 6 * 2**44))
    assert combine(0, ()) == Fingerprint(0, ())
