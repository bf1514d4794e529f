"""A bin outside Spark is work that can be sent to another process: values, a file store, and the lane's function."""

from __future__ import annotations

import datetime
import json
import pickle
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.staged_file import Marks
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace
from maintainer.delta.rewrite.local import batch_size, local_lane
from maintainer.delta.rewrite.local.local_lane import write_in_process
from maintainer.delta.rewrite.local.parquet_writer import LocalTarget, write_local
from maintainer.delta.storage.file_store import StoredFile, TransferError
from maintainer.delta.storage.local_files import LocalFiles, OnDisk
from maintainer.delta.storage.log_paths import path_uri
from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.steps import CompactStep, PartitionRewriteStep, RewriteStep

SCHEMA = {"fields": [{"name": "id", "type": "long", "metadata": {}}, {"name": "day", "type": "date", "metadata": {}}]}
COMPACT = CompactStep((), 1 << 20, 1, ())


def never(*anything: object) -> Any:
    raise AssertionError("a JVM was asked for")


def work_on(folder: Path, days: list[int], step: RewriteStep = COMPACT, num_files: int = 1) -> BinWork:
    """A bin of one file for each day, counted from 1970."""
    sources = []
    for number, day in enumerate(days):
        rows = pa.table({"id": [number, number], "day": pa.array([day, None], pa.int32()).cast(pa.date32())})
        pq.write_table(rows, folder / f"{number}.parquet")
        size = (folder / f"{number}.parquet").stat().st_size
        sources.append({"path": f"{number}.parquet", "size": size, "partitionValues": {}, "stats": None})
    metadata = {"schemaString": json.dumps(SCHEMA), "partitionColumns": [], "configuration": {}}
    return BinWork(
        number=0, size_bytes=1, step=step, num_files=num_files, sources=tuple(sources),
        deleted_rows=tuple(() for _ in days), metadata=metadata, files=LocalFiles(), root_uri=path_uri(str(folder)),
        where="t", path_stem="part-run", codec="snappy", tight_bounds=False, marks=Marks((("A", "b"),)),
    )  # fmt: skip


def test_a_bin_is_written_by_what_arrives_of_it_and_what_was_written_is_sent_back(tmp_path: Path) -> None:
    sent: BinWork = pickle.loads(pickle.dumps(work_on(tmp_path, [3, 1, 2])))
    written = write_in_process(sent, Workplace(OnDisk(), never))
    assert pickle.loads(pickle.dumps(written)) == written
    (file,), (stored,) = written.files, written.stored
    assert (file.path, file.tags, stored.size_bytes) == ("part-run-c000.snappy.parquet", (("A", "b"),), file.size_bytes)
    rows = pq.read_table(tmp_path / file.path).to_pydict()
    assert rows["id"] == [0, 0, 1, 1, 2, 2]
    assert rows["day"][::2] == [datetime.date(1970, 1, day) for day in (4, 2, 3)]


def test_where_a_later_file_cannot_be_written_those_before_it_are_named(tmp_path: Path) -> None:
    """A day behind the year 9999 has no text in the log, and stands in the last file."""
    step = PartitionRewriteStep((), RewriteRequest(2, None, ("day",)), 1, ())
    with pytest.raises(LaneUnfit, match="beyond the year 9999") as caught:
        write_in_process(work_on(tmp_path, [5, 3_000_000], step, 2), Workplace(OnDisk(), never))
    assert caught.value.stored == ("part-run-c000.snappy.parquet",)
    assert [path.name for path in tmp_path.glob("part-*")] == ["part-run-c000.snappy.parquet"]


class Mute(OnDisk):
    """A store that took a file, and then refuses to say so."""

    def __init__(self, part: int) -> None:
        self._part = f"-c00{part}."

    def publish(self, uri: str) -> StoredFile:
        if self._part in uri:
            raise TransferError("403 Forbidden")
        return super().publish(uri)


@pytest.mark.parametrize("part", [0, 1])
def test_a_file_that_the_store_refused_is_named_since_it_may_have_taken_it(tmp_path: Path, part: int) -> None:
    step = PartitionRewriteStep((), RewriteRequest(2, None, ("day",)), 1, ())
    with pytest.raises(LaneUnfit, match="its new file cannot be stored: 403 Forbidden") as caught:
        write_in_process(work_on(tmp_path, [5, 6], step, 2), Workplace(Mute(part), never))
    assert set(caught.value.stored) == {path.name for path in tmp_path.glob("part-*")}
    assert len(caught.value.stored) == part + 1


def test_rows_in_an_order_are_taken_in_parts_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "BYTES_AT_ONCE", 40)
    taken: list[int] = []

    def counted(rows: Iterable[pa.RecordBatch], target: LocalTarget) -> str | None:
        batches = list(rows)
        taken.extend(batch.num_rows for batch in batches)
        return write_local(batches, target)

    monkeypatch.setattr(local_lane, "write_local", counted)
    step = PartitionRewriteStep((), RewriteRequest(2, None, ("id",)), 1, ())
    written = write_in_process(work_on(tmp_path, [3, 1, 2, 4, 5], step, 2), Workplace(OnDisk(), never))
    assert [pq.read_table(tmp_path / file.path)["id"].to_pylist() for file in written.files] == [
        [0, 0, 1, 1, 2],
        [2, 3, 3, 4, 4],
    ]
    assert sum(taken) == 10
    assert max(taken) <= 3


@pytest.mark.parametrize(("property", "low", "high"), [
    ({}, "a" * 32, "b" * 32 + "\x7f"),
    ({"delta.dataSkippingStringPrefixLength": "4"}, "aaaa", "bbbb\x7f"),
    ({"delta.dataSkippingStringPrefixLength": "100"}, "a" * 40, "b" * 40),
    ({"delta.dataSkippingStringPrefixLength": "0"}, "", None),
])  # fmt: skip
def test_bounds_of_texts_are_as_long_as_the_table_asks(
    property: dict[str, str], low: str, high: str, tmp_path: Path
) -> None:
    work = work_on(tmp_path, [1, 2])
    schema = {"fields": [*SCHEMA["fields"], {"name": "name", "type": "string", "metadata": {}}]}
    for number, name in enumerate(("a" * 40, "b" * 40)):
        rows = pq.read_table(tmp_path / f"{number}.parquet")
        pq.write_table(rows.append_column("name", pa.array([name, None])), tmp_path / f"{number}.parquet")
    metadata = {**work.metadata, "schemaString": json.dumps(schema), "configuration": property}
    written = write_in_process(replace(work, metadata=metadata), Workplace(OnDisk(), never))
    said = json.loads(written.files[0].add["stats"])
    assert (said["minValues"]["name"], said["maxValues"].get("name")) == (low, high)
