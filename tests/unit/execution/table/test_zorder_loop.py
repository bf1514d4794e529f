"""The loop of turns: it ends by itself, by its bounds and by other writers, and every turn leaves its figures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from maintainer.engine.protocols import BeforeCommit
from maintainer.errors import CommitConflict, Interrupted, TableAltered
from maintainer.execution.run_context import Clock
from maintainer.execution.table import zorder_loop as turns
from maintainer.execution.table.table_worker import StepWork
from maintainer.journal.memory.place_records import PlaceRecord
from maintainer.model.plan.steps import Batch, SetPropertiesStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import Intent, Result, RunEvent
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import ColumnRanges, TableFacts, TableRef
from maintainer.planning.zorder.incremental_zorder import next_turn
from tests.support.tables.builders import make_facts
from tests.support.tables.curve_lake import CurveLake, revision_of, settings_of

GRID = [(x, y) for x in range(16) for y in range(16)]
LEVELED: dict[str, object] = {"batch_bytes": 800, "bytes_per_iteration": 800, "max_file_size_bytes": 400}
"""Four turns put the files on the curve, and leveled turns follow."""


class Table:
    """A table of numbers behind the reader's face; ``run_batch`` carries turns out on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **properties: str) -> None:
        self.lake = CurveLake(revision_of(GRID, max_bits=4))
        self.properties = {self.lake.revision.property_name: self.lake.revision.to_json(), **properties}
        for _ in range(4):
            self.lake.append(GRID * 3)
        self.fail_at: dict[int, Exception] = {}
        self.stop_at: int | None = None
        self.appends_a_turn = 0
        self.looks = 0
        self.removed: list[str] = []
        self.recorded: list[RunEvent] = []
        monkeypatch.setattr(turns, "run_batch", self.run_batch)

    def facts(self, ref: object) -> TableFacts:
        return make_facts(files=self.lake.files.values(), properties=self.properties, version=self.lake.commits)

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        return ColumnRanges(columns, {key: tuple(bounds) for key, bounds in self.lake.ranges.items()})

    def check(self) -> None:
        self.looks += 1
        if self.stop_at == self.looks:
            raise Interrupted("stopped")

    def check_commit(self) -> None:
        """Nothing stops it."""

    def run_batch(self, worker: object, work: StepWork, step: ZOrderStep, number: int, planned: Batch) -> None:
        if number in self.fail_at:
            raise self.fail_at[number]
        assert step.planned_turn is not None
        self.lake.carry_out(SimpleNamespace(batch=planned, planned_turn=step.planned_turn))  # type: ignore[arg-type]
        for _ in range(self.appends_a_turn):
            self.lake.append(GRID[:3])
        work.commits.append(CommitReceipt(version=self.lake.commits, read_version=self.lake.commits - 1))

    def set_properties(
        self, facts: TableFacts, step: SetPropertiesStep, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        before_commit(98, None)
        self.removed += step.unset
        return CommitReceipt(version=99, read_version=98)

    def step(self, **changes: object) -> ZOrderStep:
        settings = settings_of(self.lake.revision, **changes)
        chosen = self.lake.choose(settings)
        assert chosen is not None
        return ZOrderStep((chosen.batch,), ("c0", "c1"), 1000, 2, (), chosen.planned_turn, settings)

    def run(self, step: ZOrderStep) -> tuple[StepStatus, StepWork]:
        work = StepWork("t/zorder", "zorder")
        engine = SimpleNamespace(reader=self, writer=self)
        plan = SimpleNamespace(ref=TableRef("t"), window_closes_ms=None, policy_digest="sha256:policy")
        journal = SimpleNamespace(run_id="r", record=self.recorded.append)
        context = SimpleNamespace(journal=journal, clock=Clock(), verifier_check=Mock())
        worker: Any = SimpleNamespace(engine=engine, control=self, plan=plan, context=context, lease=None)
        try:
            return turns.run_turns(worker, work, step), work
        except Interrupted:
            return StepStatus.INTERRUPTED, work


def test_turns_follow_until_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(monkeypatch)
    asked = Mock(wraps=next_turn)
    monkeypatch.setattr(turns, "next_turn", asked)
    status, work = table.run(table.step(batch_bytes=1600))
    assert status is StepStatus.SUCCEEDED
    assert asked.call_count == len(work.turns), "where nothing bounds them, the end is not asked for twice"
    assert [turn.planned.strategy for turn in work.turns[:2]] == [Strategy.UNINDEXED] * 2
    assert [turn.version for turn in work.turns] == [commit.version for commit in work.commits]
    assert all(turn.after is not None for turn in work.turns)
    assert work.turns[0].after == work.turns[1].before
    assert work.turns[-1].after is not None
    assert work.turns[-1].after.unindexed_ratio == 0
    assert work.turns[-1].after.bytes_read < work.turns[0].before.bytes_read
    assert work.boxes is not None
    assert (work.boxes.columns, work.boxes.num_before) == (("c0", "c1"), 4)
    assert work.boxes.after is not None
    assert work.boxes.num_after == len(work.boxes.after) == len(table.lake.files)
    assert table.lake.choose(settings_of(table.lake.revision)) is None
    assert not work.goes_on


def test_files_that_are_appended_meanwhile_wait_for_the_next_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a table to which others append all the time would keep the run, and no other table would get its turn."""
    quiet, busy = Table(monkeypatch), Table(monkeypatch)
    busy.appends_a_turn = 2
    steps = [table.step(batch_bytes=1600, strategies=(Strategy.UNINDEXED,), max_turns=40) for table in (quiet, busy)]
    monkeypatch.setattr(turns, "run_batch", quiet.run_batch)
    _, without = quiet.run(steps[0])
    monkeypatch.setattr(turns, "run_batch", busy.run_batch)
    status, work = busy.run(steps[1])
    assert status is StepStatus.SUCCEEDED
    assert work.notes == []
    assert [turn.planned.elements for turn in work.turns] == [turn.planned.elements for turn in without.turns]
    left = busy.lake.choose(settings_of(busy.lake.revision, strategies=(Strategy.UNINDEXED,)))
    assert left is not None
    assert len(left.batch.files) == 2 * len(work.turns)


def test_the_number_of_turns_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(monkeypatch)
    status, work = table.run(table.step(batch_bytes=800, max_turns=2))
    assert (status, len(work.turns)) == (StepStatus.SUCCEEDED, 2)
    assert work.notes == ["stopped after 2 turns; the next apply goes on"]
    assert work.goes_on


@pytest.mark.parametrize("bound", ["bytes", "files"])
def test_the_budget_ends_it(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    table = Table(monkeypatch)
    step = table.step(batch_bytes=800)
    most = {"budget_bytes": 1600} if bound == "bytes" else {"budget_files": 2 * step.num_files}
    _, work = table.run(table.step(batch_bytes=800, **most))
    assert sum(turn.planned.elements for turn in work.turns) <= 1600
    assert (len(work.turns), work.goes_on) == (2, True)


def test_a_stop_ends_it_between_two_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(monkeypatch)
    table.stop_at = 2
    status, work = table.run(table.step(batch_bytes=800))
    assert (status, len(work.turns), len(work.commits)) == (StepStatus.INTERRUPTED, 1, 1)


def test_another_writer_ends_it_and_what_landed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(monkeypatch)
    table.fail_at[1] = CommitConflict("another writer won")
    status, work = table.run(table.step(batch_bytes=800))
    assert (status, len(work.turns)) == (StepStatus.SUCCEEDED, 1)
    assert "another writer was there first" in work.notes[0]
    first = Table(monkeypatch)
    first.fail_at[0] = CommitConflict("another writer won")
    with pytest.raises(CommitConflict):
        first.run(first.step())


def test_a_request_is_removed_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"use.optimization.type": "LeveledCompaction", "use.optimization.bytes-per-iter": "5000000"}
    table = Table(monkeypatch, **wanted)
    _, work = table.run(table.step(request=True, **LEVELED))
    assert work.turns[-1].planned.strategy is Strategy.LEVELED
    assert sorted(table.removed) == sorted(wanted)
    assert work.notes == ["the request on the table is done and was removed (LeveledCompaction)"]
    assert len(work.commits) == len(work.turns) + 1
    # No row was moved by it: nothing waits for a proof that nobody could make.
    tried = [event for event in table.recorded if isinstance(event, Intent | Result)]
    assert [event.kind for event in tried] == ["set_properties"] * 2
    record = PlaceRecord()
    for event in tried:
        record.fold(event)
    assert record == PlaceRecord()
    other = Table(monkeypatch, **wanted)
    other.run(other.step(**LEVELED))
    assert other.removed == []


@pytest.mark.parametrize("ended_by", ["other work", "another writer"])
def test_a_request_that_was_not_followed_stays(monkeypatch: pytest.MonkeyPatch, ended_by: str) -> None:
    table = Table(monkeypatch, **{"use.optimization.type": "LeveledCompaction"})
    if ended_by == "other work":  # no group was ready, so that only what the policy wants besides was done
        step = table.step(request=True, **LEVELED, max_turns=4)
    else:
        step = table.step(request=True, **LEVELED)
        table.fail_at[5] = CommitConflict("another writer won")
    status, work = table.run(step)
    assert status is StepStatus.SUCCEEDED
    assert (work.turns[-1].planned.strategy is Strategy.LEVELED) is (ended_by == "another writer")
    assert table.removed == []


def test_the_removal_of_a_request_has_a_stamp_that_no_turn_has(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(monkeypatch, **{"use.optimization.type": "LeveledCompaction"})
    step = table.step(request=True, **LEVELED)
    _, work = table.run(step)
    assert step.settings is not None
    (stamp,) = {event.stamp for event in table.recorded if isinstance(event, Intent | Result)}
    assert stamp.batch == step.settings.max_turns > len(work.turns)


def test_of_a_table_that_was_altered_no_request_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be another table by now, with a request of its own."""
    table = Table(monkeypatch, **{"use.optimization.type": "LeveledCompaction"})
    table.fail_at[1] = TableAltered("the table was altered after it was planned")
    with pytest.raises(TableAltered):
        table.run(table.step(batch_bytes=800, request=True))
    assert table.removed == []
