"""Checks what the values of one file mean together: sizes that fight, deletion that comes too early, names that clash.

Types and forms were checked before (`maintainer.policy.schema.schema_check`); whatever failed there is passed over
here, so that one mistake gives one finding. What several files mean together is checked after merging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from maintainer.policy.checks.meaning_lists import (
    Finding,
    check_consumers,
    check_expectations,
    check_windows,
    check_zorder,
    duration_at,
    is_refused,
    map_at,
    size_at,
)
from maintainer.policy.checks.meaning_properties import check_cluster, check_properties, check_rewrite
from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity
from maintainer.policy.schema.schema_check import DocumentKind
from maintainer.policy.schema.schema_messages import dotted
from maintainer.policy.yaml.yaml_document import Document, Path
from maintainer.units import format_duration, format_size

SHORTEST_RETENTION_SECONDS = 7 * 86_400
"""Delta's own safety check: files younger than 168 hours may still be read or about to be committed."""

LARGEST_FILE_BYTES = 1 << 40
"""One task writes a file alone; a terabyte is already far beyond what it can."""


def check_meaning(document: Document, kind: DocumentKind) -> list[Diagnostic]:
    """Return what a document means wrongly, sorted.

    ``maintainer.yml`` holds settings in several places: its defaults and each environment's overrides.
    """
    findings: list[Diagnostic] = []
    for base in _bases(document, kind):
        settings = map_at(document.data, base)
        if settings is not None:
            for check in _CHECKS:
                findings.extend(_diagnostic(document, found) for found in check(settings, base))
    if kind is DocumentKind.RULE:
        findings.extend(_diagnostic(document, found) for found in _check_match(document))
    if kind is DocumentKind.PROJECT:
        findings.extend(_diagnostic(document, found) for found in _check_project(document.data))
    return sorted(findings)


def _bases(document: Document, kind: DocumentKind) -> list[Path]:
    """Where settings stand in a file of this kind."""
    if kind is not DocumentKind.PROJECT:
        return [()]
    environments = map_at(document.data, ("environments",)) or {}
    return [("defaults",), *(("environments", name, "overrides") for name in environments)]


def _diagnostic(document: Document, found: Finding) -> Diagnostic:
    span = document.key_span_of(found.path) if found.at_key else document.span_of(found.path)
    help = found.help
    if found.other is not None:
        help = f"{dotted(found.other)} is on line {document.key_span_of(found.other).line}; {help}"
    message = f"{dotted(found.path)}: {found.message}"
    return Diagnostic(found.code, found.severity, message, document.file, span, help)


def _check_sizes(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    optimize = map_at(settings, ("optimize",)) or {}
    path = (*base, "optimize")
    smallest, largest = size_at(optimize, "minFileSize"), size_at(optimize, "maxFileSize")
    yield from _check_pair(smallest, largest, path)
    if largest is not None and not 0 < largest <= LARGEST_FILE_BYTES:
        found = "must be larger than 0" if not largest else f"is larger than {format_size(LARGEST_FILE_BYTES)}"
        yield Finding("P307", (*path, "maxFileSize"), found, "write a size like `256MiB`")
    batch = size_at(optimize, "batchSize")
    if batch == 0:
        yield Finding("P307", (*path, "batchSize"), "must be larger than 0", "write a size like `10GiB`")
    elif batch is not None and largest is not None and batch < largest:
        message = "is smaller than maxFileSize, so every bin is a commit of its own"
        help = "make batchSize a multiple of maxFileSize"
        yield Finding("P307", (*path, "batchSize"), message, help, (*path, "maxFileSize"), Severity.WARNING)
    compact = map_at(settings, ("autoCompact",)) or {}
    yield from _check_pair(size_at(compact, "minFileSize"), size_at(compact, "maxFileSize"), (*base, "autoCompact"))


def _check_pair(smallest: int | None, largest: int | None, path: Path) -> Iterator[Finding]:
    """A file that a rewrite wrote may be somewhat smaller than maxFileSize; it must not count as small again."""
    if smallest is None or not largest:
        return
    ends = (*path, "minFileSize"), (*path, "maxFileSize")
    if smallest > largest:
        message = "is larger than maxFileSize: compacted files would count as small again"
        yield Finding("P302", ends[0], message, "make it at most 3/4 of that", ends[1])
    elif smallest * 4 > largest * 3:
        message = "is more than 3/4 of maxFileSize: compacted files may count as small again"
        yield Finding("P303", ends[0], message, "make it at most 3/4 of that", ends[1], Severity.WARNING)


def _check_vacuum(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    vacuum = map_at(settings, ("vacuum",)) or {}
    retention = duration_at(vacuum, "retention")
    path = (*base, "vacuum", "retention")
    if vacuum.get("deleteUntracked") is True and vacuum.get("mode") == "lite":
        message = "is never done in mode lite, which does not list the folder"
        yield Finding("P307", (*base, "vacuum", "deleteUntracked"), message, "write `mode: auto`, or remove it")
    if duration_at(vacuum, "trash") == 0:
        yield Finding("P307", (*base, "vacuum", "trash"), "must be longer than 0", "remove it to delete files at once")
    untracked = duration_at(vacuum, "untrackedAge")
    shortest = SHORTEST_RETENTION_SECONDS if retention is None else retention
    if untracked is not None and untracked < shortest:
        message = f"{format_duration(untracked)} is shorter than the retention of {format_duration(shortest)}"
        help = f"write at least `{format_duration(shortest)}`; a writer's own files are untracked until it commits"
        yield Finding("P307", (*base, "vacuum", "untrackedAge"), message, help)
    if retention is None:
        return
    if retention == 0 and vacuum.get("allowShortRetention") is True:
        message = "must be longer than 0: a reader or writer loses files at the very moment that they are replaced"
        yield Finding("P304", path, message, "write at least the time of the longest query or write, such as `2h`")
    if retention < SHORTEST_RETENTION_SECONDS and vacuum.get("allowShortRetention") is not True:
        message = f"{format_duration(retention)} is below 7d: files that a reader or writer still uses could go"
        yield Finding("P304", path, message, "if it is meant, write `allowShortRetention: true` beside it")
    consumers = settings.get("consumers")
    for position, consumer in enumerate(consumers if isinstance(consumers, list) else ()):
        lag = duration_at(consumer, "maxLag") if isinstance(consumer, dict) else None
        if lag is not None and lag > retention:
            message = f"{format_duration(retention)} is shorter than a consumer's lag of {format_duration(lag)}"
            help = f"write at least `{format_duration(lag)}`"
            yield Finding("P305", path, message, help, (*base, "consumers", position, "maxLag"))


def _check_limits(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    limits = map_at(settings, ("limits",)) or {}
    for key, value in (("maxBytes", size_at(limits, "maxBytes")), ("timeout", duration_at(limits, "timeout"))):
        if value == 0:
            help = "remove it for no limit; `suspend:` leaves a table alone"
            yield Finding("P307", (*base, "limits", key), "must be larger than 0", help)


def _check_match(document: Document) -> Iterator[Finding]:
    """A rule must say what it reaches: one with exclusions only would reach every table there is."""
    match = map_at(document.data, ("match",))
    if not match or any(is_refused(document, ("match", key)) for key in ("tables", "tags")):
        return
    if not any(key in match for key in ("tables", "tags", "minSize")):
        message = "names neither `tables` nor `tags`, so it would reach every table"
        yield Finding("P307", ("match",), message, 'if that is meant, write `tables: ["*"]`', at_key=True)


def _check_project(data: dict[str, Any]) -> Iterator[Finding]:
    if duration_at(data, "maxPlanAge") == 0:
        yield Finding("P307", ("maxPlanAge",), "must be longer than 0", "write a duration like `24h`")
    yield from _check_limits(data, ())
    yield from _check_budgets(data)


def _check_budgets(data: dict[str, Any]) -> Iterator[Finding]:
    """Refuse a budget of nothing: every table would wait without limit."""
    shares = [("budget", key, name) for key in ("owners", "tables") for name in map_at(data, ("budget", key)) or {}]
    for path in (("budget",), *shares):
        found = map_at(data, path) or {}
        for key, value in (("maxBytes", size_at(found, "maxBytes")), ("maxTime", duration_at(found, "maxTime"))):
            if value == 0:
                yield Finding("P307", (*path, key), "must be larger than 0", "remove it for no bound")


_CHECKS: tuple[Callable[[dict[str, Any], Path], Iterator[Finding]], ...] = (
    _check_sizes,
    check_zorder,
    check_rewrite,
    check_cluster,
    _check_vacuum,
    check_properties,
    check_consumers,
    check_windows,
    check_expectations,
    _check_limits,
)
