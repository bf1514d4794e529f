"""Every decision about one table, taken and not taken, each with the policy line behind it: for ``why``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maintainer.model.plan.plan import Checks, TablePlan
from maintainer.model.plan.steps import RewriteStep
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    LEGACY_AUTO_OPTIMIZE,
    SESSION_ENABLED,
    AutoCompactSwitch,
    SwitchSource,
)
from maintainer.planning.selection.lane_choice import lanes_of
from maintainer.policy.resolve.resolved import ResolvedPolicy, Window, ZOrderMode
from maintainer.report.plan.counterfactuals import lines as change_lines
from maintainer.report.plan.counterfactuals import what_would_change
from maintainer.report.plan.plan_text import (
    PlanOptions,
    fact_lines,
    left_alone_lines,
    problem_lines,
    rhythm_lines,
    step_lines,
)
from maintainer.report.plan.step_text import describe, step_word, with_code
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.report.text_layout import columns, printable
from maintainer.units import count_of, format_duration, format_size

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def render_why(
    table: TablePlan,
    policy: ResolvedPolicy | None = None,
    options: PlanOptions | None = None,
    style: Style = PLAIN,
    *,
    auto_compact: AutoCompactSwitch | str | None = None,
    at_ms: int = 0,
) -> str:
    """Return the decisions about one table as text, ending in a newline.

    Args:
        table: What planning decided.
        policy: The table's effective policy, for the thresholds and where they were written; None leaves them out.
        options: ``verbose`` names each partition that is left alone; ``tz`` and ``width`` as for a plan.
        style: Colour or none.
        auto_compact: Whether the table's writers compact by themselves, or why nobody can say; None leaves it out.
        at_ms: When it was planned, milliseconds since 1970 UTC.
    """
    options = options or PlanOptions()
    lines = [_heading(table, style)]

    def section(title: str, body: Iterable[str]) -> None:
        lines.extend(["", style.paint(title, Role.BOLD), *(list(body) or ["      = nothing"])])

    if table.problem:
        section("Cannot be planned", problem_lines(table.problem, style))
    if table.blocked:
        tails = [
            (with_code(reason.code, printable(reason.text)), printable(reason.origin or "")) for reason in table.blocked
        ]
        rows = (line for tail in tails for line in fact_lines(Symbol.BLOCKED, "blocked", "", (tail,), options, style))
        section("Blocked: nothing is done until this changes", rows)
    if not table.problem:
        steps = (line for step in table.steps for line in step_lines(describe(step, options.tz), options, style))
        section(f"Will do ({count_of(len(table.steps), 'step')})", steps)
        lanes = [line for step in table.rewrites for line in _lane_lines(step)]
        if lanes:
            section("Lanes of its bins", lanes)
        section("Leaves alone", left_alone_lines(table.left_alone, options, style))
    if policy is not None and not table.problem:
        changes = what_would_change(table, policy, at_ms)
        if changes:
            section("What would change this", change_lines(changes))
    if table.writers is not None:
        facts = rhythm_lines(table.writers, options.lost_ratios.get(table.ref, 0.0))
        section("Other writers", (f"      = {fact}" for fact in facts))
    if table.rewrites:
        section("Checked after each rewrite", _checks(table.checks))
    if auto_compact is not None:
        section("Auto compaction by its writers", [f"      = {_switch(auto_compact)}"])
    if policy is not None:
        section("Decided by", _settings(policy))
    return "\n".join(lines) + "\n"


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
        return f"not known: {printable(switch)}"
    return f"{'on' if switch.enabled else 'off'}: {_SOURCE[switch.source]}"


def _lane_lines(step: RewriteStep) -> Iterator[str]:
    for choice, number in lanes_of(step.bins):
        bins = count_of(number, "bin")
        yield f"      = {step_word(step.kind)}: {bins} in lane {choice.lane}: {printable(choice.reason)}"


def _heading(table: TablePlan, style: Style) -> str:
    parts = [style.paint(printable(table.ref.identifier), Role.BOLD)]
    if table.observed:
        files = count_of(table.observed.num_files, "file")
        parts += [f"v{table.observed.version}", f"{format_size(table.observed.size_bytes)} in {files}"]
    parts.append(printable(table.source))
    if table.owner:
        parts.append(f"owner {printable(table.owner)}")
    return "   ".join(parts)


def _checks(checks: Checks) -> Iterator[str]:
    yield f"      rowCount    {printable(checks.row_count)}"
    yield f"      content     {printable(checks.content)}"
    yield f"      files       {'each live file must exist' if checks.files else 'off'}"
    for expectation in checks.expectations:
        yield f"      expects     {printable(expectation.type)} {printable(expectation.arguments_json)}"


def _settings(policy: ResolvedPolicy) -> list[str]:
    rows = [
        (f"      {key}", printable(value), printable(policy.place_of(key)))
        for key, value in (*_optimize(policy), *_vacuum(policy), *_other_settings(policy))
        if value
    ]
    return columns(rows, gap=3)


Settings = Iterator[tuple[str, str]]
"""Dotted keys and their values in words; an empty value is left out."""


def _optimize(policy: ResolvedPolicy) -> Settings:
    optimize = policy.optimize
    yield "optimize.minFileSize", format_size(optimize.min_file_size_bytes)
    yield "optimize.maxFileSize", format_size(optimize.max_file_size_bytes)
    yield "optimize.maxDeletedRowsRatio", f"{optimize.max_deleted_rows_ratio:g}"
    yield "optimize.batchSize", format_size(optimize.batch_size_bytes)
    if optimize.codec is not None:
        yield "optimize.codec", optimize.codec.value
    yield "optimize.lanes", ", ".join(lane.value for lane in optimize.lanes)
    yield "optimize.localMaxSize", format_size(optimize.local_max_size_bytes)
    yield "optimize.repartition", _true(optimize.repartition)
    if zorder := optimize.zorder:
        yield "optimize.zorder.columns", ", ".join(zorder.columns)
        yield "optimize.zorder.mode", zorder.mode.value
        incremental = zorder.mode is ZOrderMode.INCREMENTAL
        strategies = ", ".join(strategy.value for strategy in zorder.strategies)
        yield "optimize.zorder.strategies", strategies if incremental else ""
    if any(key.startswith("optimize.cluster.") for key in policy.origins):
        yield "optimize.cluster.minCubeSize", format_size(optimize.cluster.min_cube_size_bytes)
        yield "optimize.cluster.targetCubeSize", format_size(optimize.cluster.target_cube_size_bytes)
        yield "optimize.cluster.full", _true(optimize.cluster.full)
    if rewrite := optimize.rewrite:
        yield "optimize.rewrite.files", _number(rewrite.num_files)
        yield "optimize.rewrite.fileSize", _size(rewrite.file_size_bytes)
        yield "optimize.rewrite.sortBy", ", ".join(rewrite.sort_by)
    if purge := optimize.purge:
        yield "optimize.purge.deletedRowsRatio", f"{purge.deleted_rows_ratio:g}"
        yield "optimize.purge.droppedColumns", _bool(purge.dropped_columns)
    yield "optimize.where", optimize.where.text if optimize.where else ""
    yield "optimize.skipNewestPartitions", _number(optimize.skip_newest_partitions or None)
    yield "optimize.quietFor", _duration(optimize.quiet_for_seconds)
    yield "optimize.quietAfterUpdates", _duration(optimize.quiet_after_updates_seconds)
    yield "optimize.every", _duration(optimize.every_seconds)
    yield "optimize.when.minSmallFiles", _number(optimize.when.min_small_files)
    yield "optimize.when.minSmallBytes", _size(optimize.when.min_small_bytes)


def _vacuum(policy: ResolvedPolicy) -> Settings:
    vacuum = policy.vacuum
    if vacuum is None:
        yield "vacuum", "not set: nothing is ever deleted"
        return
    yield "vacuum.retention", format_duration(vacuum.retention_seconds)
    yield "vacuum.every", _duration(vacuum.every_seconds)
    yield "vacuum.mode", vacuum.mode.value
    if vacuum.delete_untracked:
        yield "vacuum.deleteUntracked", "true"
        yield "vacuum.untrackedAge", format_duration(vacuum.untracked_age_seconds)
    yield "vacuum.allowLargeDelete", _true(vacuum.allow_large_delete)
    yield "vacuum.allowLargeDelete", "rewritten" if vacuum.allow_rewritten else ""
    yield "vacuum.trash", _duration(vacuum.trash_seconds)


def _other_settings(policy: ResolvedPolicy) -> Settings:
    for consumer in policy.consumers:
        lag = "" if consumer.max_lag_seconds is None else f" up to {format_duration(consumer.max_lag_seconds)} behind"
        checkpoint = "" if consumer.checkpoint is None else f" checkpoint {consumer.checkpoint}"
        yield "consumers", f"{consumer.name}{lag}{checkpoint}"
    if auto := policy.auto_compact:
        yield "autoCompact", _bool(auto.enabled)
        yield "autoCompact.minNumFiles", _number(auto.min_num_files)
        yield "autoCompact.minFileSize", _size(auto.min_file_size_bytes)
        yield "autoCompact.maxFileSize", _size(auto.max_file_size_bytes)
        yield "autoCompact.modifiedPartitionsOnly", _bool(auto.modified_partitions_only)
    for key, value in policy.properties:
        yield f"properties.{key}", value
    for window in policy.windows:
        yield "window", _window(window)
    yield "limits.maxBytes", _size(policy.limits.max_bytes)
    yield "limits.maxFiles", _number(policy.limits.max_files)
    yield "limits.maxDeletes", _number(policy.limits.max_deletes)
    yield "limits.timeout", format_duration(policy.limits.timeout_seconds)
    if policy.suspend:
        until = "until further notice" if policy.suspend.until is None else f"until {policy.suspend.until.isoformat()}"
        yield "suspend", f"{until}: {policy.suspend.reason}"


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_size(size_bytes)


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _duration(seconds: int | None) -> str:
    return format_duration(seconds) if seconds else ""


def _bool(value: bool | None) -> str:
    return "" if value is None else str(value).lower()


def _true(value: bool) -> str:
    return "true" if value else ""


def _window(window: Window) -> str:
    days = ", ".join(_DAYS[day - 1] for day in window.days)
    return f"{days} {window.start:%H:%M}-{window.end:%H:%M} {window.timezone}".lstrip()
