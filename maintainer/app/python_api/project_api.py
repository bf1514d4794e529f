"""``Project`` of the Python API: load it, look at its tables, plan, apply, and look back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from maintainer.app import operations
from maintainer.app.engine_access import EngineOptions
from maintainer.app.lookback.run_history import DEFAULT_ROWS, HistoryQuery
from maintainer.app.planning.plan_output import read_saved_plan
from maintainer.app.project_folders import PolicyProblems
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.python_api.answers import Plan, Rows, Run, Text
from maintainer.app.python_api.table_api import Table, history_of, run_of, since_ms_of, status_of, why_of
from maintainer.app.selection.chosen_tables import chosen_tables, named_policy
from maintainer.app.selection.managed_search import needs_session, search_tables
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions
from maintainer.app.status.written_report import write_report
from maintainer.execution.fleet.fleet_bounds import parse_batches
from maintainer.model.cached_property import cached_property
from maintainer.model.plan.lanes import Lane
from maintainer.model.plan.plan import as_problem
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.progress import ProgressSink
from maintainer.planning.plan_input import PlanOptions
from maintainer.report.diagnostics_report import finding_lines
from maintainer.report.document import blocks
from maintainer.report.html.page import notebook_html
from maintainer.report.text_layout import tables_and_ledger
from maintainer.units import count_of

_Item = TypeVar("_Item")

_MAX_ERRORS_SHOWN = 20


def _items(given: str | Sequence[_Item]) -> tuple[str | _Item, ...]:
    """Take a text for a list of one: it is a sequence, too, but of letters."""
    return (given,) if isinstance(given, str) else tuple(given)


class Project:
    """A project on disk, loaded and without errors. Frozen: load it again after its files changed."""

    def __init__(self, loaded: LoadedProject) -> None:
        if not isinstance(loaded, LoadedProject):
            raise TypeError(f"a project is loaded by Project.load(folder), not by Project({type(loaded).__name__})")
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
        try:
            return Project(LoadedProject.load(root, env))
        except PolicyProblems as problems:
            problems.add_note("\n".join(_error_lines(problems)))
            raise

    @property
    def root(self) -> Path:
        """The folder of maintainer.yml."""
        return self._project.root

    @property
    def env(self) -> str | None:
        """The environment whose overrides apply, None without one."""
        return self._project.env

    def tables(self, select: Sequence[str] = (), exclude: Sequence[str] = ()) -> tuple[Table, ...]:
        """List the selected tables, sorted by identifier; all without a selection.

        Needs no Spark, but where rules manage tables of a catalog or on other storage than this machine's. A place that
        could not be searched is a Python warning, and its tables are missing.

        Args:
            select: Tables, as ``--select`` takes them: names, globs, ``tag:nightly``, ``owner:team``.
            exclude: Tables to leave out.

        Raises:
            ProjectError: A selector cannot be read or answered, or selects nothing.
            MaintainerError: No place that may be meant could be searched.

        >>> project.tables()
        (<Table lake/orders>, <Table lake/returns>)
        >>> [table.name for table in project.tables(exclude=["lake/r*"])]
        ['lake/orders']
        """
        spec = RunSpec(SelectionOptions(_items(select), _items(exclude)))
        project = self._known = search_tables(self._project, spec.engine)
        chosen = chosen_tables(project, spec, command="list").with_a_table()
        for problem in chosen.problems:
            warnings.warn(f"{problem.table}: {as_problem(problem.error).what}; {problem.error.help}", stacklevel=2)
        return tuple(Table(policy, project) for policy in chosen.policies)

    def table(self, name: str) -> Table:
        """Return one table by its name, in any spelling, or by the end of its name where that fits one table only.

        Needs no Spark, but where no file names the table and `tables` needs it, too.

        Raises:
            ProjectError: E613, no policy names the table and no rule manages it, or several are called so.

        >>> project.table("orders")
        <Table lake/orders>
        """
        project, policy = named_policy(self._project, name, EngineOptions(), exists=True)
        return Table(policy, project)

    def plan(
        self,
        spark: object | None = None,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        since: str | None = None,
        jobs: int | None = None,
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
            jobs: Tables read at once; None follows from where they lie.
            ignore_windows: Plan as if every window were open.
            ignore_every: Plan as if every step were due.
            lanes: Who may rewrite bins, whatever the policies say: ``copy``, ``local``, ``spark``.

        Raises:
            ProjectError: A selector cannot be read, or selects nothing.
            EnvironmentUnfit: Spark cannot be used; problems of single tables are in the plan.

        >>> project.plan()
        <Plan: 1 table to change, 1 step (compact 1); 1 up to date>
        >>> project.plan(select=["lake/returns"]).has_changes
        False
        """
        spec = RunSpec(
            SelectionOptions(_items(select), _items(exclude), since),
            engine=EngineOptions(spark=spark),
            planning=PlanOptions(ignore_windows, ignore_every, lanes=tuple(Lane(lane) for lane in _items(lanes))),
            plan_jobs=jobs,
        )
        return Plan(operations.plan(self._project, spec).plan, self._project)

    def read_plan(self, path: str | Path) -> Plan:
        """Read a plan that `Plan.save` or ``maintainer plan --out`` wrote. Needs no Spark.

        Raises:
            ProjectError: E642, the file cannot be read.
            Refused: A402, it is no plan or was edited.
        """
        return Plan(read_saved_plan(Path(path)), self._project)

    def apply(
        self,
        spark: object | None = None,
        plan: Plan | None = None,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        since: str | None = None,
        jobs: int | None = None,
        fail_fast: bool = False,
        max_failures: int | None = None,
        batches: Sequence[int | str] | None = None,
        timeout_seconds: float | None = None,
        exact: bool = False,
        all_or_nothing: bool = False,
        on_event: ProgressSink | None = None,
    ) -> Run:
        """Apply a plan, or plan and apply; prove each rewrite before it commits, and record everything.

        A table that fails never raises: it is in the run, see `Run.raise_for_status`.

        Args:
            spark: As for `plan`.
            plan: What `plan` made, or `read_plan` read. It is checked again: a table that is not as planned
                is refused, with its reasons in the run, and the others are done. None plans anew.
            select: Without a plan: tables, as ``--select`` takes them.
            exclude: Without a plan: tables to leave out.
            since: Without a plan: Git commit that ``state:modified`` compares with.
            jobs: Tables at once; None follows from where they lie, and from memory.
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
            raise ValueError("a plan already names its tables: leave out select, exclude and since")
        spec = RunSpec(
            SelectionOptions(_items(select), _items(exclude), since),
            engine=EngineOptions(spark=spark),
            jobs=jobs,
            max_failures=1 if fail_fast else max_failures,
            batches=None if batches is None else parse_batches(",".join(map(str, _items(batches)))),
            timeout_seconds=timeout_seconds,
            exact=exact,
            all_or_nothing=all_or_nothing,
        )
        return run_of(self._project, spec, None if plan is None else plan.model, on_event=on_event)

    def status(
        self,
        spark: object | None = None,
        *,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        jobs: int | None = None,
        scheduled: bool = False,
    ) -> Rows[StatusRow]:
        """Look at the state of each table: small files, last optimize and proof, what is next. Changes nothing.

        Args:
            spark: As for `plan`.
            select: Tables, as ``--select`` takes them; without a selection, unmanaged neighbours are listed, too.
            exclude: Tables to leave out.
            jobs: Tables looked at side by side; None follows from where they lie.
            scheduled: Only tables that a run is working on, or whose files the next apply would rewrite.

        Raises:
            ProjectError: A selector cannot be read, or selects nothing.
            EnvironmentUnfit: Spark cannot be used.

        >>> [(row.table, row.state, row.num_files) for row in project.status()]
        [('lake/orders', 'due', 3), ('lake/returns', 'ok', 1)]
        """
        selection = SelectionOptions(_items(select), _items(exclude))
        spec = RunSpec(selection, engine=EngineOptions(spark=spark), jobs=jobs)
        return status_of(self._project, spec, scheduled=scheduled)

    def why(self, table: str, spark: object | None = None, *, verbose: bool = False) -> Text:
        """Return every decision about one table, taken and not taken, with the policy line behind each.

        Args:
            table: As for `table`.
            spark: As for `plan`.
            verbose: Name each partition that is left alone.

        Raises:
            ProjectError: E613, as for `table`.

        >>> project.why("orders")
        <Why: lake/orders, changes>
        """
        return why_of(self._project, table, spark, verbose=verbose)

    def history(
        self,
        *,
        since: str | None = None,
        failed: bool = False,
        ledger: bool = False,
        limit: int = DEFAULT_ROWS,
        spark: object | None = None,
    ) -> Rows[HistoryRow]:
        """Return the steps of past runs, newest first. Needs no Spark without ``ledger``.

        Args:
            since: Only the last days or hours, such as ``7d``.
            failed: Only steps that did not succeed.
            ledger: Read the ledger, which knows the runs of every machine, and not the run folders of this one.
            limit: At most so many rows.
            spark: With ``ledger``, as for `plan`.

        Raises:
            ValueError: ``since`` is no duration, or ``limit`` is below 1.
            MaintainerError: The runs or the ledger cannot be read.

        >>> project.history(since="7d")
        <History: 0 steps>
        """
        since_ms = None if since is None else since_ms_of(since)
        query = HistoryQuery(since_ms=since_ms, failed=failed, ledger=ledger, limit=limit)
        return history_of(self._project, query, spark)

    def report(self, run: str | None = None, *, out: str | Path | None = None) -> Path:
        """Write the report of a run as one HTML file, and return its path. Where nothing ran, the tables are read.

        Args:
            run: The id of the run; the newest if None.
            out: Where to write; None takes ``report.html`` in the run's folder.

        Raises:
            ProjectError: E643 there is no such run, E640 the file cannot be written.
        """
        return write_report(self._project, RunSpec(), run_id=run, out=None if out is None else Path(out))[0]

    def fleet_report(self, since: str = "30d", *, out: str | Path | None = None) -> Path:
        """Write the report of all runs together as one HTML file, and return its path. As `report` where nothing ran.

        Args:
            since: How far back, such as ``30d``.
            out: Where to write; None takes ``fleet.html`` beside the folder of runs.

        Raises:
            ValueError: ``since`` is no duration.
            ProjectError: E643 no run can be read, E640 the file cannot be written.
        """
        path = None if out is None else Path(out)
        return write_report(self._project, RunSpec(), since_ms=since_ms_of(since), out=path)[0]

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def _repr_html_(self) -> str:
        policies = self._known.policies
        rows = [blocks.Row((p.table.identifier, p.owner or "", ", ".join(p.tags), p.source)) for p in policies]
        return notebook_html(self._title, [], blocks.TableBlock(("table", "owner", "tags", "policy"), rows))

    @property
    def _title(self) -> str:
        policies, loaded = self._known.policies, self._known.loaded
        with_ledger = any(policy.is_ledger for policy in policies)
        tables = tables_and_ledger(len(policies), with_ledger=with_ledger)
        more = ", and those that tables() finds" if loaded.searches and loaded.search is None else ""
        return f"Project {self.root}{f', env {self.env}' if self.env else ''}: {tables}{more}"

    @cached_property
    def _known(self) -> LoadedProject:
        """The project with the tables of its rules, unless a session is needed to find them and nobody asked yet."""
        return self._project if needs_session(self._project) else search_tables(self._project, EngineOptions())


def _error_lines(problems: PolicyProblems) -> list[str]:
    """Return a line for each error of the policies, the first ones where there are many."""
    errors = problems.loaded.errors
    lines = list(finding_lines(errors[:_MAX_ERRORS_SHOWN]))
    if len(errors) > _MAX_ERRORS_SHOWN:
        lines.append(f"and {count_of(len(errors) - _MAX_ERRORS_SHOWN, 'more error')}: maintainer validate")
    return lines
