"""Run the loop of incremental Z-order, each turn planned from the current table, and a full Z-order as one rewrite.

The first turn is the plan's. The loop ends when no strategy yields files, when the budget of bytes or the number of
turns is used up, or when the run is stopped. The next plan continues from there. Files that others append while the
loop runs are the next plan's as well: else a table that is never quiet would keep the run from all other tables.

A full Z-order has a look at the layout before and after it, from the log alone. Looks are for people: where one cannot
be made, the step goes on without a picture.
"""

from __future__ import annotations

from dataclasses import replace

from maintainer.errors import CommitConflict, MaintainerError, TableAltered
from maintainer.execution.table.commit_attempt import check_window
from maintainer.execution.table.step_runs import commit_properties, run_batch, run_rewrite
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.model.plan.layout_tags import ZORDER_TAG, zorder_tag_value
from maintainer.model.plan.steps import SetPropertiesStep, ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, TurnOutcome
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.run_events import Turned
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.curve_files import layout_boxes, layout_figures
from maintainer.planning.curve.revision import Revision, revisions_in
from maintainer.planning.operations.full_zorder import MAX_FILES_MEASURED, order_change
from maintainer.planning.property_plan import property_of
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.planning.zorder.incremental_zorder import loop_columns, next_turn, without_bounds
from maintainer.planning.zorder.zorder_options import REQUEST_KEYS
from maintainer.planning.zorder.zorder_revision import ranges_of

NO_FIGURES = LayoutFigures(0.0, 0, 0.0, 0.0)


def run_turns(worker: TableWorker, work: StepWork, step: ZOrderStep) -> StepStatus:
    """Run turns until nothing is left or something ends it.

    A turn that meets another writer ends the loop: the table is changing, and the next plan sees how. A table that was
    altered, or that is another one by now, is not touched any more: the request on it is not the one that was planned.

    Raises:
        MaintainerError: A turn failed; what landed before is in ``work``.
    """
    settings = step.settings
    if settings is None:
        raise ValueError("not an incremental Z-order")
    current, spent_bytes, spent_files = step, 0, 0
    first_paths: frozenset[str] = frozenset()
    for number in range(settings.max_turns):
        worker.control.check()
        check_window(worker)
        facts = worker.engine.reader.facts(worker.plan.ref)
        facts = _with_ranges(worker, facts, loop_columns(step, facts))
        figures = figures_of(step, facts)
        _close(work, figures)
        work.boxes = layout_boxes(_revision(step, facts), facts, work.boxes)
        if number == 0:
            first_paths = frozenset(file.path for file in facts.files)
        else:
            spent = {"spent_bytes": spent_bytes, "spent_files": spent_files}
            turn_step = next_turn(step, facts, **spent, first_paths=first_paths)
            if turn_step is None:
                free = without_bounds(step)
                work.goes_on = free != step and next_turn(free, facts, **spent, first_paths=first_paths) is not None
                break
            current = turn_step
        landed = len(work.commits)
        try:
            run_batch(worker, work, current, number, current.batches[0])
        except CommitConflict as conflict:
            if not work.commits or isinstance(conflict, TableAltered):
                raise
            work.notes.append(f"after {len(work.turns)} turns another writer was there first: {conflict.what}")
            return StepStatus.SUCCEEDED
        finally:
            if len(work.commits) > landed and current.planned_turn is not None:
                work.turns.append(TurnOutcome(current.planned_turn, work.commits[-1].version, figures))
                at_ms = worker.context.clock.now_ms()
                worker.context.journal.record(Turned(at_ms, worker.plan.ref.identifier, work.step_id, work.turns[-1]))
        work.batches_done += 1
        spent_bytes += current.batches[0].size_bytes
        spent_files += len(current.batches[0].files)
    else:
        work.goes_on = True
        work.notes.append(f"stopped after {settings.max_turns} turns; the next apply goes on")
    if settings.request and any(turn.planned.strategy is Strategy.LEVELED for turn in work.turns):
        _clear_request(worker, work, settings.max_turns)
    return StepStatus.SUCCEEDED if work.commits else StepStatus.NOTHING_LEFT


def _with_ranges(worker: TableWorker, facts: TableFacts, columns: tuple[str, ...]) -> TableFacts:
    return replace(facts, column_ranges=worker.engine.reader.column_ranges(facts, columns))


def figures_of(step: ZOrderStep, facts: TableFacts) -> LayoutFigures:
    """Measure the layout under the revision that is worked on."""
    revision = _revision(step, facts)
    if revision is None:
        return NO_FIGURES
    return layout_figures(facts.files, revision, ranges_of(facts, revision))


def _revision(step: ZOrderStep, facts: TableFacts) -> Revision | None:
    tag = step.settings.optimized if step.settings is not None else ""
    return next((entry for entry in revisions_in(facts.properties).values() if entry.tag == tag), None)


def _close(work: StepWork, figures: LayoutFigures) -> None:
    """Complete the turn before with the figures measured before this turn."""
    if work.turns and work.turns[-1].after is None:
        work.turns[-1] = replace(work.turns[-1], after=figures)


def _clear_request(worker: TableWorker, work: StepWork, number: int) -> None:
    """Remove the properties by which a person asked for a leveled turn, so that it is done once.

    Raises:
        MaintainerError: They could not be removed: they stay until the next leveled turn.
    """
    facts = work.facts = worker.engine.reader.facts(worker.plan.ref)
    present = [(name, value) for name, value in facts.properties if name.lower() in _REQUEST_LOWER]
    if not present:
        return
    step = SetPropertiesStep(tuple(present), (), (), unset=tuple(name for name, _ in present))
    commit_properties(worker, work, facts, number, step)
    work.notes.append(f"the request on the table is done and was removed ({property_of(facts, REQUEST_KEYS[0])})")


_REQUEST_LOWER = frozenset(key.lower() for key in REQUEST_KEYS)


def run_full_zorder(worker: TableWorker, work: StepWork, step: ZOrderStep) -> StepStatus:
    """Rewrite batch by batch as ``run_rewrite``, and measure what queries read before and after.

    Raises:
        MaintainerError: A batch failed; what landed before is in ``work``.
    """
    before = _read_for_figures(worker, step)
    status = run_rewrite(worker, work, step)
    after = _read_for_figures(worker, step) if before is not None and work.commits else None
    tag = (ZORDER_TAG, zorder_tag_value(step.columns))
    # An engine that sets no tags does not say which files are in order.
    if before is not None and after is not None and any(file.tag(tag[0]) == tag[1] for file in after.files):
        types = {column.name: column.type for column in planned_columns(before)}
        columns = {name: types.get(name, "") for name in step.columns}
        change = order_change(columns, tag, before, after)
        if change is not None:
            work.boxes, work.layout = change.boxes, change.layout
    return status


def _read_for_figures(worker: TableWorker, step: ZOrderStep) -> TableFacts | None:
    """Read the table with the ranges of the step's columns; None where that cannot be done, or costs too much."""
    try:
        facts = worker.engine.reader.facts(worker.plan.ref)
        return None if len(facts.files) > MAX_FILES_MEASURED else _with_ranges(worker, facts, step.columns)
    except MaintainerError:
        return None
