"""Every decision about one table, taken and not taken, each with the policy line behind it: for ``why``.

It names the settings of the policy that decided, and no others. A setting decided when it selected the files of a
step, shapes the step, or is why something is left alone. What was asked and let everything pass (a limit that is not
reached, an open window) decided nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.plan import Checks, LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    LEGACY_AUTO_OPTIMIZE,
    OWN_PROPERTIES,
    SESSION_ENABLED,
    AutoCompactSwitch,
    SwitchSource,
)
from maintainer.planning.property_plan import DELETED_FILE_RETENTION
from maintainer.planning.selection.lane_choice import lanes_of
from maintainer.planning.vacuum.deletion_limits import FLOOR_SECONDS
from maintainer.policy.property_names import canonical_name
from maintainer.policy.resolve.resolved import BUILT_IN, NOT_SET, ResolvedPolicy, ZOrderMode, policy_values
from maintainer.report.document.blocks import (
    Block,
    Heading,
    Line,
    Row,
    Span,
    Statement,
    Subject,
    Subjects,
    TableBlock,
    Text,
)
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.plan.counterfactuals import what_would_change
from maintainer.report.plan.plan_text import PlanTextOptions, note_statements, problem_statement, rhythm_lines
from maintainer.report.plan.step_text import describe, left_alone, reason_words, step_word, with_code
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.units import count_of, format_size

_MIN, _MAX = "optimize.minFileSize", "optimize.maxFileSize"
_NOTHING_ASKED = frozenset(
    {ReasonCode.SUSPENDED, ReasonCode.BELOW_MIN_SIZE, ReasonCode.OUTSIDE_WINDOW, ReasonCode.NO_TABLE_YET}
)


class DecidingSetting(NamedTuple):
    """A setting with its value in words; ``place`` is file and line that won, ``built-in`` for a default."""

    key: str
    value: str
    place: str


def deciding_settings(table: TablePlan, policy: ResolvedPolicy) -> tuple[DecidingSetting, ...]:
    """Return the settings that decided, each once, in the order of their keys.

    Args:
        table: What planning decided.
        policy: The effective policy that it was planned by.
    """
    values = dict(policy_values(policy))
    keys = [*_of_table(table, policy), *(key for step in table.steps for key in _of_step(step, policy))]
    if _MIN in keys and policy.origin(_MIN) == BUILT_IN and policy.origin(_MAX) != BUILT_IN:
        keys.append(_MAX)  # the default is three quarters of what somebody wrote
    below = {key: [name for name in values if name.startswith(f"{key}.")] for key in keys if key not in values}
    names = {name for key in keys for name in below.get(key) or (key,)}
    return tuple(DecidingSetting(name, values.get(name, NOT_SET), _place_of(name, policy)) for name in sorted(names))


def _place_of(key: str, policy: ResolvedPolicy) -> str:
    """Return where a value was written; a default has no line, also where somebody wrote the map around it."""
    written = key in policy.origins or key.startswith("consumers.")  # the members of a list have the list's line
    return policy.place_of(key) if written else str(BUILT_IN)


def _of_table(table: TablePlan, policy: ResolvedPolicy) -> Iterator[str]:
    for reason in table.blocked:
        yield from _of_reason(reason, policy)
    for entry in table.left_alone:
        yield from _of_left_alone(entry, policy)
    asked = not table.problem and not table.blocked
    if policy.vacuum is None and asked and not any(left.reason.code in _NOTHING_ASKED for left in table.left_alone):
        yield "vacuum"  # it is why nothing is deleted, which no reason says


def _of_left_alone(entry: LeftAlone, policy: ResolvedPolicy) -> Iterator[str]:
    optimize, code = policy.optimize, entry.reason.code
    by_rewrite = optimize.rewrite is not None and entry.reason.origin == policy.place_of("optimize.rewrite")
    if code is ReasonCode.AT_TARGET and by_rewrite:
        yield from _rewrite_keys(policy)
    elif code is ReasonCode.AT_TARGET and entry.size_bytes < entry.num_files * optimize.min_file_size_bytes:
        yield from (_MIN, _MAX)  # small ones that a rewrite packed up to today's size
    elif code is ReasonCode.NO_PARTNER and optimize.zorder is not None:
        yield from ("optimize.zorder.columns", "optimize.zorder.mode")
        if optimize.zorder.mode is ZOrderMode.FULL:
            yield "optimize.maxFileSize"
    elif code is ReasonCode.NOT_WORTH_IT:
        when = optimize.when
        few = when.min_small_files is not None and entry.num_files < when.min_small_files
        light = when.min_small_bytes is not None and entry.size_bytes < when.min_small_bytes
        yield from (key for key, unmet in zip(reason_words()[code].keys, (few, light), strict=True) if unmet)
    else:
        yield from _of_reason(entry.reason, policy)


def _of_reason(reason: Reason, policy: ResolvedPolicy, step: VacuumStep | None = None) -> Iterator[str]:
    keys = reason_words()[reason.code].keys
    match reason.code:
        case ReasonCode.REWRITE_DUE | ReasonCode.SAME_REWRITE:
            yield from _rewrite_keys(policy)
        case ReasonCode.REMOVED_FILES_EXPIRED | ReasonCode.NOTHING_EXPIRED:
            yield from _of_horizon(reason.origin, reason.text if step is None else step.decided_by, policy)
        case ReasonCode.CANNOT_BE_SURE:
            yield from _consumer_keys(reason.text, policy) if reason.origin is not None else ()
        case ReasonCode.NOT_DUE | ReasonCode.OVER_LIMIT | ReasonCode.NOT_BY_ENGINE:
            yield from _by_place(keys, reason, policy)
        case ReasonCode.LARGE_DELETE:
            # The one that would allow it decides as well.
            yield from keys if "limits.maxDeletes" in reason.text else keys[1:]
        case ReasonCode.UNTRACKED:
            yield from keys if reason.origin is not None else ()  # the listing was given up
        case _:
            yield from keys


def _by_place(keys: Iterable[str], reason: Reason, policy: ResolvedPolicy) -> Iterator[str]:
    """Pick the key whose line the reason names; on one line with others, the one that it names as well."""
    placed = [key for key in keys if policy.place_of(key) == reason.origin]
    first_word = reason.text.partition(" ")[0].rstrip(":")
    named = [key for key in placed if key in reason.text or first_word in key.split(".")]
    # That there is a `vacuum` at all is its retention: the other keys of it were not asked.
    yield from ("vacuum.retention" if key == "vacuum" else key for key in (named or placed)[:1])


def _of_horizon(origin: str | None, decider: str, policy: ResolvedPolicy) -> Iterator[str]:
    """Yield what keeps removed files the longest; nothing where a table property or the log's writes do."""
    if policy.vacuum is None or origin is None:
        return
    if named := [key for name in (" (", ", whose") for key in _consumer_keys(decider, policy, name)]:
        yield from named
    elif policy.vacuum.retention_seconds < FLOOR_SECONDS and not policy.vacuum.allow_short_retention:
        yield "vacuum.allowShortRetention"
    else:
        yield "vacuum.retention"


def _consumer_keys(text: str, policy: ResolvedPolicy, behind: str = " ") -> list[str]:
    """Return the keys of the consumers that a text names, by what stands behind the name."""
    return [f"consumers.{each.name}" for each in policy.consumers if f"consumer {each.name}{behind}" in text]


def _rewrite_keys(policy: ResolvedPolicy) -> Iterator[str]:
    rewrite = policy.optimize.rewrite
    yield "optimize.rewrite"
    if rewrite is not None and rewrite.num_files is None and rewrite.file_size_bytes is None:
        yield "optimize.maxFileSize"


def _of_step(step: Step, policy: ResolvedPolicy) -> Iterator[str]:
    match step:
        case SetPropertiesStep():
            yield from _of_properties(step, policy)
        case VacuumStep():
            for reason in step.reasons:
                yield from _of_reason(reason, policy, step)
            yield from ("vacuum.mode",) if step.files else ()
            yield from ("vacuum.trash",) if step.trash_seconds else ()
        case _:
            for reason in step.reasons:
                purged = isinstance(step, PurgeStep) and reason.code is ReasonCode.DELETED_ROWS
                yield from ("optimize.purge.deletedRowsRatio",) if purged else _of_reason(reason, policy)
            yield from _of_shape(step, policy)


def _of_shape(step: RewriteStep, policy: ResolvedPolicy) -> Iterator[str]:
    """Yield what the size, the number, the order and the lanes of a rewrite's files come from."""
    optimize = policy.optimize
    match step:
        case PartitionRewriteStep():
            yield from _rewrite_keys(policy)
        case ClusterStep():
            yield from ("optimize.cluster.full",) if step.full else ()
        case _:
            yield "optimize.maxFileSize"
            yield from ("optimize.repartition",) if isinstance(step, CompactStep) and step.repartition else ()
            honoured = isinstance(step, ZOrderStep) and optimize.zorder and optimize.zorder.honour_table_properties
            yield from ("optimize.zorder.tableProperties",) if honoured else ()
    yield from ("optimize.batchSize",) if len(step.batches) > 1 else ()
    yield from ("optimize.codec",) if step.codec is not None else ()
    yield from _of_lanes(tuple(choice for choice, _ in lanes_of(step.bins)), policy)


def _of_lanes(choices: Sequence[LaneChoice], policy: ResolvedPolicy) -> Iterator[str]:
    off = [lane for lane in Lane if lane not in policy.optimize.lanes]
    if any(f"lane {lane} is switched off" in choice.reason for lane in off for choice in choices):
        yield "optimize.lanes"
    if any(choice.lane is Lane.LOCAL or "localMaxSize" in choice.reason for choice in choices):
        yield "optimize.localMaxSize"


def _of_properties(step: SetPropertiesStep, policy: ResolvedPolicy) -> Iterator[str]:
    written = {canonical_name(key): f"properties.{key}" for key, _ in policy.properties}
    for (name, _), reason in zip(step.after, step.reasons, strict=False):  # a saved plan may have fewer
        match reason.code:
            case ReasonCode.RETENTION_TOO_SHORT_ON_TABLE:
                yield written.get(DELETED_FILE_RETENTION) or "vacuum.retention"
            case ReasonCode.PROPERTY_DRIFT if name in written:
                yield written[name]
            case ReasonCode.PROPERTY_DRIFT if name in (AUTO_COMPACT, LEGACY_AUTO_OPTIMIZE):
                yield "autoCompact"
            case ReasonCode.PROPERTY_DRIFT if name in OWN_PROPERTIES:
                yield name.removeprefix("maintainer.")
            case _:
                yield from _of_reason(reason, policy)


_INDENT = 6
_NOTHING = Statement(Symbol.SAME, "nothing")


def render_why(
    table: TablePlan,
    policy: ResolvedPolicy | None = None,
    options: PlanTextOptions | None = None,
    style: Style = PLAIN,
    *,
    auto_compact: AutoCompactSwitch | str | None = None,
    at_ms: int = 0,
) -> str:
    """Return the decisions about one table as text, ending in a newline.

    Args:
        table: What planning decided.
        policy: The table's effective policy, for the thresholds and where they were written; None leaves them out.
        options: ``verbose`` names each partition that is left alone; ``tz`` as for a plan.
        style: Colour or none.
        auto_compact: Whether the table's writers compact by themselves, or why nobody can say; None leaves it out.
        at_ms: When it was planned, milliseconds since 1970 UTC.
    """
    blocks = why_blocks(table, policy, options or PlanTextOptions(), auto_compact=auto_compact, at_ms=at_ms)
    return terminal_text([_heading(table), *blocks], style)


def why_blocks(
    table: TablePlan,
    policy: ResolvedPolicy | None,
    options: PlanTextOptions,
    *,
    auto_compact: AutoCompactSwitch | str | None = None,
    at_ms: int = 0,
) -> list[Block]:
    """Return the same below its title as a document."""
    document = _decisions(table, options)
    if policy is not None and not table.problem:
        document += _columns("What would change this", what_would_change(table, policy, at_ms))
    if table.writers is not None:
        facts = rhythm_lines(table.writers, options.lost_ratios.get(table.ref, 0.0))
        document += _columns("Other writers", [(f"= {fact}",) for fact in facts])
    if table.rewrites:
        document += _columns("Checked after each rewrite", _checks(table.checks), gap=4)
    if auto_compact is not None:
        document += _columns("Auto compaction by its writers", [(f"= {_switch(auto_compact)}",)])
    if policy is not None:
        document += _columns("Decided by", deciding_settings(table, policy), gap=3)
    return document


def _decisions(table: TablePlan, options: PlanTextOptions) -> list[Block]:
    if table.problem:
        return _section("Cannot be planned", [problem_statement(table)])
    document: list[Block] = []
    if table.blocked:
        said = [(with_code(reason.code, reason.text), reason.origin or "") for reason in table.blocked]
        statements = [Statement(Symbol.BLOCKED, "blocked", (), (reason,)) for reason in said]
        document += _section("Blocked: nothing is done until this changes", statements)
    steps = [statement for step in table.steps for statement in describe([step], options.tz)]
    document += _section(f"Will do ({count_of(len(table.steps), 'step')})", [*steps, *note_statements([table])])
    document += _columns("Lanes of its bins", [
        (f"= {step_word(step.kind)}: {count_of(number, 'bin')} in lane {choice.lane}: {choice.reason}",)
        for step in table.rewrites
        for choice, number in lanes_of(step.bins)
    ])  # fmt: skip
    entries = left_alone(table.left_alone, verbose=options.verbose)
    return [*document, *(_section("Leaves alone", entries) if entries else [])]


def _section(title: str, statements: Sequence[Statement]) -> list[Block]:
    subject = Subject("", ("",), tuple(statements) or (_NOTHING,))
    return [Heading(title), Subjects([subject], is_one=True)]


def _columns(title: str, rows: Sequence[tuple[Text, ...]], gap: int = 2) -> list[Block]:
    """Return a section of aligned columns; none without rows."""
    return [Heading(title), TableBlock((), list(map(Row, rows)), gap=gap, indent=_INDENT)] if rows else []


_SOURCE = {
    SwitchSource.ARGUMENT: "the caller says so",
    SwitchSource.SESSION: f"the session says so ({SESSION_ENABLED}), which wins over the table",
    SwitchSource.LEGACY_PROPERTY: (
        f"by the deprecated table property {LEGACY_AUTO_OPTIMIZE}, which wins over {AUTO_COMPACT}"
    ),
    SwitchSource.PROPERTY: f"by the table property {AUTO_COMPACT}",
    SwitchSource.DEFAULT: "not set",
}


def _switch(switch: AutoCompactSwitch | str) -> str:
    if isinstance(switch, str):
        return f"not known: {switch}"
    return f"{'on' if switch.enabled else 'off'}: {_SOURCE[switch.source]}"


def _heading(table: TablePlan) -> Line:
    parts = [""]
    if table.observed:
        files = count_of(table.observed.num_files, "file")
        parts += [f"v{table.observed.version}", f"{format_size(table.observed.size_bytes)} in {files}"]
    parts += [table.source, *([f"owner {table.owner}"] if table.owner else [])]
    return Line((Span(table.ref.identifier, Role.BOLD), "   ".join(parts)))


def _checks(checks: Checks) -> list[tuple[Text, ...]]:
    return [
        ("rowCount", checks.row_count),
        ("content", checks.content),
        ("files", "each live file must exist" if checks.files else "off"),
        *(("expects", f"{each.type} {each.arguments_json}") for each in checks.expectations),
    ]
