"""What a front end receives while a run or a watch goes on, and what it decides beforehand."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from maintainer.app.planning.make_plan import TableLook
from maintainer.app.run_result import RunResult
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.run.progress import ProgressSink


class RunListener:
    """What a front end shows of a run, and what it decides. This one shows nothing and agrees to everything."""

    def table_planned(self, look: TableLook) -> None:
        """Receive a planned table. Called one at a time."""

    def agrees_to(self, plan: Plan) -> bool:
        """Show a plan that was just made, and say whether to carry it out."""
        return True

    def progress(self, plan: Plan) -> AbstractContextManager[ProgressSink | None]:
        """Open what shows the progress of a run; it is given each event, from any thread of the run."""
        return nullcontext()

    def problem(self, problem: Problem) -> None:
        """Receive a problem beside the tables, such as a ledger that cannot be written."""

    def refused(self, table: TablePlan) -> None:
        """Nothing is done to a table that is watched, and no run will say why."""

    def round_failed(self, error: Exception) -> None:
        """Receive why a round of a watch was refused, or what it failed with; the watch goes on."""

    def finished(self, result: RunResult) -> None:
        """Receive the outcome of a run. Called before problems that only the end of a run shows."""
