"""A Spark context whose tasks run in this process, one after the other, from what pickle sends; and a table for it."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pyarrow as pa
from pyspark import accumulators
from pyspark.accumulators import Accumulator

from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.delta.jvm import DeltaJvm, DirectAccess, UnstartedSession
from maintainer.delta.rewrite.executors.executor_bins import Executors, SpreadBins
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.fetched_files import SCRATCH_ROOM
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.model.plan.lanes import Codec, Lane, LaneChoice
from maintainer.model.plan.steps import Batch, Bin, CompactStep
from maintainer.model.table.table_facts import TableRef

Attempt = Callable[[], Any]
NUMBERS = itertools.count()


def once(attempt: Attempt) -> Any:
    """What one attempt of a task answers, from what pickle sends, in a process without the driver's accumulator."""
    there, sent = accumulators._accumulatorRegistry, pickle.dumps(attempt)
    room = SCRATCH_ROOM.most_bytes, SCRATCH_ROOM.shares
    driver = dict(there)
    there.clear()
    try:
        list(pickle.loads(sent)())
        ((_, answers),) = there.items()
        return pickle.loads(pickle.dumps(answers._value))
    finally:
        there.clear()
        there.update(driver)
        SCRATCH_ROOM.most_bytes, SCRATCH_ROOM.shares = room


@dataclass
class Tasks:
    """A Spark context whose tasks run here, one after the other."""

    run: Callable[[Attempt], Any] = once
    defaultParallelism: int = 1
    rows: Sequence[Any] = ()
    answers: Callable[..., Any] = list
    answer: Accumulator[Any] | None = None

    def accumulator(self, value: list[Any], param: Any) -> Accumulator[Any]:
        self.answer = Accumulator(next(NUMBERS), value, param)
        return self.answer

    def setLocalProperty(self, key: str, value: str) -> None:
        pass

    def setJobGroup(self, group: str, description: str, interruptOnCancel: bool) -> None:
        pass

    def parallelize(self, rows: Sequence[Any], num_tasks: int) -> Tasks:
        assert len(rows) == num_tasks
        return replace(self, rows=rows)

    def mapPartitions(self, answers: Callable[..., Any]) -> Tasks:
        return replace(self, answers=answers)

    def collect(self) -> list[Any]:
        if "_lack" in getattr(self.answers, "__qualname__", ""):  # pickled by value, by Spark's own pickle
            return list(self.answers([0]))
        assert self.answer is not None
        for row in self.rows:
            self.answer += self.run(partial(self.answers, [row]))
        return []


def never(*anything: object) -> Any:
    raise AssertionError("a JVM was asked for")


class Cluster(DeltaJvm):
    """Calls of a session on a cluster; nothing but its tasks can be asked for."""

    def __init__(self, tasks: Tasks, **settings: str) -> None:
        direct = DirectAccess({}, frozenset({"file"}))
        conf: dict[str, str | None] = {"spark.master": "spark://host:7077", **settings}
        super().__init__(UnstartedSession(never, never, never, False, conf, direct))
        self.tasks = tasks

    @property
    def spark(self) -> Any:
        return SimpleNamespace(sparkContext=self.tasks)

    def enter_thread(self, group: str, description: str) -> None:
        pass


@dataclass
class Rewrite:
    """A table of three files of two rows in each of two partitions, and a job that joins them."""

    path: Path
    lacks: list[str] = field(default_factory=list)
    lane: Lane = Lane.LOCAL
    codec: Codec = Codec.UNCOMPRESSED

    def __post_init__(self) -> None:
        for number in range(3):
            rows = pa.table({"id": [number, 7, 8, 9], "part": ["a b", "a b", "c", "c"]})
            deltalake.write_deltalake(str(self.path), rows, mode="append", partition_by=["part"])

    @contextmanager
    def job(self, tasks: Tasks, spread: bool | None = None, **settings: str) -> Iterator[RewriteJob]:
        jvm = Cluster(tasks, **settings)
        facts = DeltaTableEngine(jvm, "g").reader.facts(TableRef(path_uri(str(self.path))))
        choice = LaneChoice(self.lane, "small", Lane.LOCAL)
        parts = {file.partition_values for file in facts.files}
        bins = (Bin(tuple(file for file in facts.files if file.partition_values == part), choice) for part in parts)
        batch = Batch(tuple(bins))
        job = RewriteJob(
            jvm,
            facts,
            CompactStep((batch,), 1 << 20, 1, (), codec=self.codec),
            batch,
            "g",
            LiveFilesReader(jvm),
        )
        job.file_prefix = "part-run-1-"
        job.spread = SpreadBins(Executors(spread, self.lacks.append))
        with job.opened():
            yield job

    @property
    def new_files(self) -> set[str]:
        """The files that runs wrote and that are still there."""
        return {path.name for path in self.path.rglob("part-run-*")}
