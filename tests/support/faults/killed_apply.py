"""An apply that is killed at a point: ``python -m tests.support.faults.killed_apply PROJECT POINT``."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from maintainer.cli.main import run
from maintainer.delta.engine.ledger_table import LedgerTable
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.journal.journal import Journal
from maintainer.model.run.run_events import Intent, Result, RunEvent
from tests.support.faults.held_apply import before

DELETIONS = 49


def die(*_: object, **__: object) -> NoReturn:
    """End like a machine that lost its power."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL cannot be survived")


def die_in_result(kind: str, number: int) -> None:
    """Die when the number-th result of a kind is about to be recorded: the commit has landed."""

    def is_meant(_: Journal, event: RunEvent) -> bool:
        return isinstance(event, Result) and event.kind == kind

    before(Journal, "record", die, at_call=number, when=is_meant)


def die_after(owner: Any, name: str, calls: int, of: type | None = None) -> None:
    """Die when a method has been called so often; with ``of``, with such an argument."""
    real: Callable[..., Any] = getattr(owner, name)
    lock, done = threading.Lock(), [0]

    def method(*args: Any, **named: Any) -> Any:
        with lock:
            result = real(*args, **named)
            done[0] += of is None or isinstance(args[-1], of)
            if done[0] == calls:
                die()
        return result

    setattr(owner, name, method)


def main(project: str, point: str) -> int:
    """Apply; die at the point."""
    match point:
        case "first intent":
            die_after(Journal, "record", 1, Intent)
        case "properties landed":
            die_in_result("set_properties", 1)
        case "compact tried":
            die_after(Journal, "record", 2, Intent)
        case "compact landed":
            die_in_result("compact", 1)
        case "49 deleted":
            die_after(LocalFiles, "delete", DELETIONS)
        case "rows appended":
            die_after(LedgerTable, "append", 1)
        case "turn landed":
            die_in_result("zorder", 2)
        case _:
            raise ValueError(point)
    return run(["--project", project, "apply", "--yes"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
