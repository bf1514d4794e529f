"""Write the bins of one batch as new files, each in its lane, before anything is visible.

Up to ``max_threads`` bins are written at once. A bin that does not fit the lane of its plan goes to the next one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import assert_never

from maintainer.delta.log.staged_file import WrittenFile, marks_of
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, WrittenBin, folder_of_sources
from maintainer.delta.rewrite.copy_lane import write_by_copy
from maintainer.delta.rewrite.curve_writer import num_files_of
from maintainer.delta.rewrite.local.local_lane import write_in_process
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.rewrite.spark_lane import write_by_spark
from maintainer.errors import raise_from
from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.steps import Bin

PROCESSORS = os.cpu_count() or 1
_FREE_PROCESSORS = threading.BoundedSemaphore(PROCESSORS)
LONGEST_WAIT_SECONDS = 600

ORDERED_ROWS_KEPT = 32_000_000
"""Rows of a batch whose new places are kept, 8 bytes each, to carry over what others delete meanwhile."""


def write_bins(job: RewriteJob) -> None:
    """Write all bins of an opened job, up to ``max_threads`` at once.

    In this process no more are written at once than keep the processors busy. After a failure no further bin is begun.

    Raises:
        CommitNotLanded: C702, a bin could not be written.
        EnvironmentUnfit: E631, storage is full.
        TableError: T405, permission denied.
    """
    started = time.monotonic()
    job.marks = marks_of(job.facts, job.step, job.batch)
    bins = [(number, bin_) for number, bin_ in enumerate(job.batch.bins) if bin_.live_records != 0]
    at_once = job.step.max_threads
    if any(bin_.lane.lane is not Lane.SPARK for _, bin_ in bins):
        _ = job.source_statistics  # read once for all threads
        if job.spread is None or not job.spread.are_ready(job):
            at_once = min(at_once, 2 * PROCESSORS)
    at_once = max(1, min(at_once, len(bins)))
    write = partial(_write_bin, job)
    with job.writer_settings:
        if at_once == 1:
            written = [write(*numbered) for numbered in bins]
        else:
            with ThreadPoolExecutor(at_once, thread_name_prefix="maintainer-bin") as pool:
                written = list(pool.map(write, *zip(*bins, strict=True)))
    job.written = [file for files in written for file in files]
    job.timings.write = time.monotonic() - started
    if job.write_failures:
        first = job.write_failures[0]
        raise_from(job.failure(first, "writing the new files"), first)
    job.is_written = True


def _write_bin(job: RewriteJob, number: int, bin_: Bin) -> list[WrittenFile]:
    """Write one bin in the lane of its plan, or in the next one that it fits, and note which it was."""
    if job.write_failures:
        return []
    reason = bin_.lane.reason
    try:
        for lane in dict.fromkeys((bin_.lane.lane, bin_.lane.otherwise, Lane.SPARK)):
            try:
                match lane:
                    case Lane.COPY | Lane.LOCAL:
                        files, reason = _write_outside(job, number, lane, reason)
                    case Lane.SPARK:
                        files = write_by_spark(job, number, bin_, list(job.sources_of([number])))
                    case _:
                        assert_never(lane)
            except LaneUnfit as unfit:
                reason = str(unfit)
                job.delete_written(unfit.stored)
                job.meter.restart(number)
                continue
            job.meter.written(number, bin_.size_bytes)
            job.lanes[number] = LaneChoice(lane, reason)
            return files
        raise AssertionError("Spark takes every bin")
    except BaseException as error:
        job.write_failures.append(error)
        return []


def _write_outside(job: RewriteJob, number: int, lane: Lane, reason: str) -> tuple[list[WrittenFile], str]:
    """Write a bin in a lane outside Spark, on an executor or here; return its files, and the reason with where."""
    work = _work_of(job, number)
    if job.spread is not None and job.spread.are_ready(job):
        return _take(job, number, job.spread.write(job, work, lane)), f"{reason}; on an executor"
    job.place.fetch(work.table, work.sources)
    with _processor(job):
        write = write_by_copy if lane is Lane.COPY else write_in_process
        return _take(job, number, write(work, job.place)), reason


def _work_of(job: RewriteJob, number: int) -> BinWork:
    """A bin as the lanes outside Spark take it.

    Raises:
        LaneUnfit: None of them can.
    """
    bin_, sources = job.batch.bins[number], job.judged_sources_of([number])
    folder = folder_of_sources(job.storage, job.facts, bin_, sources)
    try:
        deleted_rows = tuple(job.deleted_rows(add) for add in sources)
    except Exception as error:
        raise LaneUnfit("the soft-deleted rows of a file cannot be read here") from error
    return BinWork(
        number=number,
        size_bytes=bin_.size_bytes,
        step=replace(job.step, batches=()),
        num_files=num_files_of(job.step, bin_),
        sources=tuple(sources),
        deleted_rows=deleted_rows,
        metadata=job.metadata,
        files=job.storage.files,
        root_uri=job.storage.root_uri,
        where=job.where,
        path_stem=f"{folder}{job.file_prefix}part-{number:05d}-{uuid.uuid4()}",
        codec=job.codec,
        tight_bounds="deletionVectors" in job.facts.protocol.writer_features,
        marks=job.marks[number],
    )


def _take(job: RewriteJob, number: int, written: WrittenBin) -> list[WrittenFile]:
    """Note how a lane outside Spark wrote a bin, and return its new files."""
    num_kept = sum(len(order) for orders in list(job.row_orders.values()) for order in orders)
    if written.row_order is not None and num_kept + sum(map(len, written.row_order)) <= ORDERED_ROWS_KEPT:
        job.row_orders[number] = written.row_order
    if written.source_findings is not None:
        job.source_findings[number] = written.source_findings
    return list(written.files)


@contextlib.contextmanager
def _processor(job: RewriteJob) -> Iterator[None]:
    """Hold one of this machine's processors, and with it the memory of one bin, while rows are read and written.

    A thread that hangs in its bin keeps it; after ``LONGEST_WAIT_SECONDS`` others go on without one.
    """
    waited_until = time.monotonic() + LONGEST_WAIT_SECONDS
    while not (held := _FREE_PROCESSORS.acquire(timeout=1.0)) and time.monotonic() < waited_until:
        job.place.check_stop(job.where)
    try:
        yield
    finally:
        if held:
            _FREE_PROCESSORS.release()
