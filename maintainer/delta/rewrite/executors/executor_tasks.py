"""What a task does on an executor: it writes and proves one bin, and answers what came of it.

A task brings a bin's files to its machine, runs the lane, stores the new files, proves them by the second engine, and
answers their ``add`` actions, what the storage says of them, and the figures of the proof. Whatever fails is an answer,
too, so that it costs this bin and no other one of its job.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Protocol

from maintainer.delta.jvm.parquet_calls import copy_row_groups_here
from maintainer.delta.proof.rows_here import chunks_here, figures_here, rows_here
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_verdict import source_findings
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.copy_lane import write_by_copy
from maintainer.delta.rewrite.local.local_lane import write_in_process
from maintainer.delta.rewrite.proof_parts import ProofPart, Prover
from maintainer.delta.storage.fetched_files import SCRATCH_ROOM
from maintainer.delta.storage.file_store import FilesHere, TransferError
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.lanes import Lane
from maintainer.model.product_version import __version__

_LOG = logging.getLogger(__name__)

VERSION = f"maintainer {__version__}"

MAX_ATTEMPTS = 2
"""Attempts of one task that may write. A task answers also that it failed, so that Spark tries it again where its
executor or Python ended, or where it speculates. What ends executors may be the bin, by the memory that it takes: a
third one would be the next, and clusters give up an application that lost many (on YARN twice as many as it has)."""


@dataclass(frozen=True, slots=True)
class BinTask:
    """What one task is sent. It may hold the store's credentials, as what Spark's own tasks are sent does.

    ``task_id`` is by what its answer is known. ``first_attempt`` counts those of an earlier job with the same bin,
    which have names of their own. ``scratch_shares``: as ``Executors`` has it.
    """

    task_id: int
    work: BinWork = field(repr=False)
    lane: Lane
    is_compared: bool
    scratch_bytes: int | None
    first_attempt: int = 0
    scratch_shares: int | None = None


@dataclass(frozen=True, slots=True)
class BinAnswer:
    """What came of an attempt of a task: the new files, with their proof where the second engine compares them.

    ``unfit`` is why there are none, and the bin goes to the next lane; ``leaves`` whether files may be there then.
    ``failure`` ends its batch: the store does not hold what was written.
    """

    task_id: int
    attempt: int
    written: WrittenBin | None = None
    part: ProofPart | None = None
    unfit: str = ""
    leaves: bool = False
    failure: CommitNotLanded | None = None


class Answers(Protocol):
    """Where a task puts what it answers: an accumulator of Spark, which takes it to the driver as the task ends."""

    def add(self, term: list[BinAnswer]) -> None: ...


def answer_tasks(answers: Answers, tasks: Iterable[BinTask]) -> Iterator[None]:
    """Do the tasks of one partition, each of which has one, and answer each."""
    for task in tasks:
        answers.add([_attempt(task)])
    return iter(())


def _attempt(task: BinTask) -> BinAnswer:
    """Write and prove a bin under the names of this attempt. Only a store that alters files costs more than the bin."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.attemptNumber() if context is not None else 0
    attempt = task.first_attempt + number
    if number >= MAX_ATTEMPTS:
        return BinAnswer(
            task.task_id, attempt, unfit=f"its task was lost: {MAX_ATTEMPTS} attempts ended without an answer"
        )
    SCRATCH_ROOM.most_bytes = task.scratch_bytes
    SCRATCH_ROOM.shares = task.scratch_shares or os.cpu_count() or 1
    work = task.work.of_attempt(attempt)
    # Spark's own folder for what its tasks put on the disk; it goes with the executor.
    here = work.files.here(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None)
    try:
        return _answer(task, work, here, attempt)
    except LaneUnfit as unfit:
        return BinAnswer(task.task_id, attempt, unfit=str(unfit), leaves=bool(unfit.stored))
    except CommitNotLanded as error:
        return BinAnswer(task.task_id, attempt, leaves=True, failure=error)
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        return BinAnswer(task.task_id, attempt, unfit=f"an executor could not write it: {text[:200]}", leaves=True)
    finally:
        if here is not None:
            here.close()


def _answer(task: BinTask, work: BinWork, here: FilesHere | None, attempt: int) -> BinAnswer:
    place = Workplace(here, copy_row_groups_here)
    place.fetch(work.table, work.sources)
    written = write_by_copy(work, place) if task.lane is Lane.COPY else write_in_process(work, place)
    if not task.is_compared or here is None:
        return BinAnswer(task.task_id, attempt, written)
    try:
        part = _proven(work, written, here, is_copied=task.lane is Lane.COPY)
    except (CannotCompareError, TransferError) as error:
        _LOG.info("%s: to be proven by Spark: %s", work.where, error)
        part = None
    return BinAnswer(task.task_id, attempt, written, part)


def _proven(work: BinWork, written: WrittenBin, here: FilesHere, *, is_copied: bool) -> ProofPart:
    """Measure both sides of a bin here; the driver compares them.

    Raises:
        CannotCompareError, TransferError: Only Spark can.
    """
    of_bin, adds = (work.number,), [file.add for file in written.files]
    if is_copied:
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


def version_here() -> str:
    """Name this package and what bins need beside it, where all of it can be imported."""
    for name in ("duckdb", "numpy", "obstore", "pyarrow", "pyroaring"):
        import_module(name)
    return VERSION
