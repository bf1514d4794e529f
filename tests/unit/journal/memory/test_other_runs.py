"""What other runs recorded is read again where they may have recorded more, and not for each table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.errors import EnvironmentUnfit
from maintainer.journal.event_log import EVENTS_FILE, EventLog
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.journal import Journal
from maintainer.journal.memory.other_runs import RECORDS_SECONDS, OtherRuns
from maintainer.journal.memory.table_records import Remembered, TablePast
from tests.support.runs.machines import Machine, now_ms
from tests.support.tables.builders import NOW_MS
from tests.unit.journal.memory.recorded_runs import FACTS, Runs


class Now:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def past(read: Remembered) -> TablePast:
    return read.of_table("id-t", "mem:/t", StoragePlaces())


def others(runs: Runs, run_id: str, now: Now, refresh: Callable[[], None] = lambda: None) -> OtherRuns:
    return OtherRuns(runs.runs_dir, run_id, refresh, now)


def test_the_run_that_had_the_table_last_is_read_before_anything_else(runs: Runs) -> None:
    mine = runs.start()
    records = others(runs, mine.run_id, Now())
    first = records.read()
    assert past(first) == TablePast()
    other = runs.start()
    runs.landed(other, 2, verified=None)
    other.quarantine(FACTS, "wrong")
    runs.end(other)
    assert records.newest(None) is first
    assert records.newest(mine.run_id) is first
    again = past(records.newest(other.run_id))
    assert (again.record.quarantined, again.record.unproven_versions) == ("wrong", (2,))
    assert not again.is_settled
    assert records.newest(other.run_id) is records.newest(None), "it is over, and was read whole"


def test_a_run_that_died_since_it_was_read_left_its_intent(runs: Runs) -> None:
    """Its record did not grow: while it lived it was going to answer itself."""
    mine, other = runs.start(), runs.start()
    stamp = runs.intent(other)
    records = others(runs, mine.run_id, Now())
    assert past(records.read()).open_intents == ()
    other.close()
    (intent,) = past(records.newest(other.run_id)).open_intents
    assert intent.stamp == stamp


@pytest.mark.parametrize("dies", [True, False])
def test_what_is_recorded_without_a_lease_is_seen_after_a_while(runs: Runs, dies: bool) -> None:
    now = Now()
    mine, other = runs.start(), runs.start()
    runs.intent(other)
    records = others(runs, mine.run_id, now)
    before = records.read()
    if dies:
        other.close()
    else:
        other.quarantine(FACTS, "found by verify")
    now.seconds += RECORDS_SECONDS - 1
    assert records.newest(None) is before
    now.seconds += 1
    after = past(records.newest(None))
    assert (after.record.quarantined, len(after.open_intents)) == ((None, 1) if dies else ("found by verify", 0))
    now.seconds += RECORDS_SECONDS
    assert records.newest(None) is records.newest(None)


def test_a_run_whose_folder_is_gone_is_looked_for_once(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last year's runs hold the leases of tables that nobody touched since; their folders may be deleted."""
    mine = runs.start()
    refreshed: list[str] = []
    records = others(runs, mine.run_id, Now(), lambda: refreshed.append("again"))
    before = records.read()
    for _ in range(3):
        assert records.newest("20251121T220059Z-0000") is before
    assert refreshed == ["again"]


def test_a_run_that_was_not_yet_alive_when_it_was_looked_at_is_read_again(runs: Runs) -> None:
    """Its folder is made a moment before its record is locked."""
    mine, other = runs.start(), runs.start()
    other.close()
    records = others(runs, mine.run_id, Now())
    records.read()
    going_on = Journal(other.folder, EventLog(other.folder.path / EVENTS_FILE), lambda: NOW_MS)
    going_on.quarantine(FACTS, "V503: seen a moment later")
    assert past(records.newest(other.run_id)).record.quarantined == "V503: seen a moment later"
    going_on.close()


def test_its_own_record_is_none_of_another_run(runs: Runs) -> None:
    mine = runs.start()
    records = others(runs, mine.run_id, Now())
    runs.intent(mine)
    mine.quarantine(FACTS, "by this run")
    assert past(records.read()) == TablePast()
    mine.close()


def test_a_store_that_is_away_matters_only_where_another_run_had_the_table(runs: Runs) -> None:
    now = Now()
    mine = runs.start()

    def away() -> None:
        raise FolderUnwritable("the store of the state cannot be reached", code="E681", where="s3://state")

    records = others(runs, mine.run_id, now, away)
    before = records.read()
    now.seconds += RECORDS_SECONDS
    assert records.newest(None) is before
    with pytest.raises(FolderUnwritable):
        records.newest("20261121T220059Z-0000")


def test_records_that_cannot_be_read_are_said(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = runs.start()
    records = others(runs, mine.run_id, Now())
    records.read()

    def damaged(runs_dir: Path) -> list[object]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("maintainer.journal.memory.other_runs.run_folders", damaged)
    with pytest.raises(EnvironmentUnfit) as caught:
        records.newest("20261121T220059Z-0000")
    assert (caught.value.code, caught.value.found) == ("E641", "Input/output error")


def test_of_those_that_wait_one_looks_for_all(runs: Runs) -> None:
    """Vacuums of several tables ask at once; what was looked for after one asked is new enough for it."""
    looks, waiting, go_on = list[None](), threading.Barrier(6), threading.Event()

    def refresh() -> None:
        looks.append(None)
        go_on.wait(20)

    mine = runs.start()
    records = OtherRuns(runs.runs_dir, mine.run_id, refresh)
    records.read()

    def ask() -> None:
        waiting.wait(20)
        records.newest(None, max_age_seconds=0.0)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    waiting.wait(20)
    time.sleep(0.3)  # all of them wait
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(looks) <= 2, "the first may have begun before the others asked"
    before = len(looks)
    records.newest(None, max_age_seconds=0.0)
    assert len(looks) == before + 1


def test_a_look_that_failed_counts_for_nobody(runs: Runs) -> None:
    now = Now()

    def away() -> None:
        raise FolderUnwritable("the store of the state cannot be reached", code="E681", where="s3://state")

    mine = runs.start()
    records = others(runs, mine.run_id, now, away)
    records.read()
    now.seconds += RECORDS_SECONDS
    records.newest(None)
    # Whoever deletes files had asked before, and waited.
    records.monotonic = iter([now.seconds - 1, *[now.seconds + 1] * 9]).__next__
    with pytest.raises(FolderUnwritable):
        records.newest(None, max_age_seconds=0.0)


def test_what_another_machine_recorded_meanwhile_is_fetched(tmp_path: Path) -> None:
    storage = ObjectStorage(MemoryStore(), "memory://state")
    first, second = Machine(storage, tmp_path / "a"), Machine(storage, tmp_path / "b", 50)
    mine = first.begin()
    records = mine.other_runs()
    assert past(records.read()) == TablePast()
    other = second.begin()
    leases = other.leases(now_ms)
    leases.release(leases.acquire("id-t", "t"))
    other.quarantine(FACTS, "a proof failed")
    lease = mine.leases(now_ms).acquire("id-t", "t")
    assert lease.previous_run == other.run_id
    assert past(records.newest(lease.previous_run)).record.quarantined == "a proof failed"
    leases.close()
    second.end(other)
    first.end(mine)
