"""A plan knows what other writers do where something is rewritten, and nothing is lost when it cannot be read."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from maintainer.app.planning import read_table
from maintainer.app.planning.read_table import plan_beside_writers
from maintainer.errors import LogUnreadable, TableError
from maintainer.model.table.commit_records import (
    CommitsRead,
    CommitStamp,
    CommitsWanted,
    OwnRewrites,
    TableCommit,
    WriterRhythm,
)
from maintainer.model.table.table_facts import TableFacts, TableRecord, TableRef, Update
from maintainer.planning.budget.other_writers import LOOK_BACK_MS, MAX_COMMITS
from maintainer.planning.needs import MAX_NEEDS
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from tests.support.tables.builders import (
    HOUR_MS,
    MINUTE_MS,
    NOW_MS,
    make_facts,
    make_files,
    make_optimize,
    make_policy,
)

HOUR = NOW_MS // HOUR_MS % 24
MERGE = Update(7, NOW_MS, "MERGE")


class Reader:
    """Answers with commits and updates, and remembers what it was asked."""

    def __init__(self, *commits: TableCommit, error: TableError | None = None) -> None:
        self.commits_read = commits
        self.error = error
        self.asked: list[tuple[object, ...]] = []

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        self.asked.append((ref.identifier, wanted.limit, wanted.since_ms))
        if self.error is not None:
            raise self.error
        return CommitsRead(ref.location, self.commits_read, 0)

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[Update, ...]:
        self.asked.append((facts.version, since_ms))
        return (MERGE,)


def look(reader: object, quiet_seconds: int) -> TableFacts:
    policy = make_policy(optimize=make_optimize(quiet_after_updates_seconds=quiet_seconds))
    asked: Any = reader
    table = TableInput(policy, make_facts(files=make_files(1, 1)), TableRecord(), NOW_MS, date(2026, 11, 21))
    return plan_beside_writers(asked, table)[0].facts


def test_the_newest_commits_are_read_and_the_updates_of_the_quiet_time() -> None:
    reader = Reader(TableCommit(7, NOW_MS, "MERGE", takes_files=True), TableCommit(6, NOW_MS - 1, "WRITE"))
    facts = look(reader, 600)
    by_hour = tuple(int(hour == HOUR) for hour in range(24))
    assert facts.writers == WriterRhythm(NOW_MS - LOOK_BACK_MS, NOW_MS, 2, by_hour)
    assert facts.updates == (MERGE,)
    assert reader.asked == [("sales.orders", MAX_COMMITS, NOW_MS - LOOK_BACK_MS), (7, NOW_MS - 10 * MINUTE_MS)]


@pytest.mark.parametrize("operation", ["MERGE", "WRITE"])
def test_the_plan_is_that_of_the_table_with_all_that_is_known_of_its_writers(operation: str) -> None:
    asked: Any = Reader(TableCommit(7, NOW_MS, operation, takes_files=operation == "MERGE"))
    if operation == "WRITE":
        asked.updates = lambda *_, **__: ()
    policy = make_policy(optimize=make_optimize(quiet_after_updates_seconds=600))
    table = TableInput(policy, make_facts(files=make_files(1, 1)), TableRecord(), NOW_MS, date(2026, 11, 21))
    read, plan = plan_beside_writers(asked, table)
    assert plan == plan_table(read)
    assert (plan.writers is None, bool(plan.steps)) == (False, operation == "WRITE")


def test_where_a_rhythm_makes_an_update_likely_older_updates_say_which_partitions_they_meet() -> None:
    merges = [TableCommit(39 - i, NOW_MS - i * 5 * MINUTE_MS, "MERGE", takes_files=True) for i in range(3, 40)]
    reader = Reader(*merges)
    look(reader, 600)
    assert reader.asked[1] == (7, NOW_MS - 6 * HOUR_MS)


def test_our_own_rewrites_since_the_last_update_by_others_are_known() -> None:
    ours = TableCommit(8, NOW_MS - 1, "OPTIMIZE", stamp=CommitStamp("r", "t/compact", 0, "d"), takes_files=True)
    merge = TableCommit(7, NOW_MS - 2, "MERGE", takes_files=True)
    assert look(Reader(ours, merge), 600).own_rewrites == OwnRewrites(1, NOW_MS - 1, others_only_append=False)
    assert look(Reader(merge, ours), 600).own_rewrites is None


def test_a_policy_that_never_waits_for_quiet_reads_no_updates() -> None:
    reader = Reader(TableCommit(7, NOW_MS, "MERGE", takes_files=True))
    assert look(reader, 0).updates is None
    assert len(reader.asked) == 1


def test_a_log_that_cannot_be_read_a_second_time_leaves_the_facts_as_they_are() -> None:
    facts = look(Reader(error=LogUnreadable("the log cannot be read")), 600)
    assert (facts.writers, facts.updates) == (None, None)


def test_a_reader_that_never_answers_is_a_bug_and_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_table, "answer", lambda reader, table, need, tables=(): table)
    with pytest.raises(RuntimeError, match=f"planning asks {MAX_NEEDS} times .* WritersNeed"):
        look(Reader(), 600)
