"""Read what planning one table needs, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from maintainer.engine.protocols import TablePlaces, TableReader, VacuumQuestion
from maintainer.errors import TableError
from maintainer.journal.memory.table_records import Remembered
from maintainer.model.plan.plan import TablePlan
from maintainer.model.table.commit_records import CommitsWanted, TableCommit, newest_maintenance
from maintainer.model.table.storage_facts import Protection, ProtectionReason
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.planning.budget.other_writers import newest_of, own_rewrites_of, rhythm_of
from maintainer.planning.needs import (
    MAX_NEEDS,
    ColumnRangesNeed,
    ColumnSampleNeed,
    DroppedColumnsNeed,
    Need,
    RemovalHistoryNeed,
    RemovedFilesNeed,
    RewrittenFilesNeed,
    UpdatesNeed,
    WritersNeed,
    ZOrderHistoryNeed,
    next_need,
    writers_need,
)
from maintainer.planning.plan_input import PlanMoment, PlanOptions, TableInput
from maintainer.planning.planner import plan_again, plan_table
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.policy.resolve.resolved import ResolvedPolicy


def read_for_planning(
    reader: TableReader,
    policy: ResolvedPolicy,
    records: Remembered,
    places: TablePlaces,
    *,
    when: PlanMoment,
    options: PlanOptions,
    tables: tuple[TableRef, ...] = (),
) -> TableInput:
    """Read one table, and whatever else its planning asks for.

    Args:
        reader: Reads the table.
        policy: The table's effective policy; the one for the table's size is used.
        records: What earlier runs left.
        places: Tells whether two locations are one table.
        when: The time of planning.
        options: What is set aside.
        tables: All tables whose logs may refer to files of this one.

    Raises:
        TableError: The table cannot be read.
        RuntimeError: A reader that answers without an answer, which is a bug.
    """
    facts = reader.facts(policy.table)
    policy = policy.of_size(facts.size_bytes)
    record = records.record_of(facts.table_id, facts.location, places)
    streak = records.streak_of(policy.table.identifier, places, (facts.table_id, facts.location))
    record = replace(record, lost_in_a_row=streak.lost, last_lost_at_ms=streak.last_lost_at_ms)
    table = TableInput(policy, facts, record, when.now_ms, when.today, options)
    for _ in range(MAX_NEEDS):
        need = next_need(table)
        if need is None:
            return table
        table = answer(reader, table, need, tables)
    raise RuntimeError(f"planning asks {MAX_NEEDS} times for what it was given: {next_need(table)}")


def beside_unsearched(table: TableInput, unsearched: Sequence[TableRef]) -> TableInput:
    """Add to what was found for a deletion that tables which could not be searched for may need its files.

    A root that is missing may be a disk that is not mounted: then nobody can read the log of a clone on it.
    """
    storage = table.facts.storage
    if storage is None or not unsearched:
        return table
    others = f", or any of {len(unsearched) - 1:,} more," if len(unsearched) > 1 else ""
    who = f"whether {unsearched[0].identifier}{others} needs files of this table"
    unknown = Protection(ProtectionReason.UNKNOWN_REFERENCE, f"{who} is not known: its place could not be searched", 0)
    storage = replace(storage, protections=(*storage.protections, unknown))
    return replace(table, facts=replace(table.facts, storage=storage))


def plan_beside_writers(reader: TableReader, table: TableInput) -> tuple[TableInput, TablePlan]:
    """Plan a table; where something would be rewritten, plan it again with what other writers do.

    A log that cannot be read a second time is no reason to leave a table out: the last look before each commit reads it
    again.

    Returns:
        The input with what was read, and the plan made from it.
    """
    plan = plan_table(table)
    first = table
    for _ in range(MAX_NEEDS):
        need = writers_need(table, plan)
        if need is None:
            break
        try:
            table = answer(reader, table, need)
        except TableError:
            break
    else:
        raise RuntimeError(f"planning asks {MAX_NEEDS} times for what it was given: {writers_need(table, plan)}")
    return table, plan if table is first else plan_again(table, plan)


def answer(reader: TableReader, table: TableInput, need: Need, tables: tuple[TableRef, ...] = ()) -> TableInput:
    """Read what is needed and return the input with it.

    Raises:
        TableError: It cannot be read.
    """
    return replace(table, facts=_facts_with(reader, table.facts, need, table.now_ms, tables))


def _facts_with(
    reader: TableReader, facts: TableFacts, need: Need, now_ms: int, tables: tuple[TableRef, ...]
) -> TableFacts:
    match need:
        case ZOrderHistoryNeed():
            return replace(facts, zordered_paths=reader.zordered_paths(facts, need.columns))
        case RewrittenFilesNeed():
            return replace(facts, rewritten_paths=reader.rewritten_paths(facts, since_ms=need.since_ms))
        case ColumnRangesNeed():
            return replace(facts, column_ranges=reader.column_ranges(facts, need.columns))
        case ColumnSampleNeed():
            sample = reader.column_sample(facts, need.columns, max_rows=need.max_rows)
            return replace(facts, column_sample=sample)
        case DroppedColumnsNeed():
            paths = reader.files_with_dropped_columns(facts, need.files)
            return replace(facts, files_with_dropped_columns=paths)
        case RemovalHistoryNeed():
            history = reader.vacuum_history(facts, need.checkpoints, removed_before_ms=need.removed_before_ms)
            return replace(_with_maintenance(facts, history.maintenance), history=history)
        case RemovedFilesNeed():
            question = VacuumQuestion(need.removed_before_ms, now_ms, need.untracked_before_ms, tables)
            return reader.vacuum_look(facts, question)
        case WritersNeed():
            read = reader.commits(facts.ref, _wanted(facts, need))
            newest = newest_of(read, now_ms)
            rhythm, own = rhythm_of(newest, now_ms), own_rewrites_of(newest, now_ms)
            facts = _with_maintenance(facts, read.commits)
            return replace(facts, writers=rhythm, own_rewrites=own, doubtful_files=read.doubtful_files)
        case UpdatesNeed():
            known = facts.version
            updates = reader.updates(facts, since_ms=need.since_ms, after_version=known, until_version=known)
            return replace(facts, updates=updates)
        case _:
            assert_never(need)


def _with_maintenance(facts: TableFacts, commits: tuple[TableCommit, ...]) -> TableFacts:
    return replace(facts, maintenance_by_others=newest_maintenance((*facts.maintenance_by_others, *commits)))


def _wanted(facts: TableFacts, need: WritersNeed) -> CommitsWanted:
    types = frozenset(column.type for column in planned_columns(facts))
    return CommitsWanted(
        need.limit,
        need.since_ms,
        also_since_ms=need.also_since_ms,
        doubtful_types=types,
        until_version=facts.version,
    )
