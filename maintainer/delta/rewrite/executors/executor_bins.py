"""Have executors write bins of the lanes outside Spark, and judge what they answer. No data file passes the driver.

Each attempt of a task writes under names of its own, which the driver knows before the job begins, and whose prefix the
run has recorded by then. So an attempt that comes late or again never touches a file that was proven or committed. What
another attempt than the counted one may have left is removed by its exact names, and once more after the commit.
"""

from __future__ import annotations

import copy
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from maintainer.delta.jvm import BORROWED, DeltaJvm
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, WrittenBin
from maintainer.delta.rewrite.executors.executor_tasks import MAX_ATTEMPTS, VERSION, BinAnswer, BinTask
from maintainer.delta.rewrite.executors.shared_jobs import SharedJobs
from maintainer.delta.rewrite.proof_parts import ProofPart, is_compared_exactly
from maintainer.delta.spark.start_conf import is_one_process
from maintainer.delta.storage.failures.engine_failures import message_of
from maintainer.delta.storage.fetched_files import SCRATCH_ROOM
from maintainer.engine.process_loss import is_engine_lost
from maintainer.model.plan.lanes import Lane

if TYPE_CHECKING:
    from pyspark import SparkContext

    from maintainer.delta.rewrite.rewrite_job import RewriteJob

MAX_ASKED = 64
"""Tasks that look whether the executors have the package."""


class Executors:
    """The executors of a session, and whether bins go to them.

    Args:
        spread: Whether it was asked for; None where the master decides.
        on_lack: Is told once why bins stay in the driver although they should go to executors.
    """

    def __init__(self, spread: bool | None, on_lack: Callable[[str], None]) -> None:
        self._spread = spread
        self._on_lack = on_lack
        self._looking = threading.Lock()
        self._is_ready: bool | None = None
        self.jobs = SharedJobs()

    def are_ready(self, jvm: DeltaJvm) -> bool:
        """Whether bins go to executors; whoever asks first looks whether they have this package."""
        spread = self._spread
        if spread is None:
            spread = not is_one_process(str(jvm.session_setting("spark.master")))
        if not spread:
            return False
        with self._looking:
            if self._is_ready is None:
                lack = _lack(context_of(jvm))
                self._is_ready = lack is None
                if lack is not None:
                    self._on_lack(f"bins are written in this process, and none on executors: {lack}")
            return self._is_ready


@dataclass(slots=True)
class SpreadBins:
    """The bins of one batch that executors write. Used from several threads."""

    executors: Executors
    answers: dict[int, BinAnswer] = field(default_factory=dict)
    """By the place of a bin in its batch."""
    other_paths: list[str] = field(default_factory=list)
    """What attempts that do not count may have written; one that is late may yet."""

    def write(self, job: RewriteJob, work: BinWork, lane: Lane) -> WrittenBin:
        """Write a bin on an executor.

        Raises:
            LaneUnfit: It does not fit the lane, or the task was lost.
            CommitNotLanded: C702, the run is to end.
        """
        if job.place.here is None:
            raise LaneUnfit("its files are read through Hadoop alone")
        task = BinTask(0, work, lane, is_compared_exactly(job, work.number), SCRATCH_ROOM.most_bytes)
        try:
            asked = self.executors.jobs.ask(context_of(job.jvm), task, partial(job.place.check_stop, job.where))
        except BaseException:
            self._remove_others(job, work, range(2 * MAX_ATTEMPTS))
            raise
        attempts = range(asked.num_attempts)
        if (answer := asked.answer) is None:
            self._remove_others(job, work, attempts)
            job.place.check_stop(job.where)
            assert asked.failure is not None
            if is_engine_lost(asked.failure):
                raise asked.failure
            raise LaneUnfit(f"its task was lost: {message_of(asked.failure)[:200]}")
        speculates = (job.jvm.session_setting("spark.speculation") or "false").lower() == "true"
        if answer.attempt or answer.leaves or speculates:
            counted = None if answer.written is None else answer.attempt
            self._remove_others(job, work, (number for number in attempts if number != counted))
        if answer.written is None:
            raise LaneUnfit(answer.unfit)
        if not job.storage.files.asks_by_request:
            for stored in answer.written.stored:
                if job.storage.status(stored.uri) is None:
                    raise LaneUnfit(f"an executor wrote {stored.uri}, which is not on this machine's disk")
        self.answers[work.number] = answer
        # Apart from the answer, with which they are compared before its proof counts.
        return replace(answer.written, files=copy.deepcopy(answer.written.files))

    def _remove_others(self, job: RewriteJob, work: BinWork, attempts: Iterable[int]) -> None:
        """Remove what attempts that do not count may have left, by the names that it may have."""
        paths = [path for number in attempts for path in work.of_attempt(number).paths]
        self.other_paths += paths
        job.delete_found(paths)

    def part_of(self, job: RewriteJob, number: int) -> ProofPart | None:
        """What an executor measured of a bin, if its new files are what the storage holds now under their names.

        None where somebody else must prove the bin: also where others deleted rows of it since.
        """
        answer = self.answers.get(number)
        if answer is None or answer.written is None or answer.part is None:
            return None
        if job.carried is not None and number in job.carried.bins:
            return None
        files = tuple(file for file in job.written if file.bin_number == number)
        if files != answer.written.files:
            return None
        for file, stored in zip(files, answer.written.stored, strict=True):
            found = job.storage.status(job.storage.uri(file.path))
            if found is None or replace(found, device_and_inode=None) != stored:
                return None
        return replace(answer.part, written=files)


def context_of(jvm: DeltaJvm) -> SparkContext:
    """The session's context; of our own on this machine, its tasks run by this very Python unless another is named."""
    context = jvm.spark.sparkContext
    is_here = str(jvm.session_setting("spark.master")).startswith("local")
    if is_here and jvm.session_setting(BORROWED) is None and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    return context


def _lack(context: SparkContext) -> str | None:
    """Say what the executors lack, None where they have what bins need; as many tasks ask as they have cores."""
    num_tasks = max(1, min(context.defaultParallelism, MAX_ASKED))

    # Not imported there: pickled by value, as Spark does with what is defined within a function.
    def answer(of_partition: Iterable[int]) -> Iterator[str]:
        try:
            from maintainer.delta.rewrite.executors.executor_tasks import version_here

            yield version_here()
        except Exception as error:
            yield f"{type(error).__name__}: {error}"

    try:
        found = set(context.parallelize(range(num_tasks), num_tasks).mapPartitions(answer).collect())
    except Exception as error:
        return f"no task in Python runs there: {message_of(error)[:200]}"
    other = sorted(found - {VERSION})  # the libraries of bins need not be imported here
    return other[0][:200] if other else None
