"""The Python API for jobs and orchestrators: a project, its plan, and a run.

``from maintainer import Project``. Nothing here prints, prompts or ends the process. What the command line prints on
stderr comes as events; what it says by an exit code is returned or raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from maintainer.app import operations
from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.run_result import RunResult
from maintainer.app.selection.run_spec import DEFAULT_PLAN_JOBS, RunSpec, SelectionOptions, choose
from maintainer.execution.fleet.rollout import parse_batches
from maintainer.model.plan.lanes import Lane
from maintainer.model.plan.plan import Plan
from maintainer.model.run.progress import ProgressSink
from maintainer.planning.plan_input import PlanOptions


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
        """List the identifiers of the selected tables, sorted; all without a selection. Needs no Spark.

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
        lanes: Sequence[str] = (),
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
            lanes: Who may rewrite bins, whatever the policies say: ``copy``, ``local``, ``spark``.

        Raises:
            ProjectError: A selector cannot be read, or selects nothing.
            EnvironmentUnfit: Spark cannot be used; problems of single tables are in the plan.
        """
        spec = RunSpec(
            SelectionOptions(tuple(select), tuple(exclude), since),
            engine=EngineOptions(spark=spark),
            planning=PlanOptions(ignore_windows, ignore_every, lanes=tuple(Lane(lane) for lane in lanes)),
            plan_jobs=jobs,
        )
        return operations.plan(self._project, spec).plan

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
        """Apply a plan, or plan and apply; prove each rewrite before it commits, and record everything.

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
            on_event: Called with every event as it happens, from a thread of the run; must not raise.

        Raises:
            ValueError: A selection beside a plan, or a size of a batch that is none.
            Refused: A limit, or a plan that is refused as a whole; nothing was touched.
            EnvironmentUnfit: Spark or the run folder cannot be used; nothing was touched.
        """
        if plan is not None and (select or exclude or since):
            raise ValueError("a plan says by itself which tables are meant: leave out select, exclude and since")
        spec = RunSpec(
            SelectionOptions(tuple(select), tuple(exclude), since),
            engine=EngineOptions(spark=spark),
            jobs=jobs,
            fail_fast=fail_fast,
            max_failures=max_failures,
            batches=None if batches is None else parse_batches(",".join(map(str, batches))),
            timeout_seconds=timeout_seconds,
            exact=exact,
            all_or_nothing=all_or_nothing,
        )
        result = operations.apply(self._project, spec, plan, listener=_Events(on_event))
        assert result is not None  # this listener agrees to every plan
        return result


class _Events(operations.RunListener):
    """Hands a caller's sink to the run; problems beside the tables are in the result."""

    def __init__(self, on_event: ProgressSink | None) -> None:
        self._on_event = on_event

    def progress(self, plan: Plan) -> AbstractContextManager[ProgressSink | None]:
        """Give each event to the caller."""
        return nullcontext(self._on_event)
