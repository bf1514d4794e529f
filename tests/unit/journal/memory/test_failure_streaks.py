"""Failures and losses of a table in a row: how they are counted, by which id and place, and when they are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.app.lookback.run_history import MAX_NAMED, in_a_row
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.journal import Journal
from maintainer.journal.memory.place_records import Streak
from maintainer.journal.memory.table_records import Remembered, remembered, update_state
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import PlacedTable
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import TableRef
from tests.support.tables.builders import DAY_MS, NOW_MS
from tests.support.writers import recorded_events

DONE, FAILED, YIELDED, UP_TO_DATE, BLOCKED = (
    TableStatus.DONE, TableStatus.FAILED, TableStatus.YIELDED, TableStatus.UP_TO_DATE, TableStatus.BLOCKED
)  # fmt: skip


def ended(name: str, status: TableStatus) -> TableOutcome:
    step = {
        DONE: StepOutcome(f"{name}/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, 0, 1.0, (CommitReceipt(2, 1),)),
        YIELDED: StepOutcome(
            f"{name}/compact", StepKind.COMPACT, StepStatus.YIELDED, 0, 1.0, error=Problem("C701", "another writer won")
        ),
    }.get(status)
    return TableOutcome(TableRef(name), status, (step,) if step else ())


class Nights:
    """A run each night."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.number = 0

    def __call__(self, *tables: TableOutcome, key: PlacedTable | None = None) -> RunOutcome:
        self.number += 1
        run_id = f"202611{self.number:02}T220000Z-0000"
        journal = Journal.open(self.runs_dir, run_id, lambda: NOW_MS + self.number * DAY_MS)
        for table in tables:
            recorded_events.table_finished(journal, table, key=key)
        journal.finished()
        journal.close()
        update_state(self.runs_dir)
        return RunOutcome(run_id, NOW_MS, 1.0, tables)

    def streak(self, name: str = "t") -> Streak:
        return remembered(self.runs_dir).streak_of(name, StoragePlaces())


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path / ".maintainer" / "runs")


def test_losses_are_counted_until_a_rewrite_lands(nights: Nights) -> None:
    for status in (YIELDED, YIELDED, UP_TO_DATE, BLOCKED, YIELDED):
        nights(ended("t", status))
    assert (nights.streak().lost, nights.streak().last_lost_at_ms) == (3, NOW_MS + 5 * DAY_MS)
    nights(ended("t", DONE))
    assert nights.streak() == Streak()


@pytest.mark.parametrize(
    ("status", "lost", "failed"), [(YIELDED, 3, 0), (FAILED, 0, 3)], ids=["altered", "lost versions"]
)
def test_a_table_that_is_altered_before_its_turn_night_after_night_is_named(
    nights: Nights, status: TableStatus, lost: int, failed: int
) -> None:
    """Each run ends well, and nobody would hear that the table is never rewritten."""
    ends_as = StepStatus.YIELDED if status is YIELDED else StepStatus.FAILED
    step = StepOutcome("t/compact", StepKind.COMPACT, ends_as, 0, 1.0, error=Problem("A403", "altered"))
    for _ in range(3):
        outcome = nights(TableOutcome(TableRef("t"), status, (step,)))
    assert (nights.streak().lost, nights.streak().failed) == (lost, failed)
    assert [problem.code for problem in in_a_row(nights.runs_dir, outcome)] == ["C717"]


def test_failures_are_counted_until_the_table_ends_well(nights: Nights) -> None:
    for status in (FAILED, BLOCKED, FAILED, TableStatus.VERIFY_FAILED, YIELDED):
        nights(ended("t", status))
    assert (nights.streak().failed, nights.streak().failing_since_ms) == (3, NOW_MS + DAY_MS)
    nights(ended("t", UP_TO_DATE))
    assert nights.streak().failed == 0
    assert nights.streak().lost == 1


def test_the_count_survives_the_runs_folders_and_is_made_again_without_the_index(nights: Nights) -> None:
    for _ in range(3):
        nights(ended("t", FAILED))
    index = nights.runs_dir.parent / "state.json"
    content = index.read_bytes()
    index.unlink()
    assert nights.streak().failed == 3
    index.write_bytes(content)
    for folder in nights.runs_dir.iterdir():
        shutil.rmtree(folder)
    assert nights.streak().failed == 3


def test_three_runs_in_a_row_are_named(nights: Nights) -> None:
    for _ in range(2):
        outcome = nights(ended("bad", FAILED), ended("hot", YIELDED), ended("good", DONE))
        assert in_a_row(nights.runs_dir, outcome) == []
    outcome = nights(ended("bad", FAILED), ended("hot", YIELDED), ended("good", DONE))
    streaks = [(streak.code, streak.where, streak.what) for streak in in_a_row(nights.runs_dir, outcome)]
    assert streaks == [
        ("C717", "bad", "failed in 3 runs in a row, since 2026-11-22 22:00 UTC"),
        ("C717", "hot", "another writer won in 3 runs in a row"),
    ]
    assert in_a_row(nights.runs_dir, RunOutcome("r", 0, 0.0, (ended("good", DONE),))) == []


def test_a_fleet_that_fails_as_a_whole_is_named_in_brief(nights: Nights) -> None:
    tables = [ended(f"t{number:03}", FAILED) for number in range(MAX_NAMED + 7)]
    for _ in range(3):
        outcome = nights(*tables)
    streaks = in_a_row(nights.runs_dir, outcome)
    assert len(streaks) == MAX_NAMED + 1
    assert streaks[-1].what == "7 more that are in trouble for runs in a row"


def test_nothing_is_remembered_of_what_is_well(nights: Nights) -> None:
    nights(ended("t", DONE))
    assert remembered(nights.runs_dir) == Remembered()


def test_a_streak_goes_by_the_tables_id_whatever_its_policy_calls_it(nights: Nights) -> None:
    nights(ended("lake/t", FAILED), key=("id-1", "/data/lake/t"))
    nights(ended("/data/lake/t", FAILED), key=("id-1", "/data/lake/t"))
    assert (nights.streak("lake/t").failed, nights.streak("/data/lake/t").failed) == (2, 2)
    nights(ended("lake/t", FAILED))  # it could not be read this night
    assert nights.streak("/data/lake/t").failed == 3
    nights(ended("/data/lake/t", DONE), key=("id-1", "/data/lake/t"))
    assert nights.streak("lake/t").failed == 0


def test_nights_in_which_a_table_could_not_be_read_count_once_its_id_is_known(nights: Nights) -> None:
    nights(ended("t", FAILED))
    nights(ended("t", FAILED), key=("id-1", "/data/lake/t"))
    assert nights.streak("t").failed == 2
    assert set(remembered(nights.runs_dir).streaks) == {"id-1"}


def table_at(path: Path) -> PlacedTable:
    """The table that another engine finds at a path."""
    return str(deltalake.DeltaTable(path).metadata().id), str(path)


def test_a_copy_and_its_original_fail_each_for_itself(nights: Nights, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    original, copied = table_at(tmp_path / "t"), table_at(tmp_path / "copy")
    assert original[0] == copied[0]
    for _ in range(3):
        outcome = nights(ended("t", FAILED), key=original)
        nights(ended("copy", UP_TO_DATE), key=copied)
    assert (nights.streak("t").failed, nights.streak("copy").failed) == (3, 0)
    assert [problem.where for problem in in_a_row(nights.runs_dir, outcome)] == ["t"]
    for _ in range(2):
        nights(ended("copy", YIELDED), key=copied)
    assert (nights.streak("t").lost, nights.streak("copy").lost) == (0, 2)
    assert remembered(nights.runs_dir).streak_of("new name", StoragePlaces(), copied).lost == 2


def test_a_moved_table_goes_on_where_it_stopped(nights: Nights, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    for _ in range(2):
        nights(ended("t", FAILED), key=table_at(tmp_path / "t"))
    (tmp_path / "t").rename(tmp_path / "moved")
    nights(ended("moved", FAILED), key=table_at(tmp_path / "moved"))
    assert nights.streak("moved").failed == 3
    nights(ended("moved", DONE), key=table_at(tmp_path / "moved"))
    assert nights.streak("moved").failed == 0


def test_a_place_has_one_count_however_it_is_spelled(nights: Nights, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    (tmp_path / "link").symlink_to(tmp_path / "t")
    table_id, location = table_at(tmp_path / "t")
    nights(ended("t", FAILED), key=(table_id, location))
    nights(ended("t", FAILED), key=(table_id, str(tmp_path / "link")))
    assert nights.streak("t").failed == 2
