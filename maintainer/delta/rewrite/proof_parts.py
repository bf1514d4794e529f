"""Measure both sides of every bin of a batch, each by the library that proves it.

DuckDB reads what this process can read: it shares no code with any writer. Spark reads the rest: tables with row ids,
types that DuckDB does not compare exactly, and whatever lies elsewhere.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maintainer.delta.log.actions import to_physical
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.chunk_proof import compare_chunks
from maintainer.delta.proof.measured_rows import Measured
from maintainer.delta.proof.row_comparison import FileSet, measure, measure_both, with_part_of_sources
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, compared_columns
from maintainer.delta.proof.second_engine.deleted_rows import deleted_rows
from maintainer.delta.proof.second_engine.duckdb_rows import ComparedFile, judged_figures, measure_by_duckdb
from maintainer.delta.proof.statistics_figures import statistics_columns
from maintainer.delta.proof.statistics_verdict import source_findings
from maintainer.delta.rewrite.commit.batch_transaction import begin
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.file_store import FilesHere
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction
from maintainer.model.closed_types import TextEnum, assert_never
from maintainer.model.plan.lanes import (
    MAX_DELETED_ROWS,
    NOTHING_JUDGED,
    Lane,
    LaneChoice,
    LaneUse,
    SourceStatistics,
)
from maintainer.model.run.outcome import Fingerprint
from maintainer.model.table.table_features import keeps_row_ids

_LOG = logging.getLogger(__name__)


class Prover(TextEnum):
    """The library that reads both sides of a bin."""

    CHUNKS = "column chunks"
    DUCKDB = "DuckDB"
    SPARK = "Spark"


@dataclass(frozen=True, slots=True)
class ProofPart:
    """The part of a batch that one library proves: places of its bins, its new files, and what was measured.

    ``row_problems`` are of files whose values are not compared: of those that were copied, of their partitions.
    """

    prover: Prover
    bins: tuple[int, ...]
    written: tuple[WrittenFile, ...]
    measured: Measured
    row_problems: tuple[str, ...] = ()
    source_findings: SourceStatistics = NOTHING_JUDGED


def parts_of(job: RewriteJob) -> list[ProofPart]:
    """Measure every bin, also bins without rows, of which nothing was written: that their files hold none is proven."""
    by_prover: dict[Prover, list[int]] = {}
    for number in range(len(job.batch.bins)):
        prover = Prover.DUCKDB if is_for_second_engine(job, number) else Prover.SPARK
        if _is_copied_whole(job, number):
            prover = Prover.CHUNKS
        by_prover.setdefault(prover, []).append(number)
    parts = []
    if numbers := by_prover.pop(Prover.DUCKDB, None):
        try:
            parts.append(_part(job, Prover.DUCKDB, tuple(numbers)))
        except CannotCompareError as error:
            _LOG.info("%s: proven by Spark: %s", job.where, error)
            by_prover.setdefault(Prover.SPARK, []).extend(numbers)
    return parts + [_part(job, prover, tuple(sorted(numbers))) for prover, numbers in by_prover.items()]


def _is_copied_whole(job: RewriteJob, number: int) -> bool:
    """Return whether the new file of a bin is the bytes of its files: then nobody has to decode them."""
    copied = number in job.lanes and job.lanes[number].lane is Lane.COPY and number not in job.recompressed
    return copied and (job.carried is None or number not in job.carried.bins)


def is_for_second_engine(job: RewriteJob, number: int) -> bool:
    """Return whether DuckDB is asked first to prove a bin: this process can read all of its files as they are."""
    if job.storage.files.asks_by_request:
        # What a lane fetched is here; what Spark wrote is not.
        is_here = number in job.lanes and job.lanes[number].lane is not Lane.SPARK
    else:
        is_here = str(job.jvm.session_setting("spark.master")).startswith("local")
    return (
        is_here
        and not keeps_row_ids(job.metadata["configuration"])
        and job.metadata["configuration"].get("delta.columnMapping.mode", "none").lower() != "id"
        and sum(file.deleted_records for file in job.batch.bins[number].files) <= MAX_DELETED_ROWS
    )


def _part(job: RewriteJob, prover: Prover, bins: tuple[int, ...]) -> ProofPart:
    written = tuple(file for file in job.written if file.bin_number in bins)
    match prover:
        case Prover.CHUNKS:
            return _copied_part(job, bins, written)
        case Prover.DUCKDB:
            measured = _measure_by_duckdb(job, bins, written)
        case Prover.SPARK:
            with job.tasks_polled():
                measured = _measure_by_spark(job, bins, written)
        case _:
            assert_never(prover)
    found = source_findings(_with_statistics(job, bins), measured)
    return ProofPart(prover, bins, written, measured, source_findings=found)


def _copied_part(job: RewriteJob, bins: tuple[int, ...], written: tuple[WrittenFile, ...]) -> ProofPart:
    """Compare what was copied byte for byte, bin by bin: a row group of another bin is in the wrong place."""
    read = target = Fingerprint(0, (0, 0))
    in_rows: list[str] = []
    schema = json.loads(job.metadata["schemaString"])
    partitioned = {name.lower() for name in job.metadata["partitionColumns"]}
    names = [field["name"] for field in schema["fields"] if field["name"].lower() not in partitioned]
    columns = {to_physical(schema, name) for name in names}
    for number in bins:
        sources = list(job.sources_of([number]))
        files = [file for file in written if file.bin_number == number]
        before, after, problems = compare_chunks(
            [_local(job, str(add["path"])) for add in sources], [_local(job, file.path) for file in files], columns
        )
        read, target = read + before, target + after
        in_rows += problems
        job.meter.read(number, job.batch.bins[number].size_bytes)
    measured = replace(figures_of_files(job, written), read=read, written=target)
    return ProofPart(Prover.CHUNKS, bins, written, measured, tuple(in_rows))


def figures_of_files(job: RewriteJob, written: tuple[WrittenFile, ...]) -> Measured:
    """Read the columns with statistics of written files, by another library than the one that computed them.

    No row is hashed where DuckDB reads them.
    """
    partition_columns = tuple(job.metadata["partitionColumns"])
    collected = {column.physical for column in statistics_columns(job.stats_schema, ())}
    columns = statistics_columns(json.loads(job.metadata["schemaString"]), partition_columns)
    columns = tuple(column for column in columns if column.physical in collected)
    if job.here is not None:
        figures = judged_figures(columns, [file_here(job.storage, job.here, file.add) for file in written])
        known = tuple(of_file for of_file in figures if of_file is not None)
        if len(known) == len(written):
            return Measured(Fingerprint(0, (0, 0)), Fingerprint(0, (0, 0)), columns, known, ())
    files = FileSet(begin(job).snapshot, tuple(file.to_proof() for file in written))
    return measure(job.jvm, job.log, None, files, [file.add for file in written])


def _local(job: RewriteJob, path: str) -> str:
    return job.path(job.storage.uri(path))


def file_here(storage: TableStorage, here: FilesHere, add: Mapping[str, Any]) -> ComparedFile:
    """Return a file that is here for the second engine, with its statistics and its soft-deleted rows.

    Raises:
        CannotCompareError: Its deletion vector cannot be read.
    """
    path = here.path(storage.uri(str(add["path"])))
    return ComparedFile(path, add.get("stats"), _deleted_rows(storage, here, add))


def _deleted_rows(storage: TableStorage, here: FilesHere, add: Mapping[str, Any]) -> tuple[int, ...]:
    vector = add.get("deletionVector")
    if not vector:
        return ()
    uri = storage.deletion_vector_uri({"add": dict(add)})
    if uri is not None:
        here.fetch({uri: None})
    return tuple(deleted_rows(vector, None if uri is None else here.path(uri)))


def _measure_by_duckdb(job: RewriteJob, bins: Collection[int], written: tuple[WrittenFile, ...]) -> Measured:
    schema, partition_columns = json.loads(job.metadata["schemaString"]), tuple(job.metadata["partitionColumns"])
    assert job.here is not None, "the second engine reads what is here"
    here = job.here
    of_bins = sum(job.batch.bins[number].size_bytes for number in bins)
    written_bytes = sum(file.size_bytes for file in written)

    def compared(num_written_bytes: int) -> None:
        # Reading the sources is about half of the work, the new files are the other half.
        job.meter.read(min(bins), of_bins // 2 + of_bins * num_written_bytes // max(1, 2 * written_bytes))

    return measure_by_duckdb(
        compared_columns(schema, partition_columns),
        statistics_columns(schema, partition_columns),
        [file_here(job.storage, here, source) for source in _with_statistics(job, bins)],
        [file_here(job.storage, here, file.add) for file in written],
        on_compared=compared,
    )


def _measure_by_spark(job: RewriteJob, bins: Collection[int], written: tuple[WrittenFile, ...]) -> Measured:
    """Measure the written rows; the source rows are read again unless they were observed and are equal."""
    judged = _with_statistics(job, bins)
    snapshot = begin(job).snapshot
    sources = FileSet(snapshot, job.sources_of(bins))
    targets = FileSet(snapshot, tuple(file.to_proof() for file in written))
    adds = [file.add for file in written]
    observed = job.rows_observed(bins)
    if observed is not None and targets.adds:
        measured = measure(job.jvm, job.log, None, targets, adds)
        if measured.written == observed:
            measured = replace(measured, read=observed)
            try:
                return with_part_of_sources(job.jvm, job.log, sources, judged, measured)
            except Exception as error:  # for the report alone: the rows are proven
                _LOG.info("%s: the statistics of its files are not judged: %s", job.where, error)
                return measured
    return measure_both(job.jvm, job.log, sources, targets, judged, adds)


def _with_statistics(job: RewriteJob, bins: Collection[int]) -> list[AddAction]:
    """The files of bins with all that the log says of them; without, where a lane that read their rows judged it."""
    return [
        {**source, "stats": None if number in job.source_findings else job.source_statistics.get(str(source["path"]))}
        for number in sorted(bins)
        for source in job.sources_of([number])
    ]


def lane_uses(job: RewriteJob, part: ProofPart) -> Iterator[LaneUse]:
    """Yield what became of the bins of a part: the lanes in which they were written, and who proved them."""
    counts: dict[tuple[LaneChoice, Lane], int] = {}
    for number in job.lanes.keys() & set(part.bins):
        key = job.lanes[number], job.batch.bins[number].lane.lane
        counts[key] = counts.get(key, 0) + 1
    for (choice, planned), num_bins in counts.items():
        yield LaneUse(choice.lane, planned, num_bins, choice.reason, part.prover)
