"""Each of our operations against each kind of writer, held at each point of the commit. The matrix is the test.

DESIGN 4.7: beside blind appends a rewrite always commits. Against whoever touches its files, the schema or the
protocol it yields, names the winner and leaves nothing behind. Once its commit is in the log it stays committed,
whatever happens before we know of it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import deltalake
import pytest

from maintainer.delta.session import SessionLease
from maintainer.delta.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.errors import CommitConflict, CommitNotLanded, VerificationFailed
from maintainer.model.outcome import CommitReceipt, VacuumReceipt
from maintainer.model.steps import SetPropertiesStep, VacuumStep
from maintainer.model.table import TableFacts, TableRef
from tests.delta_tables import compaction, files_on_disk, no_intent, removed_files, stamp, zorder
from tests.interleaving import Held, Point, interleave

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row = tuple[int, str, int]
Rows = frozenset[Row]

FIRST = frozenset((i, f"v{i}", i % 2) for i in range(12))
SECOND = frozenset((i, f"v{i}", i % 2) for i in range(12, 24))
BEFORE = (FIRST | SECOND) - {(0, "v0", 0)} | {(0, "zero", 0)}
"""What every table of these tests holds: two appends, then an UPDATE of row 0. Partition 0 is what we work on."""

C, A, Y = "commits", "commits at the second attempt", "yields"
D, N, G = "deletes", "deletes nothing", "finds nothing to delete"
X = "commits where it must not, and says so"
"""Only where the table is dropped and created again in the milliseconds between our last look and the commit itself:
no writer of Delta can tell, for it goes by version numbers."""


@dataclass(frozen=True)
class Lake:
    """Where a writer acts."""

    spark: SparkSession
    engine: DeltaTableEngine
    path: Path
    other: Path

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=f"delta.`{self.path}`", other=f"delta.`{self.other}`"))


@dataclass(frozen=True)
class Writer:
    """Somebody else: what he does, what it does to the rows, and how each of our operations ends beside him.

    ``act`` is SQL or a function. ``rewrite`` and ``properties`` are for before-read and before-commit (after the
    commit is published it is always ``C``), ``vacuum`` is for all three points.
    """

    act: str | Callable[[Lake], object]
    operation: str
    rows: Callable[[Rows], Rows]
    rewrite: tuple[str, str]
    properties: tuple[str, str] = (C, C)
    vacuum: tuple[str, str, str] = (D, D, D)
    table: str = "plain"


def _same(rows: Rows) -> Rows:
    return rows


def _plus(*more: Row) -> Callable[[Rows], Rows]:
    return lambda rows: rows | set(more)


def _minus(number: int) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset(row for row in rows if row[0] != number)


def _set(number: int, value: str) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset((i, value if i == number else v, p) for i, v, p in rows)


def _partition_becomes(partition: int, *new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset(row for row in rows if row[2] != partition) | set(new)


def _only(*new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset(new)


def _second_run(lake: Lake) -> None:
    facts = lake.engine.reader.facts(TableRef(str(lake.path)))
    step, batch = compaction(facts)
    lake.engine.writer.rewrite(facts, step, batch, stamp("other/compact"), no_intent)


def _restore(lake: Lake) -> None:
    key = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    lake.spark.conf.set(key, "false")
    try:
        lake.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    finally:
        lake.spark.conf.unset(key)


def _clone(lake: Lake) -> None:
    lake.sql("DELETE FROM {t}")
    lake.sql("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}")


def _recreate(lake: Lake) -> None:
    shutil.rmtree(lake.path)
    frame = lake.spark.createDataFrame([(1, "new", 0)], "id BIGINT, v STRING, p INT").coalesce(1)
    for _ in range(5):
        frame.write.format("delta").partitionBy("p").mode("append").save(str(lake.path))


def _dynamic_overwrite(lake: Lake) -> None:
    frame = lake.spark.createDataFrame([(1001, "o", 1)], "id BIGINT, v STRING, p INT")
    writer = frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.save(str(lake.path))


def _micro_batch(lake: Lake) -> None:
    stream = lake.spark.readStream.format("delta").load(str(lake.other))
    writer = stream.writeStream.format("delta").option("checkpointLocation", f"{lake.path}_checkpoint")
    writer.trigger(availableNow=True).start(str(lake.path)).awaitTermination(60)


NEW = (100, "n", 0)
WRITERS: dict[str, Writer] = {
    # name: act, operation in the history, rows afterwards, our rewrite, our properties, our vacuum
    "append": Writer("INSERT INTO {t} VALUES (100, 'n', 0)", "WRITE", _plus(NEW), (C, C)),
    "append to a table with an identity column": Writer(
        "INSERT INTO {t} (id, v, p) VALUES (100, 'n', 0)", "WRITE", _plus(NEW), (C, C), (C, A), table="identity"
    ),
    "streaming micro-batch": Writer(_micro_batch, "STREAMING UPDATE", _plus((1, "other", 1)), (C, C)),
    "DELETE": Writer("DELETE FROM {t} WHERE id = 2", "DELETE", _minus(2), (Y, Y)),
    "DELETE with a deletion vector": Writer(
        "DELETE FROM {t} WHERE id = 2", "DELETE", _minus(2), (Y, Y), table="mapped"
    ),
    "DELETE in another partition": Writer("DELETE FROM {t} WHERE id = 1", "DELETE", _minus(1), (C, C)),
    "UPDATE": Writer("UPDATE {t} SET v = 'u' WHERE id = 2", "UPDATE", _set(2, "u"), (Y, Y)),
    "MERGE": Writer(
        "MERGE INTO {t} t USING (SELECT 2L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'",
        "MERGE", _set(2, "m"), (Y, Y),
    ),
    "MERGE that only inserts": Writer(
        "MERGE INTO {t} t USING (SELECT 100L id, 'n' v, 0 p) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "MERGE", _plus(NEW), (C, C),
    ),
    "overwrite": Writer("INSERT OVERWRITE {t} VALUES (1000, 'o', 0)", "WRITE", _only((1000, "o", 0)), (Y, Y)),
    "overwrite of our partition": Writer(
        "INSERT INTO {t} REPLACE WHERE p = 0 VALUES (1000, 'o', 0)",
        "WRITE", _partition_becomes(0, (1000, "o", 0)), (Y, Y),
    ),
    "overwrite of another partition": Writer(
        _dynamic_overwrite, "WRITE", _partition_becomes(1, (1001, "o", 1)), (C, C)
    ),
    "our own second run": Writer(_second_run, "OPTIMIZE", _same, (Y, Y)),
    "OPTIMIZE": Writer("OPTIMIZE {t}", "OPTIMIZE", _same, (Y, Y)),
    "VACUUM": Writer("VACUUM {t}", "VACUUM", _same, (C, C), table="kept"),
    "ALTER, add a column": Writer("ALTER TABLE {t} ADD COLUMN more INT", "ADD COLUMNS", _same, (Y, Y), (C, A)),
    "ALTER, rename a column": Writer(
        "ALTER TABLE {t} RENAME COLUMN v TO w", "RENAME COLUMN", _same, (Y, Y), (C, A), table="mapped"
    ),
    "ALTER, drop a column": Writer(
        "ALTER TABLE {t} DROP COLUMN gone", "DROP COLUMNS", _same, (Y, Y), (C, A), table="mapped"
    ),
    "ALTER, set a property": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'x')", "SET TBLPROPERTIES", _same, (C, A), (C, A)
    ),
    "ALTER, set the property that we set": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '30')",
        "SET TBLPROPERTIES", _same, (C, A), (Y, Y),
    ),
    "ALTER, add a constraint": Writer(
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", "ADD CONSTRAINT", _same, (Y, Y), (C, A)
    ),
    "deletion vectors switched on": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "SET TBLPROPERTIES", _same, (Y, Y), (C, A),
    ),
    "column mapping switched on": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "SET TBLPROPERTIES", _same, (Y, Y), (C, A),
    ),
    "row tracking switched on": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "SET TBLPROPERTIES", _same, (Y, Y), (C, A),
    ),
    "RESTORE": Writer(_restore, "RESTORE", lambda _: FIRST, (Y, Y), (C, A), (N, N, N)),
    "CREATE OR REPLACE": Writer(
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1000L id, 'o' v, 0 p",
        "CREATE OR REPLACE TABLE AS SELECT", _only((1000, "o", 0)), (Y, Y), (C, A),
    ),
    "CLONE over it": Writer(_clone, "DELETE", _only((1, "other", 1)), (Y, Y), (C, A), (N, N, N)),
    "dropped and created again": Writer(_recreate, "", _only((1, "new", 0)), (Y, X), (Y, X), (N, G, G)),
}  # fmt: skip

TABLES = {
    "plain": {"delta.deletedFileRetentionDuration": "interval 0 hours"},
    "kept": {},
    "identity": {"delta.deletedFileRetentionDuration": "interval 0 hours"},
    "mapped": {
        "delta.deletedFileRetentionDuration": "interval 0 hours",
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
    },
}


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("interleavings") as worker:
        # On a local disk Delta commits under a lock of the process: whoever is held behind it would hold all others.
        worker.jvm.spark.conf.set("spark.databricks.delta.commitLock.enabled", "false")
        yield worker


@pytest.fixture(scope="module")
def templates(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each kind of table, and another one, made once; each case works on a copy."""
    root = tmp_path_factory.mktemp("templates")
    for name, properties in TABLES.items():
        path = root / name
        more = {"mapped": ", gone INT", "identity": ", n BIGINT GENERATED ALWAYS AS IDENTITY"}.get(name, "")
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, p INT{more}) USING delta PARTITIONED BY (p) "
            f"TBLPROPERTIES ({_listed({'made': 'once', **properties})})"
        )
        for start in (0, 12):
            frame = spark.range(start, start + 12, 1, 1).selectExpr("id", "concat('v', id) v", "cast(id % 2 AS INT) p")
            frame.write.format("delta").mode("append").save(str(path))
        spark.sql(f"UPDATE delta.`{path}` SET v = 'zero' WHERE id = 0")
        if name == "mapped":
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    frame = spark.createDataFrame([(1, "other", 1)], "id BIGINT, v STRING, p INT").coalesce(1)
    frame.write.format("delta").partitionBy("p").save(str(root / "other"))
    return root


def _listed(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


@dataclass(frozen=True)
class Case:
    """One pair on a table of its own."""

    lake: Lake
    writer: Writer
    facts: TableFacts

    @property
    def path(self) -> Path:
        return self.lake.path

    def act(self) -> None:
        act = self.writer.act
        if isinstance(act, str):
            self.lake.sql(act)
        else:
            act(self.lake)

    def gone(self, at: Point) -> bool:
        """Whether what was published went with the table."""
        return at is Point.AFTER_PUBLISH and self.writer.act is _recreate

    def rows(self) -> Rows:
        """The rows as Spark reads them; where delta-rs can read the table, as both do."""
        found = self.lake.spark.read.format("delta").load(str(self.path)).collect()
        rows = [(row[0], row[1], row[2]) for row in found]
        assert len(rows) == len(set(rows))
        try:
            second = deltalake.DeltaTable(str(self.path)).to_pyarrow_table().to_pylist()
        except (deltalake.exceptions.DeltaError, OSError):
            # Deletion vectors, column mapping and clones are more than it can read.
            assert self.writer.table == "mapped" or self.writer.operation in ("CLONE", "SET TBLPROPERTIES")
        else:
            assert sorted((row["id"], row["v"], row["p"]) for row in second) == sorted(rows)
        return frozenset(rows)

    def untracked(self) -> set[str]:
        """Data files on disk that no commit ever named."""
        named = set()
        for log in (self.path / "_delta_log").glob("*.json"):
            for line in log.read_text(encoding="utf-8").splitlines():
                if add := json.loads(line).get("add"):
                    named.add(unquote(add["path"]))
        return files_on_disk(self.path) - named

    def new_operations(self) -> list[str]:
        """Operations of the versions that came after the facts, in order."""
        logs = sorted((self.path / "_delta_log").glob("*.json"))
        found = []
        for log in logs:
            if int(log.stem) > self.facts.version:
                infos = [json.loads(line).get("commitInfo") for line in log.read_text(encoding="utf-8").splitlines()]
                found += [one["operation"] for one in infos if one]
        return found


@pytest.fixture
def make_case(spark: SparkSession, engine: DeltaTableEngine, templates: Path, lake: Path) -> Callable[..., Case]:
    def make(name: str, *, deleting: bool = False) -> Case:
        writer = WRITERS[name]
        path, other = lake / "t", lake / "other"
        # What is kept for seven days cannot be deleted yet.
        shutil.copytree(templates / ("plain" if deleting and writer.table == "kept" else writer.table), path)
        shutil.copytree(templates / "other", other)
        facts = engine.reader.facts(TableRef(str(path)))
        return Case(Lake(spark, engine, path, other), writer, facts)

    return make


def _check_yielded(case: Case, error: BaseException | None) -> None:
    """A conflict that names the winner's version and operation; nothing of ours in the log or on the disk."""
    assert isinstance(error, CommitConflict), (error, case.new_operations())
    winner = case.writer.operation
    if winner:
        versions = [case.facts.version + 1 + place for place, one in enumerate(case.new_operations()) if one == winner]
        assert any(f"(version {version}, {winner}, " in error.what for version in versions), error.what
    assert case.lake.engine.reader.find_commit(case.facts, stamp(), after_version=-1) is None
    assert case.rows() == case.writer.rows(BEFORE)
    assert case.untracked() == set()


Pair = tuple[str, Point]

QUICK_REWRITES: frozenset[Pair] = frozenset(
    {
        ("append", Point.BEFORE_COMMIT),
        ("append to a table with an identity column", Point.BEFORE_COMMIT),
        ("DELETE with a deletion vector", Point.BEFORE_COMMIT),
        ("ALTER, add a column", Point.BEFORE_READ),
        ("deletion vectors switched on", Point.BEFORE_COMMIT),
        ("dropped and created again", Point.BEFORE_COMMIT),
        ("UPDATE", Point.AFTER_PUBLISH),
    }
)
QUICK_PROPERTIES: frozenset[Pair] = frozenset({("ALTER, set the property that we set", Point.BEFORE_COMMIT)})
QUICK_DELETIONS: frozenset[Pair] = frozenset({("RESTORE", Point.BEFORE_COMMIT), ("RESTORE", Point.AFTER_PUBLISH)})
"""What `make test` runs: one of each kind, and every pair that once failed. The whole matrix is in `make long`."""


def _pairs(quick: frozenset[Pair]) -> list[object]:
    return [
        pytest.param(name, at, id=f"{name}, {at.value}", marks=() if (name, at) in quick else (pytest.mark.long,))
        for name in WRITERS
        for at in Point
    ]


@pytest.mark.parametrize("kind", ["compact", pytest.param("zorder", marks=pytest.mark.long)])
@pytest.mark.parametrize(("name", "at"), _pairs(QUICK_REWRITES))
def test_a_rewrite_beside(name: str, at: Point, kind: str, make_case: Callable[..., Case]) -> None:
    case = make_case(name)
    facts, writer = case.facts, case.lake.engine.writer
    compact, batch = compaction(facts, where=lambda one: dict(one.partition_values)["p"] == "0")
    step = compact if kind == "compact" else zorder(facts, "id")[0]
    held: Held[CommitReceipt] = interleave(
        case.lake.spark, lambda: writer.rewrite(facts, step, batch, stamp(), no_intent), case.act, at
    )
    assert held.reached, held.error
    expected = C if at is Point.AFTER_PUBLISH else case.writer.rewrite[at is Point.BEFORE_COMMIT]
    if expected is Y:
        _check_yielded(case, held.error)
        return
    if expected is X:
        assert isinstance(held.error, VerificationFailed), (held.error, case.new_operations())
        assert f"version {facts.version + 2} is our rewrite" in held.error.what
        return
    if case.gone(at):
        assert isinstance(held.error, CommitConflict | CommitNotLanded), held.error
        assert case.rows() == case.writer.rows(BEFORE)
        return
    receipt = held.value()
    assert (receipt.num_files_removed, receipt.num_files_added) == (2, 1)
    assert receipt.attempts == (2 if expected is A else 1)
    assert case.rows() == case.writer.rows(BEFORE)
    assert case.untracked() == set()


@pytest.mark.parametrize(("name", "at"), _pairs(QUICK_PROPERTIES))
def test_properties_beside(name: str, at: Point, make_case: Callable[..., Case]) -> None:
    case = make_case(name)
    facts, writer = case.facts, case.lake.engine.writer
    step = SetPropertiesStep((("delta.checkpointInterval", None),), (("delta.checkpointInterval", "20"),), ())
    held: Held[CommitReceipt] = interleave(
        case.lake.spark, lambda: writer.set_properties(facts, step, stamp(), no_intent), case.act, at
    )
    assert held.reached, held.error
    expected = C if at is Point.AFTER_PUBLISH else case.writer.properties[at is Point.BEFORE_COMMIT]
    if expected is Y:
        _check_yielded(case, held.error)
        return
    if expected is X or case.gone(at):
        # A property on the new table is all the harm that can be done; its rows are as they were.
        assert held.error is None or isinstance(held.error, CommitConflict | CommitNotLanded), held.error
        assert case.rows() == case.writer.rows(BEFORE)
        return
    receipt = held.value()
    assert receipt.attempts == (2 if expected is A else 1)
    assert case.rows() == case.writer.rows(BEFORE)
    if at is not Point.AFTER_PUBLISH:
        now = case.lake.engine.reader.facts(facts.ref)
        assert now.property_map["delta.checkpointInterval"] == "20"


@pytest.mark.parametrize(("name", "at"), _pairs(QUICK_DELETIONS))
def test_a_deletion_beside(name: str, at: Point, make_case: Callable[..., Case]) -> None:
    case = make_case(name, deleting=True)
    facts, engine = case.facts, case.lake.engine
    (removed,) = removed_files(engine, facts)
    step = VacuumStep((removed,), int(time.time() * 1000), 0, "vacuum.retention", ())
    held: Held[VacuumReceipt] = interleave(
        case.lake.spark, lambda: engine.writer.vacuum(facts, step, stamp(), no_intent), case.act, at
    )
    assert held.reached, held.error
    expected = case.writer.vacuum[list(Point).index(at)]
    assert case.rows() == case.writer.rows(BEFORE)
    if expected is N:
        assert isinstance(held.error, CommitConflict), repr(held.error)
        return
    if expected is G:
        return
    assert held.value().num_files_deleted == (0 if name == "VACUUM" and at is not Point.AFTER_PUBLISH else 1)
    assert not (case.path / unquote(removed.path)).exists()
