"""Every decision about one table, taken and not taken, each with the policy line behind it."""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.model.plan.plan import Checks, TablePlan
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    LEGACY_AUTO_OPTIMIZE,
    SESSION_ENABLED,
    AutoCompactSwitch,
    SwitchSource,
)
from maintainer.policy.resolve.resolved import (
    AutoCompactPolicy,
    ClusterPolicy,
    ResolvedPolicy,
    RewritePolicy,
    Window,
    ZOrderMode,
)
from maintainer.report.plan.counterfactuals import lines as change_lines
from maintainer.report.plan.counterfactuals import what_would_change
from maintainer.report.plan.plan_lines import (
    PlanOptions,
    fact_lines,
    left_alone_lines,
    problem_lines,
    rhythm_lines,
    step_lines,
)
from maintainer.report.plan.step_text import describe, with_code
from maintainer.report.text.style import PLAIN, Role, Style, Symbol
from maintainer.report.text.text_layout import columns, count, printable
from maintainer.units import format_duration, format_size

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
    if table.problem:
        lines += ["", style.paint("Cannot be planned", Role.BOLD), *problem_lines(table.problem, style)]
    if table.blocked:
        lines += ["", style.paint("Blocked: nothing is done until this changes", Role.BOLD)]
        for reason in table.blocked:
            tail = (with_code(reason.code, printable(reason.text)), printable(reason.origin or ""))
            lines += fact_lines(Symbol.BLOCKED, "blocked", "", (tail,), options, style)
    if not table.problem:
        lines += ["", style.paint(f"Will do ({count(len(table.steps), 'step')})", Role.BOLD)]
        for step in table.steps:
            lines += step_lines(describe(step, options.tz), options, style)
        if not table.steps:
            lines.append("      = nothing")
        lines += ["", style.paint("Leaves alone", Role.BOLD)]
        lines += left_alone_lines(table.left_alone, options, style)
        if not table.left_alone:
            lines.append("      = nothing")
    if policy is not None and not table.problem:
        changes = what_would_change(table, policy, at_ms)
        if changes:
            lines += ["", style.paint("What would change this", Role.BOLD), *change_lines(changes)]
    if table.writers is not None:
        told = rhythm_lines(table.writers, options.lost_ratios.get(table.ref, 0.0))
        lines += ["", style.paint("Other writers", Role.BOLD), *(f"      = {line}" for line in told)]
    if table.rewrites:
        lines += ["", style.paint("Checked after each rewrite", Role.BOLD), *_checks(table.checks)]
    if auto_compact is not None:
        lines += ["", style.paint("Auto compaction by its writers", Role.BOLD), f"      = {_switch(auto_compact)}"]
    if policy is not None:
        lines += ["", style.paint("Decided by", Role.BOLD), *_settings(policy)]
    return "\n".join(lines) + "\n"


_SOURCE = {
    SwitchSource.ARGUMENT: "the caller says so",
    SwitchSource.SESSION: f"the session says so ({SESSION_ENABLED}); it wins over the table",
    SwitchSource.LEGACY_PROPERTY: (
        f"by the deprecated table property {LEGACY_AUTO_OPTIMIZE}, which wins over {AUTO_COMPACT}"
    ),
    SwitchSource.PROPERTY: f"by the table property {AUTO_COMPACT}",
    SwitchSource.DEFAULT: "nobody has set it",
}


def _switch(switch: AutoCompactSwitch | str) -> str:
    if isinstance(switch, str):
        return f"cannot be told: {printable(switch)}"
    return f"{'on' if switch.enabled else 'off'}: {_SOURCE[switch.source]}"


def _heading(table: TablePlan, style: Style) -> str:
    parts = [style.paint(printable(table.ref.identifier), Role.BOLD)]
    if table.observed:
        files = count(table.observed.num_files, "file")
        parts += [f"v{table.observed.version}", f"{format_size(table.observed.size_bytes)} in {files}"]
    parts.append(printable(table.policy_file))
    if table.owner:
        parts.append(f"owner {printable(table.owner)}")
    return "   ".join(parts)


def _checks(checks: Checks) -> Iterator[str]:
    yield f"      rowCount    {printable(checks.row_count)}"
    yield f"      content     {printable(checks.content)}"
    yield f"      files       {'each live file is looked for' if checks.files else 'off'}"
    for expectation in checks.expectations:
        yield f"      expects     {printable(expectation.type)} {printable(expectation.arguments_json)}"


def _settings(policy: ResolvedPolicy) -> list[str]:
    """Key, value and origin of everything that takes part in the decisions, one line each."""
    rows = [
        (f"      {key}", printable(value), printable(str(policy.origin(key))))
        for key, value in (*_optimize_settings(policy), *_other_settings(policy))
    ]
    return columns(rows, gap=3)


def _optimize_settings(policy: ResolvedPolicy) -> Iterator[tuple[str, str]]:
    optimize = policy.optimize
    yield "optimize.minFileSize", format_size(optimize.min_file_size_bytes)
    yield "optimize.maxFileSize", format_size(optimize.max_file_size_bytes)
    yield "optimize.maxDeletedRowsRatio", f"{optimize.max_deleted_rows_ratio:g}"
    yield "optimize.batchSize", format_size(optimize.batch_size_bytes)
    if optimize.repartition:
        yield "optimize.repartition", "true"
    if optimize.zorder:
        yield "optimize.zorder.columns", ", ".join(optimize.zorder.columns)
        yield "optimize.zorder.mode", optimize.zorder.mode.value
        if optimize.zorder.mode is ZOrderMode.INCREMENTAL:
            yield "optimize.zorder.strategies", ", ".join(one.value for one in optimize.zorder.strategies)
    if any(key.startswith("optimize.cluster.") for key in policy.origins):
        yield from _cluster_settings(optimize.cluster)
    if optimize.rewrite:
        yield from _rewrite_settings(optimize.rewrite)
    if optimize.purge:
        yield "optimize.purge.deletedRowsRatio", f"{optimize.purge.deleted_rows_ratio:g}"
        yield "optimize.purge.droppedColumns", "true" if optimize.purge.dropped_columns else "false"
    if optimize.where:
        yield "optimize.where", optimize.where.text
    if optimize.skip_newest_partitions:
        yield "optimize.skipNewestPartitions", f"{optimize.skip_newest_partitions:,}"
    if optimize.quiet_for_seconds:
        yield "optimize.quietFor", format_duration(optimize.quiet_for_seconds)
    if optimize.quiet_after_updates_seconds:
        yield "optimize.quietAfterUpdates", format_duration(optimize.quiet_after_updates_seconds)
    if optimize.every_seconds:
        yield "optimize.every", format_duration(optimize.every_seconds)
    if optimize.when.min_small_files is not None:
        yield "optimize.when.minSmallFiles", f"{optimize.when.min_small_files:,}"
    if optimize.when.min_small_bytes is not None:
        yield "optimize.when.minSmallBytes", format_size(optimize.when.min_small_bytes)


def _cluster_settings(cluster: ClusterPolicy) -> Iterator[tuple[str, str]]:
    yield "optimize.cluster.minCubeSize", format_size(cluster.min_cube_size_bytes)
    yield "optimize.cluster.targetCubeSize", format_size(cluster.target_cube_size_bytes)
    if cluster.full:
        yield "optimize.cluster.full", "true"


def _rewrite_settings(rewrite: RewritePolicy) -> Iterator[tuple[str, str]]:
    if rewrite.num_files is not None:
        yield "optimize.rewrite.files", f"{rewrite.num_files:,}"
    if rewrite.file_size_bytes is not None:
        yield "optimize.rewrite.fileSize", format_size(rewrite.file_size_bytes)
    if rewrite.sort_by:
        yield "optimize.rewrite.sortBy", ", ".join(rewrite.sort_by)


def _other_settings(policy: ResolvedPolicy) -> Iterator[tuple[str, str]]:
    if policy.vacuum is None:
        yield "vacuum", "not set: nothing is ever deleted"
    else:
        yield "vacuum.retention", format_duration(policy.vacuum.retention_seconds)
        if policy.vacuum.every_seconds:
            yield "vacuum.every", format_duration(policy.vacuum.every_seconds)
        yield "vacuum.mode", policy.vacuum.mode.value
        if policy.vacuum.delete_untracked:
            yield "vacuum.deleteUntracked", "true"
            yield "vacuum.untrackedAge", format_duration(policy.vacuum.untracked_age_seconds)
        if policy.vacuum.allow_large_delete:
            yield "vacuum.allowLargeDelete", "true"
        if policy.vacuum.allow_rewritten:
            yield "vacuum.allowLargeDelete", "rewritten"
        if policy.vacuum.trash_seconds:
            yield "vacuum.trash", format_duration(policy.vacuum.trash_seconds)
    for consumer in policy.consumers:
        lag = "" if consumer.max_lag_seconds is None else f" up to {format_duration(consumer.max_lag_seconds)} behind"
        checkpoint = "" if consumer.checkpoint is None else f" checkpoint {consumer.checkpoint}"
        yield "consumers", f"{consumer.name}{lag}{checkpoint}"
    if policy.auto_compact is not None:
        yield from _auto_compact(policy.auto_compact)
    for key, value in policy.properties:
        yield f"properties.{key}", value
    for window in policy.windows:
        yield "window", _window(window)
    if policy.limits.max_bytes is not None:
        yield "limits.maxBytes", format_size(policy.limits.max_bytes)
    if policy.limits.max_files is not None:
        yield "limits.maxFiles", f"{policy.limits.max_files:,}"
    if policy.limits.max_deletes is not None:
        yield "limits.maxDeletes", f"{policy.limits.max_deletes:,}"
    yield "limits.timeout", format_duration(policy.limits.timeout_seconds)
    if policy.suspend:
        until = "until further notice" if policy.suspend.until is None else f"until {policy.suspend.until.isoformat()}"
        yield "suspend", f"{until}: {policy.suspend.reason}"


def _auto_compact(auto: AutoCompactPolicy) -> Iterator[tuple[str, str]]:
    yield "autoCompact", "true" if auto.enabled else "false"
    if auto.min_num_files is not None:
        yield "autoCompact.minNumFiles", f"{auto.min_num_files:,}"
    if auto.min_file_size_bytes is not None:
        yield "autoCompact.minFileSize", format_size(auto.min_file_size_bytes)
    if auto.max_file_size_bytes is not None:
        yield "autoCompact.maxFileSize", format_size(auto.max_file_size_bytes)
    if auto.modified_partitions_only is not None:
        yield "autoCompact.modifiedPartitionsOnly", str(auto.modified_partitions_only).lower()


def _window(window: Window) -> str:
    days = ", ".join(_DAYS[day - 1] for day in window.days)
    return f"{days} {window.start:%H:%M}-{window.end:%H:%M} {window.timezone}".lstrip()
