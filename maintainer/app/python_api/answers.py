"""What the Python API returns: plans, runs, and the rows and texts of ``status``, ``why``, ``history`` and ``explain``.

A plan can be looked at, saved, compared and applied. Rows and texts show themselves in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from maintainer.app.lookback.report_files import write_run_report
from maintainer.app.planning.plan_output import plan_options, save_plan
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.project_folders import local_zone
from maintainer.app.running.run_listener import RunResult
from maintainer.errors import ExitCode, MaintainerError
from maintainer.model.plan.plan import Plan as PlanModel
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.plan_document import to_json, totals
from maintainer.model.plan.steps import Step
from maintainer.model.run.exit_codes import exit_reason, plan_exit_code
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.outcome import ENDED_WELL, RunOutcome, TableStatus
from maintainer.report.document.blocks import TableBlock, subject_table
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.html.page import notebook_html, notebook_text
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import plan_table, render_plan, summary_lines
from maintainer.report.plan.plan_totals import Totals, tables_line
from maintainer.report.run.run_text import ended_tables, render_run, render_steps, run_markdown
from maintainer.report.status_documents import row_values
from maintainer.report.status_text import (
    history_table,
    render_history,
    render_status,
    status_table,
)
from maintainer.units import count_of, named

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What would be done to each table, and why. A value: two plans are equal if they would do the same.

    ``model`` has every detail: tables, steps, files, reasons (``maintainer.model.plan.plan``). ``str(plan)`` is what
    ``maintainer plan`` prints.
    """

    model: PlanModel
    _project: LoadedProject = field(compare=False)

    @property
    def tables(self) -> Rows[TablePlan]:
        """The plan of each table but our own ledger, sorted by name; one that cannot be planned has its problem.

        >>> plan.tables
        <Tables of a plan: 1 table to change, 1 step (compact 1); 1 up to date>
        >>> plan.tables[0]
        <TablePlan lake/orders: changes (compact)>
        >>> [(table.ref.identifier, table.state.value) for table in plan.tables]
        [('lake/orders', 'changes'), ('lake/returns', 'up_to_date')]
        """
        return self._rows("Tables", self.model.user_tables, _table_values)

    @property
    def has_changes(self) -> bool:
        """Whether applying the plan would do anything."""
        return self.model.has_changes

    @property
    def exit_code(self) -> ExitCode:
        """What ``maintainer plan`` would end with: 1 if a table cannot be planned, 4 if one is blocked, else 0."""
        return plan_exit_code(self.model)

    @property
    def steps(self) -> Rows[tuple[TablePlan, Step]]:
        """Each step with its table, in the order in which they run.

        >>> [(table.ref.identifier, step.kind.value, step.num_files) for table, step in plan.steps]
        [('lake/orders', 'compact', 3)]
        """
        return self._rows("Steps", tuple(self.model.steps()), _step_values)

    def summary(self) -> str:
        """Return one to four lines: how many tables change, what is rewritten and deleted, how long, which requests."""
        return "\n".join(summary_lines(self.model, plan_options(self._project, self.model)))

    def to_text(self, *, verbose: bool = False) -> str:
        """Return the plan as ``maintainer plan`` prints it; ``verbose`` names every table, reason and bin."""
        options = replace(plan_options(self._project, self.model), applied_next=True, verbose=verbose)
        return render_plan(self.model, options)

    def to_markdown(self) -> str:
        """Return the plan as Markdown for a pull request, at most 60,000 characters, as ``-o markdown`` prints it."""
        return render_plan_markdown(self.model)

    def to_json(self) -> str:
        """Return the plan as its JSON document, with a digest; ``Project.read_plan`` reads it back from a file."""
        return to_json(self.model)

    def save(self, path: str | Path) -> Path:
        """Save the plan to a file that ``Project.read_plan`` and ``maintainer apply FILE`` take, and return its path.

        Raises:
            ProjectError: E640, the file cannot be written.
        """
        file = Path(path)
        save_plan(self.model, file)
        return file

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Plan: {tables_line(Totals(self.model.user_tables))}>"

    def _repr_html_(self) -> str:
        return notebook_html("Plan", self.summary().split("\n"), plan_table(self.model))

    def _rows(self, what: str, rows: Sequence[RowT], to_dict: Callable[[RowT], dict[str, Any]]) -> Rows[RowT]:
        title = f"{what} of a plan: {tables_line(Totals(self.model.user_tables))}"
        return Rows(title, tuple(rows), self.to_text, lambda: plan_table(self.model), to_dict)


def _table_values(table: TablePlan) -> dict[str, Any]:
    steps = [step.kind.value for step in table.steps]
    known = {"state": table.state.value, "owner": table.owner, "policy_file": table.policy_file, "steps": steps}
    return {"table": table.ref.identifier, **known}


def _step_values(row: tuple[TablePlan, Step]) -> dict[str, Any]:
    table, step = row
    return {"table": table.ref.identifier, "kind": step.kind.value, **totals(step)}


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Sequence[RowT], Generic[RowT]):
    """The tables or steps of a plan, or rows of `status` or `history`: a sequence that prints as the command does.

    ``pandas.DataFrame(rows.to_dicts())`` makes a data frame of them. ``warnings`` limit what the rows say: a run or a
    table's log that could not be read.
    """

    _title: str
    _rows: tuple[RowT, ...]
    _text: Callable[[], str]
    _shown: Callable[[], TableBlock]
    _to_dict: Callable[[RowT], dict[str, Any]]
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of_status(rows: Sequence[StatusRow], at_ms: int, warnings: Sequence[str]) -> Rows[StatusRow]:
        """Return the states of tables as they were looked at (milliseconds since 1970 UTC)."""
        return Rows(
            f"Status of {count_of(len(rows), 'table')}",
            tuple(rows),
            lambda: render_status(rows, at_ms, tz=local_zone()),
            lambda: status_table([[row] for row in rows], at_ms, tz=local_zone()),
            row_values,
            tuple(warnings),
        )

    @staticmethod
    def of_history(rows: Sequence[HistoryRow], table: str | None, warnings: Sequence[str]) -> Rows[HistoryRow]:
        """Return steps of past runs, of one table or of all."""
        one_table = table is not None
        return Rows(
            f"History{f' of {table}' if table else ''}: {count_of(len(rows), 'step')}",
            tuple(rows),
            lambda: render_history(rows, tz=local_zone(), one_table=one_table),
            lambda: history_table(rows, tz=local_zone(), one_table=one_table),
            row_values,
            tuple(warnings),
        )

    @overload
    def __getitem__(self, index: int) -> RowT: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RowT]: ...

    def __getitem__(self, index: int | slice) -> RowT | Sequence[RowT]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def _repr_html_(self) -> str:
        return notebook_html(self._title, self.warnings, self._shown())

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict; times are UTC in ISO 8601. Status and history have the keys of ``-o json``."""
        return [self._to_dict(row) for row in self._rows]

    def to_markdown(self) -> str:
        """Return the rows as a Markdown table, ending in a newline."""
        return markdown_text([self._shown()]) if self._rows else self._text()


@dataclass(frozen=True, eq=False, repr=False)
class Text:
    """Text of a fixed width, such as every decision about a table: ``str()`` has it, a notebook shows it."""

    _title: str
    _text: str

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def _repr_html_(self) -> str:
        return notebook_text(self._text)


class RunFailed(MaintainerError):
    """A run ended with something that needs a person; ``run`` holds every outcome."""

    default_code = "E670"

    def __init__(self, run: Run) -> None:
        self.run = run
        bad = [table for table in run.outcome.user_tables if table.status not in ENDED_WELL]
        super().__init__(
            f"the run did not end well: {exit_reason(run.exit_code)}",
            where=str(run.run_folder),
            found=named([f"{table.ref.identifier} ({table.status.value})" for table in bad], 5),
            help=f"maintainer show {run.id}",
        )


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """What came of a run. ``str(run)`` is what ``maintainer apply`` prints at its end.

    Its folder has what a run of the command line leaves: plan.json, events.jsonl, results.json, report.html, junit.xml.

    >>> run = project.apply(select=["lake/returns"])
    >>> run.ok, run.plan.has_changes
    (True, False)
    >>> [(table.ref.identifier, table.status.value) for table in run.outcome.tables]
    [('lake/returns', 'up_to_date')]
    >>> run.raise_for_status().run_folder.name == run.id
    True
    """

    _result: RunResult
    _project: LoadedProject = field(compare=False)

    @property
    def id(self) -> str:
        """The run's id, which is also the name of its folder."""
        return self.outcome.run_id

    @property
    def ok(self) -> bool:
        """Whether nothing needs a person: the exit code is 0."""
        return self.exit_code is ExitCode.OK

    @property
    def exit_code(self) -> ExitCode:
        """What the command line would end with; 0 is falsy."""
        return self._result.exit_code

    @property
    def outcome(self) -> RunOutcome:
        """Every table with its steps, commits, proofs and errors (``maintainer.model.run.outcome``)."""
        return self._result.outcome

    @property
    def plan(self) -> Plan:
        """What was carried out."""
        return Plan(self._result.plan, self._project)

    @property
    def run_folder(self) -> Path:
        """The folder with the record of the run."""
        return self._result.run_folder

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong beside the tables, such as a ledger that could not be written."""
        return self._result.problems

    def raise_for_status(self) -> Run:
        """Return the run itself, or raise if anything needs a person.

        Raises:
            RunFailed: E670, a step failed, a proof failed, a table was blocked, or the run was interrupted.
        """
        if not self.ok:
            raise RunFailed(self)
        return self

    def summary(self) -> str:
        """Return the end of the run in a few lines: what failed and what to do, totals, the exit code."""
        return render_run(self.outcome, run_folder=str(self.run_folder), next_command=None).rstrip("\n")

    def to_text(self) -> str:
        """Return the run as ``maintainer show`` prints it: each step with its figures, then the summary."""
        return f"{render_steps(self.outcome)}{self.summary()}\n"

    def to_markdown(self) -> str:
        """Return the run as Markdown: totals, findings, and every step."""
        return run_markdown(self.outcome)

    def report(self, out: str | Path | None = None) -> Path:
        """Write the report as one HTML file, and return its path: ``report.html`` in the run's folder, or ``out``.

        Raises:
            ProjectError: E643 the run is gone, E640 the file cannot be written.
        """
        return write_run_report(self._project, self.id, None if out is None else Path(out))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        tables = count_of(sum(map(self.outcome.count, TableStatus)), "table")
        return f"<Run {self.id}: {tables}, {exit_reason(self.exit_code)} (exit code {self.exit_code.value})>"

    def _repr_html_(self) -> str:
        table = subject_table(ended_tables(self.outcome.tables).subjects)
        return notebook_html(f"Run {self.id}", self.summary().split("\n"), table)
