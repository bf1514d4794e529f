"""Have executors write bins of the lanes outside Spark: each bin is one task of a Spark job of its own.

A task brings a bin's files to its machine, runs the lane, stores the new files, proves them by the second engine, and
returns their ``add`` actions, what the storage says of them, and the figures of the proof. No byte of a data file
passes the driver.

Each attempt of a task writes under names of its own, which the driver knows before the job begins, and whose prefix the
run has recorded by then. So an attempt that comes late or again never touches a file that was proven or committed. What
another attempt than the counted one may have left is removed by its exact names, and once more after the commit.
"""

from __future__ import annotations

import copy
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from maintainer.delta.jvm import BORROWED, DeltaJvm
from maintainer.delta.jvm.parquet_calls import copy_row_groups_here
from maintainer.delta.proof.rows_here import chunks_here, figures_here, rows_here
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_verdict import source_findings
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.copy.copy_lane import write_by_copy
from maintainer.delta.rewrite.local.local_lane import write_in_process
from maintainer.delta.rewrite.proof_parts import ProofPart, Prover, is_compared_exactly
from maintainer.delta.spark.start_conf import is_one_process
from maintainer.delta.storage.failures.engine_failures import message_of
from maintainer.delta.storage.fetched_files import SCRATCH_ROOM
from maintainer.delta.storage.file_store import FilesHere
from maintainer.engine.process_loss import is_engine_lost
from maintainer.model.plan.lanes import Lane
from maintainer.model.product_version import __version__

if TYPE_CHECKING:
    from pyspark import SparkContext

    from maintainer.delta.rewrite.rewrite_job import RewriteJob

_LOG = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
"""Attempts of one task that may write: Spark's default is 4, and a second one beside each where it speculates."""

MAX_ASKED = 64
"""Tasks that look whether the executors have the package."""


@dataclass(frozen=True, slots=True)
class BinTask:
    """What one task is sent. It may hold the store's credentials, as what Spark's own tasks are sent does."""

    work: BinWork = field(repr=False)
    lane: Lane
    is_compared: bool
    scratch_bytes: int | None


@dataclass(frozen=True, slots=True)
class BinAnswer:
    """What came of an attempt of a task: the new files, with their proof where the second engine compares them.

    ``unfit`` is why there are none, and the bin goes to the next lane; ``leaves`` whether files may be there then.
    """

    attempt: int
    written: WrittenBin | None = None
    part: ProofPart | None = None
    unfit: str = ""
    leaves: bool = False


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

    def are_ready(self, jvm: DeltaJvm) -> bool:
        """Whether bins go to executors; whoever asks first looks whether they have this package."""
        spread = self._spread
        if spread is None:
            spread = not is_one_process(str(jvm.session_setting("spark.master")))
        if not spread:
            return False
        with self._looking:
            if self._is_ready is None:
                lack = _lack(_context(jvm))
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
        task = BinTask(work, lane, is_compared_exactly(job, work.number), SCRATCH_ROOM.most_bytes)
        job.jvm.enter_thread(job.group, f"{job.where}: bin {work.number + 1} of {len(job.batch.bins)} on an executor")
        try:
            (answer,) = _run(job.jvm.spark.sparkContext, partial(_answers, task))
        except Exception as error:
            self._remove_others(job, work, None)
            job.place.check_stop(job.where)
            if is_engine_lost(error):
                raise
            raise LaneUnfit(f"its task was lost: {message_of(error)[:200]}") from error
        speculates = (job.jvm.session_setting("spark.speculation") or "false").lower() == "true"
        if answer.attempt or answer.leaves or speculates:
            self._remove_others(job, work, None if answer.written is None else answer.attempt)
        if answer.written is None:
            raise LaneUnfit(answer.unfit)
        if not job.storage.files.asks_by_request:
            for stored in answer.written.stored:
                if job.storage.status(stored.uri) is None:
                    raise LaneUnfit(f"an executor wrote {stored.uri}, which is not on this machine's disk")
        self.answers[work.number] = answer
        # Apart from the answer, with which they are compared before its proof counts.
        return replace(answer.written, files=copy.deepcopy(answer.written.files))

    def _remove_others(self, job: RewriteJob, work: BinWork, counted: int | None) -> None:
        """Remove what all attempts but the one that counts may have left, by the names that it may have."""
        attempts = (number for number in range(MAX_ATTEMPTS) if number != counted)
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


def _context(jvm: DeltaJvm) -> SparkContext:
    """The session's context; of our own on this machine, its tasks run by this very Python unless another is named."""
    context = jvm.spark.sparkContext
    is_here = str(jvm.session_setting("spark.master")).startswith("local")
    if is_here and jvm.session_setting(BORROWED) is None and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    return context


def _run(context: SparkContext, answers: Callable[[Iterable[int]], Iterator[BinAnswer]]) -> list[BinAnswer]:
    """Run one task. A job of its own: a task that fails for good ends its job, and costs nothing but its bin."""
    return context.parallelize([0], 1).mapPartitions(answers).collect()


def _answers(task: BinTask, of_partition: Iterable[int]) -> Iterator[BinAnswer]:
    """Work on an executor: write and prove a bin, and yield what came of it. Whatever fails costs the bin alone."""
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = context.attemptNumber() if context is not None else 0
    if attempt >= MAX_ATTEMPTS:
        yield BinAnswer(attempt, unfit=f"its task was tried more than {MAX_ATTEMPTS} times")
        return
    SCRATCH_ROOM.most_bytes = task.scratch_bytes
    work = task.work.of_attempt(attempt)
    # Spark's own folder for what its tasks put on the disk; it goes with the executor.
    here = work.files.here(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None)
    try:
        yield _answer(task, work, here, attempt)
    except LaneUnfit as unfit:
        yield BinAnswer(attempt, unfit=str(unfit), leaves=bool(unfit.stored))
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        yield BinAnswer(attempt, unfit=f"an executor could not write it: {text[:200]}", leaves=True)
    finally:
        if here is not None:
            here.close()


def _answer(task: BinTask, work: BinWork, here: FilesHere | None, attempt: int) -> BinAnswer:
    place = Workplace(here, copy_row_groups_here)
    place.fetch(work.table, work.sources)
    written = write_by_copy(work, place) if task.lane is Lane.COPY else write_in_process(work, place)
    if not task.is_compared or here is None:
        return BinAnswer(attempt, written)
    try:
        return BinAnswer(attempt, written, _proven(work, written, here, is_copied=task.lane is Lane.COPY))
    except CannotCompareError as error:
        _LOG.info("%s: to be proven by Spark: %s", work.where, error)
        return BinAnswer(attempt, written)


def _proven(work: BinWork, written: WrittenBin, here: FilesHere, *, is_copied: bool) -> ProofPart:
    """Measure both sides of a bin here; the driver compares them.

    Raises:
        CannotCompareError: Only Spark can.
    """
    of_bin, adds = (work.number,), [file.add for file in written.files]
    if is_copied and not written.recompressed:
        before, after, problems = chunks_here(work.table, here, work.metadata, work.sources, adds)
        figures = figures_here(work.table, here, work.metadata, adds)
        if figures is None:
            raise CannotCompareError("the statistics of a copy")
        measured = replace(figures, read=before, written=after)
        return ProofPart(Prover.CHUNKS, of_bin, written.files, measured, tuple(problems))
    is_judged = written.source_findings is not None
    sources = [{**add, "stats": None} if is_judged else add for add in work.sources]
    measured = rows_here(work.table, here, work.metadata, sources, adds)
    found = source_findings(sources, measured)
    return ProofPart(Prover.DUCKDB, of_bin, written.files, measured, source_findings=found)


def _lack(context: SparkContext) -> str | None:
    """Say what the executors lack, None where they have what bins need; as many tasks ask as they have cores."""
    num_tasks = max(1, min(context.defaultParallelism, MAX_ASKED))

    # Not imported there: pickled by value, as Spark does with what is defined within a function.
    def answer(of_partition: Iterable[int]) -> Iterator[str]:
        try:
            from maintainer.delta.rewrite.executor_bins import version_here

            yield version_here()
        except Exception as error:
            yield f"{type(error).__name__}: {error}"

    try:
        found = set(context.parallelize(range(num_tasks), num_tasks).mapPartitions(answer).collect())
    except Exception as error:
        return f"no task in Python runs there: {message_of(error)[:200]}"
    other = sorted(found - {version_here()})
    return other[0][:200] if other else None


def version_here() -> str:
    """Name this package and what bins need beside it, where all of it can be imported."""
    for name in ("duckdb", "numpy", "obstore", "pyarrow", "pyroaring"):
        import_module(name)
    return f"maintainer {__version__}"
