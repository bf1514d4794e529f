"""Commits on a disk never overwrite another's, and what stands in the log afterwards is looked at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.product import (
    EXCLUSIVE_LOG_STORE,
    CommandEngine,
    CommitConflict,
    DeltaEngine,
    DeltaJvm,
    DeltaTableEngine,
    JavaObject,
    SessionLease,
    TableRef,
    classic_sessions,
)
from tests.support.tables.delta_tables import compaction, forget_logs, no_intent, stamp
from tests.support.writers.interleaving import Point, interleave

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

APPENDS = 200
DELTAS_OWN = "io.delta.storage.HDFSLogStore"
APPENDER = """
import sys, time, deltalake, pyarrow as pa
for number in range(int(sys.argv[2])):
    rows = pa.table({"id": pa.array([1000 + number], pa.int64())})
    deltalake.write_deltalake(sys.argv[1], rows, mode="append")
    print(1000 + number, flush=True)
    time.sleep(0.05)  # so that several of our commits fall beside the appends on any machine
"""


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("exclusive") as worker:
        yield worker


def table_of_files(path: Path, num_files: int = 4) -> Path:
    """A table of ten rows a file, written by the second engine."""
    for number in range(num_files):
        rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        deltalake.write_deltalake(str(path), rows, mode="append")
    return path


def ids_of(path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


def commit_file(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.json"


def store_name(jvm: DeltaJvm, log: JavaObject) -> str:
    return str(log.store().getDelegate(log.logPath()).logStoreImpl().getClass().getName())


def session_log(jvm: DeltaJvm, path: Path) -> JavaObject:
    """The log of a table that its session uses, by Delta's own call."""
    handle: Any = jvm.spark._jvm
    return handle.org.apache.spark.sql.delta.DeltaLog.forTable(jvm.spark._jsparkSession, str(path))


def versions_of_deltas_own(path: Path) -> list[int]:
    """Versions that Delta's own store wrote: it leaves a sum of Hadoop's beside each."""
    return sorted(int(file.name.split(".")[1]) for file in (path / "_delta_log").glob(".*.json.crc"))


@pytest.mark.every_run
def test_one_of_two_creators_of_a_version_is_acknowledged_and_its_text_stands(
    engine: DeltaTableEngine, lake: Path
) -> None:
    path = table_of_files(lake / "t", 1)
    jvm = engine.jvm
    log = jvm.log_at(path.as_uri())
    assert jvm.make_commits_exclusive(log) == EXCLUSIVE_LOG_STORE
    conf, winners = log.newDeltaHadoopConf(), []
    for version in range(10, 210):
        target = commit_file(path, version)
        theirs = target.with_suffix(".theirs")
        theirs.write_text("theirs\n", encoding="utf-8")
        acknowledged: list[str] = []
        start = threading.Barrier(2)

        def link(start: threading.Barrier = start, theirs: Path = theirs, target: Path = target) -> None:
            start.wait()
            try:
                os.link(theirs, target)
                acknowledged.append("theirs")  # noqa: B023 (joined below)
            except FileExistsError:
                pass

        other = threading.Thread(target=link)
        other.start()
        lines, name = jvm.seq(["ours"]).iterator(), jvm.child(log.logPath(), target.name)
        start.wait()
        refused = ""
        try:
            log.store().write(name, lines, False, conf)
            acknowledged.append("ours")
        except Exception as error:
            refused = str(error)
        other.join()
        assert "ours" in acknowledged or "FileAlreadyExistsException" in refused
        assert [f"{number}\n" for number in acknowledged] == [target.read_text(encoding="utf-8")]
        winners += acknowledged
    assert len(winners) == 200
    assert not list((path / "_delta_log").glob(".*.tmp"))


def test_the_sum_of_an_earlier_file_of_that_name_breaks_no_reader(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = table_of_files(lake / "t")
    for version in range(4, 8):
        (path / "_delta_log" / f".{version:020d}.json.crc").write_bytes(b"crc\x00\x00\x00\x02\x00\x01\x02\x03\x04")
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    assert engine.writer.rewrite(facts, step, batch, stamp(), no_intent).version == 4
    forget_logs(engine.jvm.spark)
    assert spark.read.format("delta").load(str(path)).count() == 40


@pytest.mark.every_run
def test_only_the_log_that_we_write_to_is_changed_and_a_store_that_was_chosen_stays(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    ours, others = table_of_files(lake / "ours"), table_of_files(lake / "others", 1)
    jvm = engine.jvm
    settings = dict(spark.sparkContext.getConf().getAll())
    other_log = jvm.log_at(others.as_uri())
    facts = engine.reader.facts(TableRef(str(ours)))
    step, batch = compaction(facts)
    engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert store_name(jvm, jvm.log_at(ours.as_uri())) == EXCLUSIVE_LOG_STORE
    assert store_name(jvm, other_log) == DELTAS_OWN
    assert store_name(jvm, session_log(jvm, ours)) == DELTAS_OWN
    assert dict(spark.sparkContext.getConf().getAll()) == settings

    handle: Any = spark.sparkContext._jvm
    conf = handle.org.apache.spark.SparkEnv.get().conf()
    conf.set("spark.delta.logStore.file.impl", "io.delta.storage.AzureLogStore")
    try:
        jvm.forget_log(others.as_uri())
        chosen = jvm.log_at(others.as_uri())
        assert jvm.make_commits_exclusive(chosen) == "io.delta.storage.AzureLogStore"
        assert store_name(jvm, chosen) == "io.delta.storage.AzureLogStore"
    finally:
        conf.remove("spark.delta.logStore.file.impl")
        jvm.forget_log(others.as_uri())


def test_delta_s_own_commands_commit_exclusively_in_a_classic_session(
    lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = table_of_files(lake / "t")
    engine.jvm.forget_log(path.as_uri())
    with CommandEngine(classic_sessions(lease)).worker("commands") as worker:
        facts = worker.reader.facts(TableRef(str(path)))
        step, batch = compaction(facts)
        assert worker.writer.rewrite(facts, step, batch, stamp(), no_intent).version == 4
    assert store_name(engine.jvm, session_log(engine.jvm, path)) == DELTAS_OWN
    assert versions_of_deltas_own(path) == []


def test_the_session_commits_through_delta_s_store_while_two_threads_of_ours_commit_exclusively(
    lease: SessionLease, lake: Path
) -> None:
    path = table_of_files(lake / "t")
    theirs = lease.spark.newSession()
    theirs.range(0).write.format("delta").mode("append").save(str(path))
    jvm = DeltaJvm(theirs)
    appended, ours, failures, numbers = list[int](), list[int](), list[BaseException](), count()

    def compact(number: int) -> None:
        try:
            with DeltaEngine(lease).worker(f"thread-{number}") as worker:
                while len(appended) < 3 or not ours:
                    facts = worker.reader.facts(TableRef(str(path)))
                    if len(facts.files) < 2:
                        time.sleep(0.1)
                        continue
                    step, batch = compaction(facts)
                    with suppress(CommitConflict):
                        receipt = worker.writer.rewrite(facts, step, batch, stamp(batch=next(numbers)), no_intent)
                        ours.append(receipt.version)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=compact, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for number in range(3):
        theirs.range(1000 + number, 1001 + number).write.format("delta").mode("append").save(str(path))
        appended.append(1000 + number)
        assert store_name(jvm, session_log(jvm, path)) == DELTAS_OWN
    for thread in threads:
        thread.join()
    assert failures == []
    # The first version is theirs, and so is whatever is not ours.
    newest = max(int(file.stem) for file in (path / "_delta_log").glob("*.json"))
    assert versions_of_deltas_own(path) == sorted(set(range(4, newest + 1)) - set(ours))
    assert ids_of(path) == [*range(40), *appended]


def test_the_session_s_log_commits_exclusively_until_the_last_of_two_commands_is_done(
    lease: SessionLease, lake: Path
) -> None:
    path = table_of_files(lake / "t", 1)
    first, second = (DeltaJvm(lease.spark.newSession()) for _ in range(2))
    properties = f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES"
    with first.commands_exclusive(session_log(first, path)) as writer:
        assert writer == EXCLUSIVE_LOG_STORE
        entered, leave = threading.Event(), threading.Event()

        def command() -> None:
            with second.commands_exclusive(session_log(second, path)):
                entered.set()
                leave.wait(60)
                second.spark.sql(f"{properties} ('a' = '2')")

        other = threading.Thread(target=command)
        other.start()
        assert entered.wait(60)
        first.spark.sql(f"{properties} ('a' = '1')")
    assert store_name(first, session_log(first, path)) == EXCLUSIVE_LOG_STORE
    leave.set()
    other.join()
    assert store_name(first, session_log(first, path)) == DELTAS_OWN
    first.spark.sql(f"{properties} ('a' = '3')")
    assert versions_of_deltas_own(path) == [3]


@pytest.mark.every_run
def test_a_commit_that_another_writer_put_its_own_over_is_made_again_on_top(
    lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = table_of_files(lake / "t")
    theirs = lake / "theirs"
    shutil.copytree(path, theirs)
    deltalake.write_deltalake(str(theirs), pa.table({"id": pa.array([77], pa.int64())}), mode="append")
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)

    def overwrite() -> None:
        assert commit_file(path, 4).exists()
        shutil.copytree(theirs, path, dirs_exist_ok=True)

    def rewrite() -> Any:
        with DeltaEngine(lease).worker("held") as held:
            return held.writer.rewrite(facts, step, batch, stamp(), no_intent)

    ended = interleave(lease.spark, rewrite, overwrite, Point.AFTER_PUBLISH)
    assert ended.reached
    assert isinstance(ended.error, CommitConflict)
    assert "another writer replaced our commit with its own (version 4, WRITE" in str(ended.error)
    assert ids_of(path) == [*range(40), 77]

    again = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(again)
    receipt = engine.writer.rewrite(again, step, batch, stamp(), no_intent)
    assert (receipt.version, receipt.num_files_removed) == (5, 5)
    assert ids_of(path) == [*range(40), 77]


@pytest.mark.contradicts(
    "rewrites_change_no_data",
    "metrics_agree_with_actions",
    reason="an action of our commit is taken out of the log on purpose",
)
def test_a_commit_that_stands_otherwise_than_it_was_handed_over_is_found(
    lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = table_of_files(lake / "t")
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)

    def change() -> None:
        lines = commit_file(path, 4).read_text(encoding="utf-8").splitlines()
        (gone, *_) = [line for line in lines if "remove" in json.loads(line)]
        commit_file(path, 4).unlink()
        commit_file(path, 4).write_text("".join(f"{line}\n" for line in lines if line != gone), encoding="utf-8")

    def rewrite() -> Any:
        with DeltaEngine(lease).worker("held") as held:
            return held.writer.rewrite(facts, step, batch, stamp(), no_intent)

    receipt = interleave(lease.spark, rewrite, change, Point.AFTER_PUBLISH).value()
    assert receipt.proof is not None
    (finding,) = receipt.proof.findings
    assert "was planned and is not removed" in finding
    assert not receipt.proof.holds


def test_no_acknowledged_append_of_another_process_is_lost_beside_our_commits(
    engine: DeltaTableEngine, lake: Path
) -> None:
    path = table_of_files(lake / "t")
    with subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(path), str(APPENDS)], stdout=subprocess.PIPE, text=True
    ) as appender:
        commits = 0
        while appender.poll() is None:
            facts = engine.reader.facts(TableRef(str(path)))
            step, batch = compaction(facts)
            if len(facts.files) > 1:
                engine.writer.rewrite(facts, step, batch, stamp(batch=commits), no_intent)
                commits += 1
        assert appender.stdout is not None
        acknowledged = [int(line) for line in appender.stdout.read().split()]
    assert appender.returncode == 0
    assert len(acknowledged) == APPENDS
    assert commits > 3
    assert ids_of(path) == [*range(40), *acknowledged]
