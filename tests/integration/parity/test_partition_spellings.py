"""Every row keeps the partition value that each reader saw, however the log spells it: in all lanes, modes and engines.

A table holds values of each type as delta-rs, Spark and people spell them. Spark in three zones and delta-rs read it
before and after. The log is read here as text, by no code of ours.
"""

from __future__ import annotations

import datetime
import decimal
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import maintainer
from tests.support.product import (
    AutoCompactStatus,
    CommandEngine,
    CommandSession,
    DeltaEngine,
    DeltaTableEngine,
    Lane,
    ReasonCode,
    SessionLease,
    StepStatus,
    classic_sessions,
    is_deltas_own,
)
from tests.support.runs.app_runs import applied
from tests.support.runs.rewrites import rewrite
from tests.support.tables.delta_tables import forget_logs, second_engine_rows
from tests.support.tables.feature_tables import FeatureTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("small_row_groups_are_copied"),
    pytest.mark.contradicts(
        "partition_folders_agree",
        reason="Spark names folders its own way: `i=1` for files whose text in the log is `01`",
    ),
]

ZONES = ("UTC", "Europe/Vilnius", "America/Bahia_Banderas")
UTC = datetime.UTC
MIDNIGHT = datetime.datetime(2020, 5, 5, tzinfo=UTC)
TYPES = {
    "i": ("integer", pa.int32()),
    "d": ("double", pa.float64()),
    "m": ("decimal(10,2)", pa.decimal128(10, 2)),
    "b": ("boolean", pa.bool_()),
    "day": ("date", pa.date32()),
    "ts": ("timestamp", pa.timestamp("us", tz="UTC")),
    "ntz": ("timestamp_ntz", pa.timestamp("us")),
    "s": ("string", pa.string()),
    "x": ("binary", pa.binary()),
}
SCHEMA = pa.schema([("id", pa.int64()), *((name, arrow) for name, (_, arrow) in TYPES.items())])
VALUES: dict[str, tuple[Any, ...]] = {
    "i": (0, -7),
    "d": (1.0, float("nan"), 1e10),
    "m": (decimal.Decimal("1.50"),),
    "b": (True,),
    "day": (datetime.date(2020, 5, 5),),
    "ts": (MIDNIGHT,),
    "ntz": (MIDNIGHT.replace(tzinfo=None),),
    "s": ("", "a b", "null"),
    "x": (b"", b"a"),
}
"""What delta-rs and Spark write, each in its own spelling; beside them a row where all columns are null."""

BY_HAND = {
    "i": ("01", "+1", "2"),
    "d": ("1.0", "1", "1e3", "0.5", "-0.0"),
    "m": ("2.50", "0.00"),
    "b": ("false",),
    "day": ("2021-01-01",),
    "ts": (
        "2020-05-05 00:00:00",
        "2020-05-05 00:00:00.000000",
        "2020-05-05T00:00:00.000000Z",
        "2020-05-05T00:00:00Z",
        "2020-05-05T03:00:00+03:00",
        "2020-05-04T21:00:00.000000Z",
        "1850-01-01 00:00:00",
    ),
    "ntz": ("2020-05-05 00:00:00", "2020-05-05 00:00:00.000000", "2020-05-05 00:00:00.500000"),
    "s": ("", "a"),
    "x": ("", "a"),
}


FEW_VALUES = {"i": (-7,), "d": (float("nan"),), "ts": (MIDNIGHT,), "ntz": VALUES["ntz"], "s": ("null",), "x": (b"",)}
FEW_BY_HAND = {"i": ("01",), "d": ("1", "-0.0"), "ts": BY_HAND["ts"][:3], "ntz": BY_HAND["ntz"][:2], "x": ("",)}
"""For each commit: a value of each type with several spellings, and texts that a wrong join once changed."""


class Built:
    """A table with two files for each text, made by hand, by delta-rs and by Spark."""

    def __init__(self, path: Path, values: Mapping[str, tuple[Any, ...]] = VALUES) -> None:
        self.path, self.values, self.rows = path, values, 0

    def _records(self, only: str | None = None) -> list[dict[str, Any]]:
        columns = self.values if only is None else {only: self.values[only]}
        values = [{name: value} for name, values in columns.items() for value in values]
        records = []
        for record in (*values, {}):
            records.append({**record, "id": self.rows})
            self.rows += 1
        return records

    def by_delta_rs(self) -> None:
        for _ in range(2):
            table = pa.Table.from_pylist(self._records(), schema=SCHEMA)
            write_deltalake(str(self.path), table, mode="append", partition_by=list(TYPES))

    def by_spark(self, spark: SparkSession, only: str | None = None) -> None:
        for _ in range(2):
            records = [tuple(record.get(name) for name in SCHEMA.names) for record in self._records(only)]
            columns = ", ".join(f"{name} {'int' if name == 'i' else kind}" for name, (kind, _) in TYPES.items())
            spark.createDataFrame(records, f"id long, {columns}").repartition(1).write.format("delta").mode(
                "append"
            ).save(str(self.path))

    def by_hand(self, by_column: Mapping[str, tuple[str, ...]] = BY_HAND) -> None:
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 1, "operation": "WRITE"}}]
        texts = [(name, text) for name, texts in by_column.items() for text in texts]
        for name, text in (*texts, ("i", None)):
            for _ in range(2):
                actions.append({"add": self._add({**dict.fromkeys(TYPES), name: text})})
        self._commit(actions)

    def _add(self, values: dict[str, str | None]) -> dict[str, Any]:
        file = self.path / f"by-hand-{self.rows}.parquet"
        pq.write_table(pa.table({"id": pa.array([self.rows], pa.int64())}), file)
        self.rows += 1
        return {
            "path": file.name, "partitionValues": values, "size": file.stat().st_size, "modificationTime": 1,
            "dataChange": True, "stats": json.dumps({"numRecords": 1}),
        }  # fmt: skip

    def _commit(self, actions: list[dict[str, Any]]) -> None:
        version = len(list((self.path / "_delta_log").glob("*[0-9].json")))
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (self.path / "_delta_log" / f"{version:020d}.json").write_text(text)


def log_of(path: Path) -> list[dict[str, Any]]:
    files = sorted(file for file in (path / "_delta_log").glob("*.json") if file.stem.isdigit())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def ids_by_text(path: Path) -> dict[str, list[int]]:
    """The ids that stand under each text of the log; removed files are left out."""
    adds: dict[str, dict[str, Any]] = {}
    for action in log_of(path):
        if "add" in action:
            adds[action["add"]["path"]] = action["add"]
        elif "remove" in action:
            adds.pop(action["remove"]["path"], None)
    found: dict[str, list[int]] = {}
    for add in adds.values():
        ids = pq.ParquetFile(path / unquote(add["path"])).read(["id"]).column("id").to_pylist()
        found.setdefault(json.dumps(add["partitionValues"], sort_keys=True), []).extend(ids)
    return {text: sorted(ids) for text, ids in found.items()}


def num_files(path: Path) -> int:
    actions = log_of(path)
    return sum("add" in action for action in actions) - sum("remove" in action for action in actions)


def seen(spark: SparkSession, path: Path) -> dict[str, Counter[str]]:
    """What Spark in three zones and delta-rs see of each row."""
    forget_logs(spark)
    read = {}
    for zone in ZONES:
        session = spark.newSession()
        session.conf.set("spark.sql.session.timeZone", zone)
        frame = session.read.format("delta").load(str(path))
        columns = ("hex(x)", *(f"cast({name} AS string)" for name in TYPES if name != "x"))
        read[zone] = Counter(repr(row) for row in frame.selectExpr("id", *columns).collect())
    return {**read, "delta-rs": second_engine_rows(path)}


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    is_few = getattr(request, "param", "all") == "few"
    table = Built(tmp_path_factory.mktemp("spellings") / "t", FEW_VALUES if is_few else VALUES)
    table.by_delta_rs()
    table.by_hand(FEW_BY_HAND if is_few else BY_HAND)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Vilnius")
    table.by_spark(session)
    session.conf.set("spark.databricks.delta.write.utcTimestampPartitionValues", "false")
    table.by_spark(session, "ts")
    return table.path


@pytest.fixture(scope="module")
def before(spark: SparkSession, built: Path) -> dict[str, Counter[str]]:
    return seen(spark, built)


@pytest.fixture
def table(built: Path, lake: Path) -> Path:
    return Path(shutil.copytree(built, lake / "t"))


@pytest.fixture(scope="module")
def worker(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("spellings") as worker:
        yield worker


def check(spark: SparkSession, table: Path, built: Path, before: dict[str, Counter[str]]) -> None:
    """Nobody sees another value, texts are the same, adds have every column, removes those that are not null."""
    assert ids_by_text(table) == ids_by_text(built)
    assert num_files(table) < num_files(built)
    after = seen(spark, table)
    for reader, rows in before.items():
        assert after[reader] == rows, reader
    added = {action["add"]["path"]: action["add"]["partitionValues"] for action in log_of(table) if "add" in action}
    for action in log_of(table)[len(log_of(built)) :]:
        if "add" in action:
            assert action["add"]["partitionValues"].keys() == TYPES.keys()
        elif "remove" in action:
            values = added[action["remove"]["path"]]
            known = {name: value for name, value in values.items() if value is not None}
            assert action["remove"]["partitionValues"] == known


ROW_ORDER = {
    "compact spark": "lanes: [spark]",
    "compact local": "lanes: [local]",
    "compact copy": "lanes: [copy]",
    "zorder full": "zorder: {columns: [id], mode: full}",
    "zorder full local": "lanes: [local], zorder: {columns: [id], mode: full}",
    "zorder incremental": "zorder: {columns: [id]}",
    "rewrite": "rewrite: {files: 1, sortBy: [id]}",
    "rewrite local": "lanes: [local], rewrite: {files: 1, sortBy: [id]}",
}


@pytest.mark.parametrize(
    ("built", "optimize"),
    [
        pytest.param("few", ROW_ORDER["compact spark"], id="compact spark, few texts"),
        *(pytest.param("all", policy, id=name, marks=pytest.mark.long) for name, policy in ROW_ORDER.items()),
    ],
    indirect=["built"], scope="module",  # else each test builds its own
)  # fmt: skip
def test_every_reader_sees_the_same_after_a_rewrite(
    optimize: str,
    spark: SparkSession,
    lease: SessionLease,
    built: Path,
    before: dict[str, Counter[str]],
    table: Path,
    tmp_path: Path,
) -> None:
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {table}\noptimize: {{{optimize}}}\n")
    assert {step.status for step in outcome.table.steps} == {StepStatus.SUCCEEDED}, outcome.table
    said = [entry.reason for entry in outcome.table_plan.left_alone if entry.reason.code is ReasonCode.SPELLED_APART]
    assert len(said) == 1
    check(spark, table, built, before)
    # One file for each text: nothing is left to join, and a second run finds nothing.
    assert num_files(table) == len(ids_by_text(table))


@pytest.mark.long
@pytest.mark.parametrize("lane", [Lane.COPY, Lane.LOCAL, Lane.SPARK])
def test_every_reader_sees_the_same_after_a_purge(
    lane: Lane,
    spark: SparkSession,
    worker: DeltaTableEngine,
    built: Path,
    before: dict[str, Counter[str]],
    table: Path,
) -> None:
    rewrite(worker, table, FeatureTable(()), "purge", lane)
    check(spark, table, built, before)


@pytest.mark.long
def test_the_hook_in_a_session_of_another_zone(
    spark: SparkSession, lease: SessionLease, built: Path, before: dict[str, Counter[str]], table: Path
) -> None:
    writer = lease.spark.newSession()
    writer.conf.set("spark.sql.session.timeZone", "Europe/Vilnius")
    result = maintainer.auto_compact(writer, str(table), enabled=True, min_num_files=2)
    assert result.status is AutoCompactStatus.COMPACTED, result
    check(spark, table, built, before)


@pytest.mark.parametrize(
    ("built", "optimize", "zone"),
    [
        pytest.param("few", "", "Europe/Vilnius", id="compact, Vilnius, few texts"),
        *(
            pytest.param("all", optimize, zone, marks=pytest.mark.long)
            for optimize in ("", "zorder: {columns: [id], mode: full}")
            for zone in ("Europe/Vilnius", "UTC")
        ),
    ],
    indirect=["built"], scope="module",  # else each test builds its own
)  # fmt: skip
def test_a_command_takes_only_partitions_that_delta_spells_as_they_are(
    optimize: str,
    zone: str,
    spark: SparkSession,
    lease: SessionLease,
    built: Path,
    before: dict[str, Counter[str]],
    table: Path,
    tmp_path: Path,
) -> None:
    @contextmanager
    def in_zone(name: str) -> Iterator[CommandSession]:
        with classic_sessions(lease)(name) as session:
            session.spark.conf.set("spark.sql.session.timeZone", zone)
            yield session

    outcome = applied(CommandEngine(in_zone), tmp_path, f"table: {table}\noptimize: {{{optimize}}}\n")
    assert {step.status for step in outcome.table.steps} == {StepStatus.SUCCEEDED}, outcome.table
    assert any(entry.reason.code is ReasonCode.SPELLING_CHANGES for entry in outcome.table_plan.left_alone)
    assert ids_by_text(table) == ids_by_text(built)
    assert num_files(table) < num_files(built)
    assert seen(spark, table) == before
    # Delta's own OPTIMIZE made this commit, and its class leaves nulls out of removes.
    removes = [action["remove"]["partitionValues"] for action in log_of(table) if "remove" in action]
    assert {None in values.values() or values.keys() == TYPES.keys() for values in removes} == {False}


EMPTY = dict.fromkeys(("i", "d", "m", "b", "day", "ts", "ntz"), ("",))
"""Read as null, but a filter by such a column fails in Spark: no command takes anything of the table."""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = Built(tmp_path_factory.mktemp("empty") / "t")
    table.by_delta_rs()
    table.by_hand(EMPTY)
    return table.path


@pytest.mark.long
@pytest.mark.parametrize("optimize", [ROW_ORDER[name] for name in ("compact spark", "compact local", "compact copy")])
def test_an_empty_text_of_a_number_or_a_time_stays_apart_from_null(
    optimize: str, spark: SparkSession, lease: SessionLease, empty: Path, lake: Path, tmp_path: Path
) -> None:
    table, before = Path(shutil.copytree(empty, lake / "t")), seen(spark, empty)
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {table}\noptimize: {{{optimize}}}\n")
    assert {step.status for step in outcome.table.steps} == {StepStatus.SUCCEEDED}, outcome.table
    check(spark, table, empty, before)
    assert num_files(table) == len(ids_by_text(table))


@pytest.mark.long
def test_a_command_takes_nothing_beside_an_empty_text_that_is_null(
    lease: SessionLease, empty: Path, lake: Path, tmp_path: Path
) -> None:
    table = Path(shutil.copytree(empty, lake / "t"))
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        lease.spark.read.format("delta").load(str(table)).where("i = 0").collect()
    outcome = applied(CommandEngine(classic_sessions(lease)), tmp_path, f"table: {table}\noptimize: {{}}\n")
    assert outcome.table.steps == ()
    assert any(entry.reason.code is ReasonCode.SPELLING_CHANGES for entry in outcome.table_plan.left_alone)
    assert num_files(table) == num_files(empty)


@pytest.mark.long
def test_what_delta_writes_for_each_text(spark: SparkSession, built: Path, table: Path) -> None:
    """The guard of the command engine: every text that it takes for Delta's own comes back from OPTIMIZE as it was."""
    session = spark.newSession()
    if not version("delta-spark").startswith("4.0."):  # which shifts times there: test_shifted_times.py
        session.conf.set("spark.sql.session.timeZone", "Europe/Vilnius")
    session.sql(f"OPTIMIZE delta.`{table}` ZORDER BY (id)").collect()
    after = {row: text for text, rows in ids_by_text(table).items() for row in rows}
    changed = set()
    for text, ids in ids_by_text(built).items():
        values = json.loads(text)
        if any(after[row] != text for row in ids):
            changed.add(text)
            assert not all(is_deltas_own(value, TYPES[name][0]) for name, value in values.items()), text
    assert changed
