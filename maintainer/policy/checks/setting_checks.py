"""Check every file by itself, and the merged values of every table.

Both run the same rules. What one file has wrong is said once, in that file; merging then shows what is wrong only
because several files meet in one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from maintainer.model.run.auto_compaction import DEFAULT_MAX_FILE_SIZE_BYTES
from maintainer.policy.checks.findings import Finding, Settings
from maintainer.policy.checks.setting_rules import check_settings
from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity
from maintainer.policy.predicate.predicate_lex import PredicateError
from maintainer.policy.resolve.merge import SETTING_KEYS, Level, Merged, Setting
from maintainer.policy.resolve.resolve import Resolution
from maintainer.policy.resolve.setting_units import base_value, spelled
from maintainer.policy.schema.schema_check import DocumentKind, check_schema, kind_of
from maintainer.policy.schema.schema_messages import dotted
from maintainer.policy.yaml.yaml_document import Document, Path
from maintainer.units import UnitError, format_size


def check_file(document: Document) -> list[Diagnostic]:
    """Return what one file alone has wrong, sorted: types and forms by its schema, then what its settings mean.

    What the schema refuses is passed over by the rules, so that one mistake gives one finding. ``maintainer.yml`` holds
    settings in several places: its defaults and each environment's overrides.
    """
    kind = kind_of(document)
    findings = check_schema(document, kind)
    if kind is DocumentKind.RULE:
        findings.extend(_reach(document))
    for base in _bases(document, kind):
        for finding in check_settings(_settings(document, base)):
            findings.append(_diagnostic(document, finding, base))
    return sorted(findings)


def check_effective(resolution: Resolution) -> Iterator[Diagnostic]:
    """Yield what is wrong with one table's effective policy and with no single file."""
    for finding in check_settings(Settings(resolution.values, resolution.policy.origins)):
        if finding.across is not None and finding.other is not None:
            yield from _between(finding, finding.across, finding.other, resolution)
    yield from _incomplete(resolution)


def _bases(document: Document, kind: DocumentKind) -> list[Path]:
    """Return where settings stand in a file of this kind."""
    if kind is not DocumentKind.PROJECT:
        return [()]
    environments = document.data.get("environments")
    names = environments if isinstance(environments, dict) else ()
    return [("defaults",), *(("environments", name, "overrides") for name in names)]


def _settings(document: Document, base: Path) -> Settings:
    """Read the settings at a place in a file, less what is malformed."""
    data: object = document.data
    for part in base:
        data = data.get(part) if isinstance(data, dict) else None
    values: dict[str, object] = {}
    maps: set[str] = set()

    def read(key: str, value: object) -> None:
        if isinstance(value, dict):
            maps.add(key)
            for name, inner in value.items():
                read(f"{key}.{name}", inner)
        elif value is not None:
            with suppress(UnitError, PredicateError):
                values[key] = base_value(key, value)

    for key in SETTING_KEYS:
        read(key, data.get(key) if isinstance(data, dict) else None)
    return Settings(values, maps)


def _reach(document: Document) -> Iterator[Diagnostic]:
    """A rule must say what it reaches: one with exclusions only would reach every table there is."""
    match = document.data.get("match")
    refused = any(("match", key) in document.unreadable for key in ("tables", "tags"))
    if isinstance(match, dict) and match and not refused and not {"tables", "tags", "minSize"} & match.keys():
        message = "names neither `tables` nor `tags`, so it would reach every table"
        help = 'if that is meant, write `tables: ["*"]`'
        yield _diagnostic(document, Finding("P307", ("match",), message, help, at_key=True), ())


def _diagnostic(document: Document, finding: Finding, base: Path) -> Diagnostic:
    path, help = (*base, *finding.path), finding.help
    span = document.key_span_of(path) if finding.at_key else document.span_of(path)
    if finding.other is not None:
        other = (*base, *finding.other)
        help = f"{dotted(other)} is on line {document.key_span_of(other).line}; {help}"
    return Diagnostic(finding.code, finding.severity, f"{dotted(path)}: {finding.message}", document.file, span, help)


def _between(finding: Finding, message: str, other: Path, resolution: Resolution) -> Iterator[Diagnostic]:
    """Report two settings of different files, at the one of the higher level; one file was checked by itself."""
    pair = _setting_at(finding.path, resolution.merged), _setting_at(other, resolution.merged)
    (key, setting), (rival_key, rival) = sorted(pair, key=lambda entry: -entry[1].level)
    if setting.document is None or setting.origin.file == rival.origin.file:
        return
    place = "the built-in default" if rival.level is Level.BUILT_IN else str(rival.origin)
    shown = "" if isinstance(rival.value, list) else f" `{spelled(rival_key, rival.value)}`"
    text = f"{key} of `{resolution.policy.table}`: {message}"
    yield _at(setting, finding.code, text, f"{rival_key}{shown} is from {place}", finding.severity)


def _setting_at(path: Path, merged: Merged) -> tuple[str, Setting]:
    """Return the setting that a path leads into; of a map the one of the highest level, with its dotted key."""
    inside = [keys for keys in merged.leaves if keys == path[: len(keys)] or keys[: len(path)] == path]
    keys = max(inside, key=lambda keys: merged.leaves[keys].level)
    return ".".join(keys), merged.leaves[keys]


def _incomplete(resolution: Resolution) -> Iterator[Diagnostic]:
    """Report settings that lack another one, which any level could have given."""
    merged, policy = resolution.merged, resolution.policy
    mode = merged.get("optimize.zorder.mode")
    if mode is not None and mode.document is not None and merged.get("optimize.zorder.columns") is None:
        help = "set `optimize.zorder.columns` in the same file or below"
        yield _at(mode, "P306", f"`{policy.table}` has a Z-order mode and no columns", help)
    auto, smallest = policy.auto_compact, merged.get("autoCompact.minFileSize")
    if auto is None or smallest is None or smallest.document is None or auto.max_file_size_bytes is not None:
        return
    if (auto.min_file_size_bytes or 0) > DEFAULT_MAX_FILE_SIZE_BYTES:
        message = "minFileSize is larger than maxFileSize: compacted files would count as small again"
        help = f"set autoCompact.maxFileSize, too: left out it is {format_size(DEFAULT_MAX_FILE_SIZE_BYTES)}"
        yield _at(smallest, "P302", f"autoCompact.minFileSize of `{policy.table}`: {message}", help)


def _at(setting: Setting, code: str, message: str, help: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    assert setting.document is not None
    span = setting.document.span_of(setting.path)
    return Diagnostic(code, severity, message, setting.document.file, span, help)
