"""What the run of one table works with, and what one of its steps has done so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from maintainer.engine.protocols import TableEngine
from maintainer.engine.step_meter import StepMeter
from maintainer.execution.cancellation import TableControl
from maintainer.execution.run_context import RunContext
from maintainer.journal.leases import Lease
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import Batch, VacuumStep
from maintainer.model.plan.zorder_turn import LayoutChange, TurnOutcome
from maintainer.model.run.outcome import Assertion
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt
from maintainer.model.table.table_facts import LayoutBoxes, TableFacts


@dataclass(slots=True)
class StepWork:
    """What a step has done so far; becomes its outcome, also when it ends by an exception.

    ``rewritten`` has the batches as they really ran, with the commits that they became. ``deletion`` is what a vacuum
    is about to delete, ``num_deleted`` how many of its files are gone at least, None before the first.
    ``unsettled`` says that an INTENT may stand without a known result: without it nothing can have been committed.
    ``wrong_version`` is one of which a check found that it is wrong.
    ``goes_on`` says that a bound ended its turns before they were done.
    ``meter`` is how far the engine is with what it does now. ``started`` is when it began, by the monotonic clock.
    """

    step_id: str
    kind: str
    commits: list[CommitReceipt] = field(default_factory=list)
    rewritten: list[tuple[Batch, CommitReceipt]] = field(default_factory=list)
    vacuum: VacuumReceipt | None = None
    assertions: list[Assertion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    turns: list[TurnOutcome] = field(default_factory=list)
    boxes: LayoutBoxes | None = None
    layout: LayoutChange | None = None
    facts: TableFacts | None = None
    deletion: VacuumStep | None = None
    num_deleted: int | None = None
    batches_done: int = 0
    unsettled: bool = False
    wrong_version: int | None = None
    goes_on: bool = False
    meter: StepMeter = field(default_factory=StepMeter)
    started: float = 0.0


@dataclass(frozen=True, slots=True)
class TableWorker:
    """Everything one table's run works with."""

    plan: TablePlan
    engine: TableEngine
    context: RunContext
    control: TableControl
    lease: Lease | None = None
