"""Meaning of *effective* values: what is wrong only because several files meet in one table.

The checks of a single file (``maintainer.policy.checks.meaning``) see one file at a time. Here the same rules are
applied to merged values, and a finding points at the highest level that took part and names the other line.
What one file alone has wrong is not reported again.
"""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.model.run.auto_compaction import DEFAULT_MAX_FILE_SIZE_BYTES
from maintainer.policy.checks.meaning_properties import NUMBER_AND_SIZE, TWO_LAYOUTS
from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity
from maintainer.policy.resolve.merge import Level, Merged, Setting
from maintainer.policy.resolve.resolve import Resolution
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.resolve.setting_units import spelled
from maintainer.units import format_duration, format_size

SAFE_RETENTION_SECONDS = 7 * 86_400
"""Below this a reader or writer that is still at work may lose files: Delta's own check, 168 hours."""


def check_effective(resolution: Resolution) -> Iterator[Diagnostic]:
    """Yield what is wrong with one table's effective policy and with no single file."""
    yield from _check_sizes(resolution)
    yield from _check_auto_compact(resolution)
    yield from _check_zorder(resolution)
    yield from _check_rewrite(resolution)
    if resolution.policy.vacuum is not None:
        yield from _check_retention(resolution.policy, resolution.merged)
        yield from _check_consumers(resolution.policy, resolution.merged)


def _check_sizes(resolution: Resolution) -> Iterator[Diagnostic]:
    sizes = resolution.policy.optimize
    if sizes.min_file_size_bytes * 4 <= sizes.max_file_size_bytes * 3:
        return
    merged = resolution.merged
    smallest = ("optimize.minFileSize", merged.leaves["optimize", "minFileSize"])
    largest = ("optimize.maxFileSize", merged.leaves["optimize", "maxFileSize"])
    if sizes.min_file_size_bytes > sizes.max_file_size_bytes:
        message = "minFileSize is larger than maxFileSize: compacted files would count as small again"
        yield from _between("P302", resolution.policy, smallest, largest, message)
    else:
        message = "minFileSize is more than 3/4 of maxFileSize: compacted files may count as small again"
        yield from _between("P303", resolution.policy, smallest, largest, message, Severity.WARNING)


def _check_auto_compact(resolution: Resolution) -> Iterator[Diagnostic]:
    auto, merged = resolution.policy.auto_compact, resolution.merged
    if auto is None or auto.min_file_size_bytes is None:
        return
    if auto.min_file_size_bytes <= (auto.max_file_size_bytes or DEFAULT_MAX_FILE_SIZE_BYTES):
        return
    smallest = merged.leaves["autoCompact", "minFileSize"]
    largest = merged.leaves.get(("autoCompact", "maxFileSize"))
    message = "minFileSize is larger than maxFileSize: compacted files would count as small again"
    if largest is not None:
        one, other = ("autoCompact.minFileSize", smallest), ("autoCompact.maxFileSize", largest)
        yield from _between("P302", resolution.policy, one, other, message)
    elif smallest.document is not None:
        text = f"autoCompact.minFileSize of `{resolution.policy.table}`: {message}"
        size = format_size(DEFAULT_MAX_FILE_SIZE_BYTES)
        yield _finding("P302", smallest, text, f"set autoCompact.maxFileSize, too: left out it is {size}")


def _check_zorder(resolution: Resolution) -> Iterator[Diagnostic]:
    merged = resolution.merged
    if ("optimize", "zorder") not in merged.maps or merged.get("optimize.zorder.columns") is not None:
        return
    mode = merged.get("optimize.zorder.mode")
    if mode is not None and mode.document is not None:
        yield _finding(
            "P306",
            mode,
            f"`{resolution.policy.table}` has a Z-order mode and no columns",
            "set `optimize.zorder.columns` in the same file or below",
        )


def _check_rewrite(resolution: Resolution) -> Iterator[Diagnostic]:
    for one, other, message in (
        ("optimize.rewrite.files", "optimize.rewrite.fileSize", NUMBER_AND_SIZE),
        *(
            (f"optimize.rewrite.{key}", "optimize.zorder.columns", TWO_LAYOUTS)
            for key in ("files", "fileSize", "sortBy")
        ),
    ):
        first, second = resolution.merged.get(one), resolution.merged.get(other)
        if first is not None and second is not None:
            yield from _between("P319", resolution.policy, (one, first), (other, second), message)


def _check_retention(policy: ResolvedPolicy, merged: Merged) -> Iterator[Diagnostic]:
    vacuum = policy.vacuum
    if vacuum is None or vacuum.retention_seconds >= SAFE_RETENTION_SECONDS or vacuum.allow_short_retention:
        return
    yield from _between(
        "P304",
        policy,
        ("vacuum.retention", merged.leaves["vacuum", "retention"]),
        ("vacuum.allowShortRetention", merged.leaves["vacuum", "allowShortRetention"]),
        "retention below 7d is not allowed",
    )


def _check_consumers(policy: ResolvedPolicy, merged: Merged) -> Iterator[Diagnostic]:
    vacuum, consumers = policy.vacuum, merged.get("consumers")
    if vacuum is None or consumers is None:
        return
    for consumer in policy.consumers:
        if consumer.max_lag_seconds is not None and consumer.max_lag_seconds > vacuum.retention_seconds:
            yield from _between(
                "P305",
                policy,
                ("vacuum.retention", merged.leaves["vacuum", "retention"]),
                ("consumers", consumers),
                f"retention is shorter than the lag of `{consumer.name}`, {format_duration(consumer.max_lag_seconds)}",
            )


def _between(
    code: str,
    policy: ResolvedPolicy,
    one: tuple[str, Setting],
    other: tuple[str, Setting],
    message: str,
    severity: Severity = Severity.ERROR,
) -> Iterator[Diagnostic]:
    """Report two settings that do not go together, at the one of the higher level.

    Two settings of one file are left to the checks of that file.
    """
    (key, setting), (rival_key, rival) = (one, other) if one[1].level >= other[1].level else (other, one)
    if setting.document is None or setting.origin.file == rival.origin.file:
        return
    where = "the built-in default" if rival.level is Level.BUILT_IN else str(rival.origin)
    shown = "" if rival_key == "consumers" else f" `{spelled(rival_key, rival.value)}`"
    yield _finding(
        code, setting, f"{key} of `{policy.table}`: {message}", f"{rival_key}{shown} is from {where}", severity
    )


def _finding(code: str, setting: Setting, message: str, help: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    assert setting.document is not None
    span = setting.document.span_of(setting.path)
    return Diagnostic(code, severity, message, setting.document.file, span, help)
