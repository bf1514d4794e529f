"""What a rewrite asks of its files before it reads them, and what becomes of a bin whose files a store refuses."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.delta.jvm import DeltaJvm, DirectAccess, UnstartedSession
from maintainer.delta.rewrite import bin_writer
from maintainer.delta.rewrite.bin_work import LaneUnfit, Workplace
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.commit import rewrite_commit
from maintainer.delta.rewrite.commit.batch_transaction import check_all_live, newest
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.rewrite.rewrite_proof import prove_rewrite
from maintainer.delta.storage.file_store import FilesHere, TransferError, java_quote
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.storage.table_log import TableLog
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.delta.transaction.requirements import MAX_NAMED, refuse_irregular_files
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import CommitConflict, CommitNotLanded, Refused, TableError
from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.steps import Batch, Bin, CompactStep
from maintainer.model.table.table_facts import DataFile, TableRef
from tests.support.tables.aged_tables import AgedTable
from tests.support.tables.local_vacuum import LocalReader, LocalTable


class Storage:
    """A table's folder on this disk."""

    def __init__(self, root: Path) -> None:
        self.files: object = LocalFiles()
        self._root = root

    def uri(self, relative: str) -> str:
        return f"file:{java_quote(str(self._root))}/{java_quote(relative)}"


def refuse(storage: Storage, *paths: str) -> None:
    refuse_irregular_files(cast(Any, storage), paths, "lake/t")


def test_files_and_links_to_files_are_read_and_what_is_missing_is_told_by_whoever_reads(tmp_path: Path) -> None:
    (tmp_path / "a b.parquet").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a b.parquet")
    refuse(Storage(tmp_path), "a b.parquet", "link", "gone")


def test_a_pipe_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError) as caught:
        refuse(Storage(tmp_path), "good", "pipe", "folder")
    assert (caught.value.code, caught.value.where, caught.value.found) == ("T422", "lake/t", "pipe\nfolder")
    assert caught.value.what.startswith("2 live files of the table are not regular files")


def test_of_many_a_few_are_named(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(MAX_NAMED + 3)]
    for name in names:
        os.mkfifo(tmp_path / name)
    with pytest.raises(TableError) as caught:
        refuse(Storage(tmp_path), *names)
    assert caught.value.found is not None
    assert caught.value.found.splitlines() == names[:MAX_NAMED]


@pytest.mark.parametrize(
    ("now", "is_planned"),
    [({"p": "2020-05-05 00:00:00"}, True), ({"p": "2020-05-05T00:00:00Z"}, False), ({"p": None}, False), ({}, False)],
)
def test_a_file_with_another_text_of_its_partition_is_not_the_planned_one(
    now: dict[str, str | None], is_planned: bool
) -> None:
    """Its path, its deleted rows and, in UTC, its moment are as planned; its text in the log decides."""
    text = "2020-05-05 00:00:00"
    file = DataFile("f", 1, 1, (("p", "2020-05-05T00:00:00Z"),), stored_values=(("p", text),))
    schema = {"fields": [{"name": "p", "type": "timestamp", "metadata": {}}]}
    metadata = {"schemaString": json.dumps(schema), "partitionColumns": ["p"]}
    job = SimpleNamespace(
        metadata=metadata, batch=Batch((Bin((file,)),)), storage=SimpleNamespace(commits=lambda after_version: []),
        facts=SimpleNamespace(version=3, ref=TableRef("lake/t")), where="lake/t",
    )  # fmt: skip
    with nullcontext() if is_planned else pytest.raises(CommitConflict, match="1 of 1 files are no longer live"):
        check_all_live(cast(Any, job), {file.key: {"path": "f", "partitionValues": now}})


@pytest.mark.parametrize(
    ("committed", "is_tried", "stays"),
    [("part-run-1-", True, True), ("part-run-2-", True, False), ("part-run-1-", False, False), (None, True, True)],
    ids=["a commit names it", "no commit names it", "no commit was tried", "the log cannot be read"],
)
def test_what_a_commit_names_is_not_discarded(
    tmp_path: Path, committed: str | None, is_tried: bool, stays: bool
) -> None:
    """Whatever our reader of commits said of an attempt that failed: the bytes of the log decide."""
    table = AgedTable(tmp_path / "t")
    table.append(60, "a.parquet")
    written = table.file("part-run-1-x.parquet", 0)
    other = table.file(f"{committed}y.parquet", 0)
    table.commit(0, table.add_action(other.name, 0))
    facts = LocalReader().facts(table.ref)
    job = RewriteJob(cast(Any, None), facts, cast(Any, None), Batch((Bin(facts.files[:1]),)), "", cast(Any, None))
    job.file_prefix = "part-run-1-"
    job.storage, job.read_version, job.is_tried, job.is_written = LocalTable(table.path), 1, is_tried, True
    if committed is None:
        table.file(f"_delta_log/{table.head:020}.json", 0).unlink()
        (table.path / f"_delta_log/{2:020}.json").mkdir()
    job.discard()
    assert written.exists() == stays
    assert job.left_over == (("files whose names begin with part-run-1-",) if stays else ())


def test_an_object_store_is_not_asked(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.files = SimpleNamespace(asks_by_request=True)
    os.mkfifo(tmp_path / "pipe")
    refuse(storage, "pipe")


class Here:
    """Files of a store, on this machine: each transfer is refused, or the new file is not what was written."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def fetch(self, sizes: dict[str, int]) -> None:
        raise self._error

    def publish(self, uri: str) -> None:
        raise self._error


def test_a_transfer_that_the_store_refuses_makes_the_bin_unfit_and_other_bytes_end_the_table(tmp_path: Path) -> None:
    def place(error: Exception) -> Workplace:
        return Workplace(cast(FilesHere, Here(error)), never)

    table = TableLog(LocalFiles(), path_uri(str(tmp_path)))
    with pytest.raises(LaneUnfit, match="its files cannot be fetched: 403"):
        place(TransferError("403")).fetch(table, [{"path": "f", "size": 1}])
    with pytest.raises(LaneUnfit, match="its new file cannot be stored: 403"):
        place(TransferError("403")).publish("f")
    with pytest.raises(CommitNotLanded):
        place(CommitNotLanded("other bytes")).publish("f")


@pytest.mark.parametrize("lane", [Lane.COPY, Lane.LOCAL])
def test_a_bin_that_is_unfit_for_a_lane_is_written_by_spark_and_other_bytes_by_nobody(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, left = list[Lane](), list[str]()

    def written(error: Exception) -> LaneChoice:
        def write(lane: Lane) -> Any:
            def write(*of_bin: object) -> list[object]:
                asked.append(lane)
                if lane is Lane.SPARK:
                    return []
                raise error

            return write

        for name, of_lane in (("copy", Lane.COPY), ("spark", Lane.SPARK)):
            monkeypatch.setattr(bin_writer, f"write_by_{name}", write(of_lane))
        monkeypatch.setattr(bin_writer, "write_in_process", write(Lane.LOCAL))
        monkeypatch.setattr(bin_writer, "_work_of", lambda job, number: SimpleNamespace(table=None, sources=()))
        failures: list[BaseException] = []
        job = SimpleNamespace(
            meter=StepMeter(), lanes={}, write_failures=failures, sources_of=lambda bins: (), where="t",
            delete_written=left.extend, place=SimpleNamespace(fetch=lambda table, adds: None), spread=None,
        )  # fmt: skip
        bin_writer._write_bin(cast(Any, job), 0, Bin((DataFile("f", 1, 1),), LaneChoice(lane, "small", lane)))
        for failure in failures:
            raise failure
        return cast(LaneChoice, job.lanes[0])

    unfit = LaneUnfit("its files cannot be fetched")
    unfit.stored = ("a new file",)
    assert written(unfit) == LaneChoice(Lane.SPARK, "its files cannot be fetched")
    assert left == ["a new file"]
    assert asked == [lane, Lane.SPARK]
    with pytest.raises(CommitNotLanded):
        written(CommitNotLanded("other bytes"))
    assert asked == [lane, Lane.SPARK, lane]


def never(*anything: object) -> Any:
    raise AssertionError("a JVM was asked for")


def unstarted() -> DeltaJvm:
    """Calls of a session that never starts; what it would be set to is known."""
    direct = DirectAccess({}, frozenset({"file"}))
    return DeltaJvm(UnstartedSession(never, never, never, False, {"spark.master": "local[*]"}, direct))


def test_bins_outside_spark_are_written_and_proven_before_java_starts(tmp_path: Path) -> None:
    for number in range(3):
        rows = pa.table({"id": [number, 7], "name": ["é", None], "part": ["a b", "c"]})
        deltalake.write_deltalake(str(tmp_path), rows, mode="append", partition_by=["part"])
    commits = sorted((tmp_path / "_delta_log").iterdir())
    jvm = unstarted()
    facts = DeltaTableEngine(jvm, "g").reader.facts(TableRef(path_uri(str(tmp_path))))
    bins = tuple(
        Bin(tuple(file for file in facts.files if dict(file.partition_values) == {"part": part}), in_process)
        for part, in_process in (("a b", LaneChoice(Lane.LOCAL, "small")), ("c", LaneChoice(Lane.LOCAL, "small")))
    )
    batch = Batch(bins)
    job = RewriteJob(jvm, facts, CompactStep((batch,), 1 << 20, 2, ()), batch, "g", LiveFilesReader(jvm))
    with job.opened():
        write_bins(job)
        proof = prove_rewrite(job)
        assert [choice.lane for choice in job.lanes.values()] == [Lane.LOCAL, Lane.LOCAL]
        assert (proof.read, proof.read.rows, job.transaction) == (proof.written, 6, None)
        for part in ("a b", "c"):
            (new,) = (file.path for file in job.written if file.add["partitionValues"] == {"part": part})
            stored = pq.ParquetFile(tmp_path / unquote(new)).read()
            before = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table(filters=[("part", "=", part)])
            assert before.num_rows == 3
            assert stored.sort_by("id").to_pydict() == before.select(["id", "name"]).sort_by("id").to_pydict()
        job.discard()
    assert sorted((tmp_path / "_delta_log").iterdir()) == commits


def test_a_commit_does_not_begin_where_a_file_has_another_text_of_its_partition_by_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else changed since its rows were read: not its path, nor its deleted rows."""
    file = DataFile("f", 1, 1, (("p", "2020-05-05T00:00:00Z"),), stored_values=(("p", "2020-05-05 00:00:00"),))
    schema = {"fields": [{"name": "p", "type": "timestamp", "metadata": {}}]}
    live = SimpleNamespace(adds={file.key: {"path": "f", "partitionValues": {"p": "2020-05-05T00:00:00Z"}}})
    job = RewriteJob(
        cast(Any, None), cast(Any, SimpleNamespace(version=3, ref=TableRef("lake/t"))), cast(Any, None),
        Batch((Bin((file,)),)), "", cast(Any, None),
    )  # fmt: skip
    job.metadata = {"schemaString": json.dumps(schema), "partitionColumns": ["p"]}
    job.storage = cast(Any, SimpleNamespace(commits=lambda after_version: []))
    monkeypatch.setattr(rewrite_commit, "newest", lambda job: (None, live))
    with pytest.raises(CommitConflict, match="1 of 1 files are no longer live as planned"):
        rewrite_commit._on_newest(job, cast(Any, None))
    assert job.transaction is None


def test_a_place_where_a_commit_could_overwrite_another_is_refused_before_delta_is_asked(tmp_path: Path) -> None:
    """A session that started only for the commit: what would have been refused before anything was written."""
    facts = SimpleNamespace(location=f"file:{tmp_path}", ref=TableRef("lake/t"))
    jvm = SimpleNamespace(
        start=lambda: None, setting=lambda key, value: nullcontext(), session_setting={}.get, log_at=lambda uri: None,
        make_commits_exclusive=lambda log: "no hard links", update=never,
    )  # fmt: skip
    job = RewriteJob(
        cast(Any, jvm), cast(Any, facts), cast(Any, None), Batch((Bin((DataFile("f", 1, 1),)),)), "", cast(Any, None)
    )
    with pytest.raises(Refused) as caught:
        newest(job)
    assert (caught.value.code, caught.value.found) == ("A433", "the file system has no hard links")
