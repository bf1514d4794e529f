"""Real Delta tables for integration tests: how to build them, plan for them by hand and read them back.

Reading back shares no code with what is tested: rows are collected and compared as multisets of text, and where
it can read the table, by a second engine.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintainer.engine.protocols import VacuumQuestion
from maintainer.model.plan.steps import Batch, Bin, CompactStep, ZOrderStep
from maintainer.model.run.receipts import Proof
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import DataFile, RemovedFile, TableFacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from maintainer.delta.engine.table_engine import DeltaTableEngine

GIB = 1 << 30
DAY_MS = 86_400_000
HOUR_MS = 3_600_000


def forget_logs(spark: SparkSession) -> None:
    """Drop Delta's cache of logs: the next look at any table reads its log anew."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def no_intent(read_version: int, proof: Proof | None) -> None:
    """A ``before_commit`` that writes nothing."""


def stamp(step: str = "table/compact", batch: int = 0) -> CommitStamp:
    """A stamp of a run called ``test``."""
    return CommitStamp("test", step, batch, "digest")


def bins_by_partition(files: Iterable[DataFile]) -> tuple[Bin, ...]:
    """One bin for each partition, as the log spells it."""
    groups: dict[object, list[DataFile]] = defaultdict(list)
    for file in files:
        groups[file.partition_texts].append(file)
    return tuple(Bin(tuple(group)) for group in groups.values())


def compaction(
    facts: TableFacts, *, where: Callable[[DataFile], bool] = lambda _: True, max_threads: int = 2
) -> tuple[CompactStep, Batch]:
    """A step that compacts every partition's files (those that ``where`` takes) in one batch."""
    batch = Batch(bins_by_partition(file for file in facts.files if where(file)))
    return CompactStep((batch,), GIB, max_threads, ()), batch


def zorder(facts: TableFacts, *columns: str, max_file_size_bytes: int = GIB) -> tuple[ZOrderStep, Batch]:
    """A step that Z-orders every partition in one batch."""
    batch = Batch(bins_by_partition(facts.files))
    return ZOrderStep((batch,), columns, max_file_size_bytes, 2, ()), batch


def age(path: Path, days: int) -> None:
    """Move everything that a table's log says, and its files' times, into the past; Delta must forget its logs then."""
    age_by_hours(path, days * 24)


def age_by_hours(path: Path, hours: float) -> None:
    """Do the same by hours."""
    for log in sorted((path / "_delta_log").glob("*.json")):
        lines = []
        for line in log.read_text().splitlines():
            action = json.loads(line)
            (body,) = action.values()
            for key in ("timestamp", "deletionTimestamp", "modificationTime"):
                if key in body:
                    body[key] -= int(hours * HOUR_MS)
            lines.append(json.dumps(action))
        written = log.stat()
        log.unlink()  # beneath a server it would keep its tag, which names other content
        log.write_text("\n".join(lines) + "\n")
        os.utime(log, (written.st_atime, written.st_mtime))
    for checkpoint in (path / "_delta_log").glob("*.checkpoint.parquet"):
        _age_removals(checkpoint, int(hours * HOUR_MS))
    for file in path.rglob("*"):
        if file.name.endswith(".crc"):
            file.unlink()
        elif file.is_file():
            moment = file.stat().st_mtime - hours * HOUR_MS / 1000
            os.utime(file, (moment, moment))


def _age_removals(checkpoint: Path, by_ms: int) -> None:
    """Make the removals in a checkpoint older, as those in the commits."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    written, table = checkpoint.stat(), pq.ParquetFile(checkpoint).read()
    place = table.schema.get_field_index("remove")
    removes = table.column(place).combine_chunks()
    names = [field.name for field in removes.type]
    parts = [removes.field(name) for name in names]
    moment = names.index("deletionTimestamp")
    parts[moment] = pc.subtract(parts[moment], pa.scalar(by_ms, pa.int64()))
    older = pa.StructArray.from_arrays(parts, fields=list(removes.type), mask=removes.is_null())
    pq.write_table(table.set_column(place, table.schema.field(place), older), checkpoint)
    os.utime(checkpoint, (written.st_atime, written.st_mtime))


def removed_files(
    engine: DeltaTableEngine, facts: TableFacts, *, before_ms: int | None = None
) -> tuple[RemovedFile, ...]:
    """What a deletion may take of the files removed before a moment (now, if none is given)."""
    moment = int(time.time() * 1000) + 1
    question = VacuumQuestion(moment if before_ms is None else before_ms, moment)
    expired = engine.reader.vacuum_look(facts, question).removed_files
    assert expired is not None
    return expired


def spark_rows(spark: SparkSession, path: Path | str, version: int | None = None, *extra: str) -> Counter[str]:
    """The table's rows as a multiset of their text, through Spark's own reader."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    frame = reader.load(str(path))
    return Counter(repr(row) for row in frame.select("*", *extra).collect())


def second_engine_rows(path: Path | str, version: int | None = None) -> Counter[str]:
    """The table's rows as a multiset of their text, through delta-rs."""
    import deltalake

    table = deltalake.DeltaTable(str(path), version=version)
    return Counter(repr(sorted(row.items())) for row in table.to_pyarrow_table().to_pylist())


def history(spark: SparkSession, path: Path | str, limit: int = 1) -> list[dict[str, Any]]:
    """The newest entries of the table's history."""
    from delta.tables import DeltaTable

    return [row.asDict() for row in DeltaTable.forPath(spark, str(path)).history(limit).collect()]


def files_on_disk(path: Path | str) -> set[str]:
    """All data files below the table's root, by relative path; not its log, no checksums."""
    root = Path(path)
    return {
        str(file.relative_to(root))
        for file in root.rglob("*.parquet")
        if "_delta_log" not in file.parts and not file.name.startswith(".")
    }


def bytes_of(root: Path, *, checksums: bool = True) -> dict[str, bytes]:
    """Every file below a folder with its content: to show that nothing was changed.

    ``checksums=False`` leaves the log's checksum files out: a rewrite writes a missing one, also one that fails then.
    """
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and (checksums or path.suffix != ".crc"))
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


def commit_file(path: Path, version: int) -> Path:
    """A commit file of a table."""
    return path / "_delta_log" / f"{version:020d}.json"


def actions_of(path: Path, version: int) -> list[dict[str, Any]]:
    """The actions of one commit, as the log has them."""
    return [json.loads(line) for line in commit_file(path, version).read_text(encoding="utf-8").splitlines()]


def forge_commit(path: Path, version: int, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the actions of a commit in the log, as a writer with a defect would have written them."""
    actions = actions_of(path, version)
    change(actions)
    commit_file(path, version).write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    # Checksums would tell the true state; Delta does without them.
    for checksum in [*path.glob("_delta_log/*.crc"), *path.glob("_delta_log/.*.crc")]:
        checksum.unlink(missing_ok=True)
