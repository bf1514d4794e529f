"""Run a full Z-order as any other rewrite, with a look at the layout before and after it.

Both looks read the log alone. They are for people: where one cannot be made, the step goes on without a picture.
"""

from __future__ import annotations

from dataclasses import replace

from maintainer.errors import MaintainerError
from maintainer.execution.table.step_runs import run_rewrite
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.model.plan.layout_tags import ZORDER_TAG, zorder_tag_value
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.run.outcome import StepStatus
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.order_change import MAX_FILES_MEASURED, order_change
from maintainer.planning.selection.schema_columns import planned_columns


def run_full_zorder(worker: TableWorker, work: StepWork, step: ZOrderStep) -> StepStatus:
    """Rewrite batch by batch as ``run_rewrite``, and measure what queries read before and after.

    Raises:
        MaintainerError: A batch failed; what landed before is in ``work``.
    """
    before = _look(worker, step)
    status = run_rewrite(worker, work, step)
    after = _look(worker, step) if before is not None and work.commits else None
    tag = (ZORDER_TAG, zorder_tag_value(step.columns))
    # An engine that sets no tags does not say which files are in order.
    if before is not None and after is not None and any(file.tag(tag[0]) == tag[1] for file in after.files):
        types = {column.name: column.type for column in planned_columns(before)}
        columns = {name: types.get(name, "") for name in step.columns}
        change = order_change(columns, tag, before, after)
        if change is not None:
            work.boxes, work.layout = change.boxes, change.layout
    return status


def _look(worker: TableWorker, step: ZOrderStep) -> TableFacts | None:
    """Read the table with the ranges of the step's columns; None where that cannot be done, or costs too much."""
    reader = worker.engine.reader
    try:
        facts = reader.facts(worker.plan.ref)
        if len(facts.files) > MAX_FILES_MEASURED:
            return None
        return replace(facts, column_ranges=reader.column_ranges(facts, step.columns))
    except MaintainerError:
        return None
