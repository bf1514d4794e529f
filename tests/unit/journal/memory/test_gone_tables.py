"""Which tables the sum of all runs forgets: those that hold nothing back and that are gone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.journal import Journal
from maintainer.journal.memory import table_records
from maintainer.journal.memory.place_records import PlaceRecord, Quarantine, Streak, gone_tables
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import StepOutcome, StepStatus
from tests.support.tables.builders import NOW_MS
from tests.support.writers import recorded_events
from tests.unit.journal.memory.recorded_runs import Runs

DAY_MS = 86_400_000
HERE, ELSEWHERE = "s3://lake/t", "s3://lake/u"


def worked_on(days_ago: int) -> PlaceRecord:
    return PlaceRecord(last_optimize_at_ms=NOW_MS - days_ago * DAY_MS)


def is_forgotten(old: dict[str, PlaceRecord], new: dict[str, PlaceRecord], streak: Streak | None = None) -> bool:
    streaks = {} if streak is None else {"old": streak}
    gone = gone_tables({"old": old, "new": new}, streaks, {}, NOW_MS)
    assert "new" not in gone
    return "old" in gone


@pytest.mark.parametrize(
    ("days_ago", "newer_days_ago", "forgotten"),
    [(31, 1, True), (29, 1, False), (31, 40, False), (366, 400, True), (364, 400, False)],
)
def test_a_table_is_forgotten_where_another_one_took_its_place_and_after_a_year(
    days_ago: int, newer_days_ago: int, forgotten: bool
) -> None:
    new = {HERE: worked_on(newer_days_ago), ELSEWHERE: worked_on(1)}
    assert is_forgotten({HERE: worked_on(days_ago)}, new) is forgotten


def test_a_table_at_a_place_that_is_not_taken_stays() -> None:
    assert not is_forgotten({HERE: worked_on(31), ELSEWHERE: worked_on(31)}, {HERE: worked_on(1)})
    assert is_forgotten({HERE: worked_on(31), ELSEWHERE: worked_on(31)}, {HERE: worked_on(1), ELSEWHERE: worked_on(1)})


@pytest.mark.parametrize(
    "record",
    [
        replace(worked_on(500), unproven={3}),
        replace(worked_on(500), quarantines={"q": Quarantine("why", 1)}),
        replace(worked_on(500), quarantines={"q": Quarantine("why", 1)}, lifted={"q": True}),
        PlaceRecord(proven=[3]),
    ],
)
@pytest.mark.parametrize("place", [HERE, ELSEWHERE])
def test_what_holds_back_stays_at_all_places_of_the_table(record: PlaceRecord, place: str) -> None:
    new = {HERE: worked_on(1), ELSEWHERE: worked_on(1)}
    assert not is_forgotten({HERE: worked_on(500), ELSEWHERE: worked_on(500), place: record}, new)


@pytest.mark.parametrize(("days_ago", "forgotten"), [(1, False), (364, False), (366, True)])
def test_runs_in_a_row_count_for_a_year(days_ago: int, forgotten: bool) -> None:
    streak, new = Streak(failed=2, last_at_ms=NOW_MS - days_ago * DAY_MS), {HERE: worked_on(1)}
    assert is_forgotten({HERE: worked_on(500)}, new, streak) is forgotten
    assert is_forgotten({}, new, streak) is forgotten
    assert ("t" in gone_tables({}, {"t": streak}, {}, NOW_MS)) is forgotten
    assert ("t" in gone_tables({"t": {HERE: worked_on(500)}}, {}, {"t": {HERE: streak}}, NOW_MS)) is forgotten
    assert not gone_tables({"t": {HERE: worked_on(1)}}, {"t": streak}, {}, NOW_MS)


def test_the_end_of_a_run_forgets_and_the_next_one_reads_what_is_left(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def optimized(journal: Journal, name: str, at_ms: int) -> None:
        step = StepOutcome(f"{name}/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, at_ms, 1.0)
        timed = Journal(journal.folder, journal._log, lambda: at_ms)
        recorded_events.step_finished(timed, name, (f"id-{name}", f"mem:/{name}"), step)

    monkeypatch.setattr(table_records, "latest_time_ms", lambda: NOW_MS)
    journal = runs.start()
    for name, days in (("t", 1), ("gone", 366)):
        optimized(journal, name, NOW_MS - days * DAY_MS)
    runs.end(journal)
    state = json.loads((runs.runs_dir.parent / "state.json").read_text())
    assert set(state["tables"]) == {"id-t"}
    assert journal.run_id in state["runs"], "it is not taken in again"
    runs.end(runs.start())
    assert set(remembered(runs.runs_dir).tables) == {"id-t"}
    assert runs.record().last_optimize_at_ms == NOW_MS - DAY_MS
    gone = remembered(runs.runs_dir).of_table("id-gone", "mem:/gone", StoragePlaces())
    assert gone.record.last_optimize_at_ms is None
