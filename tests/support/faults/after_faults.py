"""What must be true of a table and its project after a fault, by code that shares nothing with what is tested."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.checker.contradictions import assert_truth
from tests.support.checker.truth_log import LogTable, local_file, replay_table
from tests.support.checker.truth_records import Evidence
from tests.support.faults.fault_tables import FaultTable
from tests.support.tables.delta_tables import files_on_disk, second_engine_rows

MAX_APPLIES = 3

Apply = Callable[[], tuple[int, str]]
"""One `apply`: its exit code and everything that it said."""


def assert_whole(table: FaultTable) -> LogTable:
    """Check that no row is lost, every live file is there with its logged size and the log has no gap.

    Returns:
        The table as its log says.
    """
    log = replay_table(table.path)  # raises on a gap and on whatever cannot be parsed
    assert sorted(log.commits) == list(range(log.version + 1))
    for add in log.live.values():
        file = local_file(table.path, add["path"])
        assert file.is_file(), f"{file} is live and not there"
        assert file.stat().st_size == add["size"], file
    assert second_engine_rows(table.path) == table.rows
    return log


def assert_each_intent_once(table: FaultTable) -> None:
    """Check that each INTENT has one commit at most (a deletion one START and one END), and each commit an INTENT."""
    log = replay_table(table.path)
    landed = Counter((stamp, commit.operation) for commit, stamp in log.stamped())
    assert {key: count for key, count in landed.items() if count > 1} == {}
    intents = {
        (event["run"], event["step"], event["batch"])
        for run in Evidence(table.project).runs
        for event in run.of_type("intent")
    }
    assert {(stamp.run_id, stamp.step_id, stamp.batch) for stamp, _ in landed} <= intents


def assert_converges(
    table: FaultTable, apply: Apply, exit_codes: dict[str, int], *, but_not: tuple[str, ...] = ()
) -> None:
    """Apply until nothing fails, in three applies at most, then once more, which must do nothing.

    Args:
        table: The table after its fault.
        apply: Applies once.
        exit_codes: What runs ended with before, by their ids.
        but_not: Rules of the checker that the fault breaks.
    """
    for _ in range(MAX_APPLIES):
        code, said = apply()
        if code == 0:
            break
    assert code == 0, said[-4000:]
    log = assert_whole(table)
    files = files_on_disk(table.path)
    code, again = apply()
    assert code == 0, again[-4000:]
    assert replay_table(table.path).version == log.version, again[-4000:]
    assert files_on_disk(table.path) == files
    assert assert_whole(table).live == log.live
    assert_each_intent_once(table)
    assert_nobody_holds(table)
    assert_leftovers_are_told(table, log, said + again)
    assert_truth(table.project, exit_codes=exit_codes, but_not=but_not)


def an_hour_later(project: Path) -> None:
    """Make the state's temporary files older than any that a living process writes; Delta's own in the ledger stay."""
    state = project / ".maintainer"
    for path in state.rglob("*.tmp"):
        if state / "ledger" not in path.parents:
            os.utime(path, (path.stat().st_atime - 2 * 3600, path.stat().st_mtime - 2 * 3600))


def assert_nobody_holds(table: FaultTable) -> None:
    """Check that no lease belongs to a run that is alive."""
    evidence = Evidence(table.project)
    for path in (table.project / ".maintainer" / "leases").glob("*.json"):
        run = evidence.run(json.loads(path.read_text(encoding="utf-8"))["run_id"])
        assert run is None or not run.is_alive, path


def assert_leftovers_are_told(table: FaultTable, log: LogTable, said: str) -> None:
    """Check that each data file that no version knows is told of: by its name, or by how its run had it begin."""
    unknown = {name for name in files_on_disk(table.path) if table.path / name not in log.known}
    text = said + "".join(path.read_text(encoding="utf-8") for path in _records(table.project))
    begun = tuple(f"part-{run.run_id}-" for run in Evidence(table.project).runs if f"part-{run.run_id}- and" in text)
    untold = {name for name in unknown if Path(name).name not in text and not Path(name).name.startswith(begun)}
    assert untold == set()


def _records(project: Path) -> list[Path]:
    return [*project.glob(".maintainer/runs/*/events.jsonl"), *project.glob(".maintainer/runs/*/plan.json")]
