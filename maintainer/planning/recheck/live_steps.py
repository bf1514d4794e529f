"""Reduce a planned step to what is still there: bins whose files are all live, properties that differ. Pure."""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, BatchedStep, Bin, SetPropertiesStep, Step, VacuumStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Turn
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.properties.property_plan import property_of, same_value
from maintainer.units import count_of


def reduce_step(step: Step, facts: TableFacts) -> tuple[Step | None, list[LeftAlone]]:
    """Return what is left of a step, None for nothing, and the bins and files that were dropped, each with its reason.

    Args:
        step: The step as it was planned.
        facts: The table as it is now.
    """
    match step:
        case SetPropertiesStep():
            return _reduce_properties(step, facts), []
        case BatchedStep():
            batches, dropped = _live_batches(step.batches, facts)
            if isinstance(step, ZOrderStep) and step.turn is not None and dropped:
                step = replace(step, turn=_live_turn(step.turn, step.bins, facts))
            return (replace(step, batches=batches) if batches else None), dropped
        case VacuumStep():
            return _reduce_vacuum(step, facts)
        case _:
            assert_never(step)


def _reduce_properties(step: SetPropertiesStep, facts: TableFacts) -> SetPropertiesStep | None:
    differences = [
        (before, after, reason)
        for before, after, reason in zip(step.before, step.after, step.reasons, strict=True)
        if not same_value(after[0], property_of(facts, after[0]), after[1])
    ]
    if not differences:
        return None
    return replace(
        step,
        before=tuple(before for before, _, _ in differences),
        after=tuple(after for _, after, _ in differences),
        reasons=tuple(reason for _, _, reason in differences),
    )


def _live_batches(batches: tuple[Batch, ...], facts: TableFacts) -> tuple[tuple[Batch, ...], list[LeftAlone]]:
    live_batches: list[Batch] = []
    dropped: list[LeftAlone] = []
    for batch in batches:
        live: list[Bin] = []
        for bin_ in batch.bins:
            num_changed = sum(not _is_live(file, facts) for file in bin_.files)
            if num_changed:
                dropped.append(_dropped(bin_, num_changed))
            else:
                live.append(bin_)
        if live:
            live_batches.append(Batch(tuple(live)))
    return tuple(live_batches), dropped


def _is_live(file: DataFile, facts: TableFacts) -> bool:
    """Whether the file is live as it was planned, also in the text of its partition: new files carry the same."""
    return facts.texts_by_key.get(file.key) == file.partition_texts


def _live_turn(turn: Turn, bins: tuple[Bin, ...], facts: TableFacts) -> Turn:
    """The turn of what is left: as many numbers of files as bins, in their order."""
    left = [
        (bin_, num_files)
        for bin_, num_files in zip(bins, turn.num_files, strict=True)
        if all(_is_live(file, facts) for file in bin_.files)
    ]
    elements = sum(file.live_records or 0 for bin_, _ in left for file in bin_.files)
    return replace(turn, num_files=tuple(num_files for _, num_files in left), elements=elements)


def _dropped(bin_: Bin, num_changed: int) -> LeftAlone:
    text = f"a bin of {count_of(len(bin_.files), 'file')}, of which {num_changed:,} changed since the plan was made"
    return LeftAlone(
        Reason(ReasonCode.NO_LONGER_LIVE, text), len(bin_.files), bin_.size_bytes, bin_.partition_values or None
    )


def _reduce_vacuum(step: VacuumStep, facts: TableFacts) -> tuple[VacuumStep | None, list[LeftAlone]]:
    live = {file.path for file in facts.files}
    removed_paths = None if facts.removed_files is None else {file.path for file in facts.removed_files}
    revived = [file for file in step.files if file.path in live]
    files = tuple(
        file for file in step.files if file.path not in live and (removed_paths is None or file.path in removed_paths)
    )
    dropped: list[LeftAlone] = []
    if revived:
        text = f"{count_of(len(revived), 'file')} removed once and live again"
        dropped.append(LeftAlone(Reason(ReasonCode.LIVE_AGAIN, text)))
    return (replace(step, files=files) if files or step.emptied else None), dropped
