"""Deletes that win against a rewrite: its new files take them over, no row is lost and none comes back.

Each case is drawn by its number: the table, the lane, the kind of rewrite, and what others do between the proof and
each try of the commit. What must be in the table afterwards is a Python dictionary to which the same was done.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from tests.integration.conflicts import vector_writer
from tests.integration.conflicts.test_hot_table import apply_once
from tests.integration.conflicts.vector_writer import commits, live_adds, vector_file
from tests.support.product import (
    Batch,
    CommitConflict,
    DeltaEngine,
    DeltaTableEngine,
    Intent,
    Journal,
    Lane,
    PartitionRewriteStep,
    Proof,
    PurgeStep,
    RewriteRequest,
    RewriteStep,
    SessionLease,
    StepStatus,
    TableFacts,
    TableRef,
    TableStatus,
    Verdict,
)
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import GIB, actions_of, compaction, files_on_disk, stamp, zorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.usefixtures("small_row_groups_are_copied")]

CASES = 300
CHOSEN = (0,)
"""What `make test` has of them: a compaction in which rows of a file are deleted, and stay deleted."""

NUM_FILES, ROWS_A_FILE = 4, 25

KINDS: dict[str, Callable[[TableFacts], tuple[RewriteStep, Batch]]] = {
    "compact": compaction,
    "zorder": lambda facts: zorder(facts, "v", "id", max_file_size_bytes=1_500),
    "sorted": lambda facts: _with_batch(facts, lambda batch: PartitionRewriteStep(
        (batch,), RewriteRequest(2, None, ("v",)), 2, ())),
    "purge": lambda facts: _with_batch(facts, lambda batch: PurgeStep((batch,), GIB, 2, ())),
}  # fmt: skip
LANES = {"compact": (Lane.COPY, Lane.LOCAL), "zorder": (Lane.LOCAL,), "sorted": (Lane.LOCAL,), "purge": (Lane.LOCAL,)}


def _with_batch(facts: TableFacts, step_of: Callable[[Batch], RewriteStep]) -> tuple[RewriteStep, Batch]:
    batch = compaction(facts)[1]
    return step_of(batch), batch


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("carried") as worker:
        yield worker


@dataclass
class Story:
    """A table, the rows that it must have, and the statements of others that are still to come."""

    spark: SparkSession
    path: Path
    rows: dict[int, tuple[str, int]]
    others: list[list[Callable[[], None]]]
    others_vectors: set[str] = field(default_factory=set)
    """Files with deletion vectors that other writers made; Delta leaves some of its own that no version names."""

    def sql(self, statement: str) -> None:
        before = _vector_files(self.path)
        self.spark.sql(statement.format(t=f"delta.`{self.path}`"))
        self.others_vectors |= _vector_files(self.path) - before

    def delete(self, predicate: str, is_deleted: Callable[[int], bool]) -> None:
        self.sql(f"DELETE FROM {{t}} WHERE {predicate}")
        self.rows = {number: row for number, row in self.rows.items() if not is_deleted(number)}

    def update(self, number: int) -> None:
        self.sql(f"UPDATE {{t}} SET v = 'updated' WHERE id = {number}")
        if number in self.rows:
            self.rows[number] = ("updated", self.rows[number][1])

    def merge(self, first: int) -> None:
        self.sql(
            f"MERGE INTO {{t}} t USING (SELECT explode(sequence({first}L, {first + 3}L)) id) s ON t.id = s.id "
            "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'new', 0)"
        )
        for number in range(first, first + 4):
            if number in self.rows and number % 2 == 0:
                del self.rows[number]
            elif number not in self.rows:
                self.rows[number] = ("new", 0)

    def append(self, number: int) -> None:
        self.sql(f"INSERT INTO {{t}} VALUES ({number}, 'appended', 0)")
        self.rows[number] = ("appended", 0)

    def delete_by_hand(self, is_deleted: Callable[[int], bool]) -> None:
        before = _vector_files(self.path)
        vector_writer.delete(self.path, lambda row: is_deleted(row["id"]))
        self.others_vectors |= _vector_files(self.path) - before
        self.rows = {number: row for number, row in self.rows.items() if not is_deleted(number)}

    def read(self) -> dict[int, tuple[str, int]]:
        """The rows, by a reader that shares no code with ours, with Spark or with Delta."""
        rows = vector_writer.live_rows(self.path)
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: (row["v"], row["p"]) for row in rows}

    def read_by_spark(self) -> dict[int, tuple[str, int]]:
        collected = self.spark.read.format("delta").load(str(self.path)).collect()
        return {row["id"]: (row["v"], row["p"]) for row in collected}

    def act(self, read_version: int, proof: Proof | None) -> None:
        """What the rewrite calls right before each try of its commit."""
        assert proof is not None
        assert proof.holds
        for statement in self.others.pop(0) if self.others else ():
            statement()


Template = tuple[str, bool, int]
"""Mode of column mapping, whether there is a change feed, and the number of partitions."""
TEMPLATES: list[Template] = [
    (mapping, feed, num) for mapping in ("none", "name") for feed in (False, True) for num in (1, 2)
]


@pytest.fixture(scope="module")
def make_story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, Template], Story]:
    """Copies a table with deletion vectors, which is made when its kind is first asked for."""
    root = tmp_path_factory.mktemp("templates")

    def made(path: Path, template: Template) -> Story:
        original = root / "-".join(map(str, template))
        num_partitions = template[2]
        numbers = range(NUM_FILES * ROWS_A_FILE)
        rows = {number: (f"v{number * 37 % 101}", number % num_partitions) for number in numbers}
        if not original.exists():
            _make(spark, original, template, rows)
        shutil.copytree(original, path)
        return Story(spark, path, rows, [])

    return made


def _make(spark: SparkSession, path: Path, template: Template, rows: dict[int, tuple[str, int]]) -> None:
    mapping, feed, _ = template
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES "
        f"('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = '{mapping}', "
        f"'delta.enableChangeDataFeed' = '{str(feed).lower()}')"
    )
    for start in range(0, NUM_FILES * ROWS_A_FILE, ROWS_A_FILE):
        listed = [(number, *rows[number]) for number in range(start, start + ROWS_A_FILE)]
        frame = spark.createDataFrame(listed, "id BIGINT, v STRING, p INT").coalesce(1)
        frame.write.format("delta").mode("append").save(str(path))


def change_by_spark(story: Story, draw: random.Random) -> None:
    """A statement of Spark that changes at least one row of the files that are being rewritten."""
    first = draw.choice([number for number in story.rows if number < NUM_FILES * ROWS_A_FILE])
    start = first // ROWS_A_FILE * ROWS_A_FILE
    match draw.choice(("row", "rows", "share", "file", "update", "merge")):
        case "row":
            story.delete(f"id = {first}", lambda number: number == first)
        case "rows":
            story.delete(f"id BETWEEN {first} AND {first + 9}", lambda number: first <= number < first + 10)
        case "share":
            story.delete(f"id % 7 = {first % 7}", lambda number: number % 7 == first % 7)
        case "file":
            end = start + ROWS_A_FILE
            story.delete(f"id >= {start} AND id < {end}", lambda number: start <= number < end)
        case "update":
            story.update(first)
        case _:
            story.merge(first - first % 2)  # an even one is deleted


def change_by_hand(story: Story, draw: random.Random) -> None:
    """A delete by a writer that is neither Spark nor ours, of a row, some rows, a share, or all rows of a file."""
    first = draw.choice(list(story.rows))
    start = first // ROWS_A_FILE * ROWS_A_FILE
    story.delete_by_hand(draw.choice((
        lambda number: number == first,
        lambda number: first <= number < first + 10,
        lambda number: number % 7 == first % 7,
        lambda number: start <= number < start + ROWS_A_FILE,
    )))  # fmt: skip


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.every_run if case in CHOSEN else ()) for case in range(CASES)]
)
@pytest.mark.sampled(1)
def test_deletes_that_win_are_carried_over(
    engine: DeltaTableEngine, lake: Path, make_story: Callable[[Path, Template], Story], case: int
) -> None:
    draw = random.Random(case)
    story = make_story(lake / "t", draw.choice(TEMPLATES))
    rewrite_beside(engine, story, draw, partial(change_by_hand, story, draw))


@pytest.mark.parametrize("case", range(CASES, CASES + 30))
@pytest.mark.sampled(1)
def test_statements_of_spark_that_win_are_carried_over(
    engine: DeltaTableEngine, lake: Path, make_story: Callable[[Path, Template], Story], case: int
) -> None:
    draw = random.Random(case)
    story = make_story(lake / "t", draw.choice(TEMPLATES))
    rewrite_beside(engine, story, draw, partial(change_by_spark, story, draw))
    assert story.read_by_spark() == story.rows


def rewrite_beside(engine: DeltaTableEngine, story: Story, draw: random.Random, change: Callable[[], None]) -> None:
    """Rewrite while one to three statements win, and check the table, the log, the disk and what is said of it."""
    kind = draw.choice(tuple(KINDS))
    lane = draw.choice(LANES[kind])
    if lane is Lane.LOCAL and draw.random() < 0.5:
        remainder = draw.randrange(5)
        story.delete_by_hand(lambda number: number % 5 == remainder)
    facts = engine.reader.facts(TableRef(str(story.path)))
    step, batch = in_lane(facts, *KINDS[kind](facts), lane)
    story.others += [[change]] * draw.choice((1, 1, 1, 2, 3))
    as_read = dict(story.rows)
    try:
        receipt = engine.writer.rewrite(facts, step, batch, stamp(f"t/{kind}"), story.act)
    except CommitConflict:
        # Only where more than half of a bin is gone; nothing of ours is left then.
        assert max(_gone_ratios(as_read, story.rows)) > 0.5
        assert story.read() == story.rows
        return
    assert not story.others
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert {use.lane for use in receipt.proof.lanes} == {lane}
    assert story.read() == story.rows
    assert receipt.proof.carried_versions == _changing_versions(story.path, facts.version, receipt.version, batch)
    assert not {file.path for file in batch.files} & set(live_adds(story.path))
    _check_that_nothing_is_left(story, receipt.version)


def _gone_ratios(before: dict[int, tuple[str, int]], after: dict[int, tuple[str, int]]) -> list[float]:
    """Of each partition, the share of rows that are not as they were."""
    partitions = {partition for _, partition in before.values()}
    rows = {partition: [number for number, row in before.items() if row[1] == partition] for partition in partitions}
    return [sum(after.get(number) != before[number] for number in numbers) / len(numbers) for numbers in rows.values()]


def _check_that_nothing_is_left(story: Story, version: int) -> None:
    """Our commit changed no data, and every file on the disk is somebody's: of a version, or of another writer."""
    actions = actions_of(story.path, version)
    assert not any((action.get("add") or action.get("remove") or {}).get("dataChange") for action in actions)
    logged = [body for listed in commits(story.path) for action in listed
              for name, body in action.items() if name in ("add", "cdc")]  # fmt: skip
    assert files_on_disk(story.path) == {unquote(body["path"]) for body in logged}
    assert _vector_files(story.path) - story.others_vectors <= _vectors_in_log(story.path)


def _changing_versions(path: Path, after: int, before: int, batch: Batch) -> tuple[int, ...]:
    paths = {file.path for file in batch.files}
    return tuple(
        version
        for version in range(after + 1, before)
        if any("remove" in action and action["remove"]["path"] in paths for action in actions_of(path, version))
    )


def _vector_files(path: Path) -> set[str]:
    return {file.name for file in path.glob("deletion_vector_*.bin")}


def _vectors_in_log(path: Path) -> set[str]:
    """Names of all vector files that the log ever named."""
    vectors = [body.get("deletionVector") for listed in commits(path) for action in listed
               for name, body in action.items() if name == "add"]  # fmt: skip
    return {vector_file(vector) for vector in vectors if vector}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lane", [Lane.SPARK, Lane.LOCAL], ids=str)
def test_a_rewrite_yields_where_the_places_of_rows_are_not_known_or_most_are_gone(
    engine: DeltaTableEngine, lake: Path, make_story: Callable[[Path, Template], Story], lane: Lane
) -> None:
    story = make_story(lake / "t", TEMPLATES[0])
    facts = engine.reader.facts(TableRef(str(story.path)))
    step, batch = in_lane(facts, *compaction(facts), lane)
    predicate = "id = 3" if lane is Lane.SPARK else "id % 3 > 0"
    is_deleted = {Lane.SPARK: lambda number: number == 3, Lane.LOCAL: lambda number: number % 3 > 0}[lane]
    story.others.append([partial(story.delete, predicate, is_deleted)])
    with pytest.raises(CommitConflict, match="another writer won"):
        engine.writer.rewrite(facts, step, batch, stamp(), story.act)
    assert story.read() == story.rows
    assert engine.reader.facts(facts.ref).version == facts.version + 1


@pytest.mark.contradicts(
    "no_unknown_files", reason="Delta writes a vector for a file that its DELETE then removes; asserted below"
)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("num_deletes", [1, 2])
def test_one_delete_costs_a_run_nothing_and_a_second_one_makes_the_table_hot(
    make_story: Callable[[Path, Template], Story],
    lease: SessionLease,
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    num_deletes: int,
) -> None:
    story = make_story(lake / "t", TEMPLATES[0])
    deletes = [
        partial(story.delete, "id < 25", lambda number: number < 25),
        partial(story.delete, "id = 30", lambda number: number == 30),
    ][:num_deletes]
    record = Journal.record

    def record_then_delete(journal: Journal, event: Any) -> None:
        record(journal, event)
        if deletes and isinstance(event, Intent):
            deletes.pop(0)()

    monkeypatch.setattr(Journal, "record", record_then_delete)
    outcome = apply_once(lease, tmp_path, story.path)
    assert not deletes
    assert story.read() == story.rows
    assert _vector_files(story.path) - story.others_vectors <= _vectors_in_log(story.path)
    (step,) = outcome.tables[0].steps
    if num_deletes == 1:
        assert outcome.tables[0].status is TableStatus.DONE
        assert "rows that others deleted meanwhile (version" in str(step.note)
        assert {assertion.outcome for assertion in step.assertions} == {Verdict.PASS}
        assert step.commits[0].num_files_removed == NUM_FILES - 1  # the first file is gone as a whole
    else:
        assert (step.status, step.error and step.error.code) == (StepStatus.YIELDED, "C718")
