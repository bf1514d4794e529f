"""Have executors write bins of the lanes outside Spark, and judge what they answer. No data file passes the driver.

Each attempt of a task writes under names of its own, which the driver knows before the job begins, and whose prefix the
run has recorded by then. So an attempt that comes late or again never touches a file that was proven or committed. What
another attempt than the counted one may have left is removed by its exact names, and once more after the commit.

The bins of all tables of a run go into Spark jobs, one task for each bin. A job costs the driver several times what one
more task of it does. So bins share a job, but none waits for another one while a core is free: while executors have
more tasks than cores, bins wait here, as they would in Spark, and then all of them go together. Each answer arrives as
its task ends, through an accumulator.

A task answers also that it failed. What two executors ended of is answered by the third without a try. If a job fails
before, the bins without an answer go once more, each in a job of its own and under names of its own.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from maintainer.delta.jvm import DeltaJvm, cancel_jobs
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, WrittenBin
from maintainer.delta.rewrite.executors.executor_tasks import MAX_ATTEMPTS, VERSION, BinAnswer, BinTask, answer_tasks
from maintainer.delta.rewrite.proof_parts import ProofPart, is_compared_exactly
from maintainer.delta.spark.start_conf import is_one_process, tasks_of_executor
from maintainer.delta.storage.failures.engine_failures import message_of
from maintainer.delta.storage.fetched_files import SCRATCH_ROOM
from maintainer.engine.process_loss import is_engine_lost
from maintainer.model.plan.lanes import Lane

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator, AccumulatorParam

    from maintainer.delta.rewrite.rewrite_job import RewriteJob

MAX_TASKS = 64
"""Of one job: what its tasks are sent is in the driver's memory at once."""

POLL_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class AskedBin:
    """A bin that somebody waits for.

    Attributes:
        task: What is sent.
        answer: What came of it.
        failure: What its last job ended of without an answer.
        ended: Set with either of them.
        is_again: Its first job failed; the next one is its own.
        is_awaited: Somebody still waits.
    """

    task: BinTask
    answer: BinAnswer | None = None
    failure: Exception | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    is_again: bool = False
    is_awaited: bool = True

    @property
    def num_attempts(self) -> int:
        """How many attempts there may be, each with names of its own."""
        return self.task.first_attempt + MAX_ATTEMPTS


@dataclass(frozen=True, slots=True, eq=False)
class BinJob:
    """A job, and the bins of its tasks."""

    group: str
    bins: Sequence[AskedBin]


class AnswerParam:
    """How Spark puts the answers of tasks together: the driver hands each on as it arrives, and keeps none."""

    def __init__(self, take: Callable[[BinAnswer], None] | None = None) -> None:
        self._take = take

    def __reduce__(self) -> tuple[type[AnswerParam], tuple[()]]:
        return AnswerParam, ()

    def zero(self, value: list[BinAnswer]) -> list[BinAnswer]:
        return []

    def addInPlace(self, value1: list[BinAnswer], value2: list[BinAnswer]) -> list[BinAnswer]:
        """Add answers to those of a task, or hand them on."""
        if self._take is None:
            return value1 + value2
        for answer in value2:
            self._take(answer)
        return value1


class SharedJobs:
    """The jobs of one run. Used from all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = f"maintainer-bins-{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count()
        self._waiting: list[AskedBin] = []
        self._sent: dict[int, AskedBin] = {}
        """What executors have, by the ids of its tasks."""
        self._jobs: list[BinJob] = []
        self._num_cores = 0
        self._answers: Accumulator[list[BinAnswer]] | None = None

    def ask(self, context: SparkContext, task: BinTask, check: Callable[[], None]) -> AskedBin:
        """Have a bin written, and wait until it was, or nobody can say.

        Args:
            context: Whose executors do it.
            task: The bin; it gets an id here.
            check: Raises where nobody is to wait any longer; then the bin is given up, and no other one.
        """
        bin_ = AskedBin(replace(task, task_id=next(self._numbers)))
        with self._lock:
            self._waiting.append(bin_)
        try:
            self._send(context)
            while not bin_.ended.wait(POLL_SECONDS):
                check()
            return replace(bin_)
        finally:
            self._leave(context, bin_)

    def _send(self, context: SparkContext) -> None:
        """Send what waits, unless executors have more than they can do at once."""
        while True:
            with self._lock:
                if not self._waiting or len(self._sent) > self._num_cores:
                    return
                first = self._waiting[0]
                bins = [first] if first.is_again else [bin_ for bin_ in self._waiting if not bin_.is_again][:MAX_TASKS]
                self._waiting = [bin_ for bin_ in self._waiting if bin_ not in bins]
                self._sent.update((bin_.task.task_id, bin_) for bin_ in bins)
                job = BinJob(f"{self._name}-{next(self._numbers)}", bins)
                self._jobs.append(job)
            thread = threading.Thread(target=self._run, args=(context, job), name=job.group, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads
                self._end(context, job, error)

    def _run(self, context: SparkContext, job: BinJob) -> None:
        """Run a job to its end; answers arrive meanwhile."""
        failure: Exception = RuntimeError("it ended, and no answer arrived")
        try:
            self._num_cores = context.defaultParallelism
            self._send(context)  # what came while nobody knew how many cores there are
            with self._lock:
                if self._answers is None:
                    param = cast("AccumulatorParam[list[BinAnswer]]", AnswerParam(partial(self._take, context)))
                    self._answers = context.accumulator([], param)
            context.setLocalProperty("spark.scheduler.pool", self._name)
            context.setJobGroup(job.group, f"{len(job.bins)} bins on executors", interruptOnCancel=False)
            if any(bin_.is_awaited for bin_ in job.bins):
                tasks = context.parallelize([bin_.task for bin_ in job.bins], len(job.bins))
                tasks.mapPartitions(partial(answer_tasks, self._answers)).collect()
        except Exception as error:
            failure = error
        self._end(context, job, failure)

    def _take(self, context: SparkContext, answer: BinAnswer) -> None:
        """Hand on an answer, and send what waited for its core. Of two answers the first counts, as Spark has it."""
        with self._lock:
            bin_ = self._sent.pop(answer.task_id, None)
            if bin_ is not None:
                bin_.answer = answer if bin_.is_awaited else None
                bin_.ended.set()
        if bin_ is not None:
            self._send(context)

    def _end(self, context: SparkContext, job: BinJob, failure: Exception) -> None:
        """Settle what has no answer at the end of its job: once more, in a job of its own, or as failed."""
        with self._lock:
            self._jobs.remove(job)
            for bin_ in job.bins:
                if self._sent.pop(bin_.task.task_id, None) is None or not bin_.is_awaited:
                    continue
                if len(job.bins) > 1 and not is_engine_lost(failure):
                    bin_.is_again = True
                    bin_.task = replace(bin_.task, task_id=next(self._numbers), first_attempt=bin_.num_attempts)
                    self._waiting.append(bin_)
                else:
                    bin_.failure = failure
                    bin_.ended.set()
        self._send(context)

    def _leave(self, context: SparkContext, bin_: AskedBin) -> None:
        """Wait for a bin no longer; its job is cancelled where all that did not answer are bins of stopped tables."""
        with self._lock:
            # What it answered may be large, and the job has it until its last task ends.
            bin_.is_awaited, bin_.answer = False, None
            if bin_ in self._waiting:
                self._waiting.remove(bin_)
            groups = [
                job.group
                for job in self._jobs
                if bin_ in job.bins
                and not any(one.is_awaited for one in job.bins)
                and not all(one.ended.is_set() for one in job.bins)
            ]
        with contextlib.suppress(Exception):  # what led here must not be hidden
            for group in groups:
                cancel_jobs(context, group)


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
        self._context: SparkContext | None = None
        self.speculate = False
        """Whether Spark may run a second attempt of a task beside the first."""
        self.scratch_shares: int | None = None
        """How many tasks share the room for copies; None where each executor has as many as processors."""
        self.jobs = SharedJobs()

    def are_ready(self, jvm: DeltaJvm, check: Callable[[], None]) -> bool:
        """Whether bins go to executors; whoever asks first looks whether they have this package.

        ``check`` raises where the table is to end. Its jobs are cancelled then: a look among them says nothing.
        """
        while not self._looking.acquire(timeout=POLL_SECONDS):
            check()
        try:
            if self._is_ready is None:
                check()  # nobody cancels what begins now
                self._is_ready = self._ready_now(jvm, check)
            return self._is_ready
        finally:
            self._looking.release()

    def _ready_now(self, jvm: DeltaJvm, check: Callable[[], None]) -> bool:
        spread = self._spread
        if spread is None:
            spread = not is_one_process(str(jvm.session_setting("spark.master")))
        if not spread:
            return False
        self.speculate = (jvm.session_setting("spark.speculation") or "false").lower() == "true"
        self.scratch_shares = tasks_of_executor(jvm.session_setting)
        lack = _lack(self.context(jvm))
        if lack is not None:
            check()
            self._on_lack(f"bins are written in this process, and none on executors: {lack}")
        return lack is None

    def context(self, jvm: DeltaJvm) -> SparkContext:
        """The context of the session that all workers share: nothing of it is asked of Spark for each bin."""
        if self._context is None:
            self._context = jvm.spark.sparkContext
        return self._context


@dataclass(slots=True)
class SpreadBins:
    """The bins of one batch that executors write. Used from several threads."""

    executors: Executors
    answers: dict[int, BinAnswer] = field(default_factory=dict)
    """By the place of a bin in its batch."""
    other_paths: list[str] = field(default_factory=list)
    """What attempts that do not count may have written; one that is late may yet."""

    def are_ready(self, job: RewriteJob) -> bool:
        """Whether executors write; see ``Executors``. Raises C702 where the run is to end."""
        return self.executors.are_ready(job.jvm, partial(job.place.check_stop, job.where))

    def write(self, job: RewriteJob, work: BinWork, lane: Lane) -> WrittenBin:
        """Write a bin on an executor.

        Raises:
            LaneUnfit: It does not fit the lane, or the task was lost.
            CommitNotLanded: C702, the run is to end, or the store does not hold what was written.
        """
        if job.place.here is None:
            raise LaneUnfit("its files are read through Hadoop alone")
        is_compared, shares = is_compared_exactly(job, work.number), self.executors.scratch_shares
        task = BinTask(0, work, lane, is_compared, SCRATCH_ROOM.most_bytes, scratch_shares=shares)
        try:
            context = self.executors.context(job.jvm)
            asked = self.executors.jobs.ask(context, task, partial(job.place.check_stop, job.where))
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
        is_there = answer.attempt > 0 or answer.leaves
        if is_there or self.executors.speculate:
            counted = None if answer.written is None else answer.attempt
            self._remove_others(job, work, (number for number in attempts if number != counted), is_there=is_there)
        if answer.failure is not None:
            raise answer.failure
        if answer.written is None:
            raise LaneUnfit(answer.unfit)
        if not job.storage.files.asks_by_request:
            for stored in answer.written.stored:
                if job.storage.status(stored.uri) is None:
                    self._remove_others(job, work, [answer.attempt])  # a mount may show it later
                    raise LaneUnfit(f"an executor wrote {stored.uri}, which is not on this machine's disk")
        # Where rows lie is kept by the job alone, up to a bound.
        self.answers[work.number] = replace(answer, written=replace(answer.written, row_order=None))
        # Apart from the answer, with which they are compared before its proof counts.
        return replace(answer.written, files=copy.deepcopy(answer.written.files))

    def _remove_others(self, job: RewriteJob, work: BinWork, attempts: Iterable[int], *, is_there: bool = True) -> None:
        """Remove what attempts that do not count may have left, by the names that it may have.

        If nothing says that ``is_there``, the look after the commit is soon enough.
        """
        paths = [path for number in attempts for path in work.of_attempt(number).paths]
        self.other_paths += paths
        if is_there:
            job.delete_found(paths)

    def part_of(self, job: RewriteJob, number: int) -> ProofPart | None:
        """What an executor measured of a bin, if its new files are what the storage held when the proof began.

        None where somebody else must prove the bin: also where others deleted rows of it since.
        """
        answer = self.answers.get(number)
        if answer is None or answer.written is None or answer.part is None:
            return None
        if job.carried_deletes is not None and number in job.carried_deletes.bins:
            return None
        files = tuple(file for file in job.written if file.bin_number == number)
        if files != answer.written.files:
            return None
        for file, stored in zip(files, answer.written.stored, strict=True):
            found = job.stored.get(file.path)
            if found is None or replace(found, device_and_inode=None) != stored:
                return None
        return replace(answer.part, written=files)


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
