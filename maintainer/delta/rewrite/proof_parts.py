"""Measure both sides of every bin of a batch, each by the library that proves it.

DuckDB reads what this process can read: it shares no code with any writer. Spark reads the rest: tables with row ids,
types that DuckDB does not compare exactly, and whatever lies elsewhere.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.row_comparison import FileSet, measure, measure_both, with_part_of_sources
from maintainer.delta.proof.rows_here import chunks_here, figures_here, footers_here, is_compared_here, rows_here
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, OtherTypeError
from maintainer.delta.proof.statistics_figures import Measured
from maintainer.delta.proof.statistics_verdict import source_findings
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.commit.batch_transaction import begin
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.file_store import TransferError
from maintainer.model.plan.lanes import NOTHING_JUDGED, Lane, LaneUse, SourceStatistics
from maintainer.model.run.receipts import Fingerprint

_LOG = logging.getLogger(__name__)


class Prover(StrEnum):
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
    """Measure every bin, also bins without rows, of which nothing was written: that their files hold none is proven.

    These are parts of their own: what they hold nevertheless was not lost by us.
    """
    by_prover: dict[tuple[Prover, bool], list[int]] = {}
    parts: list[ProofPart] = []
    for number, bin_ in enumerate(job.batch.bins):
        part = None if job.spread is None else job.spread.part_of(job, number)
        if part is None:
            by_prover.setdefault((_prover_of(job, number), bin_.live_records == 0), []).append(number)
        else:
            parts.append(part)
    for is_empty in (False, True):
        if not (numbers := by_prover.pop((Prover.DUCKDB, is_empty), [])):
            continue
        try:
            parts.append(_part(job, Prover.DUCKDB, tuple(numbers)))
        except OtherTypeError:
            raise
        except (CannotCompareError, TransferError) as error:
            _LOG.info("%s: proven by Spark: %s", job.where, error)
            by_prover.setdefault((Prover.SPARK, is_empty), []).extend(numbers)
    return parts + [_part(job, prover, tuple(sorted(numbers))) for (prover, _), numbers in by_prover.items()]


def _prover_of(job: RewriteJob, number: int) -> Prover:
    """Return who proves a bin; what an executor wrote is fetched for it."""
    prover = Prover.DUCKDB if is_for_second_engine(job, number) else Prover.SPARK
    if _is_copied_whole(job, number):
        prover = Prover.CHUNKS
    if prover is Prover.SPARK or job.spread is None or number not in job.spread.answers:
        return prover
    try:
        job.place.fetch(job.storage, job.sources_of([number]))
        job.place.fetch(job.storage, [file.add for file in job.written if file.bin_number == number])
    except LaneUnfit as unfit:
        _LOG.info("%s: proven by Spark: %s", job.where, unfit)
        return Prover.SPARK
    return prover


def _is_copied_whole(job: RewriteJob, number: int) -> bool:
    """Return whether the new file of a bin is the bytes of its files: then nobody has to decode them."""
    copied = number in job.lanes and job.lanes[number].lane is Lane.COPY
    return copied and (job.carried_deletes is None or number not in job.carried_deletes.bins)


def is_for_second_engine(job: RewriteJob, number: int) -> bool:
    """Return whether DuckDB is asked first to prove a bin: this process can read all of its files as they are."""
    if job.storage.files.asks_by_request:
        # What a lane fetched is here; what Spark wrote is not.
        is_here = number in job.lanes and job.lanes[number].lane is not Lane.SPARK
    else:
        is_here = _is_on_one_machine(job)
    return is_here and is_compared_exactly(job, number)


def _is_on_one_machine(job: RewriteJob) -> bool:
    """Whether Spark runs here, so that what this process reads is not taken from a cluster."""
    return str(job.jvm.session_setting("spark.master")).startswith("local")


def is_compared_exactly(job: RewriteJob, number: int) -> bool:
    """Return whether DuckDB may prove a bin, wherever that is."""
    deleted = sum(file.deleted_records for file in job.batch.bins[number].files)
    return is_compared_here(job.metadata["configuration"], deleted)


def _part(job: RewriteJob, prover: Prover, bins: tuple[int, ...]) -> ProofPart:
    written = tuple(file for file in job.written if file.bin_number in bins)
    match prover:
        case Prover.CHUNKS:
            return _copied_part(job, bins, written)
        case Prover.DUCKDB:
            measured = _measure_by_duckdb(job, bins, written)
        case Prover.SPARK:
            footers = _footers_here(job, written)
            with job.tasks_polled():
                measured = _with_footers(_measure_by_spark(job, bins, written), footers)
        case _:
            assert_never(prover)
    found = source_findings(job.judged_sources_of(bins), measured)
    return ProofPart(prover, bins, written, measured, source_findings=found)


def _copied_part(job: RewriteJob, bins: tuple[int, ...], written: tuple[WrittenFile, ...]) -> ProofPart:
    """Compare what was copied byte for byte, bin by bin: a row group of another bin is in the wrong place."""
    assert job.place.here is not None, "lane copy writes what is here"
    read = target = Fingerprint(0, (0, 0))
    in_rows: list[str] = []
    for number in bins:
        files = [file.add for file in written if file.bin_number == number]
        sources = job.sources_of([number])
        before, after, problems = chunks_here(job.storage, job.place.here, job.metadata, sources, files)
        read, target = read + before, target + after
        in_rows += problems
        job.meter.read(number, job.batch.bins[number].size_bytes)
    measured = replace(figures_of_files(job, written), read=read, written=target)
    return ProofPart(Prover.CHUNKS, bins, written, measured, tuple(in_rows))


def figures_of_files(job: RewriteJob, written: tuple[WrittenFile, ...]) -> Measured:
    """Read the columns with statistics of written files: by DuckDB where it reads them, else by Spark."""
    adds = [file.add for file in written]
    if job.place.here is not None:
        measured = figures_here(job.storage, job.place.here, job.metadata, adds)
        if measured is not None:
            return measured
    files = FileSet(begin(job).snapshot, tuple(file.to_proof() for file in written))
    return measure(job.jvm, job.log, None, files, adds)


def _measure_by_duckdb(job: RewriteJob, bins: Collection[int], written: tuple[WrittenFile, ...]) -> Measured:
    assert job.place.here is not None, "the second engine reads what is here"
    of_bins = sum(job.batch.bins[number].size_bytes for number in bins)
    written_bytes = sum(file.size_bytes for file in written)

    def compared(num_written_bytes: int) -> None:
        # Reading the sources is about half of the work, the new files are the other half.
        job.meter.read(min(bins), of_bins // 2 + of_bins * num_written_bytes // max(1, 2 * written_bytes))

    sources, adds = job.judged_sources_of(bins), [file.add for file in written]
    return rows_here(job.storage, job.place.here, job.metadata, sources, adds, compared)


def _measure_by_spark(job: RewriteJob, bins: Collection[int], written: tuple[WrittenFile, ...]) -> Measured:
    """Measure the written rows; the source rows are read again unless they were observed and are equal."""
    judged = job.judged_sources_of(bins)
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


def _footers_here(job: RewriteJob, written: tuple[WrittenFile, ...]) -> list[tuple[str, ...]]:
    """What the footers of files have wrong whose rows Spark reads on this machine."""
    here = job.place.here
    if here is None or job.storage.files.asks_by_request or not _is_on_one_machine(job):
        return []
    return footers_here(job.storage, here, job.metadata, [file.add for file in written])


def _with_footers(measured: Measured, footers: Sequence[tuple[str, ...]]) -> Measured:
    files = zip(measured.files, footers, strict=bool(footers))
    judged = tuple(replace(figures, hidden=hidden) for figures, hidden in files)
    return replace(measured, files=judged or measured.files)


def lane_uses(job: RewriteJob, parts: Sequence[ProofPart]) -> tuple[LaneUse, ...]:
    """Return what became of the bins: the lanes in which they were written, and who proved them."""
    counts = Counter(
        (job.lanes[number], job.batch.bins[number].lane.lane, part.prover)
        for part in parts
        for number in part.bins
        if number in job.lanes
    )
    return tuple(
        LaneUse(choice.lane, planned, num_bins, choice.reason, prover)
        for (choice, planned, prover), num_bins in counts.items()
    )
