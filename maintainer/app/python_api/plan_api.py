"""``Plan`` of the Python API: a plan that can be looked at, saved, compared and applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from maintainer.app.planning.plan_rendering import plan_options
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.running.saved_plan import save_plan
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan as PlanModel
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import Step
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.report.html.notebook import notebook_html
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import plan_table, render_plan, summary_lines
from maintainer.report.plan.plan_totals import tables_line, total


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What would be done to each table, and why. A value: two plans are equal if they would do the same.

    ``model`` has every detail: tables, steps, files, reasons (``maintainer.model.plan.plan``). ``str(plan)`` is what
    ``maintainer plan`` prints.
    """

    model: PlanModel
    _project: LoadedProject = field(compare=False)

    @property
    def tables(self) -> tuple[TablePlan, ...]:
        """The plan of each table but our own ledger, sorted by name; one that cannot be planned has its problem.

        >>> [(table.ref.identifier, table.state.value) for table in plan.tables]
        [('lake/orders', 'changes'), ('lake/returns', 'up_to_date')]
        """
        return self.model.user_tables

    @property
    def has_changes(self) -> bool:
        """Whether applying the plan would do anything."""
        return self.model.has_changes

    @property
    def exit_code(self) -> ExitCode:
        """What ``maintainer plan`` would end with: 1 if a table cannot be planned, 4 if one is blocked, else 0."""
        return plan_exit_code(self.model)

    def steps(self) -> Iterator[tuple[TablePlan, Step]]:
        """Return each step with its table, in the order in which they run.

        >>> [(table.ref.identifier, step.kind.value, step.num_files) for table, step in plan.steps()]
        [('lake/orders', 'compact', 3)]
        """
        return self.model.steps()

    def summary(self) -> str:
        """Return one to three lines: how many tables change, what is rewritten and deleted, how long it may take."""
        expected = plan_options(self._project, self.model).expected_time if self.model.has_changes else None
        return "\n".join(summary_lines(self.model, expected))

    def to_text(self, *, verbose: bool = False) -> str:
        """Return the plan as ``maintainer plan`` prints it; ``verbose`` names every table, reason and bin."""
        options = replace(plan_options(self._project, self.model), applied_next=True, verbose=verbose)
        return render_plan(self.model, options)

    def to_markdown(self) -> str:
        """Return the plan as Markdown for a pull request, at most 60,000 characters, as ``-o markdown`` prints it."""
        return render_plan_markdown(self.model)

    def to_json(self) -> str:
        """Return the plan as its JSON document, with a digest; ``Project.read_plan`` reads it back from a file."""
        return to_json(self.model, indent=2)

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
        return f"<Plan: {tables_line(total(self.model.user_tables))}>"

    def _repr_html_(self) -> str:
        return notebook_html("Plan", self.summary().split("\n"), plan_table(self.model))
