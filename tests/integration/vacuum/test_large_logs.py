"""Very long logs: our reader, Delta Kernel and Delta's own snapshot find the same live files.

Ten minutes on two cores, nearly all of it in Kernel by way of py4j and in Delta's snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest
from deltalake import DeltaTable

from tests.support.product import (
    DeltaEngine,
    DeltaTableEngine,
    LocalFiles,
    SessionLease,
    TableLog,
    TableStorage,
    replay_version,
)

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

NEVER_MS = 2**62
"""No file was removed since."""


@dataclass(frozen=True)
class LargeLog:
    """A log without data files: each commit adds some, and every third one removes one of the commit before.

    Attributes:
        checkpoints: The versions that have one.
        versions: Those at which the readers are compared.
    """

    num_commits: int
    num_files: int
    checkpoints: tuple[int, ...]
    versions: tuple[int, ...]

    def write(self, table: Path) -> None:
        """Write it, as text; checkpoints are another engine's."""
        log = table / "_delta_log"
        log.mkdir(parents=True)
        share = self.num_files // self.num_commits
        for version in range(self.num_commits):
            lines: list[dict[str, object]] = [{"commitInfo": {"timestamp": version, "operation": "WRITE"}}]
            lines += _first_actions() if version == 0 else ()
            lines += [_add(version, number) for number in range(share)]
            if version % 3 == 2:
                lines.append({"remove": {"path": _path(version - 1, 0), "deletionTimestamp": 1, "dataChange": True}})
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (log / f"{version:020}.json").write_text(text, encoding="utf-8")
            if version in self.checkpoints:
                DeltaTable(str(table), version=version).create_checkpoint()


def _first_actions() -> list[dict[str, object]]:
    schema = {
        "type": "struct",
        "fields": [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in "ap"],
    }
    metadata = {"id": "large", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
                "partitionColumns": ["p"], "configuration": {}, "createdTime": 0}  # fmt: skip
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def _path(version: int, number: int) -> str:
    return f"p=x%2520{version % 7}/part-{version:06}-{number:04}.parquet"


def _add(version: int, number: int) -> dict[str, object]:
    stats = {"numRecords": 10, "minValues": {"a": "a"}, "maxValues": {"a": "z"}, "nullCount": {"a": number}}
    return {"add": {"path": _path(version, number), "partitionValues": {"p": f"x%20{version % 7}"},
                    "size": 1000 + version + number, "modificationTime": version, "dataChange": True,
                    "stats": json.dumps(stats)}}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """The live files of a version, by one reader: how many, their bytes, and a sum over paths and sizes."""

    num_files: int
    size_bytes: int
    checksum: int

    @staticmethod
    def of(files: Iterable[tuple[str, int]]) -> Seen:
        """Count them."""
        num_files = size_bytes = checksum = 0
        for path, size in files:
            num_files, size_bytes, checksum = (
                num_files + 1,
                size_bytes + size,
                checksum + crc32(f"{path} {size}".encode()),
            )
        return Seen(num_files, size_bytes, checksum)


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("large") as worker:
        yield worker


@pytest.mark.parametrize(
    "large",
    [
        pytest.param(
            LargeLog(100_000, 100_000, (30_000, 60_000, 99_000), (500, 30_000, 60_700, 99_999)), id="100,000 commits"
        ),
        pytest.param(LargeLog(20_000, 20_000, (), (19_999,)), id="20,000 commits without a checkpoint"),
        pytest.param(LargeLog(300, 1_050_000, (200,), (100, 299)), id="1,050,000 files, with a checkpoint"),
    ],
)
def test_three_readers_see_the_same_live_files(
    engine: DeltaTableEngine, tmp_path_factory: pytest.TempPathFactory, large: LargeLog
) -> None:
    table, jvm = tmp_path_factory.mktemp("large") / "t", engine.jvm
    large.write(table)
    storage = TableStorage(jvm, f"file:{table}")
    for version in large.versions:
        replayed = replay_version(TableLog(LocalFiles(), storage.root_uri), version).state.files.values()
        ours = Seen.of((file.path, file.size_bytes) for file in replayed)
        added, removed = (version + 1) * (large.num_files // large.num_commits), (version + 1) // 3
        assert ours.num_files == added - removed
        kernel = (action["add"] for action in jvm.kernel_actions(storage.folder, version, NEVER_MS) if "add" in action)
        assert Seen.of((add["path"], add["size"]) for add in kernel) == ours
        files = jvm.all_files(jvm.snapshot_at(jvm.log_at(storage.root_uri), version))
        [row] = files.selectExpr("count(*)", "sum(size)", "sum(crc32(concat(path, ' ', size)))").collect()
        assert Seen(*row) == ours
