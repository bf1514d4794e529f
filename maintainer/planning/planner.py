"""Plan one table: ``plan_table(table)`` is a pure function, and the plan is a value.

Order within a table: properties, the rewrite that gives the layout (compaction, Z-order, clustering or a rewrite of
partitions), the purge of files which that one does not take, vacuum. A plan also names what is left alone, with the
reason.

Notes name the files whose bounds in the log cannot be trusted, as far as the log tells who wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from maintainer.errors import MaintainerError
from maintainer.model.plan.plan import (
    CheckedExpectation,
    Checks,
    LeftAlone,
    Observed,
    Plan,
    TablePlan,
    as_problem,
)
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import BatchedStep, RewriteStep, SetPropertiesStep, Step
from maintainer.model.table.commit_records import DELETING, REWRITING
from maintainer.model.table.log_names import checkpoint_interval
from maintainer.model.table.statistics_writers import doubts_about
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord
from maintainer.model.table.table_features import UNSUPPORTED_CODES
from maintainer.planning.budget.other_writers import LOOK_BACK_MS, without_updated
from maintainer.planning.operations.rewrite_choice import plan_rewrites
from maintainer.planning.plan_input import TableInput
from maintainer.planning.property_plan import managed_properties, plan_properties
from maintainer.planning.schedule import closes_at_ms, held_back, last_vacuum, not_due, optimize_is_due, vacuum_is_due
from maintainer.planning.selection.decision import Decision, leave_files
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.planning.selection.supported_features import check_supported
from maintainer.planning.vacuum.vacuum_plan import plan_vacuum
from maintainer.policy.resolve.resolved import ResolvedPolicy, base_settings, policy_values
from maintainer.units import count_of, format_size, named

MAX_PLAN_AGE_SECONDS = 24 * 3600
MAX_COPIES_NAMED = 3


def plan_table(table: TableInput) -> TablePlan:
    """Plan one table.

    Returns:
        A plan in one of the states of ``TableState``. A table that cannot be planned gives a plan with a ``problem``:
        one bad table never stops the others.
    """
    try:
        plan = _with_copies(_plan(table), table.record)
        return replace(plan, notes=_notes(table, plan.steps))
    except MaintainerError as error:
        return problem_plan(table.policy, error)


def plan_again(table: TableInput, plan: TablePlan) -> TablePlan:
    """Plan a table with what is known of other writers now; where that holds nothing back, the plan is the same.

    Args:
        table: With what others did lately, as far as it is known.
        plan: Made without them.
    """
    _, held_back_files = without_updated(table)
    if held_back_files or not optimize_is_due(table):
        return plan_table(table)
    return replace(plan, writers=table.facts.writers, notes=_notes(table, plan.steps))


def _notes(table: TableInput, steps: Iterable[Step]) -> tuple[Reason, ...]:
    files = (file for step in steps if isinstance(step, BatchedStep) for file in step.files)
    return (*doubtful_notes(table.facts, files), *_maintained_twice(table))


_BY_WRITERS = re.compile(r"delta\.(autoOptimize(\.autoCompact)?|autoVacuum.*)", re.IGNORECASE)
"""The properties by which writers compact and vacuum by themselves; an optimized write rewrites no file."""


def _maintained_twice(table: TableInput) -> tuple[Reason, ...]:
    """Say who else rewrote the table or deleted in it lately, and which property has writers do so: one note at most.

    What the policy has a say in is no one else's.
    """
    policy, facts = table.policy, table.facts
    newest = [facts.newest_by_others(REWRITING, with_auto=not (policy.auto_compact and policy.auto_compact.enabled))]
    newest += [facts.newest_by_others(DELETING)] if policy.vacuum is not None else []
    lately = (commit for commit in newest if commit is not None and commit.at_ms >= table.now_ms - LOOK_BACK_MS)
    parts = [commit.activity for commit in lately]
    ours = {name.lower() for name, _ in managed_properties(policy, facts)}
    for name, value in facts.properties:
        if _BY_WRITERS.fullmatch(name) and name.lower() not in ours and value.strip().lower() != "false":
            parts.append(f"{name} is {value}")
    return (Reason(ReasonCode.MAINTAINED_TWICE, f"maintained twice: {'; '.join(parts)}"),) if parts else ()


def _with_copies(plan: TablePlan, record: TableRecord) -> TablePlan:
    """Name copies: a table with the same id at another place, whose records hold back the deletions of both."""
    if not record.copies:
        return plan
    copies = named(record.copies, MAX_COPIES_NAMED)
    text = f"a table with the same id is at {copies}: one is a copy of the other; each has its own schedule"
    return replace(plan, left_alone=(*plan.left_alone, LeftAlone(Reason(ReasonCode.COPIED_TABLE, text))))


def problem_plan(policy: ResolvedPolicy, error: MaintainerError) -> TablePlan:
    """Make the plan of a table that could not be read or planned: the error as data."""
    return replace(_bare_plan(policy), problem=as_problem(error))


def _bare_plan(policy: ResolvedPolicy) -> TablePlan:
    return TablePlan(policy.table, policy.file, policy.digest, owner=policy.owner, rule_line=policy.rule_line)


def absent_plan(policy: ResolvedPolicy, since: str) -> TablePlan:
    """Make the plan of a table that does not exist, and whose policy is new: a note, for the two may come together.

    Args:
        policy: The table's policy.
        since: The commit that has no policy for the table.
    """
    text = f"the table does not exist yet; its policy is new since `{since}`"
    reason = Reason(ReasonCode.NO_TABLE_YET, text, policy.file)
    return replace(_bare_plan(policy), rule_line=None, left_alone=(LeftAlone(reason),))


def assemble(
    tables: Iterable[TablePlan],
    *,
    created_at_ms: int,
    max_age_seconds: int = MAX_PLAN_AGE_SECONDS,
    reaching_more: frozenset[str] = frozenset(),
) -> Plan:
    """Join plans of tables into one, in the order of their identifiers. What it is pinned to besides is not set.

    Args:
        tables: The plans.
        created_at_ms: The time of planning.
        max_age_seconds: How long the plan may be applied.
        reaching_more: Files and lines of rules that also reach tables which are not planned here.

    Raises:
        ValueError: A table is planned twice.
    """
    ordered = _passing_over(sorted(tables, key=lambda table: table.ref), reaching_more)
    if len({table.ref for table in ordered}) < len(ordered):
        raise ValueError("a table is planned twice")
    return Plan(created_at_ms, created_at_ms + max_age_seconds * 1000, ordered)


def _passing_over(tables: list[TablePlan], reaching_more: frozenset[str]) -> tuple[TablePlan, ...]:
    """Mark tables that cannot be maintained, unless they have a policy of their own, or their rule reaches no other.

    A rule that also reaches tables beyond this plan is given the benefit of the doubt: a selection or a shard makes no
    error.
    """
    of_use = reaching_more | {table.source for table in tables if not _is_unsupported(table)}
    return tuple(
        replace(table, is_passed_over=True)
        if _is_unsupported(table) and table.rule_line is not None and table.source in of_use
        else table
        for table in tables
    )


def _is_unsupported(table: TablePlan) -> bool:
    return table.problem is not None and table.problem.code in UNSUPPORTED_CODES


def observe(policy: ResolvedPolicy, facts: TableFacts, *, with_columns: bool) -> Observed:
    """Record what the plan was made from; ``staleness.recheck`` compares it with the table as it is then."""
    return Observed(
        location=facts.location,
        table_id=facts.table_id,
        version=facts.version,
        columns=planned_columns(facts) if with_columns else (),
        partition_columns=facts.partition_columns,
        protocol=facts.protocol,
        num_files=len(facts.files),
        size_bytes=facts.size_bytes,
        managed_properties=managed_properties(policy, facts),
        file_sizes=file_sizes(file.size_bytes for file in facts.files),
        listed=facts.storage is not None and facts.storage.listing is not None,
        small_files=sum(file.size_bytes < policy.optimize.min_file_size_bytes for file in facts.files),
        first_commit_read=facts.first_commit_read,
        oldest_commit=None if facts.history is None else facts.history.first_version,
        checkpoint_interval=checkpoint_interval(facts.property_map),
    )


def _plan(table: TableInput) -> TablePlan:
    policy, facts = table.policy, table.facts
    check_supported(facts)
    if table.record.quarantined is not None:
        reason = Reason(ReasonCode.QUARANTINED, f"quarantined: {table.record.quarantined}")
        return _table_plan(policy, facts, left_alone=_all_files(facts, reason), blocked=(reason,))
    held = held_back(table)
    if held is not None:
        return _table_plan(policy, facts, left_alone=_all_files(facts, held))
    properties = plan_properties(policy, facts)
    rewrites, left_alone, needed = plan_rewrites(table)
    if properties is not None and needed is not None:
        before, after = (*properties.before, *needed.before), (*properties.after, *needed.after)
        needed = SetPropertiesStep(before, after, (*properties.reasons, *needed.reasons))
    deletion = _vacuum(table)
    left_alone = (*left_alone, *deletion.left_alone)
    blocked = check_limits(policy, rewrites)
    if blocked:
        files = [file for step in rewrites for file in step.files]
        over = leave_files(ReasonCode.OVER_LIMIT, blocked[0].text, files, blocked[0].origin)
        return _table_plan(policy, facts, left_alone=(*left_alone, over), blocked=blocked)
    steps = tuple(step for step in (needed or properties, *rewrites, deletion.step) if step is not None)
    # A deletion that is refused stops nothing else; where there is nothing else, the table says so by being blocked.
    made = _table_plan(policy, facts, steps=steps, left_alone=left_alone, blocked=() if steps else deletion.blocked)
    closes = None if table.options.ignore_windows else closes_at_ms(policy.windows, table.now_ms)
    return replace(made, window_closes_ms=closes) if steps else made


def _vacuum(table: TableInput) -> Decision:
    policy, vacuum, (last, what) = table.policy, table.policy.vacuum, last_vacuum(table)
    if vacuum is None:
        return Decision()
    if last is not None and not vacuum_is_due(table):
        reason = not_due(what, "vacuum.every", policy, vacuum.every_seconds, last, table.now_ms)
        return Decision(None, (LeftAlone(reason),))
    if not table.options.deletes:
        text = "vacuum: the command engine deletes nothing; apply with --engine transaction beside the storage"
        return Decision(None, (LeftAlone(Reason(ReasonCode.NOT_BY_ENGINE, text, policy.place_of("vacuum"))),))
    return plan_vacuum(table)


def check_limits(policy: ResolvedPolicy, rewrites: tuple[RewriteStep, ...]) -> tuple[Reason, ...]:
    """Return every limit that the rewrites would break; the table is then blocked whole, never trimmed."""
    size_bytes, num_files = sum(step.size_bytes for step in rewrites), sum(step.num_files for step in rewrites)
    limits, broken = policy.limits, []
    if limits.max_bytes is not None and size_bytes > limits.max_bytes:
        text = f"would rewrite {format_size(size_bytes)}, limits.maxBytes is {format_size(limits.max_bytes)}"
        broken.append(Reason(ReasonCode.OVER_LIMIT, text, policy.place_of("limits.maxBytes")))
    if limits.max_files is not None and num_files > limits.max_files:
        text = f"would rewrite {count_of(num_files, 'file')}, limits.maxFiles is {limits.max_files:,}"
        broken.append(Reason(ReasonCode.OVER_LIMIT, text, policy.place_of("limits.maxFiles")))
    return tuple(broken)


def _all_files(facts: TableFacts, reason: Reason) -> tuple[LeftAlone, ...]:
    return (leave_files(reason.code, reason.text, facts.files, reason.origin),)


def _table_plan(
    policy: ResolvedPolicy,
    facts: TableFacts,
    *,
    steps: tuple[Step, ...] = (),
    left_alone: tuple[LeftAlone, ...] = (),
    blocked: tuple[Reason, ...] = (),
) -> TablePlan:
    return replace(
        _bare_plan(policy),
        observed=observe(policy, facts, with_columns=bool(steps)),
        steps=steps,
        left_alone=left_alone,
        blocked=blocked,
        checks=checks_of(policy),
        timeout_seconds=policy.limits.timeout_seconds,
        writers=facts.writers,
        quiet_after_updates_seconds=policy.optimize.quiet_after_updates_seconds,
        policy_values=policy_values(policy) if steps else (),
        policy=dict(base_settings(policy)) if steps else {},
    )


def checks_of(policy: ResolvedPolicy) -> Checks:
    """Return what is asserted after each rewrite of a table with this policy."""
    verify = policy.verify
    expectations = tuple(
        CheckedExpectation(
            expectation.type, json.dumps(dict(expectation.arguments), sort_keys=True, separators=(",", ":"))
        )
        for expectation in verify.expectations
    )
    return Checks(verify.row_count, verify.content, verify.files, expectations)


MAX_NAMED_COLUMNS = 3


def doubtful_notes(facts: TableFacts, files: Iterable[DataFile]) -> tuple[Reason, ...]:
    """Say of files that are rewritten whose bounds are computed anew and may be wrong now: one note at most."""
    if not facts.doubtful_files:
        return ()
    paths, parts = {file.path for file in files}, []
    columns = [column for column in planned_columns(facts) if column.name in facts.columns_with_stats]
    for writer, added in facts.doubtful_files:
        said = []
        for doubt in doubts_about(writer):
            if names := [column.name for column in columns if doubt.is_about(column.type)]:
                said.append(f"{named(names, MAX_NAMED_COLUMNS)}: {doubt.why}")
        if said and (num_files := len(paths & added)):
            parts.append(f"{count_of(num_files, 'file')} of {writer} ({'; '.join(said)})")
    if not parts:
        return ()
    text = (
        f"min and max in the log cannot be trusted, a query may skip rows; new files get their own: {'; '.join(parts)}"
    )
    return (Reason(ReasonCode.DOUBTFUL_BOUNDS, text),)
