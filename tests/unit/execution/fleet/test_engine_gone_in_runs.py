"""When the engine's process ends in the middle of a run, tables that were never started are not reached, not failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import CommitUnknown, EngineGone
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock
from maintainer.journal.journal import Journal
from maintainer.model.run.outcome import TableStatus
from maintainer.report.run.run_text import render_run
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet
from tests.support.tables.builders import NOW_MS
from tests.unit.execution.fleet.run_in_memory import QUICK


class Py4JNetworkError(Exception):
    """Named as py4j's, which is not imported here."""


def gone(at: Station) -> None:
    raise EngineGone("the Spark JVM has gone", help="often memory")


def lost_in_the_commit(at: Station) -> None:
    raise CommitUnknown("the answer was lost", help="the next run looks") from Py4JNetworkError("gone")


@pytest.mark.parametrize(
    ("station", "hook", "status"),
    [("write", gone, TableStatus.FAILED), ("commit", lost_in_the_commit, TableStatus.FAILED)],
)
def test_tables_that_were_not_started_are_not_reached_and_the_cause_is_said_once(
    tmp_path: Path, station: str, hook: object, status: TableStatus
) -> None:
    lake = FakeLake()
    tables = [lake.table(name, (1, 2), (3,)) for name in "abcde"]
    lake.at(station, hook)  # type: ignore[arg-type]  # a hook of a station
    journal = Journal.open(tmp_path / "runs", "20261121T220001Z-0000", lambda: NOW_MS)
    outcome = run_fleet(
        plan_all(*(plan_of(table, compact(table)) for table in tables)), lake,
        journal=journal, verifier=PlainVerifier(), bounds=FleetBounds(**QUICK), clock=Clock(now_ms=lambda: NOW_MS),
    )  # fmt: skip
    first, *rest = outcome.tables
    assert first.status is status
    for table in rest:
        assert table.status is TableStatus.NOT_REACHED
        assert table.problem is not None
        assert (table.problem.code, table.problem.what) == ("C713", "not started: E612: the Spark JVM has gone")
    assert render_run(outcome).count("often memory") <= 1
