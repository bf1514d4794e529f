"""Steps and left-alone files in words: what the text, Markdown and ``why`` renderings share.

A kind of step that is not described here does not type-check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo

from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import HELD_BACK, LeftAlone, Plan, TablePlan, TableState
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    BatchedStep,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteRequest,
    RewriteStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.plan.zorder_turn import Turn
from maintainer.planning.curve.revision import PROPERTY_PREFIX
from maintainer.planning.selection.lane_choice import lanes_of
from maintainer.report.style import Symbol
from maintainer.report.text_layout import printable, when
from maintainer.units import count_of, format_duration, format_size, named

MAX_VALUE = 120
"""Characters of a property's value that a line shows."""

INTERNAL = "the boundaries of the Z-order, which later runs go by"
"""What is said instead of the value of a property of ours."""

LOUD_REASONS = frozenset(
    {
        ReasonCode.HOT,
        ReasonCode.RESTING,
        ReasonCode.SUSPENDED,
        ReasonCode.QUARANTINED,
        ReasonCode.UNPROVEN_REWRITE,
        ReasonCode.OVER_BUDGET,
        ReasonCode.LOST_VALUE,
        ReasonCode.NO_TABLE_YET,
    }
)
"""Tables left alone for these are always named: someone may have to act, or wants to know a place in the queue."""


@dataclass(frozen=True, slots=True)
class StepText:
    """One step in words. ``facts`` has one line, or for properties one line each; ``reasons`` go with each line."""

    symbol: str
    word: str
    facts: tuple[str, ...]
    reasons: tuple[tuple[Reason, ...], ...]


def step_word(kind: str) -> str:
    """Return the word for a kind of step: its own name, but ``properties`` for ``set_properties``."""
    return "properties" if kind == "set_properties" else printable(kind)


def describe(step: Step, tz: tzinfo | None) -> StepText:
    """Say what a step does, to how much, and why.

    ``tz`` is for the time before which vacuum deletes; None leaves that time out.
    """
    match step:
        case SetPropertiesStep():
            return _describe_properties(step)
        case VacuumStep():
            return _describe_vacuum(step, tz)
        case BatchedStep():
            facts = f"{count_of(step.num_files, 'file')}, {format_size(step.size_bytes)} -> about "
            facts += f"{count_of(step.num_files_added, 'file')}{_rewrite_facts(step)}"
            in_turns = isinstance(step, ZOrderStep) and step.turn is not None
            if len(step.batches) > 1 and not in_turns:
                facts += f", in {count_of(len(step.batches), 'commit')}"
            facts += f", {step.codec}" if step.codec else ""
            facts += _lanes(step)
            return StepText(Symbol.WRITE, step_word(step.kind), (facts,), (step.reasons,))
        case _:
            assert_never(step)


def _lanes(step: RewriteStep) -> str:
    """Name the lanes of a step: ``, lane local``, or with the bins of each where there are several."""
    bins: Counter[str] = Counter()
    for choice, number in lanes_of(step.bins):
        bins[choice.lane.value] += number
    if len(bins) == 1:
        return f", lane {next(iter(bins))}"
    return f", lanes {', '.join(f'{lane} {number:,}' for lane, number in bins.items())}" if bins else ""


def _rewrite_facts(step: RewriteStep) -> str:
    match step:
        case CompactStep():
            return f" of up to {format_size(step.max_file_size_bytes)}" + (
                ", with a shuffle" if step.repartition else ""
            )
        case PurgeStep():
            return f" of up to {format_size(step.max_file_size_bytes)}"
        case PartitionRewriteStep():
            return f", {_request(step.request)}"
        case ClusterStep():
            full = ", also what other columns clustered" if step.full else ""
            return f" of about {format_size(step.max_file_size_bytes)}, clustered by {_columns(step.columns)}{full}"
        case ZOrderStep(turn=Turn() as turn):
            facts = f", by {_columns(step.columns)}"
            if turn.before is not None and turn.after is not None:
                facts += f", a query reads {turn.before.files_read:,.1f} -> about {turn.after.files_read:,.1f} files"
            return facts + ("" if step.settings is None else ", more commits follow if needed")
        case ZOrderStep():
            return f" of about {format_size(step.max_file_size_bytes)}, by {_columns(step.columns)}"
        case _:
            assert_never(step)


def _columns(names: Iterable[str]) -> str:
    return ", ".join(printable(name) for name in names)


_KINDS = {
    "data": "data",
    "deletion_vector": "deletion vectors",
    "change_data": "change data",
    "untracked": "not in the log",
}


def _describe_vacuum(step: VacuumStep, tz: tzinfo | None) -> StepText:
    """Say how much is deleted, how old it is and what decided; then what is moved, emptied and listed."""
    doing = "" if not step.trash_seconds else f" to the trash for {format_duration(step.trash_seconds)}"
    before = "" if tz is None else f", removed before {when(step.removed_before_ms, tz)}"
    facts = [
        f"{count_of(len(step.files), 'file')}, {format_size(step.size_bytes)}{doing}{before}; keeps "
        f"{format_duration(step.retention_seconds)} (decided by {printable(step.decided_by)})"
    ]
    kinds = step.by_kind
    if any(kind != "data" for kind, _, _ in kinds):
        facts.append(", ".join(f"{_KINDS.get(kind, kind)} {num:,} ({format_size(size)})" for kind, num, size in kinds))
    if tz is not None and step.oldest_ms is not None and step.youngest_ms is not None:
        first, last = when(step.oldest_ms, tz), when(step.youngest_ms, tz)
        facts.append(f"removed {first}" if first == last else f"removed from {first} to {last}")
    if step.emptied:
        num, size = sum(run.num_files for run in step.emptied), sum(run.size_bytes for run in step.emptied)
        facts.append(f"from the trash {count_of(num, 'file')}, {format_size(size)}")
    if step.listing is not None:
        listing = step.listing
        facts.append(
            f"listed {count_of(listing.num_files, 'file')} in {count_of(listing.num_folders, 'folder')}, "
            f"about {count_of(listing.num_requests, 'request')}"
        )
    return StepText(Symbol.DELETE, "vacuum", tuple(facts), (*((),) * (len(facts) - 1), step.reasons))


def _describe_properties(step: SetPropertiesStep) -> StepText:
    """Put each reason on the line of the property that it names, and the rest on the last line."""
    before = dict(step.before)
    facts = []
    reasons: list[tuple[Reason, ...]] = []
    rest = list(step.reasons)
    for key, value in step.after:
        old = before.get(key)
        change = f"{'(not set)' if old is None else shortened(old)} -> {shortened(value)}"
        facts.append(f"{printable(key)}  {INTERNAL if is_internal(key) else change}")
        own = tuple(reason for reason in rest if key in reason.text)
        rest = [reason for reason in rest if reason not in own]
        reasons.append(own)
    reasons[-1:] = [(*reasons[-1], *rest)] if reasons else []
    return StepText(Symbol.CHANGE, "properties", tuple(facts), tuple(reasons))


def is_internal(property_name: str) -> bool:
    """Whether a table property is ours: what Z-order must know in the next run. Its value is for no reader."""
    return property_name.startswith(PROPERTY_PREFIX)


def shortened(text: str) -> str:
    """Return text that is printable, cut where it is long; the plan's JSON has all of it."""
    shown = printable(text)
    return shown if len(shown) <= MAX_VALUE else f"{shown[:MAX_VALUE]}... ({len(shown):,} characters)"


def _request(request: RewriteRequest) -> str:
    """Print a request: ``4 a partition, sorted by id``, or ``of about 128 MiB each``."""
    size = request.file_size_bytes
    text = f"{request.num_files or 0:,} a partition" if size is None else f"of about {format_size(size)} each"
    return text + (f", sorted by {_columns(request.sort_columns)}" if request.sort_columns else "")


@dataclass(frozen=True, slots=True)
class LeftGroup:
    """Everything of one table that is left alone for one reason code."""

    code: ReasonCode
    text: str
    num_entries: int
    num_files: int
    size_bytes: int
    num_partitions: int
    origins: tuple[str, ...]


def group_left_alone(entries: Iterable[LeftAlone]) -> list[LeftGroup]:
    """Add up what is left alone by reason code, in the order in which the codes come; what holds it back comes first.

    The text is the first entry's; where others differ, it says how many more there are.
    """
    by_code: dict[ReasonCode, list[LeftAlone]] = {}
    for entry in entries:
        by_code.setdefault(entry.reason.code, []).append(entry)
    groups = []
    for code, members in sorted(by_code.items(), key=lambda item: item[0] not in HELD_BACK):
        texts = list(dict.fromkeys(member.reason.text for member in members))
        more = f" (and {len(texts) - 1:,} more like it)" if len(texts) > 1 else ""
        partitions = {member.partition_values for member in members if member.partition_values}
        groups.append(
            LeftGroup(
                code=code,
                text=texts[0] + more,
                num_entries=len(members),
                num_files=sum(member.num_files for member in members),
                size_bytes=sum(member.size_bytes for member in members),
                num_partitions=len(partitions),
                origins=tuple(dict.fromkeys(member.reason.origin for member in members if member.reason.origin)),
            )
        )
    return groups


def how_much(num_files: int, size_bytes: int, num_partitions: int = 0) -> str:
    """Print a quantity of files: ``8,426 files, 1.1 TiB in 12 partitions``; empty for none."""
    if not num_files:
        return f"in {count_of(num_partitions, 'partition')}" if num_partitions else ""
    where = f" in {count_of(num_partitions, 'partition')}" if num_partitions else ""
    return f"{count_of(num_files, 'file')}, {format_size(size_bytes)}{where}"


def with_code(code: ReasonCode, text: str) -> str:
    """Put a reason's code, by which the docs are searched, before its sentence, unless it begins with it anyway."""
    return text if text.startswith(code.value.replace("_", " ")) else f"{code.value}: {text}"


def is_named(table: TablePlan) -> bool:
    """Return whether a plan that is not verbose names a table: it changes, or someone may have to look at it."""
    return table.state not in ("up_to_date", "waiting") or any(
        entry.reason.code in LOUD_REASONS for entry in table.left_alone
    )


def problem_cause(table: TablePlan) -> tuple[str, str, str | None] | None:
    """Return what tables must share for their problem to be said once; None for a table without one."""
    problem = table.problem
    return None if problem is None or table.is_ledger else (problem.code, problem.what, problem.help)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a plan adds up to; counted here, stored nowhere."""

    num_tables: Counter[TableState]
    num_steps: Counter[str]
    files_rewritten: int
    bytes_rewritten: int
    files_added: int
    files_deleted: int
    bytes_deleted: int


def total(tables: Iterable[TablePlan]) -> Totals:
    """Add up tables and steps."""
    tables = tuple(tables)
    rewrites = [step for table in tables for step in table.rewrites]
    vacuums = [step for table in tables for step in table.steps if isinstance(step, VacuumStep)]
    return Totals(
        num_tables=Counter(table.state for table in tables),
        num_steps=Counter(step_word(step.kind) for table in tables for step in table.steps),
        files_rewritten=sum(step.num_files for step in rewrites),
        bytes_rewritten=sum(step.size_bytes for step in rewrites),
        files_added=sum(step.num_files_added for step in rewrites),
        files_deleted=sum(len(step.files) for step in vacuums),
        bytes_deleted=sum(step.size_bytes for step in vacuums),
    )


_REST_WORDS = {
    TableState.WAITING: "waiting",
    TableState.BLOCKED: "blocked",
    TableState.UNSUPPORTED: "not supported",
    TableState.PROBLEM: "cannot be planned",
}


def tables_line(totals: Totals) -> str:
    """Print ``2 tables to change, 4 steps (compact 2, properties 1, vacuum 1); 34 up to date, 1 blocked``."""
    kinds = ", ".join(f"{word} {number:,}" for word, number in sorted(totals.num_steps.items()))
    text = f"{count_of(totals.num_tables[TableState.CHANGES], 'table')} to change, "
    text += count_of(sum(totals.num_steps.values()), "step") + (f" ({kinds})" if kinds else "")
    rest = [f"{totals.num_tables[TableState.UP_TO_DATE]:,} up to date"]
    for state, word in _REST_WORDS.items():
        if totals.num_tables[state]:
            rest.append(f"{totals.num_tables[state]:,} {word}")
    return f"{text}; {', '.join(rest)}"


MAX_TABLES_NAMED = 12
"""Tables named in one line; the rest is counted."""


def rule_lines(plan: Plan, shown: Callable[[str], str]) -> list[str]:
    """Say how many tables rules manage, which of them are new, and which are gone; nothing where no rule does.

    Args:
        plan: The plan.
        shown: Makes a name fit for where it is printed.
    """
    managed = [table for table in plan.tables if table.rule_line is not None]
    lines = []
    if managed:
        lines.append(f"Managed by rules, without a file of their own: {count_of(len(managed), 'table')}.")
    new = [shown(table.ref.identifier) for table in managed if table.is_new]
    if new:
        lines.append(f"New since the last run ({len(new):,}): {named(new, MAX_TABLES_NAMED)}.")
    gone = [f"{shown(table.ref.identifier)} ({shown(table.source)})" for table in plan.gone]
    if gone:
        lines.append(f"Gone since the last run ({len(gone):,}): {named(gone, MAX_TABLES_NAMED)}.")
    return lines


def cost_line(totals: Totals) -> str | None:
    """Print ``rewrites 41.5 GiB in 1,300 files into about 157 files; deletes 2,310 files, 41 GiB``, or None."""
    parts = []
    if totals.files_rewritten:
        parts.append(
            f"rewrites {format_size(totals.bytes_rewritten)} in {count_of(totals.files_rewritten, 'file')} "
            f"into about {count_of(totals.files_added, 'file')}"
        )
    if totals.files_deleted:
        parts.append(f"deletes {count_of(totals.files_deleted, 'file')}, {format_size(totals.bytes_deleted)}")
    return "; ".join(parts) or None
