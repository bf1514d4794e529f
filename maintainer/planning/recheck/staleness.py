"""Check whether a plan still holds, right before each table's steps run, and say what changed in the table. Pure.

A plan that a person approved is refused when its table, schema, protocol or policy changed. When only files changed
it is reduced: bins whose files are all live run exactly as planned, the others are dropped. Nothing new is ever
added.

Sentences say how a table, or its policy, is not as it was planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import assert_never

from maintainer.errors import Refused
from maintainer.model.plan.plan import LeftAlone, Observed, Plan, PlannedColumn, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    Batch,
    BatchedStep,
    Bin,
    ClusterStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.plan.zorder_turn import ZOrderTurn
from maintainer.model.table.table_facts import DataFile, Protocol, TableFacts, TableRef
from maintainer.planning.property_plan import property_of, same_value
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.policy.resolve.resolved import PolicyValues, value_changes
from maintainer.units import by_cause, count_of, format_duration, named

PLAN_AGAIN = "make the plan again: `maintainer plan --out FILE`"

MAX_NAMES = 5
"""Tables named where one reason is about many of them."""


@dataclass(frozen=True, slots=True)
class StaleReasons:
    """Why a table's plan must not be applied: sentences, never none."""

    ref: TableRef
    reasons: tuple[str, ...]


def check_age(plan: Plan, now_ms: int) -> None:
    """Refuse a plan that is too old, or that was made in the future by a clock that disagrees with ours.

    Raises:
        Refused: A404.
    """
    if plan.created_at_ms <= now_ms <= plan.expires_at_ms:
        return
    late = now_ms > plan.expires_at_ms
    away = format_duration(abs(now_ms - (plan.expires_at_ms if late else plan.created_at_ms)) // 1000)
    what, found = "the plan was made in the future", f"by {away}: the clocks of two machines differ"
    if late:
        what, found = "the plan is too old", f"it expired {away} ago"
    raise Refused(what, code="A404", found=found, help=PLAN_AGAIN)


def refused_alone(plan: TablePlan, stale: StaleReasons) -> TablePlan:
    """Return the plan of a table that is not touched for these reasons, while the others of its plan are done."""
    reason = Reason(ReasonCode.PLAN_STALE, f"not as planned: {'; '.join(stale.reasons)}")
    return replace(plan, steps=(), blocked=(reason,))


def refusal(stale: Iterable[StaleReasons]) -> Refused:
    """Make one refusal (A403) that says everything that is stale; what holds for several tables is said once."""
    said = [(str(table.ref), reason) for table in stale for reason in table.reasons]
    found = []
    for group in by_cause(said, lambda of_table: of_table[1]):
        names = [name for name, _ in group]
        tables = names[0] if len(names) == 1 else f"{len(names):,} tables ({named(names, MAX_NAMES)})"
        found.append(f"{tables}: {group[0][1]}")
    return Refused("the plan is stale", code="A403", found="\n".join(found), help=PLAN_AGAIN)


def recheck(
    plan: TablePlan,
    facts: TableFacts,
    policy_digest_now: str | None,
    *,
    policy_values_now: PolicyValues = (),
    exact: bool = False,
) -> StaleReasons | TablePlan:
    """Check a table's plan against the table as it is now.

    Args:
        plan: The plan of one table.
        facts: The table now.
        policy_digest_now: Digest of the table's effective policy now; None where no policy matches it any more.
        policy_values_now: What that policy says, to name what changed where the digest is another one.
        exact: Demand the very version that was planned (``apply --exact``).

    Returns:
        The reasons for which it is refused, all at once; or the plan, reduced to what is still there: dropped
        bins and files are in ``left_alone``. A property that already has its planned value is no difference,
        so a plan of which a part was applied can be applied again.
    """
    if plan.observed is None or not plan.steps:
        return plan
    policy_reasons: tuple[str, ...] = ()
    if policy_digest_now is None:
        policy_reasons = ("no policy matches the table any more",)
    elif plan.policy_digest != policy_digest_now:
        policy_reasons = policy_changes_since(plan, policy_values_now)
    reasons = (*policy_reasons, *_differences(plan, plan.observed, facts, exact))
    if reasons:
        return StaleReasons(plan.ref, reasons)
    reduced = [reduce_step(step, facts) for step in plan.steps]
    steps = tuple(step for step, _ in reduced if step is not None)
    dropped = (left for _, of_step in reduced for left in of_step)
    return replace(plan, steps=steps, left_alone=(*plan.left_alone, *dropped))


def _differences(plan: TablePlan, observed: Observed, facts: TableFacts, exact: bool) -> Iterator[str]:
    if observed.table_id != facts.table_id:
        yield f"the table was dropped and made again (table id {observed.table_id}, now {facts.table_id})"
    if observed.location != facts.location:
        yield f"the table is at another place ({observed.location}, now {facts.location})"
    yield from column_changes(observed.columns, planned_columns(facts))
    if observed.partition_columns != facts.partition_columns:
        yield names_changed("the partition columns", observed.partition_columns, facts.partition_columns)
    yield from protocol_changes(observed.protocol, facts.protocol)
    columns = next((step.columns for step in plan.steps if isinstance(step, ClusterStep)), None)
    if columns is not None and columns != facts.clustering_columns:
        yield names_changed("the clustering columns", columns, facts.clustering_columns)
    if facts.version < observed.version:
        yield f"the table went back from version {observed.version} to {facts.version}"
    elif exact and facts.version > observed.version:
        yield f"the table is at version {facts.version}, the plan was made at version {observed.version} (--exact)"
    targets = {name: value for step in plan.steps if isinstance(step, SetPropertiesStep) for name, value in step.after}
    for name, before in observed.managed_properties:
        now = property_of(facts, name)
        done = name in targets and same_value(name, now, targets[name])
        if not done and not same_value(name, before, now):
            yield f"table property {name} was {before or 'not set'}, now {now or 'not set'}"


COLUMN_ID = "delta.columnMapping.id"
"""Stays with a column that is renamed; only tables with column mapping have it."""

MAX_CHANGES = 10
"""Sentences about columns of one table, and about keys of its policy; what is more is counted."""


def column_changes(planned: Sequence[PlannedColumn], now: Sequence[PlannedColumn]) -> tuple[str, ...]:
    """Say which columns were added, removed, renamed or changed, and how; nothing where they are the same."""
    if tuple(planned) == tuple(now):
        return ()
    changes = list(_changes(planned, now)) or ["the order of the columns was changed"]
    return _first(changes, "changes of columns")


def policy_changes_since(plan: TablePlan, values_now: PolicyValues) -> tuple[str, ...]:
    """Say which keys of a table's policy are not as they were planned: ``vacuum.retention was 7d, now 8d``.

    Args:
        plan: The plan of the table, of which something is carried out.
        values_now: What the policy says now.
    """
    known = bool(plan.policy_values and values_now)
    changes = [f"policy key {change}" for change in value_changes(plan.policy_values, values_now)] if known else []
    return _first(changes, "changes of its policy") if changes else (f"its policy was changed ({plan.policy_file})",)


def _first(changes: Sequence[str], noun: str) -> tuple[str, ...]:
    rest = len(changes) - MAX_CHANGES
    return (*changes[:MAX_CHANGES], *((f"{rest:,} more {noun}",) if rest > 0 else ()))


def _changes(planned: Sequence[PlannedColumn], now: Sequence[PlannedColumn]) -> Iterator[str]:
    before, after = {column.name: column for column in planned}, {column.name: column for column in now}
    by_id = {
        column_id: column
        for column in now
        if column.name not in before and (column_id := _column_id(column)) is not None
    }
    renamed: set[str] = set()
    for name, column in before.items():
        if name in after:
            yield from _column_differences(column, after[name])
            continue
        new = by_id.get(_column_id(column) or "")
        if new is None:
            yield f"column {name} ({column.type}) was removed"
        else:
            renamed.add(new.name)
            yield f"column {name} was renamed to {new.name}"
            yield from _column_differences(column, new)
    for name, column in after.items():
        if name not in before and name not in renamed:
            yield f"column {name} ({column.type}) was added"


def _column_differences(before: PlannedColumn, now: PlannedColumn) -> Iterator[str]:
    if before.type != now.type:
        yield f"column {now.name} was of type {before.type}, now {now.type}"
    if before.nullable != now.nullable:
        yield f"column {now.name} {'may be null now' if now.nullable else 'must not be null any more'}"
    old, new = dict(before.metadata), dict(now.metadata)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            what = "comment" if key == "comment" else f"metadata {key}"
            yield f"the {what} of column {now.name} was {_value(old.get(key))}, now {_value(new.get(key))}"


def _column_id(column: PlannedColumn) -> str | None:
    return dict(column.metadata).get(COLUMN_ID)


def _value(text: str | None) -> str:
    """A value as people write it: long ones are cut, for a comment may be a page."""
    if text is None:
        return "not set"
    value = json.loads(text)
    shown = value if isinstance(value, str) else text
    return repr(shown[:60] + "..." if len(shown) > 60 else shown)


def protocol_changes(planned: Protocol, now: Protocol) -> Iterator[str]:
    """Say which table features and which protocol versions are other ones."""
    if planned == now:
        return
    before = {*planned.reader_features, *planned.writer_features}
    after = {*now.reader_features, *now.writer_features}
    for feature in sorted(after - before):
        yield f"the table feature {feature} was added"
    for feature in sorted(before - after):
        yield f"the table feature {feature} was removed"
    for what, old, new in (
        ("reader", planned.min_reader_version, now.min_reader_version),
        ("writer", planned.min_writer_version, now.min_writer_version),
    ):
        if old != new:
            yield f"the protocol's {what} version was {old}, now {new}"
    if before == after and planned.reader_features != now.reader_features:
        yield names_changed("the reader features", planned.reader_features, now.reader_features)


def names_changed(what: str, planned: tuple[str, ...], now: tuple[str, ...]) -> str:
    """Say which names were there and which are now: ``the partition columns were a, now none``."""
    return f"{what} were {_listed(planned)}, now {_listed(now)}"


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(columns) or "none"


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
            if isinstance(step, ZOrderStep) and step.planned_turn is not None and dropped:
                step = replace(step, planned_turn=_live_turn(step.planned_turn, step.bins, facts))
            return (replace(step, batches=batches) if batches else None), dropped
        case VacuumStep():
            return _reduce_vacuum(step, facts)
        case _:
            assert_never(step)


def _reduce_properties(step: SetPropertiesStep, facts: TableFacts) -> SetPropertiesStep | None:
    differs = [not same_value(name, property_of(facts, name), value) for name, value in step.after]
    if not any(differs):
        return None
    before, after = tuple(compress(step.before, differs)), tuple(compress(step.after, differs))
    return replace(step, before=before, after=after, reasons=tuple(compress(step.reasons, differs)))


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


def _live_turn(planned: ZOrderTurn, bins: tuple[Bin, ...], facts: TableFacts) -> ZOrderTurn:
    """The turn of what is left: as many numbers of files as bins, in their order."""
    left = [
        (bin_, num_files)
        for bin_, num_files in zip(bins, planned.num_files, strict=True)
        if all(_is_live(file, facts) for file in bin_.files)
    ]
    elements = sum(file.live_records or 0 for bin_, _ in left for file in bin_.files)
    return replace(planned, num_files=tuple(num_files for _, num_files in left), elements=elements)


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
