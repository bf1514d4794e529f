"""Write the bins of one batch as new files, each in its lane, before anything is visible.

Up to ``max_threads`` bins are written at once. A bin that does not fit the lane of its plan goes to the next one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from maintainer.delta.log.staged_file import WrittenFile, marks_of
from maintainer.delta.rewrite.copy.copy_lane import write_by_copy
from maintainer.delta.rewrite.lane_fit import LaneUnfit, writing_codec
from maintainer.delta.rewrite.local.local_lane import write_in_process
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.rewrite.spark_lane import write_by_spark
from maintainer.delta.transaction.live_files import AddAction
from maintainer.errors import raise_from
from maintainer.model.closed_types import assert_never
from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.steps import Bin

PROCESSORS = os.cpu_count() or 1
_FREE_PROCESSORS = threading.BoundedSemaphore(PROCESSORS)
LONGEST_WAIT_SECONDS = 600


def write_bins(job: RewriteJob) -> None:
    """Write all bins of an opened job. On any failure what other bins wrote is removed and the failure is raised.

    Raises:
        CommitNotLanded: C702, a bin could not be written.
        EnvironmentUnfit: E631, storage is full.
        TableError: T405, permission denied.
    """
    started = time.monotonic()
    job.marks = marks_of(job.facts, job.step, job.batch)
    by_key = {file.key: add for file, add in zip(job.batch.files, job.sources, strict=True)}
    bins = [(number, bin_) for number, bin_ in enumerate(job.batch.bins) if bin_.live_records != 0]
    failures: list[BaseException] = []

    def run(numbered: tuple[int, Bin]) -> list[WrittenFile]:
        number, bin_ = numbered
        if failures:
            return []
        try:
            return _write_bin(job, number, bin_, [by_key[file.key] for file in bin_.files])
        except BaseException as error:
            failures.append(error)
            return []

    job.jvm.begin_file_names_with(job.file_prefix)
    try:
        with writing_codec(job.jvm, job.step.codec):
            job.written = [file for files in _each(run, bins, job.step.max_threads) for file in files]
    finally:
        with contextlib.suppress(Exception):  # the JVM may be gone, and the setting with it
            job.jvm.begin_file_names_with(None)
    job.timings.write = time.monotonic() - started
    if failures:
        job.discard()
        raise_from(job.failure(failures[0], "writing the new files"), failures[0])
    job.is_written = True


def _each(
    run: Callable[[tuple[int, Bin]], list[WrittenFile]], bins: list[tuple[int, Bin]], max_threads: int
) -> Iterable[list[WrittenFile]]:
    """Run all bins, up to ``max_threads`` at once; outside Spark, no more than keep the processors busy."""
    if any(bin_.lane.lane is not Lane.SPARK for _, bin_ in bins):
        max_threads = min(max_threads, 2 * PROCESSORS)
    workers = max(1, min(max_threads, len(bins)))
    if workers == 1:
        return [run(numbered) for numbered in bins]
    with ThreadPoolExecutor(workers, thread_name_prefix="maintainer-bin") as pool:
        return list(pool.map(run, bins))


def _write_bin(job: RewriteJob, number: int, bin_: Bin, sources: list[AddAction]) -> list[WrittenFile]:
    """Write one bin in the lane of its plan, or in the next one that it fits, and note which it was."""
    reason = bin_.lane.reason
    for lane in dict.fromkeys((bin_.lane.lane, bin_.lane.otherwise, Lane.SPARK)):
        try:
            files = _write_in(lane, job, number, bin_, sources)
        except LaneUnfit as unfit:
            reason = str(unfit)
            job.meter.restart(number)
            continue
        job.meter.written(number, bin_.size_bytes)
        job.lanes[number] = LaneChoice(lane, reason)
        return files
    raise AssertionError("Spark takes every bin")


def _write_in(lane: Lane, job: RewriteJob, number: int, bin_: Bin, sources: list[AddAction]) -> list[WrittenFile]:
    match lane:
        case Lane.COPY | Lane.LOCAL:
            job.fetch(sources)
            with _processor(job):
                write = write_by_copy if lane is Lane.COPY else write_in_process
                return write(job, number, bin_, sources)
        case Lane.SPARK:
            return write_by_spark(job, number, bin_, sources)
        case _:
            assert_never(lane)


@contextlib.contextmanager
def _processor(job: RewriteJob) -> Iterator[None]:
    """Hold one of this machine's processors, and with it the memory of one bin, while rows are read and written.

    A thread that hangs in its bin keeps it; after ``LONGEST_WAIT_SECONDS`` others go on without one.
    """
    waited_until = time.monotonic() + LONGEST_WAIT_SECONDS
    while not (held := _FREE_PROCESSORS.acquire(timeout=1.0)) and time.monotonic() < waited_until:
        job.check_stop()
    try:
        yield
    finally:
        if held:
            _FREE_PROCESSORS.release()
