"""The Python API: a project, its plan, and a run, for jobs and orchestrators.

``from maintainer import Project``. Nothing here prints, prompts or ends the process; what the command line says on
stderr comes as events, and what it says by an exit code is in what is returned or raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.apply_plan import (
    ApplyRequest,
    SavedPlanCheck,
    apply_plan,
    check_run_limits,
    check_saved_plan,
    engine_log_of,
    open_journal,
)
from maintainer.app.budgeting import fit
from maintainer.app.engine_access import EngineOptions, open_engine
from maintainer.app.ledger_access import open_ledger
from maintainer.app.make_plan import PlanRequest, make_plan
from maintainer.app.project import Project as LoadedProject
from maintainer.app.project import describe_selection
from maintainer.app.selection import Look, SelectionOptions, choose, narrowed
from maintainer.errors import ExitCode, MaintainerError
from maintainer.execution.batches import parse_batches
from maintainer.model.exit_codes import exit_code, exit_reason
from maintainer.model.outcome import RunOutcome, TableStatus
from maintainer.model.plan import Plan, Problem
from maintainer.model.progress import ProgressSink
from maintainer.planning.planner import PlanOptions
from maintainer.policy.budgets import Budget

DEFAULT_PLAN_JOBS = 2


class RunFailed(MaintainerError):
    """A run ended with something that needs a person; ``result`` holds every outcome."""

    default_code = "E670"

    def __init__(self, result: RunResult) -> None:
        self.result = result
        bad = [table for table in result.outcome.tables if table.status not in _GOOD]
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
    """What came of `Project.apply`.

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


class Project:
    """A project on disk, loaded and without errors. Frozen: load it again after its files changed."""

    def __init__(self, loaded: LoadedProject) -> None:
        self._project = loaded

    @staticmethod
    def load(root: str | Path = ".", env: str | None = None) -> Project:
        """Read maintainer.yml and every policy below ``root``.

        Args:
            root: The folder of maintainer.yml.
            env: The environment whose overrides apply.

        Raises:
            ProjectError: There is no project, no such environment, or (E616) its files have errors.
        """
        return Project(LoadedProject.load(root, env))

    @property
    def root(self) -> Path:
        """The folder of maintainer.yml."""
        return self._project.root

    def tables(self, select: Sequence[str] = (), exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """Identifiers of the tables that a selection means, sorted; all without one. Needs no Spark.

        Raises:
            ProjectError: A selector cannot be read or answered, or selects nothing.
        """
        options = SelectionOptions(tuple(select), tuple(exclude))
        chosen = choose(self._project.loaded.resolved(), self._project.loaded, options, command="list")
        return tuple(policy.table.identifier for policy in chosen)

    def plan(
        self,
        spark: object | None = None,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        since: str | None = None,
        jobs: int = DEFAULT_PLAN_JOBS,
        ignore_windows: bool = False,
        ignore_every: bool = False,
    ) -> Plan:
        """Work out what would be done. Changes no byte of any table.

        Args:
            spark: The SparkSession to work in; it is left as it was. None takes the active one, or starts one.
            select: Tables, as ``--select`` takes them; all if empty.
            exclude: Tables to leave out.
            since: Git commit that ``state:modified`` compares with.
            jobs: Tables read at once.
            ignore_windows: Plan as if every window were open.
            ignore_every: Plan as if every step were due.

        Raises:
            ProjectError: A selector cannot be read, or selects nothing.
            EnvironmentUnfit: Spark cannot be used; problems of single tables are in the plan.
        """
        chosen = SelectionOptions(tuple(select), tuple(exclude), since)
        request = self._request(chosen, jobs, ignore_windows, ignore_every)
        with open_engine(self._engine_options(spark)) as opened:
            plan = make_plan(self._project, opened.engine, request)
        return fit(self._project, narrowed(plan, self._project.loaded, chosen, command="plan"), Budget())

    def apply(
        self,
        spark: object | None = None,
        plan: Plan | None = None,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        since: str | None = None,
        jobs: int = 1,
        fail_fast: bool = False,
        max_failures: int | None = None,
        batches: Sequence[int | str] | None = None,
        timeout_seconds: float | None = None,
        exact: bool = False,
        all_or_nothing: bool = False,
        on_event: ProgressSink | None = None,
    ) -> RunResult:
        """Do what a plan says, or plan and do it; prove each rewrite before it commits, and record everything.

        A table that fails never raises: it is in the result, see `RunResult.raise_for_status`.

        Args:
            spark: As for `plan`.
            plan: What `plan` made, perhaps read back from a file. It is checked again: a table that is not as planned
                is refused, with its reasons in the result, and the others are done. None plans anew.
            select: Without a plan: tables, as ``--select`` takes them.
            exclude: Without a plan: tables to leave out.
            since: Without a plan: Git commit that ``state:modified`` compares with.
            jobs: Tables at once.
            fail_fast: Start no further table after the first that fails.
            max_failures: Start no further table after so many failures; the project's own limit if None.
            batches: Start tables in batches of these sizes, such as ``(1, 5, "20%")``; those of the project if None.
            timeout_seconds: For the whole run.
            exact: With a plan: demand the very versions that were planned, or refuse all of it.
            all_or_nothing: With a plan: refuse all of it if one table is not as planned.
            on_event: Told of everything as it happens, from a thread of the run; must not raise.

        Raises:
            ValueError: A selection beside a plan, or a size of a batch that is none.
            Refused: A limit, or a plan that is refused as a whole; nothing was touched.
            EnvironmentUnfit: Spark or the run folder cannot be used; nothing was touched.
        """
        if plan is not None and (select or exclude or since):
            raise ValueError("a plan says by itself which tables are meant: leave out select, exclude and since")
        sizes = None if batches is None else parse_batches(",".join(map(str, batches)))
        chosen = SelectionOptions(tuple(select), tuple(exclude), since)
        started_at_ms = _now_ms()
        request = None if plan is not None else self._request(chosen, max(jobs, DEFAULT_PLAN_JOBS), False, False)
        problems: list[Problem] = []
        journal = open_journal(self._project, started_at_ms)
        try:
            with open_engine(self._engine_options(spark, engine_log_of(journal))) as opened:
                if plan is not None:
                    check = SavedPlanCheck(exact, all_or_nothing)
                    checked = check_saved_plan(self._project, opened.engine, plan, now_ms=_now_ms(), check=check)
                else:
                    assert request is not None
                    made = make_plan(self._project, opened.engine, request)
                    selected = narrowed(made, self._project.loaded, chosen, command="apply")
                    checked = fit(self._project, selected, Budget())
                check_run_limits(self._project, checked)
                bounds = ApplyRequest(
                    jobs, fail_fast, max_failures, timeout_seconds,
                    on_event=on_event, batches=sizes,
                )  # fmt: skip
                ledger = open_ledger(self._project, opened, problems.append)
                outcome = apply_plan(self._project, opened.engine, checked, journal, ledger, bounds)
            return RunResult(outcome, checked, journal.folder.path, (*problems, *outcome.problems))
        finally:
            journal.close()

    def _engine_options(self, spark: object | None, log_path: Path | None = None) -> EngineOptions:
        settings = self._project.loaded.project
        return EngineOptions(
            spark=spark, log_path=log_path, engine=settings.engine, single_writer=settings.single_writer
        )

    def _request(self, chosen: SelectionOptions, jobs: int, ignore_windows: bool, ignore_every: bool) -> PlanRequest:
        loaded = self._project.loaded
        policies = choose(loaded.resolved(), loaded, chosen, command="plan", look=Look.COMES)
        return PlanRequest(
            policies,
            _now_ms(),
            describe_selection(chosen.select, chosen.exclude),
            jobs,
            PlanOptions(ignore_windows=ignore_windows, ignore_every=ignore_every),
        )


_GOOD = frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.WAITING})

OnProblem = Callable[[Problem], None]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
