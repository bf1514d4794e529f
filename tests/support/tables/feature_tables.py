"""One small real table for each thing that a Delta table may have, as SQL; what a rewrite must leave as it is.

Each is made by two or three small commits, so that there is something to put together. ``{t}`` is the table.
"""

from __future__ import annotations

from dataclasses import dataclass

PARTITION_TEXTS = (
    "plain", "a b", "a/b", "100%", "%20", "x:y", "k=v", "#1", "a?b", "a*b", "a&b;c", "it''s", '"q"', "+1", "..", " ",
    "naïve", "日本", "😀", "__HIVE", "[x]{y}", "trailing.", "tab\\t", "'' OR ''1''=''1",
)  # fmt: skip
"""Values of a string partition that folders, URLs or SQL could trip over, as they stand between SQL's quotes."""


@dataclass(frozen=True)
class FeatureTable:
    """How a table is made, and what is true of it.

    ``features`` are those of the protocol that it is here to show. ``zorder`` are columns to order by. ``extra`` are
    metadata columns that must stay, too. ``second_engine`` says whether delta-rs can read it.
    """

    sql: tuple[str, ...]
    features: frozenset[str] = frozenset()
    zorder: tuple[str, ...] = ("id",)
    extra: tuple[str, ...] = ()
    second_engine: bool = True


def _create(columns: str, properties: str = "", rest: str = "") -> str:
    listed = f" TBLPROPERTIES ({properties})" if properties else ""
    return f"CREATE TABLE {{t}} ({columns}) USING delta{rest}{listed}"


def _twice(insert: str) -> tuple[str, str]:
    return insert, insert


def _feature(name: str) -> str:
    return f"'delta.feature.{name}' = 'supported'"


_TEXTS = ", ".join(f"({number}, '{text}')" for number, text in enumerate(PARTITION_TEXTS))
_TYPES = "d DATE, ts TIMESTAMP, tz TIMESTAMP_NTZ, i SMALLINT, n DECIMAL(12,3), b BOOLEAN, f DOUBLE, r FLOAT, x BINARY"
_VALUES = (
    "DATE'2024-02-29', TIMESTAMP'2024-02-29 01:02:03.456789', TIMESTAMP_NTZ'1969-12-31 23:59:59.5', "
    "CAST(-7 AS SMALLINT), CAST(-1.5 AS DECIMAL(12,3)), true, CAST('NaN' AS DOUBLE), CAST(0.1 AS FLOAT), X'61'"
)
_NULLS = ", ".join(["NULL"] * 9)

TABLES: dict[str, FeatureTable] = {
    "NOT NULL and CHECK": FeatureTable(
        (
            _create("id INT NOT NULL, v STRING"),
            "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
            *_twice("INSERT INTO {t} VALUES (1, 'a'), (2, NULL)"),
        ),
        frozenset({"invariants", "checkConstraints"}),
    ),
    "append only": FeatureTable(
        (_create("id INT", "'delta.appendOnly' = 'true'"), *_twice("INSERT INTO {t} VALUES (1), (2)")),
        frozenset({"appendOnly"}),
    ),
    "generated columns": FeatureTable(
        (
            _create(
                "id INT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
                "twice INT GENERATED ALWAYS AS (id * 2)", rest=" PARTITIONED BY (day)",
            ),
            *_twice(
                "INSERT INTO {t} (id, at) VALUES (1, TIMESTAMP'2024-01-01 23:30:00'), (2, NULL), "
                "(3, TIMESTAMP'2024-01-02 00:30:00')"
            ),
        ),
        frozenset({"generatedColumns"}),
    ),
    "identity columns": FeatureTable(
        (
            _create("id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 7 INCREMENT BY 3), v STRING"),
            *_twice("INSERT INTO {t} (v) VALUES ('a'), ('b')"),
        ),
        frozenset({"identityColumns"}),
    ),
    "default values": FeatureTable(
        (
            _create("id INT, v STRING DEFAULT 'none', p STRING DEFAULT 'q'", _feature("allowColumnDefaults"),
                    " PARTITIONED BY (p)"),
            *_twice("INSERT INTO {t} (id) VALUES (1), (2)"),
        ),
        frozenset({"allowColumnDefaults"}),
    ),
    "change data feed": FeatureTable(
        (
            _create("id INT, v STRING", "'delta.enableChangeDataFeed' = 'true'"),
            *_twice("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"),
            "UPDATE {t} SET v = 'c' WHERE id = 1",
            "INSERT INTO {t} VALUES (3, 'd')",
        ),
        frozenset({"changeDataFeed"}),
    ),
    "column mapping by name": FeatureTable(
        (
            _create("id INT, v STRING, gone INT, s STRUCT<x: INT, y: STRING>, p STRING",
                    "'delta.columnMapping.mode' = 'name'", " PARTITIONED BY (p)"),
            *_twice(
                "INSERT INTO {t} VALUES (1, 'a', 9, named_struct('x', 1, 'y', 'z'), 'p/1'), (2, NULL, 8, NULL, NULL)"
            ),
            "ALTER TABLE {t} RENAME COLUMN v TO `the (value)`",
            "ALTER TABLE {t} DROP COLUMN gone",
            "ALTER TABLE {t} RENAME COLUMN s.x TO `x.x`",
            "ALTER TABLE {t} RENAME COLUMN p TO `p=p`",
            "INSERT INTO {t} VALUES (3, 'c', named_struct('x.x', 3, 'y', 'z'), 'p/1')",
            "ALTER TABLE {t} ADD COLUMN gone STRING",
        ),
        frozenset({"columnMapping"}), ("id", "`the (value)`", "s.`x.x`"), second_engine=False,
    ),
    "column mapping by id": FeatureTable(
        (
            _create("id INT, v STRING", "'delta.columnMapping.mode' = 'id'"),
            *_twice("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"),
            "ALTER TABLE {t} RENAME COLUMN v TO w",
        ),
        frozenset({"columnMapping"}), second_engine=False,
    ),
    "deletion vectors": FeatureTable(
        (
            _create("id BIGINT, v STRING", "'delta.enableDeletionVectors' = 'true'"),
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(0, 10)",
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'b' FROM range(10, 20)",
            "DELETE FROM {t} WHERE id % 3 = 0",
        ),
        frozenset({"deletionVectors"}), second_engine=False,
    ),
    "row tracking": FeatureTable(
        (
            _create("id BIGINT, v STRING",
                    "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"),
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(0, 10)",
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'b' FROM range(10, 20)",
            "UPDATE {t} SET v = 'c' WHERE id IN (3, 13)",
            "DELETE FROM {t} WHERE id = 5",
        ),
        frozenset({"rowTracking", "domainMetadata"}),
        extra=("_metadata.row_id", "_metadata.row_commit_version"), second_engine=False,
    ),
    "type widening": FeatureTable(
        (
            _create("id TINYINT, f FLOAT, d DATE, n DECIMAL(4,2), s STRUCT<x: SMALLINT>, a ARRAY<INT>, p SMALLINT",
                    f"'delta.enableTypeWidening' = 'true', {_feature('timestampNtz')}", " PARTITIONED BY (p)"),
            *_twice("INSERT INTO {t} VALUES (1, 0.1, DATE'2024-01-01', 1.25, named_struct('x', 1), array(1, NULL), 1)"),
            "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
            "ALTER TABLE {t} ALTER COLUMN d TYPE TIMESTAMP_NTZ",
            "ALTER TABLE {t} ALTER COLUMN n TYPE DECIMAL(10,4)",
            "ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN a.element TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN p TYPE INT",
            "INSERT INTO {t} VALUES (5000000000, 0.1D, TIMESTAMP_NTZ'2024-01-01 01:00:00', 123456.1234, "
            "named_struct('x', 5000000000), array(5000000000), 1)",
        ),
        frozenset({"typeWidening"}), second_engine=False,
    ),
    "v2 checkpoints": FeatureTable(
        (
            _create("id INT", "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2'"),
            *_twice("INSERT INTO {t} VALUES (1), (2)"),
        ),
        frozenset({"v2Checkpoint"}), second_engine=False,
    ),
    "in-commit timestamps": FeatureTable(
        (_create("id INT", "'delta.enableInCommitTimestamps' = 'true'"), *_twice("INSERT INTO {t} VALUES (1), (2)")),
        frozenset({"inCommitTimestamp"}),
    ),
    "variants": FeatureTable(
        (
            _create("id INT, v VARIANT"),
            *_twice("INSERT INTO {t} SELECT 1, parse_json('{\"a\": [1, 2.50, null], \"b\": \"x\"}') UNION ALL "
                    "SELECT 2, NULL UNION ALL SELECT 3, parse_json('null')"),
        ),
        frozenset({"variantType"}), second_engine=False,
    ),
    "shredded variants": FeatureTable(
        (
            _create("id INT, v VARIANT", "'delta.enableVariantShredding' = 'true'"),
            *_twice("INSERT INTO {t} SELECT 1, parse_json('{\"a\": 1, \"b\": \"x\"}') UNION ALL SELECT 2, NULL"),
        ),
        frozenset({"variantShredding"}), second_engine=False,
    ),
    "partition columns in the files": FeatureTable(
        (
            _create("id INT, p STRING", _feature("materializePartitionColumns"), " PARTITIONED BY (p)"),
            *_twice("INSERT INTO {t} VALUES (1, 'a b'), (2, NULL)"),
        ),
        frozenset({"materializePartitionColumns"}),
    ),
    "checkpoint protection, vacuum protocol check": FeatureTable(
        (
            _create("id INT", f"{_feature('checkpointProtection')}, {_feature('vacuumProtocolCheck')}"),
            *_twice("INSERT INTO {t} VALUES (1), (2)"),
        ),
        frozenset({"checkpointProtection", "vacuumProtocolCheck"}), second_engine=False,
    ),
    "partitions by odd text": FeatureTable(
        (_create("id INT, p STRING", rest=" PARTITIONED BY (p)"), *_twice("INSERT INTO {t} VALUES " + _TEXTS)),
    ),
    "partitions null and empty": FeatureTable(
        (
            _create("id INT, p STRING, q INT", rest=" PARTITIONED BY (p, q)"),
            *_twice("INSERT INTO {t} VALUES (1, NULL, NULL), (2, '', 1), (3, 'x', NULL), (4, NULL, 1)"),
        ),
    ),
    "partitions by every type": FeatureTable(
        (
            _create(f"id INT, {_TYPES}", rest=" PARTITIONED BY (d, ts, tz, i, n, b, f, r, x)"),
            *_twice("INSERT INTO {t} SELECT 1, " + _VALUES + " UNION ALL SELECT 2, " + _NULLS),
        ),
        frozenset({"timestampNtz"}), second_engine=False,
    ),
    "ancient times, zeros and NaN": FeatureTable(
        (
            _create("id INT, d DATE, ts TIMESTAMP, tz TIMESTAMP_NTZ, f DOUBLE, c CHAR(5), w VARCHAR(3)"),
            *_twice(
                "INSERT INTO {t} VALUES (1, DATE'1500-02-28', TIMESTAMP'1582-10-10 00:00:00', "
                "TIMESTAMP_NTZ'1582-10-10 00:00:00', -0.0D, 'ab', ''), (2, DATE'9999-12-31', "
                "TIMESTAMP'2262-04-12 00:00:00', NULL, CAST('NaN' AS DOUBLE), NULL, 'x')"
            ),
        ),
        second_engine=False,
    ),
    "names with dots, spaces and back-ticks": FeatureTable(
        (
            _create("id INT, `a.b` INT, `sp ace` INT, `ti``ck` INT, `日本` INT, `x`.y INT, s STRUCT<`a.b`: INT, c: INT>"
                    .replace("`x`.y", "`x(,)=y`"), "'delta.columnMapping.mode' = 'name'"),
            "INSERT INTO {t} SELECT id, -id, id % 3, id % 5, id, -id, named_struct('a.b', id, 'c', -id) FROM range(40)",
            "INSERT INTO {t} SELECT id, id, id, id, id, id, named_struct('a.b', id, 'c', -id) FROM range(40)",
        ),
        zorder=("`a.b`", "sp ace", "`ti``ck`", "日本", "x(,)=y", "s.`a.b`", "s.c"), second_engine=False,
    ),
}  # fmt: skip
