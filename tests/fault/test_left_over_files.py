"""A rewrite that fails leaves no file behind, whoever's task had begun one; a file of another writer stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import (
    Batch,
    CheckImpossible,
    DeltaEngine,
    DeltaTableEngine,
    Lane,
    MaintainerError,
    RewriteStep,
    SessionLease,
    TableFacts,
    TableRef,
    prefix_of_batch,
    run,
)
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import compaction, no_intent, second_engine_rows, stamp, zorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.sampled(1),
    pytest.mark.nightly,
    pytest.mark.usefixtures("small_row_groups_are_copied"),
]

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = "part-00000-0c5a1f5e-5f0e-4bd5-9d0a-1d6c9f6b3f10-c000.snappy.parquet"
"""Written by somebody else and not yet committed."""


def in_every_lane(facts: TableFacts) -> list[tuple[RewriteStep, Batch]]:
    """A compaction of all files in each lane."""
    return [in_lane(facts, *compaction(facts), lane) for lane in Lane]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("left-over") as worker:
        yield worker


def files_below(path: Path) -> set[str]:
    """Every file of a table's folder, checksums too."""
    return {
        str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts
    }


def wait_until(happened: Callable[[], object]) -> None:
    """Wait for an event, however slow the machine. What hangs is ended by the time limit of its test."""
    while not happened():
        time.sleep(0.05)


KINDS: dict[str, str] = {
    "plain": "",
    "partitioned": "PARTITIONED BY (day, k)",
    "random folders": "PARTITIONED BY (day) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
}
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut off": (lambda file: file.write_bytes(file.read_bytes()[:-30]), "T434"),
    "garbage": (lambda file: file.write_bytes(b"x" * file.stat().st_size), "T434"),
    "missing": (Path.unlink, "T422"),
}


@pytest.mark.parametrize(("kind", "how"), [("plain", "cut off"), ("plain", "missing"), ("partitioned", "garbage"),
                                           ("random folders", "cut off")])  # fmt: skip
@pytest.mark.sampled(1)
def test_a_broken_file_in_a_bin_leaves_nothing_night_after_night(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, kind: str, how: str
) -> None:
    path = lake / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, day DATE, k STRING) USING delta {KINDS[kind]}")
    for number in range(3):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, DATE'2026-11-21', 'a/b:c')")
    facts = engine.reader.facts(TableRef(str(path)))
    victim = next(file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts)
    damage, code = BROKEN[how]
    damage(victim)
    (path / FOREIGN).write_bytes(b"of another writer")
    before = files_below(path)
    for step, batch in (*in_every_lane(facts), zorder(facts, "id")):
        with pytest.raises(MaintainerError) as caught:
            engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        assert caught.value.code == code
        assert victim.name in (caught.value.found or "")
        assert files_below(path) == before
    assert deltalake.DeltaTable(str(path)).version() == 3


@pytest.mark.every_run
@pytest.mark.parametrize("lane", Lane)
def test_a_full_disk_leaves_nothing(spark: SparkSession, engine: DeltaTableEngine, lake: Path, lane: Lane) -> None:
    small = lake / "small"
    small.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("only root can mount a small disk")
    try:
        path = small / "t"
        frame = spark.range(0, 60_000, 1, 2).selectExpr("id", "uuid() AS text")
        frame.write.format("delta").save(str(path))
        rows, before = second_engine_rows(path), files_below(path)
        facts = engine.reader.facts(TableRef(str(path)))
        step, batch = in_lane(facts, *compaction(facts), lane)
        with pytest.raises(MaintainerError) as caught:
            engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        assert caught.value.code == "E631"
        assert files_below(path) == before
        assert second_engine_rows(path) == rows
    finally:
        subprocess.run(["umount", "--lazy", str(small)], capture_output=True, check=True)


@pytest.mark.timeout(900)
def test_tasks_that_are_cancelled_leave_nothing(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    frame = spark.range(0, 3_000_000, 1, 4).selectExpr("id", "id % 4 AS p", "uuid() AS text")
    frame.write.format("delta").partitionBy("p").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    before = files_below(path)
    seen: set[str] = set()
    ended = threading.Event()

    def begun_or_ended() -> bool:
        seen.update(files_below(path) - before)
        return len(seen) > 1 or ended.is_set()

    def cancel_when_writing() -> None:
        wait_until(begun_or_ended)
        DeltaEngine(lease).cancel("left-over")

    watcher = threading.Thread(target=cancel_when_writing)
    watcher.start()
    step, batch = zorder(facts, "id", "text")
    try:
        with pytest.raises(MaintainerError) as caught:
            engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    finally:
        ended.set()
        watcher.join()
    assert caught.value.code == "C710"
    assert len(seen) > 1
    assert files_below(path) == before


def test_names_of_what_is_committed_say_which_run_wrote_it(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    spark.range(100).repartition(3).write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    (file,) = engine.reader.facts(TableRef(str(path))).files
    assert file.path.startswith("part-test-")
    assert receipt.num_files_added == 1


@pytest.mark.every_run
def test_what_a_dead_run_committed_before_stays_when_its_next_batch_is_removed(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    spark.range(100).repartition(3).write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    facts = engine.reader.facts(TableRef(str(path)))
    (committed,) = facts.files
    begun = path / committed.path.replace(
        prefix_of_batch("test", "table/compact", 0), prefix_of_batch("test", "table/compact", 1)
    )
    begun.write_bytes(b"cut off")

    # Whether the first batch's file is live, or only old versions still need it.
    assert engine.writer.remove_unfinished(facts, "test", "table/compact", 1, [()]) == ()
    assert not begun.exists()
    # Our reader does not know that the file which the prefix names was committed; a second one does.
    blind = replace(facts, files=())
    with pytest.raises(CheckImpossible, match="V504") as stays:
        engine.writer.remove_unfinished(blind, "test", "table/compact", 0, [()])
    assert (stays.value.found, (path / committed.path).exists()) == (committed.path, True)
    begun.write_bytes(b"cut off")
    spark.range(5).write.format("delta").mode("overwrite").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    assert engine.writer.remove_unfinished(facts, "test", "table/compact", 1, [()]) == ()
    assert not begun.exists()
    assert deltalake.DeltaTable(str(path), version=1).to_pyarrow_table().num_rows == 100


@pytest.mark.timeout(900)
@pytest.mark.parametrize("optimize", ["{zorder: {columns: [text], mode: full}}", "{lanes: [local, spark]}"])
def test_what_a_killed_run_was_writing_is_removed_by_the_next_run(
    spark: SparkSession, tmp_path: Path, optimize: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lake" / "t"
    frame = spark.range(0, 2_000_000, 1, 6).selectExpr("id", "id % 3 AS p", "uuid() AS text")
    frame.write.format("delta").partitionBy("p").save(str(path))
    write_project(tmp_path, {"policies/t.yml": f"table: lake/t\noptimize: {optimize}\n"})
    before = files_below(path)
    command = [sys.executable, "-m", "maintainer", "--project", str(tmp_path), "apply", "--yes"]
    victim = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    try:
        wait_until(lambda: files_below(path) - before or victim.poll() is not None)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
    (dead,) = (tmp_path / ".maintainer" / "runs").glob("2*")
    began = files_below(path) - before
    assert began
    assert {Path(name).name.lstrip(".").startswith(f"part-{dead.name}-") for name in began} == {True}
    assert deltalake.DeltaTable(str(path)).version() == 0

    code = run(["--project", str(tmp_path), "apply", "--yes"])
    assert code == 0, capsys.readouterr()
    assert not [name for name in files_below(path) if dead.name in name]
    assert deltalake.DeltaTable(str(path)).version() > 0
