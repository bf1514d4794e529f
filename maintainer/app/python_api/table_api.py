"""``Table`` of the Python API: one table of a project, and the calls about it that the project and the table share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from maintainer.app import operations
from maintainer.app.engine_access import EngineOptions
from maintainer.app.lookback.run_history import DEFAULT_ROWS, HistoryQuery
from maintainer.app.lookback.table_history import recorded_steps
from maintainer.app.planning.plan_output import decisions_text
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.python_api.answers import Plan, Rows, Run, Text
from maintainer.app.running.run_listener import RunListener
from maintainer.app.selection.run_spec import RunSpec
from maintainer.execution.run_context import Clock
from maintainer.model.plan.plan import Plan as PlanModel
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.progress import ProgressSink
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.html.page import notebook_html
from maintainer.report.policy_text import explain_text
from maintainer.report.status_text import problem_line
from maintainer.units import parse_duration


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """One table of a project, with its effective policy. ``str(table)`` is its identifier."""

    policy: ResolvedPolicy
    _project: LoadedProject = field(compare=False)

    @property
    def name(self) -> str:
        """The identifier, as in ``table:`` of its policy file: a catalog's name or a path."""
        return self.policy.table.identifier

    @property
    def owner(self) -> str | None:
        """Who looks after the table, as the policy says."""
        return self.policy.owner

    @property
    def tags(self) -> tuple[str, ...]:
        """Its policy's tags, for selectors."""
        return self.policy.tags

    @property
    def policy_file(self) -> str:
        """The file that names the table, relative to the project."""
        return self.policy.source

    def plan(self, spark: object | None = None) -> Plan:
        """Work out what would be done to this table; see `Project.plan`. Changes nothing."""
        spec = self._spec(spark)
        return Plan(operations.plan(self._project, spec).plan, self._project)

    def apply(self, spark: object | None = None, *, on_event: ProgressSink | None = None) -> Run:
        """Plan and apply this table alone; see `Project.apply`."""
        return run_of(self._project, self._spec(spark), on_event=on_event)

    def status(self, spark: object | None = None) -> Rows[StatusRow]:
        """Look at the state of this table, in one row; see `Project.status`. Changes nothing."""
        return status_of(self._project, self._spec(spark))

    def why(self, spark: object | None = None, *, verbose: bool = False) -> Text:
        """Return every decision about this table, taken and not taken, with the policy line behind each.

        Args:
            spark: As for `Project.plan`.
            verbose: Name each partition that is left alone.
        """
        return why_of(self._project, self.name, spark, verbose=verbose)

    def history(
        self,
        *,
        since: str | None = None,
        failed: bool = False,
        ours: bool = False,
        limit: int = DEFAULT_ROWS,
        spark: object | None = None,
    ) -> Rows[HistoryRow]:
        """Return this table's steps beside what anyone else committed, newest first; see `Project.history`.

        Args:
            since: Only the last days or hours, such as ``7d``.
            failed: Only our steps that did not succeed.
            ours: Only our own steps: the table's log is not read.
            limit: At most so many rows.
            spark: For a table that is not on this machine; as for `Project.plan`.

        Raises:
            ValueError: ``since`` is no duration, or ``limit`` is below 1.
            MaintainerError: The runs or the table's log cannot be read.
        """
        since_ms = None if since is None else since_ms_of(since)
        query = HistoryQuery(self.name, since_ms, failed=failed, ours=ours, limit=limit)
        return history_of(self._project, query, spark)

    def explain(self) -> Text:
        """Return the effective policy of this table, with the file and line of every value. Needs no Spark.

        >>> project.table("orders").explain()
        <Policy of lake/orders>
        """
        return Text(f"Policy of {self.name}", explain_text(self._project.loaded.resolution_of(self.name)))

    def _spec(self, spark: object | None) -> RunSpec:
        return RunSpec(tables=frozenset({self.name}), origin=self.name, engine=EngineOptions(spark=spark))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Table {self.name}>"

    def _repr_html_(self) -> str:
        facts = [("policy", self.policy_file), ("owner", self.owner), ("tags", ", ".join(self.tags))]
        return notebook_html(f"Table {self.name}", [f"{name}: {value}" for name, value in facts if value])


def run_of(
    project: LoadedProject, spec: RunSpec, saved: PlanModel | None = None, *, on_event: ProgressSink | None = None
) -> Run:
    """Carry out a plan, or plan and carry out, and return what came of it."""
    result = operations.apply(project, spec, saved, listener=_Events(on_event))
    assert result is not None  # this listener agrees to every plan
    return Run(result, project)


def why_of(project: LoadedProject, name: str, spark: object | None, *, verbose: bool = False) -> Text:
    """Return every decision about the table that a name means."""
    decisions = operations.why(project, RunSpec(engine=EngineOptions(spark=spark)), name)
    table = decisions.plan.tables[0]
    text = decisions_text(project, decisions.policy, decisions.plan, decisions.auto_compact, verbose=verbose)
    return Text(f"Why: {table.ref.identifier}, {table.state.value.replace('_', ' ')}", text)


def status_of(project: LoadedProject, spec: RunSpec, *, scheduled: bool = False) -> Rows[StatusRow]:
    """Look once at the states of tables."""
    with operations.status(project, spec, scheduled=scheduled) as read_status:
        status = read_status()
    warnings = [] if status.ledger is None else [problem_line(status.ledger)]
    warnings += (f"{table}: {problem.what}" if table else problem.what for table, problem in status.problems)
    return Rows.of_status(status.rows, status.at_ms, warnings)


def history_of(project: LoadedProject, query: HistoryQuery, spark: object | None) -> Rows[HistoryRow]:
    """Look up past steps."""
    recorded = recorded_steps(project, query, EngineOptions(spark=spark))
    return Rows.of_history(recorded.rows, query.table, recorded.warnings)


def since_ms_of(since: str) -> int:
    """Return when a span that ends now began, milliseconds since 1970 UTC.

    Raises:
        ValueError: It is no duration.
    """
    return Clock().now_ms() - 1000 * parse_duration(since)


class _Events(RunListener):
    """Hands a caller's sink to the run; problems beside the tables are in the result."""

    def __init__(self, on_event: ProgressSink | None) -> None:
        self._on_event = on_event

    def progress(self, plan: PlanModel) -> AbstractContextManager[ProgressSink | None]:
        """Give each event to the caller."""
        return nullcontext(self._on_event)
