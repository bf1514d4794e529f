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
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maintainer.delta.jvm import changed_settings
from maintainer.delta.log.actions import CommittedFiles
from maintainer.delta.log.schema_names import fresh_prefix, quote
from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.row_comparison import FilesInLog, differing_rows, functions_of, measure_frames
from maintainer.delta.proof.statistics_figures import Measured
from maintainer.delta.proof.statistics_verdict import source_findings, strictness_of, wrong_statistics
from maintainer.delta.spark.session_settings import PADS_CHAR
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.log_paths import file_uri
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.plan.lanes import SourceStatistics
from maintainer.model.run.receipts import Proof
from maintainer.model.table.storage_facts import MissingFiles
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.model.table.table_features import keeps_row_ids
from maintainer.units import count_of

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


class FilesOfVersion(ABC):
    """The part of ``VersionReader`` that is the same on both engines: files on storage, rows that differ."""

    @abstractmethod
    def dataframe(self, facts: TableFacts, version: int) -> DataFrame: ...

    @abstractmethod
    def _storage(self, facts: TableFacts) -> TableLog: ...

    @abstractmethod
    def _files(self, facts: TableFacts, version: int) -> Iterable[DataFile]:
        """The live files of a version, as the log says."""

    @abstractmethod
    def _sizes(self, facts: TableFacts, uris: Collection[str]) -> Mapping[str, int]:
        """The sizes of those files that are on storage now."""

    def missing_files(self, facts: TableFacts, version: int) -> MissingFiles:
        """Look for live data files and deletion vectors of the version on storage."""
        with table_errors(f"{facts.ref.identifier}@{version}"):
            storage, expected = self._storage(facts), dict[str, tuple[str, int | None]]()
            num_files = 0
            for file in facts.files if version == facts.version else self._files(facts, version):
                num_files += 1
                expected[storage.uri(file.path)] = (file.path, file.size_bytes)
                vector = storage.vector_uri_of_id(file.deletion_vector.unique_id) if file.deletion_vector else None
                if vector is not None:
                    # A deletion vector file holds several vectors; the log knows no size of the file.
                    expected[vector] = (vector, None)
            sizes = self._sizes(facts, expected)
        gone = (name for uri, (name, size) in expected.items() if uri not in sizes or size not in (None, sizes[uri]))
        return MissingFiles(num_files, tuple(sorted(gone)))

    def files_there(self, facts: TableFacts, paths: Sequence[str]) -> frozenset[str]:
        """Return the paths, as the log writes them, where a file exists now."""
        with table_errors(facts.ref.identifier):
            uris = {path: self._storage(facts).uri(path) for path in paths}
            sizes = self._sizes(facts, uris.values())
            return frozenset(path for path, uri in uris.items() if uri in sizes)

    def rows_differ(self, facts: TableFacts, version_a: int, version_b: int) -> int:
        """Rows in one version and not in the other, as multisets: grouped by their values, not by hashes."""
        a, b = self.dataframe(facts, version_a), self.dataframe(facts, version_b)
        with table_errors(f"{facts.ref.identifier}@{version_a}..{version_b}"):
            return differing_rows(a, b)


@dataclass(frozen=True, slots=True)
class VersionProof:
    """The figures of a proof, and sentences about everything that does not fit (empty if nothing)."""

    proof: Proof
    findings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the rows are the same and every figure of the log is right."""
        return self.proof.holds and not self.findings


def prove_version(
    spark: SparkSession,
    path: str,
    facts: TableFacts,
    files: CommittedFiles,
    statistics: Mapping[str, str] | None = None,
) -> VersionProof:
    """Compare the rows that a commit removed with those that it added, and judge the statistics of what it added.

    Args:
        spark: A session with ``VERSION_SETTINGS``, and without the settings that skip unreadable files.
        path: The table as Spark's readers take it.
        facts: The table.
        files: What the commit removed and added.
        statistics: What the log had of removed files, by their paths; what is wrong there is not the commit's fault.

    Raises:
        Exception: Whatever Spark raises: a version or a file that cannot be read. Nothing is proven then.
    """
    started = time.monotonic()
    statistics = statistics or {}
    before = tuple((file, statistics.get(file.path)) for file in files.removed)
    after = tuple((file, add.get("stats")) for file, add in zip(files.added, files.adds, strict=True))

    def measured() -> tuple[Measured, Measured]:
        return _side(spark, path, facts, files.version - 1, before), _side(spark, path, facts, files.version, after)

    with changed_settings(spark, {PADS_CHAR: "false"}):
        removed, added = measured()
    read, written = removed.written, added.written
    if read != written:
        # The texts of CHAR columns may be padded now, which no reader of Spark sees.
        read, written = (side.written for side in measured())
    findings = [
        *_unread(removed, files.removed, f"removed, at version {files.version - 1}"),
        *_unread(added, files.added, f"added, at version {files.version}"),
        *(
            f"{file.path} (removed, at version {files.version - 1}) has {count_of(figures.rows, 'row')}, "
            f"the log says {said:,}"
            for file, figures in zip(files.removed, removed.files, strict=True)
            if (said := file.live_records) not in (None, figures.rows)
        ),
        *wrong_statistics(files.adds, added.columns, added.files, strictness_of(files.info or {})),
    ]
    in_log = [file.live_records for file in files.removed]
    proof = Proof(
        read=read,
        written=written,
        rows_in_log=None if None in in_log else sum(count or 0 for count in in_log),
        uncovered_columns=removed.uncovered_columns or added.uncovered_columns,
        duration_seconds=time.monotonic() - started,
        source_statistics=_source_findings(before, removed),
    )
    return VersionProof(proof, tuple(findings[:MAX_FINDINGS]))


def _source_findings(sources: Sequence[tuple[DataFile, str | None]], measured: Measured) -> SourceStatistics:
    judged = [
        {
            "path": file.path,
            "stats": text,
            "deletionVector": {"cardinality": file.deleted_records} if file.deletion_vector else None,
        }
        for file, text in sources
    ]
    not_asked_for = sum(text is None and file.live_records is not None for file, text in sources)
    found = source_findings(judged, replace(measured, sources=measured.files))
    return found + SourceStatistics(num_files_not_judged=not_asked_for)


def _side(
    spark: SparkSession, path: str, facts: TableFacts, version: int, files: tuple[tuple[DataFile, str | None], ...]
) -> Measured:
    """Measure the live rows of some of a version's files."""
    frame = spark.read.format("delta").option("versionAsOf", version).load(path)
    columns = statistics_columns(json.loads(facts.schema_json), facts.partition_columns)
    logged = FilesInLog(
        tuple((file_uri(facts.location, file.path), stats) for file, stats in files),
        columns,
        keeps_row_ids(facts.property_map),
    )
    if not files:
        return measure_frames(spark, frame.where("false"), None, logged)
    name = f"{fresh_prefix(frame.columns)}file"
    # Projected before it is filtered: a scan that reads no column may leave out what the filter needs.
    named = _of_partitions(frame, (file for file, _ in files)).selectExpr("*", f"_metadata.file_path AS {name}")
    return measure_frames(
        spark, None, named.where(named[name].isin([uri for uri, _ in logged.files])).drop(name), logged
    )


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


def _unread(measured: Measured, files: tuple[DataFile, ...], which: str) -> list[str]:
    """Say that nothing was read of files whose rows the log does not count."""
    if not files or measured.written.rows or any(file.live_records is not None for file in files):
        return []
    return [f"none of the {len(files)} files {which} has a row that could be read"]
