"""Prove a landed commit with public means: the rows it removed equal the rows it added, version N against N-1.

For commits of others, or of a Delta command that we ran, such as OPTIMIZE. The rows of the removed files are read at
version N-1, those of the added files at version N, and compared by count and fingerprint. Only Spark's public
DataFrame API is used, so it runs over Spark Connect, too.

What it costs: Spark opens every file of the partitions concerned, in both versions, because a scan cannot be limited
to single files. On a table without partitions that is the whole table, twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from maintainer.delta.log.actions import CommittedFiles
from maintainer.delta.log.schema_names import quote
from maintainer.delta.proof.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.delta.storage.log_paths import file_uri
from maintainer.model.run.outcome import Fingerprint, Proof
from maintainer.model.table.table_facts import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION_SETTINGS: Mapping[str, str] = {
    # A count must come from the files: answered from the log it proves nothing.
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
    # A short deletedFileRetentionDuration must not refuse us the version just before a commit.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
"""What a session must have set that compares versions."""

MAX_FINDINGS = 20
_FILE, _ROWS = "__file", "__rows"


@dataclass(frozen=True, slots=True)
class VersionProof:
    """The figures of a proof, and sentences about everything that does not fit (empty if nothing)."""

    proof: Proof
    findings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the rows are the same and every figure of the log is right."""
        return self.proof.holds and not self.findings


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table for Spark's readers: ``path`` as they take it, ``location`` as a percent-encoded URI."""

    path: str
    location: str
    row_tracking: bool = False


def prove_version(spark: SparkSession, place: TablePlace, files: CommittedFiles) -> VersionProof:
    """Compare the rows that a commit removed with those that it added.

    Args:
        spark: A session with ``VERSION_SETTINGS``, and without the settings that skip unreadable files.
        place: The table.
        files: What the commit removed and added. Statistics of removed files are compared where they are known.

    Raises:
        Exception: Whatever Spark raises: a version or a file that cannot be read. Nothing is proven then.
    """
    started = time.monotonic()
    read, columns = _side(spark, place, files.version - 1, files.removed)
    written, _ = _side(spark, place, files.version, files.added)
    findings = [
        *_unlike(read, files.removed, f"removed, at version {files.version - 1}", place),
        *_unlike(written, files.added, f"added, at version {files.version}", place),
    ]
    in_log = [file.live_records for file in files.removed]
    proof = Proof(
        read=_total(read),
        written=_total(written),
        rows_in_log=None if None in in_log else sum(count or 0 for count in in_log),
        uncovered_columns=columns,
        duration_seconds=time.monotonic() - started,
    )
    return VersionProof(proof, tuple(findings[:MAX_FINDINGS]))


def _side(
    spark: SparkSession, place: TablePlace, version: int, files: tuple[DataFile, ...]
) -> tuple[dict[str, Fingerprint], tuple[str, ...]]:
    """Fingerprints of the live rows of some of a version's files, by the file's URI; and the columns not covered."""
    frame = spark.read.format("delta").option("versionAsOf", version).load(place.path)
    extra = ("_metadata.row_id", "_metadata.row_commit_version") if place.row_tracking else ()
    hashed = hashed_columns(json.loads(frame.schema.json()), extra)
    names = tuple(f"__h{number}" for number in range(len(hashed.hashes)))
    if not files:
        return {}, hashed.uncovered
    frame = _of_partitions(frame, files)
    selected = [f"{text} AS {name}" for text, name in zip(hashed.hashes, names, strict=True)]
    # Projected before it is filtered: a scan that reads no column may leave out what the filter needs.
    frame = frame.selectExpr(f"_metadata.file_path AS {_FILE}", *selected)
    frame = frame.where(frame[_FILE].isin([file_uri(place.location, file.path) for file in files]))
    functions = functions_of(spark)
    totals = [functions.expr(text) for text in (f"count(1) AS {_ROWS}", *sum_expressions(names))]
    rows = frame.groupBy(_FILE).agg(*totals).collect()
    return {str(row[0]): combine(int(row[1]), tuple(row)[2:]) for row in rows}, hashed.uncovered


def _of_partitions(frame: DataFrame, files: Iterable[DataFile]) -> DataFrame:
    """Filter by the partitions of the files, column by column, so that Spark lists few others."""
    values: dict[str, set[str | None]] = {}
    for file in files:
        texts = dict(file.partition_texts)
        for column, _ in file.partition_values:
            # An empty text is null to some readers and not to others: then both are kept.
            text = texts.get(column)
            values.setdefault(column, set()).update({text} if text else {text, None})
    functions = functions_of(frame.sparkSession)
    for column, allowed_values in values.items():
        field = frame[quote(column)]
        # As the log spells them, read as Spark reads the log: a time without a zone is in the session's.
        type_ = frame.schema[column].dataType
        empty_is_value = type_.typeName() in ("string", "binary")
        texts_read = sorted(value for value in allowed_values if value or (value is not None and empty_is_value))
        named = [functions.lit(value).cast(type_) for value in texts_read]
        condition = field.isin(named) if named else field.isNull()
        frame = frame.where(condition | field.isNull() if None in allowed_values else condition)
    return frame


def _unlike(
    fingerprints: dict[str, Fingerprint], files: tuple[DataFile, ...], which: str, place: TablePlace
) -> list[str]:
    """Return files whose row count is not the log's. A file without live rows does not show up, and need not."""
    unlike = []
    if files and not fingerprints and all(file.live_records is None for file in files):
        return [f"none of the {len(files)} files {which} has a row that could be read"]
    for file in files:
        rows = fingerprints[uri].rows if (uri := file_uri(place.location, file.path)) in fingerprints else 0
        if file.live_records is not None and rows != file.live_records:
            unlike.append(f"{file.path} ({which}) has {rows} rows, the log says {file.live_records}")
    return unlike


def _total(fingerprints: dict[str, Fingerprint]) -> Fingerprint:
    total = Fingerprint(0, (0, 0))
    for fingerprint in fingerprints.values():
        total += fingerprint
    return total


def functions_of(spark: SparkSession) -> ModuleType:
    """Spark's functions for this kind of session: those of Spark Connect are others than the classic ones."""
    from importlib import import_module

    connect = type(spark).__module__.startswith("pyspark.sql.connect")
    return import_module("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions")
