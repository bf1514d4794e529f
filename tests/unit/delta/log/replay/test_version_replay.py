"""A log is replayed as Delta's protocol says; one that is incomplete, damaged or too large is refused."""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.jvm import DeltaJvm, DirectAccess, UnstartedSession
from maintainer.delta.log.replay import checkpoint_actions, version_replay
from maintainer.delta.log.replay.version_replay import IncompleteLog, ReplayedVersion, replay_version
from maintainer.delta.storage.table_storage import TableStorage

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {"metaData": {"id": "a-b", "schemaString": "{}", "partitionColumns": [], "configuration": {}}}


def never() -> Any:
    raise AssertionError("a JVM was asked for")


NEVER_STARTED = UnstartedSession(never, never, never, False, {}, DirectAccess({}, frozenset({"file"})))


class Log:
    """A log folder on this disk."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "_delta_log"
        self.folder.mkdir()
        self.root_uri = f"file:{root}"

    def commit(self, version: int, *actions: dict[str, Any]) -> Path:
        path = self.folder / f"{version:020d}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
        os.utime(path, (1_000 + version, 1_000 + version))
        return path

    def read(self) -> ReplayedVersion:
        return replay_version(TableStorage(DeltaJvm(NEVER_STARTED), self.root_uri))

    def paths(self) -> list[str]:
        log_state = self.read()
        return sorted(path for path, _ in log_state.state.files)


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "size": 1, "modificationTime": 2, "dataChange": True, **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, **more}}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(tmp_path)
    made.commit(0, {"commitInfo": {"operation": "WRITE"}}, PROTOCOL, METADATA, add("a"), add("b"))
    return made


def test_the_newest_of_each_file_wins(log: Log) -> None:
    log.commit(1, remove("a"), add("c"))
    log.commit(2, add("b", tags={"x": "1"}), remove("b"))  # a commit's removes come first, wherever they stand
    log_state = log.read()
    assert (log_state.state.version, log_state.committed_at_ms) == (2, 1_002_000)
    assert log.paths() == ["b", "c"]
    assert log_state.state.files["b", ""].tags == {"x": "1"}
    assert log_state.commit.name == f"{2:020d}.json"


def test_of_statistics_only_the_count_is_kept(log: Log) -> None:
    stats = {"numRecords": 7, "minValues": {"id": 1}}
    more = {"minValues": {"id": 1}, "numRecords": 8}
    log.commit(
        1, add("c", stats=json.dumps(stats)), add("d", stats=json.dumps(more)), add("e", stats='{"maxValues":{}}')
    )
    log_state = log.read()
    statistics = {path: file.as_add().get("stats") for (path, _), file in log_state.state.files.items()}
    assert statistics == {"a": None, "b": None, "c": '{"numRecords":7}', "d": '{"numRecords":8}', "e": None}


def test_a_deletion_vector_makes_another_file(log: Log) -> None:
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    log.commit(1, remove("a"), add("a", deletionVector=vector))
    log_state = log.read()
    assert {path: bool(vector_id) for path, vector_id in log_state.state.files} == {"a": True, "b": False}
    log.commit(2, remove("a", deletionVector=vector))
    assert log.paths() == ["b"]


def test_the_newest_metadata_and_protocol_count(log: Log) -> None:
    changed = {"metaData": {"id": "a-b", "schemaString": "{}", "configuration": {"delta.x": "1"}}}
    log.commit(
        1, changed, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"]}}
    )
    log_state = log.read()
    assert log_state.state.metadata["configuration"] == {"delta.x": "1"}
    assert log_state.state.metadata["partitionColumns"] == []
    assert log_state.state.protocol["readerFeatures"] == ["v2Checkpoint"]


def test_a_commit_that_tells_its_own_time_is_believed_where_the_table_says_so(log: Log) -> None:
    on = {"metaData": {**METADATA["metaData"], "configuration": {"delta.enableInCommitTimestamps": "true"}}}
    log.commit(1, {"commitInfo": {"inCommitTimestamp": 5_000}}, on)
    log_state = log.read()
    assert log_state.committed_at_ms == 5_000
    log.commit(1, {"commitInfo": {"inCommitTimestamp": 5_000}})
    log_state = log.read()
    assert log_state.committed_at_ms == 1_001_000


def test_a_damaged_checkpoint_is_an_error(log: Log) -> None:
    (log.folder / f"{0:020d}.checkpoint.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match="Parquet"):
        log.read()


def test_a_gap_and_a_log_without_a_beginning_are_refused(log: Log) -> None:
    log.commit(2, add("d"))
    with pytest.raises(IncompleteLog, match="version 1 is missing"):
        log.read()
    (log.folder / f"{0:020d}.json").unlink()
    with pytest.raises(IncompleteLog, match="version 0 is missing"):
        log.read()


def test_other_files_in_the_log_change_nothing(log: Log) -> None:
    for name in (
        f"{0:020d}.crc",
        f"{0:020d}.{3:020d}.compacted.json",
        "_last_checkpoint",
        ".s3-optimization-0",
        "x.json.tmp",
    ):
        (log.folder / name).write_text("{}")
    (log.folder / "_staged_commits").mkdir()
    assert log.paths() == ["a", "b"]


def test_what_is_no_json_or_no_utf_8_is_an_error(log: Log) -> None:
    path = log.commit(1, add("c"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        log.read()
    path.write_bytes(b'{"add":"\xff"}\n')
    with pytest.raises(ValueError, match="utf-8"):
        log.read()


def test_a_log_without_a_table_and_one_that_is_too_long_are_refused(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_replay, "MAX_LOG_BYTES", 100)
    with pytest.raises(IncompleteLog, match="commits to be read"):
        log.read()
    monkeypatch.undo()
    log.commit(0, add("a"))
    with pytest.raises(IncompleteLog, match="no metadata"):
        log.read()
    (log.folder / f"{0:020d}.json").unlink()
    with pytest.raises(IncompleteLog, match="no version"):
        log.read()


def test_another_engine_sees_the_same_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for day in ("2026-11-20", "2026-11-21 x", None):
        rows = pa.table({"id": [1, 2, 3], "d": pa.array([day] * 3, pa.string())})
        deltalake.write_deltalake(str(path), rows, mode="append", partition_by=["d"])
    deltalake.DeltaTable(str(path)).delete("id = 2 AND d = '2026-11-20'")
    deltalake.write_deltalake(str(path), pa.table({"id": [9], "d": ["z"]}), mode="append")
    deltalake.DeltaTable(str(path)).optimize.compact()
    deltalake.DeltaTable(str(path)).delete("d = 'z'")
    log = Log.__new__(Log)
    log.folder, log.root_uri = path / "_delta_log", f"file:{path}"
    log_state = log.read()
    ours = {
        unquote(add["path"]): (
            add["size"],
            add["modificationTime"],
            add["partitionValues"]["d"],
            json.loads(add["stats"]),
        )
        for add in (file.as_add() for file in log_state.state.files.values())
    }
    theirs = pa.table(deltalake.DeltaTable(str(path)).get_add_actions(flatten=True)).to_pylist()
    assert ours == {
        unquote(add["path"]): (
            add["size_bytes"],
            add["modification_time"],
            add["partition.d"],
            {"numRecords": add["num_records"]},
        )
        for add in theirs
    }
    assert len(ours) == 3
    assert log_state.state.version == deltalake.DeltaTable(str(path)).version()


def checkpoint(log: Log, name: str, rows: list[dict[str, Any]]) -> Path:
    path = log.folder / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, CHECKPOINT), path)
    return path


UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
MAP = pa.map_(pa.string(), pa.string())
CHECKPOINT = pa.schema(
    {
        "metaData": pa.struct({"id": pa.string(), "schemaString": pa.string(), "configuration": MAP}),
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "readerFeatures": pa.list_(pa.string())}),
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
        "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64()}),
        "remove": pa.struct({"path": pa.string()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": MAP,
                "size": pa.int64(),
                "stats": pa.string(),
                "stats_parsed": pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"id": pa.int64()})}),
            }
        ),
    }
)
START: list[dict[str, Any]] = [
    {"metaData": {"id": "a-b", "schemaString": "{}", "configuration": [("k", None)]}},
    {"protocol": {"minReaderVersion": 3}},
    {"txn": {"appId": "s", "version": 4}},
]
FILES: list[dict[str, Any]] = [
    {"add": {"path": "x", "partitionValues": [("p", None)], "size": 7, "stats": '{"numRecords":5,"minValues":{}}'}},
    {"add": {"path": "y", "partitionValues": [], "size": 8, "stats_parsed": {"numRecords": 6}}},
    {"remove": {"path": "z"}},
]


def test_a_checkpoint_and_the_commits_above_it(log: Log) -> None:
    checkpoint(log, f"{3:020d}.checkpoint.parquet", [*START, *FILES])
    log.commit(3, {"commitInfo": {"operation": "WRITE"}})
    log.commit(4, remove("x"), add("c"))
    assert log.paths() == ["c", "y"]
    (log.folder / f"{4:020d}.json").unlink()
    read = log.read()
    assert (read.state.version, read.committed_at_ms) == (3, 1_003_000)
    assert read.state.metadata == {
        "id": "a-b",
        "schemaString": "{}",
        "configuration": {"k": None},
        "partitionColumns": [],
    }
    assert read.state.protocol == {"minReaderVersion": 3}
    assert read.state.transactions == {"s": {"appId": "s", "version": 4}}
    assert [(file.key, file.partition_values, file.size_bytes, file.records) for file in read.state.files.values()] == [
        (("x", ""), {"p": None}, 7, 5),
        (("y", ""), {}, 8, 6),
    ]


def test_a_checkpoint_without_one_of_its_parts_is_none(log: Log) -> None:
    log.commit(1)
    checkpoint(log, f"{1:020d}.checkpoint.{1:010d}.{2:010d}.parquet", START)
    assert log.paths() == ["a", "b"]
    checkpoint(log, f"{1:020d}.checkpoint.{2:010d}.{2:010d}.parquet", FILES)
    assert log.paths() == ["x", "y"]


def test_a_manifest_names_its_sidecars(log: Log) -> None:
    log.commit(1)
    side = checkpoint(log, "_sidecars/s-1.parquet", FILES)
    named: list[dict[str, Any]] = [*START, {"sidecar": {"path": "s-1.parquet", "sizeInBytes": side.stat().st_size}}]
    manifest = checkpoint(log, f"{1:020d}.checkpoint.{UUID}.parquet", named)
    assert log.paths() == ["x", "y"]
    manifest.unlink()
    lines = [json.dumps(row) for row in named if "metaData" not in row]
    path = log.folder / f"{1:020d}.checkpoint.{UUID}.json"
    path.write_text("\n".join([json.dumps(METADATA), *lines]) + "\n", encoding="utf-8")
    assert log.paths() == ["x", "y"]
    side.write_bytes(side.read_bytes() + b"more")
    with pytest.raises(ValueError, match="bytes instead of"):
        log.read()
    side.unlink()
    with pytest.raises(FileNotFoundError, match="s-1"):
        log.read()


def test_a_checkpoint_that_is_too_large_is_refused(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.commit(1)
    checkpoint(log, f"{1:020d}.checkpoint.parquet", [*START, *FILES])
    monkeypatch.setattr(version_replay, "MAX_CHECKPOINT_BYTES", 100)
    with pytest.raises(IncompleteLog, match="checkpoint to be read"):
        log.read()


def test_maps_of_a_part_of_a_checkpoint_are_its_own(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read two rows at once: a column is then a part of one that begins before it."""
    monkeypatch.setattr(checkpoint_actions, "ROWS_AT_ONCE", 2)
    values = [None if number % 4 == 3 else [("p", str(number // 2))] for number in range(9)]
    rows = [{"add": {"path": str(number), "partitionValues": value, "size": 1}} for number, value in enumerate(values)]
    log.commit(1)
    checkpoint(log, f"{1:020d}.checkpoint.parquet", [*START, *rows])
    files = log.read().state.files
    found = [dict(files[str(number), ""].partition_values) for number in range(9)]
    assert found == [dict(value or ()) for value in values]
    assert files["0", ""].partition_values is files["1", ""].partition_values


MOMENT = datetime(2026, 11, 21, 7, 8, 9, 123456, UTC)
PARSED = pa.struct(
    {
        "numRecords": pa.int64(),
        "minValues": pa.struct(
            {
                "t": pa.timestamp("us", tz="UTC"),
                "n": pa.timestamp("us"),
                "d": pa.date32(),
                "x": pa.decimal128(30, 2),
                "f": pa.float64(),
                "s": pa.struct({"ü": pa.string(), "none": pa.int32()}),
            }
        ),
        "nullCount": pa.struct({"f": pa.int64()}),
    }
)


def test_statistics_are_kept_of_the_files_that_are_asked_for(log: Log) -> None:
    """Of a million files those of all would be half a gigabyte. From commits, from texts and from columns."""
    texts = {name: json.dumps({"numRecords": 3, "minValues": {"f": name}}) for name in "abcd"}
    figures = {"numRecords": 3, "minValues": {"f": 0.5}}
    adds: list[dict[str, Any]] = [{"add": {"path": name, "size": 1, "stats": texts[name]}} for name in "ab"]
    adds += [{"add": {"path": name, "size": 1, "stats_parsed": figures}} for name in "xy"]
    columns = {name: CHECKPOINT.field(name).type for name in ("metaData", "protocol", "txn")}
    add = pa.struct({"path": pa.string(), "size": pa.int64(), "stats": pa.string(), "stats_parsed": PARSED})
    log.commit(1)
    pq.write_table(
        pa.Table.from_pylist([*START, *adds], pa.schema({**columns, "add": add})),
        log.folder / f"{1:020d}.checkpoint.parquet",
    )
    log.commit(2, *({"add": {"path": name, "size": 1, "stats": texts[name]}} for name in "cd"))
    storage = TableStorage(DeltaJvm(NEVER_STARTED), log.root_uri)
    files = replay_version(storage, with_statistics=frozenset("bdy")).state.files.values()
    assert {file.path: json.loads(file.stats) for file in files if file.stats} == {
        "b": json.loads(texts["b"]), "d": json.loads(texts["d"]), "y": figures
    }  # fmt: skip
    assert {file.path: file.records for file in files} == dict.fromkeys("abcdxy", 3)


@pytest.mark.parametrize("by_int96", [False, True])
def test_statistics_in_columns_are_spelled_as_those_in_a_text(log: Log, by_int96: bool) -> None:
    log.commit(1)
    least = {"t": MOMENT, "n": MOMENT.replace(tzinfo=None), "d": MOMENT.date(), "x": Decimal("12345678901234567890.10"),
             "f": math.inf, "s": {"ü": 'a"', "none": None}}  # fmt: skip
    figures = {"numRecords": 7, "minValues": least, "nullCount": {"f": 0}}
    rows = [*START, {"add": {"path": "x", "size": 1, "stats_parsed": figures}}]
    columns = {name: CHECKPOINT.field(name).type for name in ("metaData", "protocol", "txn")}
    add = pa.struct({"path": pa.string(), "size": pa.int64(), "stats_parsed": PARSED})
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema({**columns, "add": add})),
        log.folder / f"{1:020d}.checkpoint.parquet",
        use_deprecated_int96_timestamps=by_int96,
    )
    storage = TableStorage(DeltaJvm(NEVER_STARTED), log.root_uri)
    (whole,) = replay_version(storage, with_statistics=True).state.files.values()
    assert json.loads(whole.stats or "", parse_float=Decimal) == {
        "numRecords": 7,
        "minValues": {"t": "2026-11-21T07:08:09.123Z", "n": "2026-11-21T07:08:09.123" + "Z" * by_int96,
                      "d": "2026-11-21", "x": Decimal("12345678901234567890.10"), "f": "Infinity", "s": {"ü": 'a"'}},
        "nullCount": {"f": 0},
    }  # fmt: skip
    (brief,) = log.read().state.files.values()
    assert (brief.stats, brief.records) == (None, 7)
