"""The result of a run (every outcome, and the exit code that follows from it), and the time before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from maintainer.errors import ExitCode, MaintainerError
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import Preparation, RunOutcome, TableStatus


class PreparationClock:
    """Runs from the moment in which it is made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._started = self._began

    def started(self) -> None:
        """Record that the engine is up and planning begins."""
        self._started = time.monotonic()

    def planned(self) -> Preparation:
        """Record that planning is over, and return what both took."""
        return Preparation(self._started - self._began, time.monotonic() - self._started)


_GOOD = frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.WAITING})


class RunFailed(MaintainerError):
    """A run ended with something that needs a person; ``result`` holds every outcome."""

    default_code = "E670"

    def __init__(self, result: RunResult) -> None:
        self.result = result
        bad = [table for table in result.outcome.user_tables if table.status not in _GOOD]
        named = ", ".join(f"{table.ref.identifier} ({table.status.value})" for table in bad[:5])
        more = f" and {len(bad) - 5:,} more" if len(bad) > 5 else ""
        super().__init__(
            f"the run did not end well: {exit_reason(result.exit_code)}",
            where=str(result.run_folder),
            found=named + more,
            help=f"maintainer show {result.outcome.run_id}",
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    ``outcome`` has every table with its steps, commits, proofs and errors. ``problems`` went wrong beside the tables,
    such as a ledger that could not be written.
    """

    outcome: RunOutcome
    plan: Plan
    run_folder: Path
    problems: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """What the command line would end with; 0 is falsy."""
        return exit_code(self.outcome)

    def raise_for_status(self) -> RunResult:
        """Return the result itself, or raise if anything needs a person.

        Raises:
            RunFailed: E670, a step failed, a proof failed, a table was blocked, or the run was interrupted.
        """
        if self.exit_code is not ExitCode.OK:
            raise RunFailed(self)
        return self
