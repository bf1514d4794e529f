"""Kinds of tables that rewrites are forged on: types, partitions and features, with seeded rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40
Values = Callable[[random.Random], object]


@dataclass(frozen=True)
class Column:
    """A column of a shape: name, type as in DDL, values, share of nulls."""

    name: str
    kind: str
    values: Values
    nulls: float = 0.2


@dataclass(frozen=True)
class Shape:
    """One kind of table that rewrites are forged on."""

    name: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()
    zorder: tuple[str, ...] = ()

    def build(self, spark: SparkSession, path: Path, seed: int) -> None:
        """Write the table: three commits of ``ROWS`` rows in all, then the statements of ``after``."""
        rng = random.Random(f"{self.name}/{seed}")
        listed = ", ".join(f"`{column.name}` {column.kind}" for column in self.columns)
        by = f" PARTITIONED BY ({', '.join(self.partition_by)})" if self.partition_by else ""
        with_ = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties)
        spark.sql(
            f"CREATE TABLE delta.`{path}` ({listed}) USING delta{by}" + (f" TBLPROPERTIES ({with_})" if with_ else "")
        )
        rows = [
            tuple(None if rng.random() < column.nulls else column.values(rng) for column in self.columns)
            for _ in range(ROWS)
        ]
        # Frames have no CHAR and no VARCHAR; the table makes them so.
        schema = ", ".join(
            f"`{column.name}` {'STRING' if 'CHAR' in column.kind else column.kind}" for column in self.columns
        )
        for start in range(0, ROWS, 14):
            frame = spark.createDataFrame(rows[start : start + 14], schema).coalesce(1)
            frame.write.format("delta").mode("append").save(str(path))
        for statement in self.after:
            spark.sql(statement.format(table=f"delta.`{path}`"))


_STEMS = ("", "a", "b" * 31, "c" * 32, "d" * 33, "e" * 70, "é" * 40, "\U0001f600" * 40, "z z ", "\x7f" * 34)
_ENDS = ("", "x", "Y", "é", "\U0001f600", " ")
_FLOATS = (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e30, -1e-30)


def _one_of(name: str, kind: str, *values: object, nulls: float = 0.2) -> Column:
    return Column(name, kind, lambda rng: rng.choice(values), nulls)


def _whole(name: str, kind: str = "INT", bits: int = 32, nulls: float = 0.2) -> Column:
    return Column(name, kind, lambda rng: rng.randrange(-(1 << (bits - 1)), 1 << (bits - 1)), nulls)


def _long(name: str) -> Column:
    return _whole(name, "BIGINT", 64)


def _double(name: str) -> Column:
    return _one_of(name, "DOUBLE", *_FLOATS)


def _words(rng: random.Random) -> str:
    return rng.choice(_STEMS) + rng.choice(_ENDS)


def _text(name: str, kind: str = "STRING") -> Column:
    return Column(name, kind, _words)


def _decimal(name: str, digits: int, scale: int) -> Column:
    limit = 10**digits
    kind = f"DECIMAL({digits},{scale})"
    return Column(name, kind, lambda rng: Decimal(rng.randrange(1 - limit, limit)).scaleb(-scale))


def _day(name: str) -> Column:
    return Column(name, "DATE", lambda rng: date(1900, 1, 1) + timedelta(days=rng.randrange(60000)))


def _moment(rng: random.Random) -> datetime:
    start = datetime.fromisoformat("1900-01-01")
    return start + timedelta(days=rng.randrange(60000), microseconds=rng.randrange(86_400_000_000))


def _struct(rng: random.Random) -> object:
    return (rng.choice([None, rng.randrange(99)]), (rng.choice([None, _words(rng)]), _moment(rng)))


def _list(rng: random.Random) -> object:
    return [rng.choice([None, rng.randrange(9)]) for _ in range(rng.randrange(4))]


def _map(rng: random.Random) -> object:
    return {key: rng.choice([None, 1, 2]) for key in "abc"[: rng.randrange(4)]}


def _bytes(name: str, length: int) -> Column:
    return Column(name, "BINARY", lambda rng: bytearray(rng.randbytes(length)))


_ID = Column("id", "INT", lambda rng: rng.randrange(100000), 0.0)
_PLAIN = (_ID, _text("s"), _whole("a"), _whole("b"))
_DV = (("delta.enableDeletionVectors", "true"),)

SHAPES: tuple[Shape, ...] = (
    Shape("plain", (_ID, _text("s"), _text("t"), _whole("a"), _whole("b"), _double("d"))),
    Shape(
        "whole numbers",
        (
            _ID,
            _whole("y", "TINYINT", 8),
            _whole("h", "SMALLINT", 16),
            _long("l"),
            _long("m"),
        ),
    ),
    Shape(
        "floats",
        (
            _ID,
            _one_of("f", "FLOAT", 0.0, -0.0, 1.5, float("nan")),
            _double("d"),
            _one_of("e", "DOUBLE", *_FLOATS),
        ),
    ),
    Shape("decimals", (_ID, _decimal("p", 9, 2), _decimal("q", 18, 3), _decimal("r", 38, 10), _decimal("u", 38, 10))),
    Shape(
        "text", (_ID, _text("s"), _text("t"), _text("v", "VARCHAR(200)"), _one_of("c", "CHAR(6)", "", "ab", "abcdef"))
    ),
    Shape(
        "times",
        (_ID, _day("dt"), _day("du"), Column("ts", "TIMESTAMP", _moment), Column("tn", "TIMESTAMP_NTZ", _moment)),
    ),
    Shape(
        "nested",
        (
            _ID,
            Column("st", "STRUCT<x: INT, y: STRUCT<z: STRING, w: TIMESTAMP>>", _struct),
            Column("li", "ARRAY<INT>", _list),
            Column("ma", "MAP<STRING, INT>", _map),
        ),
    ),
    Shape("bytes", (_ID, _one_of("bo", "BOOLEAN", True, False), _bytes("bi", 5), _bytes("bj", 2))),
    Shape(
        "partitions of text",
        (_ID, _text("s"), _text("t"), _one_of("p", "STRING", "a", "b c", "x/y%:=#é", "\U0001f600")),
        partition_by=("p",),
    ),
    Shape(
        "partitions of values",
        (*_PLAIN, _one_of("n", "INT", 1, 2), _one_of("day", "DATE", date(2024, 2, 29))),
        partition_by=("n", "day"),
    ),
    Shape("deletion vectors", _PLAIN, properties=_DV, after=("DELETE FROM {table} WHERE id % 3 = 0",)),
    Shape(
        "column mapping",
        (_ID, _text("old"), _whole("a"), _whole("b"), _whole("gone"), _one_of("p", "STRING", "a", "b")),
        partition_by=("p",),
        properties=(("delta.columnMapping.mode", "name"),),
        after=("ALTER TABLE {table} RENAME COLUMN old TO `n-e_w`", "ALTER TABLE {table} DROP COLUMN gone"),
    ),
    Shape(
        "row tracking",
        _PLAIN,
        properties=(("delta.enableRowTracking", "true"), *_DV),
        after=("UPDATE {table} SET a = 1 WHERE id % 5 = 0",),
    ),
    Shape(
        "wide",
        (_ID, *(_whole(f"c{number}") if number % 2 else _text(f"c{number}") for number in range(50))),
        properties=(("delta.dataSkippingNumIndexedCols", "-1"),),
    ),
    Shape("few statistics", _PLAIN, properties=(("delta.dataSkippingNumIndexedCols", "2"),)),
    Shape("curve", (_ID, _whole("a", nulls=0.0), _whole("b"), _text("s")), zorder=("a", "b")),
)
"""Every kind of table that a rewrite is proven on."""
