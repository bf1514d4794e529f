"""What plans predicted and what the commits came to, added up by kind of step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.journal.ledger.ledger_rows import predicted
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus
from maintainer.report.html.step_view import planned_step
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import WorkDone


@dataclass(frozen=True, slots=True)
class Prediction:
    """Plan and outcome for all steps of one kind; each pair is (predicted, actual)."""

    kind: str
    steps: int
    files_removed: tuple[int, int]
    files_added: tuple[int, int]
    bytes_removed: tuple[int, int]


def predictions(runs: Sequence[tuple[Plan, RunOutcome]]) -> tuple[Prediction, ...]:
    """Add up plan and outcome by kind of step; only steps that succeeded say something about the prediction."""
    pairs: dict[str, list[tuple[Step, StepOutcome]]] = {}
    for plan, outcome in runs:
        plans = {table.ref: table for table in plan.tables}
        for table in outcome.tables:
            for step in table.steps:
                planned = planned_step(plans.get(table.ref), step)
                if planned and step.status is StepStatus.SUCCEEDED and step.kind != StepKind.SET_PROPERTIES:
                    pairs.setdefault(step.kind, []).append((planned, step))
    return tuple(_prediction(kind, steps) for kind, steps in sorted(pairs.items()))


def _prediction(kind: str, steps: Sequence[tuple[Step, StepOutcome]]) -> Prediction:
    guesses = [predicted(planned) for planned, _ in steps]
    work = WorkDone.of(step for _, step in steps)
    # From the table's folder, also into the trash; what the trash is emptied of was predicted by an earlier plan.
    vacuums = [step.vacuum for _, step in steps if step.vacuum is not None]
    return Prediction(
        step_word(kind),
        len(steps),
        (
            sum(guess.num_files_removed for guess in guesses),
            work.files_removed + sum(vacuum.num_files_deleted for vacuum in vacuums),
        ),
        (sum(guess.num_files_added for guess in guesses), work.files_added),
        (
            sum(guess.bytes_removed for guess in guesses),
            work.bytes_removed + sum(vacuum.bytes_deleted for vacuum in vacuums),
        ),
    )
