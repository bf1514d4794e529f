"""Each of our operations against each kind of writer, held at each point of the commit.

What is expected of each pair stands in ``tests/support/writers/other_writers.py``, as one table.
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

from tests.support.product import (
    CommitConflict,
    CommitNotLanded,
    CommitReceipt,
    CommitStamp,
    DeltaEngine,
    DeltaTableEngine,
    Lane,
    Refused,
    RewriteStep,
    SessionLease,
    SetPropertiesStep,
    TableFacts,
    TableRef,
    VacuumReceipt,
    VacuumStep,
    VerificationFailed,
)
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import compaction, files_on_disk, no_intent, removed_files, stamp, zorder
from tests.support.writers.interleaving import Held, Point, interleave
from tests.support.writers.other_writers import (
    BEFORE,
    TABLES,
    WRITERS,
    A,
    C,
    G,
    Lake,
    N,
    Rows,
    Writer,
    X,
    Y,
    clone_over,
    recreate,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_row_groups_are_copied")]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("interleavings") as worker:
        # On a local disk Delta commits under a lock of the process: whoever is held behind it would hold all others.
        worker.jvm.spark.conf.set("spark.databricks.delta.commitLock.enabled", "false")
        yield worker


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a kind of table, or the other one, when it is first asked for; each case works on a copy."""
    root = tmp_path_factory.mktemp("templates")

    def made(name: str) -> Path:
        path = root / name
        if not path.exists():
            if name == "other":
                frame = spark.createDataFrame([(1, "other", 1)], "id BIGINT, v STRING, p INT").coalesce(1)
                frame.write.format("delta").partitionBy("p").save(str(path))
            else:
                _make(spark, name, path)
        return path

    return made


def _make(spark: SparkSession, name: str, path: Path) -> None:
    more = {"mapped": ", gone INT", "identity": ", n BIGINT GENERATED ALWAYS AS IDENTITY"}.get(name, "")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, p INT{more}) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({_listed({'made': 'once', **TABLES[name]})})"
    )
    for start in (0, 12):
        frame = spark.range(start, start + 12, 1, 1).selectExpr("id", "concat('v', id) v", "cast(id % 2 AS INT) p")
        frame.write.format("delta").mode("append").save(str(path))
    spark.sql(f"UPDATE delta.`{path}` SET v = 'zero' WHERE id = 0")
    if name == "mapped":
        # Only now: the UPDATE leaves a removed file and none with deleted rows, as in the others.
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")


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
        return at is Point.AFTER_PUBLISH and self.writer.act is recreate

    def rows(self) -> Rows:
        """The rows as Spark reads them; where delta-rs can read the table, as both do."""
        spark_rows = self.lake.spark.read.format("delta").load(str(self.path)).collect()
        rows = [(row[0], row[1], row[2]) for row in spark_rows]
        assert len(rows) == len(set(rows))
        try:
            second = deltalake.DeltaTable(str(self.path)).to_pyarrow_table().to_pylist()
        except (deltalake.exceptions.DeltaError, OSError):
            # Deletion vectors, column mapping and clones are more than it can read.
            unreadable = self.writer.act is clone_over or self.writer.operation in (
                "UPGRADE PROTOCOL",
                "SET TBLPROPERTIES",
            )
            assert self.writer.table == "mapped" or unreadable
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
        operations = []
        for log in logs:
            if int(log.stem) > self.facts.version:
                infos = [json.loads(line).get("commitInfo") for line in log.read_text(encoding="utf-8").splitlines()]
                operations += [info["operation"] for info in infos if info]
        return operations


@pytest.fixture
def make_case(
    spark: SparkSession, engine: DeltaTableEngine, template: Callable[[str], Path], lake: Path
) -> Callable[..., Case]:
    def make(name: str, *, deleting: bool = False) -> Case:
        writer = WRITERS[name]
        path, other = lake / "t", lake / "other"
        # What is kept for seven days cannot be deleted yet.
        shutil.copytree(template("plain" if deleting and writer.table == "kept" else writer.table), path)
        shutil.copytree(template("other"), other)
        facts = engine.reader.facts(TableRef(str(path)))
        return Case(Lake(spark, engine, path, other), writer, facts)

    return make


def _check_yielded(case: Case, error: BaseException | None, ours: CommitStamp) -> None:
    """A conflict that names the winner's version and operation; nothing of ours in the log or on the disk."""
    assert isinstance(error, CommitConflict), (error, case.new_operations())
    winner = case.writer.operation
    if winner:
        versions = [
            case.facts.version + 1 + place
            for place, operation in enumerate(case.new_operations())
            if operation == winner
        ]
        assert any(f"(version {version}, {winner}, " in error.what for version in versions), error.what
    assert case.lake.engine.reader.find_commit(case.facts, ours, after_version=-1) is None
    assert case.rows() == case.writer.rows(BEFORE)
    assert case.untracked() == set()


Pair = tuple[str, Point]

ALWAYS: dict[str, frozenset[Pair]] = {
    "compact": frozenset(
        {("DELETE with a deletion vector", Point.BEFORE_COMMIT), ("dropped and created again", Point.BEFORE_COMMIT)}
    ),
    "vacuum": frozenset({("RESTORE", Point.BEFORE_COMMIT)}),
}  # fmt: skip
"""What every run has: a commit that yields, a table that is another, a deletion that stops.

A commit beside an append has a test of its own, in ``test_conflicts.py``."""


RECREATED_UNDER_US = pytest.mark.contradicts(
    "live_files_are_there",
    reason="the drop took the files of our commit with it, and the commit landed in the new table: V503 says so",
)


RECREATED_BESIDE_A_CHECKSUM = pytest.mark.contradicts(
    "nothing_temporary_stays",
    reason="Delta writes the checksum file of the old table's version, which the new table has, too, and then leaves "
    "its temporary file",
)


def _pairs(*operations: str) -> list[object]:
    return [
        pytest.param(operation, name, at, id=f"{operation}, {name}, {at.value}", marks=_marks(operation, name, at))
        for operation in operations
        for name in WRITERS
        for at in Point
    ]


def _marks(operation: str, name: str, at: Point) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.every_run] if (name, at) in ALWAYS.get(operation, ()) else []
    if name == "dropped and created again" and at is Point.BEFORE_COMMIT:
        marks.append(RECREATED_UNDER_US)
    if (operation, name, at) == ("vacuum", "dropped and created again", Point.AFTER_PUBLISH):
        marks.append(RECREATED_BESIDE_A_CHECKSUM)
    return marks


@pytest.mark.parametrize(("kind", "name", "at"), _pairs("compact", "compact in local", "compact in copy", "zorder"))
@pytest.mark.sampled(1)
def test_a_rewrite_beside(kind: str, name: str, at: Point, make_case: Callable[..., Case]) -> None:
    case = make_case(name)
    facts, writer = case.facts, case.lake.engine.writer
    compact, batch = compaction(facts, where=lambda file: dict(file.partition_values)["p"] == "0")
    step: RewriteStep = zorder(facts, "id")[0] if kind == "zorder" else compact
    if " in " in kind:
        step, batch = in_lane(facts, compact, batch, Lane(kind.split(" in ")[1]))
    held: Held[CommitReceipt] = interleave(
        case.lake.spark, lambda: writer.rewrite(facts, step, batch, stamp(), no_intent), case.act, at
    )
    assert held.reached, held.error
    expected = C if at is Point.AFTER_PUBLISH else case.writer.rewrite[at is Point.BEFORE_COMMIT]
    if name == "DELETE with a deletion vector" and kind == "compact in local" and at is Point.BEFORE_COMMIT:
        expected = A  # where each row went is known: the delete is carried over
    if expected is Y:
        _check_yielded(case, held.error, stamp())
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


@pytest.mark.parametrize(("kind", "name", "at"), _pairs("properties"))
@pytest.mark.sampled(1)
def test_properties_beside(kind: str, name: str, at: Point, make_case: Callable[..., Case]) -> None:
    case = make_case(name)
    facts, writer = case.facts, case.lake.engine.writer
    step = SetPropertiesStep((("delta.checkpointInterval", None),), (("delta.checkpointInterval", "20"),), ())
    held: Held[CommitReceipt] = interleave(
        case.lake.spark, lambda: writer.set_properties(facts, step, stamp("t/set_properties"), no_intent), case.act, at
    )
    assert held.reached, held.error
    expected = C if at is Point.AFTER_PUBLISH else case.writer.properties[at is Point.BEFORE_COMMIT]
    if expected is Y:
        _check_yielded(case, held.error, stamp("t/set_properties"))
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


@pytest.mark.parametrize(("kind", "name", "at"), _pairs("vacuum"))
@pytest.mark.sampled(1)
def test_a_deletion_beside(kind: str, name: str, at: Point, make_case: Callable[..., Case]) -> None:
    case = make_case(name, deleting=True)
    facts, engine = case.facts, case.lake.engine
    (removed,) = removed_files(engine, facts)
    step = VacuumStep((removed,), int(time.time() * 1000), 0, "vacuum.retention", ())
    held: Held[VacuumReceipt] = interleave(
        case.lake.spark, lambda: engine.writer.vacuum(facts, step, stamp("t/vacuum"), no_intent), case.act, at
    )
    assert held.reached, held.error
    expected = case.writer.vacuum[list(Point).index(at)]
    assert case.rows() == case.writer.rows(BEFORE)
    if expected is N:
        assert isinstance(held.error, CommitConflict | Refused), repr(held.error)
        return
    if expected is G:
        return
    # What another VACUUM takes after we have looked is gone as planned, and counts.
    assert held.value().num_files_deleted == (0 if name == "VACUUM" and at is Point.BEFORE_READ else 1)
    assert not (case.path / unquote(removed.path)).exists()
