"""Records of one table id at several places: spelled otherwise, moved, copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import is_one_place
from maintainer.journal.journal import Journal
from maintainer.journal.memory.place_records import MAX_PLACES, MAX_QUARANTINES, PlaceRecord, Quarantine, bounded
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import StepOutcome, StepStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, TableRecord
from tests.support.suites.example_counts import examples
from tests.support.tables.builders import NOW_MS, make_facts
from tests.support.writers import recorded_events
from tests.unit.delta.log.test_table_place import table
from tests.unit.journal.memory.recorded_runs import FACTS, Runs


class Lake:
    """A table in a project, and runs that write down what they did to it, wherever it is."""

    def __init__(self, root: Path) -> None:
        self.root, self.runs = root, Runs(root / "state" / "runs")
        table(root / "lake" / "t")

    def run(self, path: Path, work: Callable[[Journal], object]) -> None:
        journal = self.runs.start()
        work(journal)
        self.runs.end(journal)
        update_state(self.runs.runs_dir)

    def record(self, path: Path) -> TableRecord:
        return remembered(self.runs.runs_dir).record_of("id-t", f"file:{path}", StoragePlaces())

    def reported(self, path: Path) -> str | None:
        return remembered(self.runs.runs_dir).quarantine_of(("id-t", f"file:{path}"))

    def quarantine(self, path: Path) -> None:
        self.run(path, lambda journal: journal.quarantine(facts_at(path), "V503: rows differ"))

    def lift(self, path: Path) -> None:
        known = self.record(path)
        self.run(path, lambda journal: journal.accept(facts_at(path), known, reason="looked", by="somebody"))

    def optimized(self, path: Path) -> None:
        done = StepOutcome("t/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, NOW_MS, 1.0)
        self.run(path, lambda journal: recorded_events.step_finished(journal, "t", ("id-t", f"file:{path}"), done))


def facts_at(path: Path) -> TableFacts:
    return make_facts(name="t", location=f"file:{path}", table_id="id-t", version=9)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def move(lake: Lake) -> Path:
    (lake.root / "lake").rename(lake.root / "elsewhere")
    return lake.root / "elsewhere" / "t"


def link_above(lake: Lake) -> Path:
    (lake.root / "link").symlink_to(lake.root / "lake")
    return lake.root / "link" / "t"


def copy(lake: Lake) -> Path:
    shutil.copytree(lake.root / "lake" / "t", lake.root / "copy")
    return lake.root / "copy"


@pytest.mark.parametrize("change", [move, link_above, copy])
def test_a_quarantine_holds_wherever_the_table_is_met(lake: Lake, change: Callable[[Lake], Path]) -> None:
    first = lake.root / "lake" / "t"
    lake.quarantine(first)
    now = change(lake)
    held = lake.record(now).quarantined
    assert held is not None
    assert held.startswith("V503: rows differ")
    assert ("one is a copy" in held) is (change is copy)
    lake.lift(now)
    assert lake.record(now).quarantined is None
    if change is not move:
        # A copy that somebody looked at says nothing about the original.
        assert (lake.record(first).quarantined is None) is (change is link_above)


def test_a_lift_for_the_original_does_not_free_the_copy(lake: Lake) -> None:
    first = lake.root / "lake" / "t"
    lake.quarantine(first)
    other = copy(lake)
    lake.lift(first)
    assert lake.record(first).quarantined is None
    assert lake.record(other).quarantined is not None


def test_a_lift_beside_a_copy_frees_no_other_place_in_a_report_either(lake: Lake) -> None:
    first = lake.root / "lake" / "t"
    lake.quarantine(first)
    other = copy(lake)
    lake.optimized(other)  # a run sees both
    lake.lift(first)
    shutil.rmtree(other)
    for now in (other, move(lake)):
        assert lake.record(now).quarantined is not None
        assert lake.reported(now) == "V503: rows differ"
    assert lake.reported(first) is None


def test_a_lift_moves_along_with_what_it_lifted(lake: Lake) -> None:
    lake.quarantine(lake.root / "lake" / "t")
    lake.lift(lake.root / "lake" / "t")
    moved = move(lake)
    assert lake.record(moved).quarantined is None
    assert lake.reported(moved) is None


def test_a_lift_ends_what_was_known_and_nothing_that_comes_later(runs: Runs) -> None:
    """Of two machines one may have a clock that is days ahead, or publish its record late."""
    first, late, wrong_clock = runs.start(), runs.start(), runs.start()
    first.quarantine(FACTS, "V503: seen")
    runs.end(first)
    known = runs.record()
    assert (known.quarantined, len(known.quarantines)) == ("V503: seen", 1)
    ahead = Journal(wrong_clock.folder, wrong_clock._log, lambda: NOW_MS + 30 * 86_400_000)
    ahead.accept(FACTS, known, reason="looked", by="somebody")
    runs.end(wrong_clock)
    assert runs.record().quarantined is None
    late.quarantine(FACTS, "V507: nobody had seen it")
    runs.end(late)
    assert runs.record().quarantined == "V507: nobody had seen it"


def test_each_place_remembers_so_many_quarantines_and_lifts(runs: Runs) -> None:
    journal = runs.start()
    for number in range(MAX_QUARANTINES + 5):
        journal.quarantine(FACTS, f"V503: {number}")
    record = runs.record()
    assert len(record.quarantines) == MAX_QUARANTINES
    journal.accept(FACTS, record, reason="looked", by="somebody")
    assert runs.record().quarantines == ()
    runs.end(journal)
    # One more is remembered, whatever its clock says: those that were lifted make room.
    behind = runs.start()
    late = Journal(behind.folder, behind._log, lambda: NOW_MS - 30 * 86_400_000)
    late.quarantine(FACTS, "V507: one more", 7)
    assert (runs.record().quarantined, [version for _, version in runs.record().quarantines]) == ("V507: one more", [7])
    behind.close()


def test_one_acceptance_lifts_all_quarantines_of_all_places(lake: Lake) -> None:
    """Sixty at each of two places: what one lift names is remembered whole."""
    first = lake.root / "lake" / "t"

    def sixty(journal: Journal) -> None:
        for number in range(60):
            journal.quarantine(facts_at(first), f"V503: {number}")

    lake.run(first, sixty)
    now = move(lake)
    lake.run(now, lambda journal: [journal.quarantine(facts_at(now), f"V507: {number}") for number in range(60)])
    assert len(lake.record(now).quarantines) == 120
    lake.lift(now)
    assert lake.record(now).quarantines == ()


def test_what_was_said_of_a_copy_that_is_gone_frees_nothing(lake: Lake) -> None:
    first, other = lake.root / "lake" / "t", copy(lake)
    lake.quarantine(first)
    lake.lift(other)
    shutil.rmtree(other)
    assert lake.record(first).quarantined is not None


@pytest.mark.parametrize("change", [move, link_above, copy])
def test_a_version_not_proven_counts_until_it_is_proven_there(lake: Lake, change: Callable[[Lake], Path]) -> None:
    first = lake.root / "lake" / "t"
    lake.run(first, lambda journal: recorded_events.verified(journal, facts_at(first), "t/compact", 7, "pass", None))
    lake.run(first, lambda journal: landed(journal, first, 7))
    now = change(lake)
    assert lake.record(now).unproven_versions == (7,)
    lake.run(now, lambda journal: recorded_events.verified(journal, facts_at(now), "t/settle", 7, "pass", None))
    assert lake.record(now).unproven_versions == ()
    if change is not move:
        assert lake.record(first).unproven_versions == ((7,) if change is copy else ())


def landed(journal: Journal, path: Path, version: int) -> None:
    stamp = CommitStamp(journal.run_id, "t/compact", 0, "sha256:p")
    receipt = CommitReceipt(version, version - 1)
    recorded_events.result(journal, stamp, facts_at(path), "compact", CommitEnd.LANDED, receipt=receipt)


def test_the_schedule_moves_along_and_is_not_copied(lake: Lake) -> None:
    first = lake.root / "lake" / "t"
    lake.optimized(first)
    assert lake.record(first).last_optimize_at_ms == NOW_MS + 1
    assert lake.record(link_above(lake)).last_optimize_at_ms == NOW_MS + 1
    other = lake.record(copy(lake))
    assert (other.last_optimize_at_ms, other.copies) == (None, (f"file:{first}",))
    shutil.rmtree(lake.root / "copy")
    assert lake.record(move(lake)).last_optimize_at_ms == NOW_MS + 1


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.sampled_from(["move", "link", "copy", "lift the other", "remove the other"]), max_size=8))
def test_no_way_of_moving_linking_and_copying_loses_a_quarantine(ways: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        lake, path = Lake(root), root / "lake" / "t"
        lake.quarantine(path)
        others: list[Path] = []
        for number, way in enumerate(ways):
            target = root / f"{number}" / "t"
            target.parent.mkdir()
            if way == "move":
                path.rename(target)
                path = target
                lake.optimized(path)  # a run sees it
            elif way == "link":
                target.symlink_to(path)
                path = target if number % 2 else path
            elif way == "copy":
                shutil.copytree(path, target)
                others.append(path)
                path = target
                lake.optimized(path)
            elif others and way == "lift the other":
                lake.lift(others[-1])
            elif others:
                shutil.rmtree(others.pop(), ignore_errors=True)
            assert lake.record(path).quarantined is not None
        lake.lift(path)
        assert lake.record(path).quarantined is None
        for other in others:
            if (other / "_delta_log").is_dir() and not lifted(lake, other):
                assert lake.record(other).quarantined is not None


def lifted(lake: Lake, path: Path) -> bool:
    """Whether somebody looked at the table just there."""
    records = remembered(lake.runs.runs_dir).tables["id-t"]
    return any(
        is_one_place(StoragePlaces(), at, f"file:{path}") and bool(record.lifted) for at, record in records.items()
    )


def test_of_too_many_places_only_those_are_forgotten_that_hold_nothing_back() -> None:
    records = {f"file:/{number}": PlaceRecord(last_optimize_at_ms=number + 1) for number in range(MAX_PLACES + 5)}
    records["file:/0"].quarantines = {"a": Quarantine("V503", 1)}
    left = bounded(records)
    assert set(records) - set(left) == {f"file:/{number}" for number in range(1, 6)}
