"""What plans predicted and what the commits came to, added up by kind of step."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.journal.ledger.ledger_rows import predicted
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus
from maintainer.report.document.blocks import Row, Table
from maintainer.report.html.step_view import planned_step
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import WorkDone
from maintainer.units import format_size


def predictions(runs: Sequence[tuple[Plan, RunOutcome]]) -> Table:
    """Add up plan and outcome by kind of step; only steps that succeeded say something about the prediction."""
    pairs: dict[str, list[tuple[Step, StepOutcome]]] = {}
    for plan, outcome in runs:
        plans = {table.ref: table for table in plan.tables}
        for table in outcome.tables:
            for step in table.steps:
                planned = planned_step(plans.get(table.ref), step)
                if planned and step.status is StepStatus.SUCCEEDED and step.kind != StepKind.SET_PROPERTIES:
                    pairs.setdefault(step.kind, []).append((planned, step))
    heading = ("step", "how many", "files removed", "files added", "bytes removed")
    return Table(heading, [_row(kind, steps) for kind, steps in sorted(pairs.items())], frozenset({1, 2, 3, 4}))


def _row(kind: str, steps: Sequence[tuple[Step, StepOutcome]]) -> Row:
    guesses = [predicted(planned) for planned, _ in steps]
    work = WorkDone.of(step for _, step in steps)
    # From the table's folder, also into the trash; what the trash is emptied of was predicted by an earlier plan.
    vacuums = [step.vacuum for _, step in steps if step.vacuum is not None]
    removed = work.files_removed + sum(vacuum.num_files_deleted for vacuum in vacuums)
    bytes_removed = work.bytes_removed + sum(vacuum.bytes_deleted for vacuum in vacuums)
    return Row((
        step_word(kind),
        f"{len(steps):,}",
        f"{sum(guess.num_files_removed for guess in guesses):,}, {removed:,}",
        f"{sum(guess.num_files_added for guess in guesses):,}, {work.files_added:,}",
        f"{format_size(sum(guess.bytes_removed for guess in guesses))}, {format_size(bytes_removed)}",
    ))  # fmt: skip
