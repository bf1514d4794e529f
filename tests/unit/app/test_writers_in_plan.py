"""A plan knows the rhythm of other writers where something is rewritten, and nothing is lost when it cannot be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from maintainer.app.make_plan import with_writers
from maintainer.errors import TableError
from maintainer.model.commits import CommitsRead, TableCommit
from maintainer.model.table import TableRef
from maintainer.model.writers import WriterRhythm
from maintainer.planning.rhythm import LOOK_BACK_MS, MAX_COMMITS
from tests.builders import NOW_MS
from tests.fake_lake import FakeLake, compact, plan_of

HOUR = NOW_MS // 3_600_000 % 24


class Reader:
    """Answers with commits, and remembers what it was asked."""

    def __init__(self, *commits: TableCommit, error: TableError | None = None) -> None:
        self.found = commits
        self.error = error
        self.asked: list[tuple[str, int, int | None]] = []

    def commits(self, ref: TableRef, *, limit: int, since_ms: int | None = None, counted: bool = False) -> CommitsRead:
        self.asked.append((ref.identifier, limit, since_ms))
        if self.error is not None:
            raise self.error
        return CommitsRead(ref.location, self.found, 0)


def test_where_something_is_rewritten_the_newest_commits_are_read_once() -> None:
    table = FakeLake().table("a", (1,), (2,))
    plan = plan_of(table, compact(table))
    reader: Any = Reader(TableCommit(7, NOW_MS, "MERGE", takes_files=True), TableCommit(6, NOW_MS - 1, "WRITE"))
    found = with_writers(reader, plan, NOW_MS)
    by_hour = tuple(int(hour == HOUR) for hour in range(24))
    assert found == replace(plan, writers=WriterRhythm(NOW_MS - LOOK_BACK_MS, NOW_MS, 2, by_hour))
    assert reader.asked == [("a", MAX_COMMITS, NOW_MS - LOOK_BACK_MS)]


def test_a_table_that_needs_nothing_costs_no_look_at_its_commits() -> None:
    plan = plan_of(FakeLake().table("a", (1,)))
    reader: Any = Reader()
    assert with_writers(reader, plan, NOW_MS) is plan
    assert reader.asked == []


def test_a_log_that_cannot_be_read_a_second_time_leaves_the_plan_as_it_is() -> None:
    table = FakeLake().table("a", (1,), (2,))
    plan = plan_of(table, compact(table))
    reader: Any = Reader(error=TableError("the log cannot be read", code="T403"))
    assert with_writers(reader, plan, NOW_MS) is plan
