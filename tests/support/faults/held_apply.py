"""An apply that stops at a named point until it is let go, or ended from outside.

``python -m tests.support.faults.held_apply PROJECT POINT SEED FOLDER [ARGUMENTS]``: at the point ``FOLDER/python.held``
appears, and the thread that came there waits for ``FOLDER/python.go``. Other threads go on, as in a real run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maintainer.app.operations as operations
import maintainer.delta.engine.table_engine as table_engine
import maintainer.delta.rewrite.rewrite_proof as rewrite_proof
import maintainer.execution.fleet.fleet as fleet
import maintainer.execution.table.step_runs as step_runs
import maintainer.planning.selection.lane_choice as lane_choice
from maintainer.cli.main import run
from maintainer.delta.rewrite import copy_lane
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.vacuum.vacuum_commits import VacuumCommits
from maintainer.journal.journal import Journal
from maintainer.journal.leases import Leases
from maintainer.model.run.run_events import Intent, Result
from tests.support.faults.fault_tables import SHAPES

WAIT_SECONDS = 120.0
HELD, GO = "python.held", "python.go"
SHORT_LEASE_SECONDS = "SHORT_LEASE_SECONDS"
"""An environment variable: the life of this process's leases, so that no test waits two minutes for their end."""

_Hold = Callable[[], None]


def holder(folder: Path) -> _Hold:
    """Return what holds the first thread that calls it; later calls pass."""
    lock, called = threading.Lock(), [0]

    def hold() -> None:
        with lock:
            called[0] += 1
            if called[0] > 1:
                return
        half = folder / "python.half"
        half.write_text(str(os.getpid()), encoding="utf-8")
        half.rename(folder / HELD)
        deadline = time.monotonic() + WAIT_SECONDS
        while not (folder / GO).exists():
            if time.monotonic() > deadline:
                raise AssertionError("nobody let this process go")
            time.sleep(0.01)

    return hold


def before(owner: Any, name: str, hold: _Hold, *, at_call: int = 1, when: Callable[..., bool] | None = None) -> None:
    """Hold right before a function is called for the n-th time, of the calls whose arguments fit."""
    _around(owner, name, hold, at_call, when, is_before=True)


def after(owner: Any, name: str, hold: _Hold, *, at_call: int = 1, when: Callable[..., bool] | None = None) -> None:
    """Hold right after a function has returned for the n-th time, of the calls whose arguments fit."""
    _around(owner, name, hold, at_call, when, is_before=False)


def _around(
    owner: Any, name: str, hold: _Hold, at_call: int, when: Callable[..., bool] | None, *, is_before: bool
) -> None:
    real: Callable[..., Any] = getattr(owner, name)
    lock, calls = threading.Lock(), [0]

    def counted(*args: Any, **named: Any) -> Any:
        with lock:
            calls[0] += when is None or when(*args, **named)
            is_here = calls[0] == at_call and (when is None or when(*args, **named))
        if is_here and is_before:
            hold()
        result = real(*args, **named)
        if is_here and not is_before:
            hold()
        return result

    setattr(owner, name, counted)


def _of_kind(event_class: type[Intent | Result], seed: int) -> Callable[..., bool]:
    """Whether what the journal records is such an event about the kind of step that a seed means."""
    kinds = SHAPES[seed % len(SHAPES)].struck
    return lambda journal, event: isinstance(event, event_class) and event.kind in kinds


def _is_page(source: object, target: object, **named: object) -> bool:
    return os.fspath(target).endswith("report.html")  # type: ignore[call-overload, no-any-return] # a path


POINTS: dict[str, Callable[[_Hold, int], None]] = {
    "policies loaded": lambda hold, seed: after(operations, "chosen_before_session", hold),
    "lease taken": lambda hold, seed: after(Leases, "acquire", hold),
    "intent written": lambda hold, seed: after(Journal, "record", hold, when=_of_kind(Intent, seed)),
    "facts read": lambda hold, seed: before(step_runs, "step_now", hold, at_call=1 + seed % 2),
    "before the first file": lambda hold, seed: before(table_engine, "write_bins", hold),
    "files written": lambda hold, seed: before(table_engine, "prove_rewrite", hold),
    "middle of the proof": lambda hold, seed: before(rewrite_proof, "_prove_statistics", hold),
    "proven": lambda hold, seed: before(table_engine, "commit_rewrite", hold),
    "published": lambda hold, seed: None,  # in the JVM: see hold_commits.c
    "before the result": lambda hold, seed: before(Journal, "record", hold, when=_of_kind(Result, seed)),
    "before vacuum start": lambda hold, seed: before(VacuumCommits, "start", hold),
    "after vacuum start": lambda hold, seed: after(VacuumCommits, "start", hold),
    "middle of the deletion": lambda hold, seed: after(LocalFiles, "delete", hold, at_call=1 + seed % 2),
    "before vacuum end": lambda hold, seed: before(VacuumCommits, "end", hold),
    "before the ledger": lambda hold, seed: (
        after(VacuumCommits, "end", hold) if seed % 2 else before(fleet, "append_within", hold)
    ),
    "report written": lambda hold, seed: before(os, "replace", hold, when=_is_page),
}
"""Sixteen moments of an apply, in their order. Where a point comes once for each step, the seed says in which."""


def main(project: str, point: str, seed: str, folder: str, *arguments: str) -> int:
    """Apply, with more arguments if there are any, and be held at the point."""
    POINTS[point](holder(Path(folder)), int(seed))
    # Files of a test are small; row groups are copied all the same where the policy asks for it.
    lane_choice.COPY_MIN_FILE_BYTES = copy_lane.MIN_ROW_GROUP_BYTES = 1
    if SHORT_LEASE_SECONDS in os.environ:
        defaults = Leases.__init__.__kwdefaults__
        assert defaults is not None
        defaults["seconds"] = float(os.environ[SHORT_LEASE_SECONDS])
    return run(["--project", project, "apply", "--yes", *arguments])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
