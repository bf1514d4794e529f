"""Bins that executors write: what the driver makes of an answer, of one that never comes, and of a late attempt.

The tasks run here, from what pickle sends of them; Spark itself runs them in `fault/test_spread_bins.py`.
"""

from __future__ import annotations

import errno
import os
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from maintainer.delta.engine import table_engine
from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.rewrite import bin_writer
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.commit.carried_deletes import CarriedDeletes
from maintainer.delta.rewrite.executors import executor_tasks
from maintainer.delta.rewrite.executors.executor_tasks import MAX_ATTEMPTS
from maintainer.delta.rewrite.local.local_lane import write_in_process
from maintainer.delta.rewrite.local.parquet_writer import write_local
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.rewrite.rewrite_proof import prove_rewrite
from maintainer.delta.storage.file_store import StoredFile, TransferError, local_path
from maintainer.delta.storage.local_files import LocalFiles, OnDisk
from maintainer.delta.storage.object_files import ObjectFiles
from maintainer.delta.storage.table_storage import TableStorage, bucket_of
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.errors import CheckImpossible, VerificationFailed
from maintainer.model.plan.lanes import Codec, Lane
from maintainer.model.run.receipts import Proof
from tests.support.writers.tasks_here import Attempt, Cluster, Rewrite, Tasks, never, once


@pytest.fixture
def rewrite(tmp_path: Path) -> Rewrite:
    return Rewrite(tmp_path / "t")


def proven(job: RewriteJob) -> Proof:
    write_bins(job)
    return prove_rewrite(job)


def name_of(path: str) -> str:
    return unquote(path).rpartition("/")[2]


def names(job: RewriteJob) -> set[str]:
    return {name_of(file.path) for file in job.written}


def attempts(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: SimpleNamespace(attemptNumber=lambda: number))


def test_bins_are_written_and_proven_by_tasks_and_the_driver_opens_no_file(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rewrite.job(Tasks()) as job:
        monkeypatch.setattr(type(job.place), "fetch", lambda place, *args: None if place is not job.place else never())
        monkeypatch.setattr(type(job.place), "path", _path_of_others(job))
        proof = proven(job)
        (use,) = proof.lanes
        assert (use.lane, use.num_bins, use.prover, use.reason) == (Lane.LOCAL, 2, "DuckDB", "small; on an executor")
        assert (proof.read, proof.read.rows) == (proof.written, 12)
        for file in job.written:
            rows = pq.ParquetFile(rewrite.path / unquote(file.path)).read().to_pydict()["id"]
            assert sorted(rows) == (
                [0, 1, 2, 7, 7, 7] if file.add["partitionValues"]["part"] == "a b" else [8, 8, 8, 9, 9, 9]
            )
        assert rewrite.new_files == names(job)
        job.discard()
    assert (rewrite.lacks, rewrite.new_files) == ([], set())


@pytest.mark.nightly  # a JVM starts
def test_row_groups_are_copied_by_a_small_jvm_of_the_task(rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintainer.delta.rewrite.copy_lane.MIN_ROW_GROUP_BYTES", 1)
    rewrite.lane, rewrite.codec = Lane.COPY, Codec.SNAPPY
    with rewrite.job(Tasks()) as job:
        proof = proven(job)
        (use,) = proof.lanes
        assert (use.lane, use.num_bins, use.prover, proof.read.rows) == (Lane.COPY, 2, "column chunks", 12)
        assert (proof.holds, rewrite.new_files) == (True, names(job))
        job.discard()


def test_where_others_deleted_rows_since_an_executors_proof_does_not_count(rewrite: Rewrite) -> None:
    with rewrite.job(Tasks()) as job:
        proven(job)
        assert job.spread is not None
        assert job.spread.part_of(job, 0) is not None
        job.carried_deletes = CarriedDeletes(job.batch, job.source_of, tuple(job.written), bins=frozenset({0}))
        assert job.spread.part_of(job, 0) is None
        assert job.spread.part_of(job, 1) is not None
        job.carried_deletes = None
        job.discard()


def test_a_bin_costs_one_look_at_its_file_and_no_question(rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    status, ask = TableStorage.status, Cluster.session_setting
    once_asked = ("spark.master", "spark.speculation", "spark.executor.cores")

    def look(storage: TableStorage, uri: str) -> Any:
        looked.append(uri)
        return status(storage, uri)

    with rewrite.job(Tasks()) as job:
        assert job.spread is not None
        assert job.spread.are_ready(job)
        monkeypatch.setattr(TableStorage, "status", look)
        monkeypatch.setattr(
            Cluster, "session_setting", lambda jvm, key: never() if key in once_asked else ask(jvm, key)
        )
        monkeypatch.setattr(LiveFilesReader, "statistics", never)  # they were read with the files
        write_bins(job)
        looked.clear()
        assert prove_rewrite(job).source_statistics.num_computed == 6
        assert sorted(looked) == sorted(job.storage.uri(file.path) for file in job.written)
        job.discard()


def _path_of_others(job: RewriteJob) -> Callable[..., str]:
    path = type(job.place).path
    return lambda place, uri: never() if place is job.place else path(place, uri)


def test_an_executors_proof_counts_only_for_the_file_that_it_was_made_of(rewrite: Rewrite) -> None:
    """Other rows under the same name, in a file of the same size: the driver reads it itself, and finds them."""
    with rewrite.job(Tasks(), spread=True, **{"spark.master": "local[2]"}) as job:
        write_bins(job)
        forged = rewrite.path / unquote(job.written[0].path)
        highest = max(pq.ParquetFile(forged).read()["id"].to_pylist())
        content = forged.read_bytes().replace(struct.pack("<q", highest), struct.pack("<q", highest + 50))
        forged.unlink()
        forged.write_bytes(content)
        assert max(pq.ParquetFile(forged).read()["id"].to_pylist()) == highest + 50
        assert forged.stat().st_size == job.written[0].size_bytes
        os.utime(forged, (1, 1))
        with pytest.raises(VerificationFailed) as caught:
            prove_rewrite(job)
        assert caught.value.code == "V501"
        job.discard()


def test_what_an_executor_wrote_wrong_is_refused(rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second engine reads it there; the driver compares both sides."""

    def forging(rows: Iterable[pa.RecordBatch], target: Any) -> str | None:
        return write_local((batch.slice(1) for batch in rows), target)

    monkeypatch.setattr("maintainer.delta.rewrite.local.local_lane.write_local", forging)
    with rewrite.job(Tasks()) as job:
        write_bins(job)
        with pytest.raises(VerificationFailed) as caught:
            prove_rewrite(job)
        assert caught.value.code == "V501"
        job.discard()
    assert rewrite.new_files == set()


def test_a_second_attempt_has_names_of_its_own_and_the_first_ones_file_goes_by_its_name(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: set[str] = set()

    def twice(attempt: Attempt) -> Any:
        attempts(monkeypatch, 0)
        once(attempt)
        left.update(rewrite.new_files)
        attempts(monkeypatch, 1)
        return once(attempt)

    bystander = rewrite.path / "part=c" / "part-run-10-of-somebody-else.parquet"
    bystander.write_bytes(b"x")
    with rewrite.job(Tasks(twice)) as job:
        proof = proven(job)
        assert proof.holds
        assert all("-a1-" in name for name in names(job))
        assert {name for name in left if "-a0-" in name} <= set(map(name_of, proof.late_paths))
        assert names(job).isdisjoint(map(name_of, proof.late_paths))
        assert len([name for name in left if "-a0-" in name]) == 2
        assert rewrite.new_files == names(job) | {bystander.name}


def test_a_task_that_is_lost_costs_its_bin_and_what_it_left_goes_by_its_name(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[Attempt] = []

    def lost(attempt: Attempt) -> Any:
        late.append(attempt)
        once(attempt)
        raise RuntimeError("ExecutorLostFailure (executor 1 exited)")

    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    with rewrite.job(Tasks(lost)) as job:
        write_bins(job)
        assert {choice.lane for choice in job.lanes.values()} == {Lane.SPARK}
        assert {choice.reason for choice in job.lanes.values()} == {
            "its task was lost: ExecutorLostFailure (executor 1 exited)"
        }
        assert rewrite.new_files == set()
        once(late[0])  # an attempt that nobody waits for any more
        assert len(rewrite.new_files) == 1
        job.remove_unneeded()
        assert rewrite.new_files == set()
        once(late[0])
        (stray,) = (path for path in rewrite.path.rglob("part-run-*"))
        assert job.spread is not None
        writer = DeltaTableEngine(job.jvm, "g").writer
        # Not by what a folder holds: by the names that were recorded.
        monkeypatch.setattr(DeltaJvm, "start", lambda jvm: None)
        monkeypatch.setattr(table_engine, "find_name", lambda *anything: None)
        monkeypatch.setattr(table_engine, "TableStorage", lambda *anything: job.storage)
        monkeypatch.setattr(DeltaJvm, "log_at", lambda *anything: None)
        monkeypatch.setattr(LocalFiles, "list_from", 2)  # as on a store
        monkeypatch.setattr(LocalFiles, "listed_in", lambda files, folders: iter([never() for _ in folders]))
        gone, left = writer.remove_late(job.facts, job.spread.other_paths)
        assert ([unquote(path).rpartition("/")[2] for path in gone], left) == ([stray.name], ())
        assert writer.remove_late(job.facts, job.spread.other_paths) == ((), ())


def test_a_file_of_a_late_attempt_that_is_live_stays_and_ends_the_look(rewrite: Rewrite) -> None:
    with rewrite.job(Tasks(never)) as job:
        live = job.facts.files[0].path
        with pytest.raises(CheckImpossible, match="V504"):
            DeltaTableEngine(job.jvm, "g").writer.remove_late(job.facts, ["no-such-file", live])
        assert (rewrite.path / unquote(live)).exists()


def test_more_attempts_than_there_are_names_for_write_nothing(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts(monkeypatch, MAX_ATTEMPTS)
    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    with rewrite.job(Tasks()) as job:
        write_bins(job)
        assert {choice.reason for choice in job.lanes.values()} == {
            "its task was lost: 2 attempts ended without an answer"
        }
        assert rewrite.new_files == set()


def test_a_disk_that_is_full_there_costs_the_bin(rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(work: Any, place: Any) -> Any:
        Path(place.path(work.table.uri(work.path()))).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(executor_tasks, "write_in_process", full)
    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    with rewrite.job(Tasks()) as job:
        write_bins(job)
        assert {choice.reason for choice in job.lanes.values()} == {
            "an executor could not write it: [Errno 28] No space left on device"
        }
        assert rewrite.new_files == set()


def test_what_a_store_took_and_refused_to_show_an_executor_goes_also_when_it_comes_late(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: dict[Path, bytes] = {}

    def refuse(here: OnDisk, uri: str) -> StoredFile:
        path = Path(local_path(uri))
        taken[path] = path.read_bytes()
        raise TransferError("403 Forbidden")

    monkeypatch.setattr(OnDisk, "publish", refuse)
    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    with rewrite.job(Tasks()) as job:
        write_bins(job)
        assert {choice.reason for choice in job.lanes.values()} == {"its new file cannot be stored: 403 Forbidden"}
        assert (len(taken), rewrite.new_files) == (2, set())
        for path, content in taken.items():
            path.write_bytes(content)
        assert rewrite.new_files <= set(map(name_of, job.late_paths))
        job.remove_unneeded()
        assert rewrite.new_files == set()


def test_a_file_that_this_machine_does_not_see_costs_the_bin_and_goes_when_it_appears(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies on the disk of another machine, or a mount shows it late."""
    hidden: dict[Path, bytes] = {}

    def elsewhere(attempt: Attempt) -> Any:
        found = once(attempt)
        for path in rewrite.path.rglob("part-run-*"):
            hidden[path] = path.read_bytes()
            path.unlink()
        return found

    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    with rewrite.job(Tasks(elsewhere)) as job:
        write_bins(job)
        for choice in job.lanes.values():
            assert choice.lane is Lane.SPARK
            assert "which is not on this machine's disk" in choice.reason
        for path, content in hidden.items():
            path.write_bytes(content)
        assert rewrite.new_files == set(map(name_of, job.late_paths)) != set()
        job.remove_unneeded()
        assert rewrite.new_files == set()


def test_the_places_of_ordered_rows_are_kept_once_and_bounded(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = [np.arange(6)]
    monkeypatch.setattr(
        executor_tasks, "write_in_process", lambda *bin_: replace(write_in_process(*bin_), row_order=order)
    )
    monkeypatch.setattr(bin_writer, "ORDERED_ROWS_KEPT", 6)
    with rewrite.job(Tasks()) as job:
        assert proven(job).holds
        assert (len(job.row_orders), len(names(job))) == (1, 2)
        assert job.spread is not None
        assert [answer.written and answer.written.row_order for answer in job.spread.answers.values()] == [None, None]
        job.discard()


def test_few_names_are_looked_at_one_by_one_and_where_spark_speculates_after_the_commit(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may hold a million files."""
    looked: list[object] = []

    def listed(files: LocalFiles, folders: Iterable[str]) -> Iterator[StoredFile]:
        looked.extend(folders)
        return iter(())

    with rewrite.job(Tasks(), None, **{"spark.speculation": "true"}) as job:
        with monkeypatch.context() as patched:
            patched.setattr(RewriteJob, "delete_found", lambda *anything: looked.append(anything))
            write_bins(job)
        assert (looked, len(job.late_paths)) == ([], 2 * (MAX_ATTEMPTS - 1))
        for path in job.late_paths[:: MAX_ATTEMPTS - 1]:
            (rewrite.path / unquote(path)).write_bytes(b"late")
        with monkeypatch.context() as patched:
            patched.setattr(LocalFiles, "list_from", 2)  # as on a store
            patched.setattr(LocalFiles, "listed_in", listed)
            job.remove_unneeded()
        assert (looked, rewrite.new_files) == ([], names(job))
        job.discard()


def test_a_store_is_opened_again_from_its_settings_and_they_are_in_no_text() -> None:
    conf = {"spark.hadoop.fs.s3a.access.key": "AKIA", "spark.hadoop.fs.s3a.secret.key": "hidden-one"}
    settings = store_settings("s3a://bucket", conf)
    files = ObjectFiles("s3a://bucket", bucket_of("s3a://bucket", settings), never)
    sent = pickle.loads(pickle.dumps(files))
    assert sent._bucket.reopen.args == ("s3a://bucket", settings)
    assert "hidden-one" not in repr(sent._bucket)
