"""Batches of tables: sizes, the order of starting, and what keeps the next batch from being opened."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.errors import CommitNotLanded, TableHot
from maintainer.execution.fleet.fleet_bounds import MAX_SIZES, FleetBounds, in_batches, parse_batches
from maintainer.execution.run_context import RetryBounds
from maintainer.journal.journal import Journal
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.model.run.progress import BatchStarted, ProgressEvent, TableFinished, TableStarted
from maintainer.model.run.receipts import Verdict
from maintainer.units import UnitError
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet
from tests.support.tables.builders import NOW_MS


@pytest.mark.parametrize(
    ("text", "total", "sizes"),
    [
        ("1,5,20%", 50, [1, 5, 10, 10, 10, 10, 4]),
        ("1", 3, [1, 1, 1]),
        ("100%", 7, [7]),
        ("10%", 3, [1, 1, 1]),
        ("30%, 1", 10, [3, 1, 1, 1, 1, 1, 1, 1]),
        ("1000000", 2, [2]),
        ("1,5", 0, []),
    ],
)
def test_sizes_are_counts_or_shares_and_the_last_is_repeated(text: str, total: int, sizes: list[int]) -> None:
    assert [len(batch) for batch in in_batches(range(total), parse_batches(text))] == sizes


def test_without_sizes_all_is_one_batch() -> None:
    assert in_batches("abc", ()) == [["a", "b", "c"]]


@given(st.integers(0, 300), st.lists(st.one_of(st.integers(1, 50), st.integers(1, 100).map("{}%".format)), max_size=5))
def test_every_task_is_in_one_batch_in_its_order(total: int, sizes: list[int | str]) -> None:
    batches = in_batches(range(total), sizes)
    assert [number for batch in batches for number in batch] == list(range(total))
    assert all(batches)


@pytest.mark.parametrize("text", ["", "0", "1,", "101%", "0%", "-1", "1.5", "1;5", "\u0661", "1000001", "1e3", "5 %"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_batches(text)
    with pytest.raises(UnitError):
        parse_batches(",".join(["1"] * (MAX_SIZES + 1)))


class Fleet:
    """Runs compactions of tables a to z on a lake in memory, and says in which order they began."""

    def __init__(self, runs_dir: Path, names: str) -> None:
        self.lake = FakeLake()
        self.verifier = PlainVerifier()
        self.events: list[ProgressEvent] = []
        self._journal = Journal.open(runs_dir, "20261121T220001Z-0000", lambda: NOW_MS)
        tables = [self.lake.table(name, (1, 2), (3,)) for name in names]
        self._plan = plan_all(*(plan_of(table, compact(table)) for table in tables))

    def __call__(self, **bounds: Any) -> RunOutcome:
        quick = FleetBounds(**{"tick_seconds": 0.01, "hang_grace_seconds": 0.1, **bounds})
        outcome = run_fleet(
            self._plan, self.lake, journal=self._journal, verifier=self.verifier, bounds=quick,
            on_event=self.events.append, retry=RetryBounds(first_pause_seconds=0.0),
        )  # fmt: skip
        assert sum(outcome.count(status) for status in TableStatus) == len(self._plan.tables)
        return outcome

    def fail(self, name: str) -> None:
        def raising(at: Station) -> None:
            raise CommitNotLanded("disk full")

        self.lake.at("write", raising, table=name)

    @property
    def batches(self) -> list[tuple[int, int, int]]:
        return [
            (event.number, event.total, event.num_tables) for event in self.events if isinstance(event, BatchStarted)
        ]


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / ".maintainer" / "runs"


def statuses(outcome: RunOutcome) -> str:
    letters = {TableStatus.DONE: "d", TableStatus.FAILED: "F", TableStatus.VERIFY_FAILED: "V"}
    return "".join(letters.get(table.status, ".") for table in outcome.tables)


def test_no_table_of_a_batch_is_started_before_all_of_the_one_before_have_ended(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abcdefgh")
    assert statuses(fleet(batches=(1, 3, "50%"), jobs=3)) == "d" * 8
    assert fleet.batches == [(1, 3, 1), (2, 3, 3), (3, 3, 4)]
    batch_of = dict(zip("abcdefgh", (1, 2, 2, 2, 3, 3, 3, 3), strict=True))
    begun: list[int] = []
    ended: set[str] = set()
    for event in fleet.events:
        if isinstance(event, TableStarted):
            begun.append(batch_of[event.table])
            assert {name for name, batch in batch_of.items() if batch < begun[-1]} <= ended
        elif isinstance(event, TableFinished):
            ended.add(event.outcome.ref.identifier)
    assert begun == sorted(begun)


def test_a_batch_still_runs_its_tables_beside_one_another(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abc")
    both = threading.Barrier(2, timeout=10)
    fleet.lake.at("write", lambda at: both.wait() if at.table.name != "a" else None)
    assert statuses(fleet(batches=(1, 2), jobs=2)) == "ddd"


def test_a_failure_lets_its_batch_end_and_opens_no_further_one(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abcdef")
    fleet.fail("b")
    outcome = fleet(batches=(1, 2))
    assert statuses(outcome) == "dFd..."
    assert outcome.tables[-1].problem is not None
    assert outcome.tables[-1].problem.what == "not started: 1 table failed before batch 3 of 4"


def test_a_table_that_gives_way_to_another_writer_holds_no_batch_up(runs_dir: Path) -> None:
    """One that is never quiet would keep all others from ever being started."""
    fleet = Fleet(runs_dir, "abc")

    def hot(at: Station) -> None:
        raise TableHot("another writer updated it a moment ago")

    fleet.lake.at("commit", hot, table="a")
    outcome = fleet(batches=(1,))
    assert [table.status.value for table in outcome.tables] == ["yielded", "done", "done"]


def test_more_failures_go_on_where_they_are_allowed(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abcdef")
    for name in "bd":
        fleet.fail(name)
    assert statuses(fleet(batches=(1, 2), max_failures=3)) == "dFdFdd"


def test_allowed_failures_end_the_run_within_a_batch_as_well(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abcdef")
    for name in "bd":
        fleet.fail(name)
    assert statuses(fleet(batches=(1, 5), max_failures=2)) == "dFdF.."


def test_a_failed_proof_lets_its_batch_end_and_opens_no_further_one_whatever_is_allowed(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abcdef")
    fleet.verifier.order = [Verdict.PASS, Verdict.FAIL]
    outcome = fleet(batches=(1, 2), max_failures=100)
    assert statuses(outcome) == "dVd..."
    assert outcome.tables[-1].problem is not None
    assert outcome.tables[-1].problem.what == "not started: 1 table failed before batch 3 of 4"


def test_a_table_that_never_ends_counts_as_failed_and_holds_no_batch_up(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abc")
    release = threading.Event()
    fleet.lake.at("write", lambda at: release.wait(60), table="a")
    fleet._plan = plan_all(*(
        plan_of(fleet.lake.tables[name], compact(fleet.lake.tables[name]), timeout_seconds=0 if name == "a" else 60)
        for name in "abc"
    ))  # fmt: skip
    outcome = fleet(batches=(1,), max_failures=2)
    release.set()
    assert statuses(outcome) == "Fdd"


def test_a_worker_that_does_not_come_up_fails_the_tables_of_all_batches(runs_dir: Path) -> None:
    fleet = Fleet(runs_dir, "abc")
    fleet.lake.worker_error = OSError("no session")
    assert statuses(fleet(batches=(1,))) == "FFF"
