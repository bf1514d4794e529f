"""The result of a run (every outcome, and the exit code that follows from it), and the time before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import Preparation, RunOutcome


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
