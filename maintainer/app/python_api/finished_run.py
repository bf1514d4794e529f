"""``Run`` of the Python API: what came of a run, and the error that says it did not end well."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from maintainer.app.lookback.report_files import write_run_report
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.python_api.plan_api import Plan
from maintainer.app.run_result import RunResult
from maintainer.errors import ExitCode, MaintainerError
from maintainer.model.plan.plan import Problem
from maintainer.model.run.exit_codes import exit_reason
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.report.document.blocks import subject_table
from maintainer.report.html.notebook import notebook_html
from maintainer.report.run.run_text import ended_tables, render_run, render_steps, run_markdown
from maintainer.units import count_of

_GOOD = frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.WAITING})


class RunFailed(MaintainerError):
    """A run ended with something that needs a person; ``run`` holds every outcome."""

    default_code = "E670"

    def __init__(self, run: Run) -> None:
        self.run = run
        bad = [table for table in run.outcome.user_tables if table.status not in _GOOD]
        named = ", ".join(f"{table.ref.identifier} ({table.status.value})" for table in bad[:5])
        more = f" and {len(bad) - 5:,} more" if len(bad) > 5 else ""
        super().__init__(
            f"the run did not end well: {exit_reason(run.exit_code)}",
            where=str(run.run_folder),
            found=named + more,
            help=f"maintainer show {run.id}",
        )


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """What came of a run. ``str(run)`` is what ``maintainer apply`` prints at its end.

    Its folder has what a run of the command line leaves: plan.json, events.jsonl, results.json, report.html, junit.xml.
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
        tables = count_of(len(self.outcome.user_tables), "table")
        return f"<Run {self.id}: {tables}, {exit_reason(self.exit_code)} (exit code {self.exit_code.value})>"

    def _repr_html_(self) -> str:
        table = subject_table(ended_tables(self.outcome.tables).subjects)
        return notebook_html(f"Run {self.id}", self.summary().split("\n"), table)
