"""What a front end receives while a run or a watch goes on, its result at the end, and what it decides beforehand."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.planning.make_plan import PlannedTable
from maintainer.engine.side_call import side_call
from maintainer.engine.store.request_count import REQUEST_COUNT
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import Preparation, RunOutcome
from maintainer.model.run.progress import ProgressSink
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.store_requests import RunRequests, StoreRequests
from maintainer.planning.budget.request_estimate import run_requests
from maintainer.policy.project.project_sections import Prices

JVM_ANSWERS_SECONDS = 5.0


class PreparationClock:
    """Runs, and counts requests to stores, from the moment in which it is made."""

    def __init__(self) -> None:
        self._asked_before = REQUEST_COUNT.so_far
        self._began = time.monotonic()
        self._started = self._began

    def started(self) -> None:
        """Record that the engine is up and planning begins."""
        self._started = time.monotonic()

    def planned(self) -> Preparation:
        """Record that planning is over, and return what both took."""
        return Preparation(self._started - self._began, time.monotonic() - self._started)

    def requests(self, opened: OpenedEngine, plan: Plan, ledger: str, prices: Prices) -> RunRequests | None:
        """Return what a run of the plan asked of object stores so far; None where it asked nothing.

        Args:
            opened: Whose client is asked, too.
            plan: What the run does.
            ledger: Where the rows of the run go: Hadoop has a client for each bucket and scheme.
            prices: Of requests.
        """
        ours = REQUEST_COUNT.so_far - self._asked_before
        looks = (table.observed.location for table in plan.tables if table.observed is not None)
        places = frozenset(place for place in (*looks, ledger) if store_kind(place).is_served)
        hadoops: StoreRequests | None = StoreRequests()
        if places:
            try:
                hadoops = side_call(lambda: opened.hadoop_requests(places), "requests").result(JVM_ANSWERS_SECONDS)
            except Exception:  # a JVM that is gone or hangs: what it asked is not known
                hadoops = None
        if not places and not ours.total:
            return None
        return prices.priced(RunRequests(ours, hadoops, expected=run_requests(plan, ledger).total or None))


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


class RunListener:
    """What a front end shows of a run, and what it decides. This one shows nothing and agrees to everything."""

    def table_planned(self, table: PlannedTable) -> None:
        """Receive a planned table. Called one at a time."""

    def agrees_to(self, plan: Plan) -> bool:
        """Show a plan that was just made, and say whether to carry it out."""
        return True

    def progress(self, plan: Plan) -> AbstractContextManager[ProgressSink | None]:
        """Open what shows the progress of a run; it is given each event, from any thread of the run."""
        return nullcontext()

    def problem(self, problem: Problem) -> None:
        """Receive a problem beside the tables, such as a ledger that cannot be written."""

    def round_began(self, names: Collection[str]) -> None:
        """Receive the tables of a round of a watch by their identifiers, those that are set aside among them."""

    def refused(self, table: TablePlan) -> None:
        """Nothing is done to a table that is watched, and no run will say why."""

    def round_failed(self, error: Exception) -> None:
        """Receive why a round of a watch was refused, or what it failed with; the watch goes on."""

    def finished(self, result: RunResult) -> None:
        """Receive the outcome of a run. Called before problems that only the end of a run shows."""
