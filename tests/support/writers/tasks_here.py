"""A Spark context whose tasks run in this process, one after the other, from what pickle sends of them."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark import accumulators
from pyspark.accumulators import Accumulator

Attempt = Callable[[], Any]
NUMBERS = itertools.count()


def once(attempt: Attempt) -> Any:
    """What one attempt of a task answers, from what pickle sends, in a process without the driver's accumulator."""
    there, sent = accumulators._accumulatorRegistry, pickle.dumps(attempt)
    driver = dict(there)
    there.clear()
    try:
        list(pickle.loads(sent)())
        ((_, answers),) = there.items()
        return pickle.loads(pickle.dumps(answers._value))
    finally:
        there.clear()
        there.update(driver)


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
