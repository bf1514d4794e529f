"""Whatever fails wherever: no row is lost, every step has one end, and later runs converge."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.errors import CommitConflict, CommitNotLanded, CommitUnknown, EnvironmentUnfit, Interrupted
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import RetryBounds
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered
from maintainer.model.run.outcome import RunOutcome, StepStatus, TableStatus
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet, vacuum
from tests.support.suites.example_counts import examples
from tests.support.tables.builders import NOW_MS
from tests.support.writers.recorded_events import unfinished

BOUNDS, RETRY = FleetBounds(jobs=2, tick_seconds=0.002), RetryBounds(first_pause_seconds=0.0)
FAULTS: dict[str, Callable[[], Exception]] = {
    "conflict": lambda: CommitConflict("another writer won"),
    "not landed": lambda: CommitNotLanded("disk full"),
    "unknown": lambda: CommitUnknown("the answer was lost"),
    "jvm gone": lambda: EnvironmentUnfit("the JVM has gone"),
    "cancelled": lambda: Interrupted("job group cancelled"),
    "bug": lambda: ZeroDivisionError("oh"),
}


def raise_fault(name: str) -> None:
    raise FAULTS[name]()


def spoil(at: Station) -> None:
    if at.rows:
        at.rows.pop()


@st.composite
def faults(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """Station, what happens there, and after how many passes."""
    faults = st.one_of(
        st.tuples(st.sampled_from(["facts", "write", "commit", "landed", "vacuum"]), st.sampled_from(sorted(FAULTS))),
        # Where it hurts most, more often: between INTENT and RESULT.
        st.tuples(st.sampled_from(["commit", "landed"]), st.sampled_from(["unknown", "jvm gone", "bug"])),
        st.tuples(st.just("write"), st.just("spoil")),
        st.tuples(st.sampled_from(["write", "commit"]), st.sampled_from(["append", "delete"])),
    )
    return [(*draw(faults), draw(st.integers(0, 3))) for _ in range(draw(st.integers(1, 3)))]


def hang(lake: FakeLake, station: str, what: str, after: int) -> None:
    passed = [0]

    def hook(at: Station) -> None:
        passed[0] += 1
        if passed[0] != after + 1:
            return
        if what == "append":
            at.table.append(1000 + at.table.written)
        elif what == "delete" and at.table.live:
            at.table.delete_file(min(at.table.live))
        elif what == "spoil":
            spoil(at)
        elif what in FAULTS:
            raise_fault(what)

    lake.at(station, hook)


def apply(lake: FakeLake, runs_dir: Path, number: int) -> RunOutcome:
    plans = []
    for table in lake.tables.values():
        paths = sorted(path for path in table.live if not path.startswith("packed"))
        batches = [tuple(paths[i : i + 2]) for i in range(0, len(paths), 2)]
        replaced = {path: v for v in range(1, len(table.versions)) for path in removed(table, v)}
        gone = tuple(path for path in sorted(table.storage) if path in replaced and path not in table.live)
        steps = ([compact(table, *batches)] if batches else []) + (
            [vacuum(*gone, removed_in_version=replaced[gone[0]])] if gone else []
        )
        plans.append(plan_of(table, *steps))
    journal = Journal.open(runs_dir, f"20261121T22000{number}Z-0000", lambda: NOW_MS + number)
    return run_fleet(plan_all(*plans), lake, journal=journal, verifier=PlainVerifier(), bounds=BOUNDS, retry=RETRY)


def removed(table: FakeTable, version: int) -> set[str]:
    return set(table.versions[version - 1].files) - set(table.versions[version].files)


def expected_rows(table: FakeTable) -> list[int]:
    """What the other writers alone made of the table: every commit without our stamp, replayed over the rows."""
    rows: set[int] = set()
    for before, after in zip([None, *table.versions], table.versions, strict=False):
        was = {row for content in before.files.values() for row in content} if before else set()
        now = {row for content in after.files.values() for row in content}
        if after.stamp is None:
            rows = (rows - (was - now)) | (now - was)
    return sorted(rows)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(faults(), min_size=1, max_size=2))
def test_any_fault(rounds: list[list[tuple[str, str, int]]]) -> None:
    lake = FakeLake()
    for number, name in enumerate(("a", "b")):
        # A file that another writer has replaced already, so that a deletion is planned from the first run on.
        lake.table(name, *((10 * number + i,) for i in range(5))).delete_file("f4")
    folder = Path(tempfile.mkdtemp())
    runs_dir = folder / ".maintainer" / "runs"
    try:
        for number, planted in enumerate(rounds, start=1):
            lake.clear_hooks()
            for fault in planted:
                hang(lake, *fault)
            check(lake, apply(lake, runs_dir, number))
        lake.clear_hooks()
        for number in (7, 8, 9):
            last = apply(lake, runs_dir, number)
            check(lake, last)
        # Without new faults it has converged, but for tables that a person must look at.
        assert unfinished(runs_dir) == ()
        records = remembered(runs_dir)
        for table in last.tables:
            fake = lake.tables[table.ref.identifier]
            record = records.record_of(fake.table_id, fake.location, StoragePlaces())
            if record.quarantined is None:
                assert table.status is TableStatus.UP_TO_DATE, table
                assert record.unproven_versions == ()
                assert fake.storage - set(fake.live) == set() or not any(v.stamp for v in fake.versions)
            else:
                assert table.status is TableStatus.BLOCKED or not table.steps
    finally:
        shutil.rmtree(folder)


def check(lake: FakeLake, outcome: RunOutcome) -> None:
    for status in {step.status.value for table in outcome.tables for step in table.steps}:
        event(status)
    assert [table.ref.identifier for table in outcome.tables] == ["a", "b"]
    for table in outcome.tables:
        fake = lake.tables[table.ref.identifier]
        assert fake.rows == expected_rows(fake)
        assert set(fake.live) <= fake.storage
        statuses = [step.status for step in table.steps]
        blocked = next(
            (i for i, s in enumerate(statuses) if s not in (StepStatus.SUCCEEDED, StepStatus.NOTHING_LEFT)), None
        )
        if blocked is not None:
            assert set(statuses[blocked + 1 :]) <= {StepStatus.SKIPPED}
        if table.status is TableStatus.DONE:
            assert blocked is None
