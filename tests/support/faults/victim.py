"""A process that compacts a table and is killed at a point: ``python -m tests.support.faults.victim TABLE RUNS_DIR
POINT``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from maintainer.delta.engine.table_engine import DeltaEngine
from maintainer.delta.spark.spark_session import open_session
from maintainer.engine.session_options import SessionOptions
from maintainer.journal.journal import Journal
from maintainer.model.run.run_events import Intent, Result, RunEvent
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import plan_all, plan_for, run_fleet
from tests.support.tables.builders import NOW_MS
from tests.support.tables.delta_tables import compaction

POINTS = ("after intent", "before result")


def die(*_: object, **__: object) -> NoReturn:
    """End like a machine that lost its power."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL cannot be survived")


def main(table: str, runs_dir: str, point: str) -> None:
    """Run the compaction; die at the point."""
    journal = Journal.open(Path(runs_dir), "20261121T210000Z-dead", lambda: NOW_MS)
    written = journal.record

    def record_or_die(event: RunEvent) -> None:
        if isinstance(event, Result) and point == "before result":
            die()
        written(event)
        if isinstance(event, Intent) and point == "after intent":
            die()

    journal.record = record_or_die  # type: ignore[method-assign]
    with open_session(SessionOptions(master="local[2]", app_name="victim")) as lease:
        engine = DeltaEngine(lease)
        with engine.worker("planner") as worker:
            facts = worker.reader.facts(TableRef(table))
        step, _ = compaction(facts)
        run_fleet(plan_all(plan_for(facts, step)), engine, journal=journal, verifier=PlainVerifier())


if __name__ == "__main__":
    main(*sys.argv[1:])
