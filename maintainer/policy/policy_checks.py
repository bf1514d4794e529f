"""Check every file by itself, what no single file shows, and the merged values of every table.

The first and the last run the same rules. What one file has wrong is said once, in that file; merging then shows what
is wrong only because several files meet in one table. Between files a table or profile may be named twice, a profile
may be missing, and rules may disagree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from maintainer.model.run.auto_compaction import DEFAULT_MAX_FILE_SIZE_BYTES
from maintainer.model.table.store_kinds import store_kind
from maintainer.policy.diagnostics import Diagnostic, Severity, did_you_mean, nearest
from maintainer.policy.predicate.predicate_grammar import PredicateError
from maintainer.policy.resolve.merge import (
    TAGS,
    Keys,
    Layer,
    Level,
    Merged,
    Setting,
    base_value,
    settings_in,
    spelled,
)
from maintainer.policy.resolve.resolve import ProfileSource, Resolution, RuleSource, TableSource
from maintainer.policy.schema.schema_check import DocumentKind, check_schema, kind_of
from maintainer.policy.schema.schema_keys import dotted
from maintainer.policy.setting_rules import SettingFinding, Settings, check_settings
from maintainer.policy.yaml.yaml_document import Path, YamlDocument
from maintainer.units import UnitError, format_size

_S = TypeVar("_S", TableSource, ProfileSource)

_NOT_WRITTEN = "has no value and counts as not written: what defaults and rules say of it holds"

_SWITCHES: Mapping[Path, tuple[str, str]] = {
    ("suspend",): ("has no value, so nothing is suspended", "write `suspend: {reason: ...}`, or remove the line"),
    ("vacuum",): (
        _NOT_WRITTEN,
        "write `vacuum: {}` to delete by the defaults, or remove the line; where a rule has a vacuum, "
        "`match.exclude` in that rule leaves the table out",
    ),
    ("autoCompact",): (_NOT_WRITTEN, "write `autoCompact: true` or `autoCompact: false`, or remove the line"),
    ("optimize", "purge"): (_NOT_WRITTEN, "write `purge: {}` to purge all that can be purged, or remove the line"),
    ("optimize", "zorder"): (_NOT_WRITTEN, "write `zorder: {columns: [...]}`, or remove the line"),
    ("optimize", "rewrite"): (_NOT_WRITTEN, "write `rewrite: {files: ...}`, or remove the line"),
}
"""Keys that begin or end something by being there, with what is said where they have no value."""


def check_file(document: YamlDocument) -> list[Diagnostic]:
    """Return what one file alone has wrong, sorted: types and forms by its schema, then what its settings mean.

    What the schema refuses is passed over by the rules, so that one mistake gives one finding. ``maintainer.yml`` holds
    settings in several places: its defaults and each environment's overrides.
    """
    kind = kind_of(document)
    findings = check_schema(document, kind)
    if kind is DocumentKind.RULE:
        findings.extend(_diagnostic(document, finding, ()) for finding in _reach(document))
    for base in _bases(document, kind):
        for finding in (*_empty_switches(document, base), *check_settings(_settings(document, base))):
            findings.append(_diagnostic(document, finding, base))
    return sorted(findings)


def check_effective(resolution: Resolution) -> Iterator[Diagnostic]:
    """Yield what is wrong with one table's effective policy and with no single file."""
    for finding in check_settings(Settings(resolution.values, resolution.policy.origins)):
        if finding.across is not None and finding.other is not None:
            yield from _between(finding, finding.across, finding.other, resolution)
    yield from _incomplete(resolution)
    yield from _trash(resolution)


def _trash(resolution: Resolution) -> Iterator[Diagnostic]:
    """Warn of a trash on an object store, which `plan` refuses; a name's place only the catalog knows."""
    table, setting = resolution.policy.table, resolution.merged.get("vacuum.trash")
    is_copied = table.is_path and not store_kind(table.location).renames_cheaply
    if setting is not None and setting.document is not None and is_copied:
        message = f"vacuum.trash of `{table}`: there is no trash on an object store, and `plan` will refuse it"
        yield _at(
            setting, "P307", message, "remove it for this table; it is for local disks and HDFS", Severity.WARNING
        )


def _bases(document: YamlDocument, kind: DocumentKind) -> list[Path]:
    if kind is not DocumentKind.PROJECT:
        return [()]
    environments = document.data.get("environments")
    names = environments if isinstance(environments, dict) else ()
    return [("defaults",), *(("environments", name, "overrides") for name in names)]


def _settings(document: YamlDocument, base: Path) -> Settings:
    """Read the settings at a place in a file, less what is malformed."""
    values: dict[str, object] = {}
    maps: set[str] = set()
    for keys, value in settings_in(document, base):
        key = ".".join(map(str, keys))
        if isinstance(value, dict):
            maps.add(key)
        else:
            with suppress(UnitError, PredicateError):
                values[key] = base_value(key, value)
    return Settings(values, maps)


def _empty_switches(document: YamlDocument, base: Path) -> Iterator[SettingFinding]:
    """Warn of a switch without a value: whoever wrote it expects that something begins or ends with it."""
    for keys, (message, help) in _SWITCHES.items():
        if base[:1] == ("environments",) and keys != ("suspend",):
            continue  # the schema refuses it there
        *above, last = keys
        data = document.value_at((*base, *above))
        if isinstance(data, dict) and last in data and data[last] is None:
            yield SettingFinding("P323", keys, message, help, severity=Severity.WARNING, at_key=True)


def _reach(document: YamlDocument) -> Iterator[SettingFinding]:
    """Check what a rule matches: one with exclusions only would reach every table there is."""
    match = document.data.get("match")
    if not isinstance(match, dict):
        return
    refused = any(("match", key) in document.unreadable for key in ("tables", "tags"))
    if match and not refused and not {"tables", "tags", "minSize"} & match.keys():
        message = "names neither `tables` nor `tags`, so it would reach every table"
        yield SettingFinding("P307", ("match",), message, 'if that is meant, write `tables: ["*"]`', at_key=True)
    for key in ("tags", "owner"):
        if match.get("minSize") is not None and document.data.get(key) is not None:
            message = "a rule with `match.minSize` cannot set this: tables are selected by it before they are read"
            help = f"write `{key}` in a rule without `minSize`, or in the files of the tables"
            yield SettingFinding("P324", (key,), message, help, at_key=True)
    if document.data.get("manage") is not True or ("match",) in document.unreadable:
        return
    if "tags" in match:
        message = "a rule with `manage: true` chooses tables by name: a table without a file has no tags to match"
        help = "remove `tags` here; the tags that this rule gives are what other rules match"
        yield SettingFinding("P385", ("match", "tags"), message, help, at_key=True)
    elif "tables" not in match:
        message = "a rule with `manage: true` needs `match.tables`"
        help = 'write `tables: ["*"]` for all tables in the declared places'
        yield SettingFinding("P385", ("match",), message, help, at_key=True)


def _diagnostic(document: YamlDocument, finding: SettingFinding, base: Path) -> Diagnostic:
    path, help = (*base, *finding.path), finding.help
    if finding.other is not None:
        other = (*base, *finding.other)
        help = f"{dotted(other)} is on line {document.key_span_of(other).line}; {help}"
    message = f"{dotted(path)}: {finding.message}"
    return document.error_at(path, finding.code, message, help, at_key=finding.at_key, severity=finding.severity)


def _between(finding: SettingFinding, message: str, other: Path, resolution: Resolution) -> Iterator[Diagnostic]:
    """Report two settings of different files, at the one of the higher level; one file was checked by itself."""
    pair = _setting_at(finding.path, resolution.merged), _setting_at(other, resolution.merged)
    (key, setting), (rival_key, rival) = sorted(pair, key=lambda entry: -entry[1].level)
    if setting.document is None or setting.origin.file == rival.origin.file:
        return
    place = "the built-in default" if rival.level is Level.BUILT_IN else str(rival.origin)
    shown = "" if isinstance(rival.value, list) else f" `{spelled(rival_key, rival.value)}`"
    text = f"{key} of `{resolution.policy.table}`: {message}"
    yield _at(setting, finding.code, text, f"{rival_key}{shown} is from {place}; {finding.help}", finding.severity)


def _setting_at(path: Path, merged: Merged) -> tuple[str, Setting]:
    """Return the setting that a path leads into; of a map the one of the highest level, with its dotted key."""
    inside = [keys for keys in merged.leaves if keys == path[: len(keys)] or keys[: len(path)] == path]
    keys = max(inside, key=lambda keys: merged.leaves[keys].level)
    return ".".join(keys), merged.leaves[keys]


def _incomplete(resolution: Resolution) -> Iterator[Diagnostic]:
    """Report settings that lack another one, which any level could have given."""
    merged, policy = resolution.merged, resolution.policy
    zorder = {keys[-1]: setting for keys, setting in merged.leaves.items() if keys[:2] == ("optimize", "zorder")}
    for key, setting in zorder.items() if "columns" not in zorder else ():
        # Defaults and rules may say how a Z-order is done for tables that have one; a mode asks for one.
        if setting.document is not None and (key == "mode" or setting.level > Level.RULE):
            severity = Severity.ERROR if key == "mode" else Severity.WARNING
            help = "set `optimize.zorder.columns` in the same file or below"
            yield _at(setting, "P306", f"`{policy.table}` has a Z-order {key} and no columns", help, severity)
            break
    auto, smallest = policy.auto_compact, merged.get("autoCompact.minFileSize")
    if auto is None or smallest is None or smallest.document is None or auto.max_file_size_bytes is not None:
        return
    if (auto.min_file_size_bytes or 0) > DEFAULT_MAX_FILE_SIZE_BYTES:
        message = "minFileSize is larger than maxFileSize: compacted files would count as small again"
        help = f"set autoCompact.maxFileSize, too: left out it is {format_size(DEFAULT_MAX_FILE_SIZE_BYTES)}"
        yield _at(smallest, "P302", f"autoCompact.minFileSize of `{policy.table}`: {message}", help)


def _at(setting: Setting, code: str, message: str, help: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    assert setting.document is not None
    return setting.document.error_at(setting.path, code, message, help, severity=severity)


def check_tables(tables: Iterable[TableSource]) -> Iterator[Diagnostic]:
    """Report every file whose table another file has already named, whatever the spelling."""
    for table, other in _second(tables, lambda table: table.key):
        alike = "" if other.written == table.written else f" (as `{other.written}`)"
        message = f"`{table.written}` has a policy already{alike}"
        yield table.document.error_at(("table",), "P350", message, f"one table, one file: the other is {other.place}")


def check_profiles(profiles: Iterable[ProfileSource]) -> Iterator[Diagnostic]:
    """Report every profile whose name another file has already taken."""
    for profile, other in _second(profiles, lambda profile: profile.name):
        help = f"the other is {other.document.file}; a profile's name is its file's name, so rename one"
        yield profile.document.error_at((), "P352", f"there are two profiles `{profile.name}`", help)


def _second(sources: Iterable[_S], key_of: Callable[[_S], str]) -> Iterator[tuple[_S, _S]]:
    """Yield each file that has the key of an earlier one, with that one."""
    first: dict[str, _S] = {}
    for source in sorted(sources, key=lambda source: source.document.file):
        other = first.setdefault(key_of(source), source)
        if other is not source:
            yield source, other


def check_extends(tables: Iterable[TableSource], known: Iterable[str]) -> Iterator[Diagnostic]:
    """Report every name in ``extends`` that is no profile."""
    names = sorted(set(known))
    for table in tables:
        for position, name in table.extends_at.items():
            if name not in names:
                near = nearest(name, names)
                help = did_you_mean(name, near) if near else f"make policies/_profiles/{name}.yml"
                yield table.document.error_at(("extends", position), "P351", f"there is no profile `{name}`", help)


def check_rules(matched: Mapping[str, Sequence[RuleSource]]) -> Iterator[Diagnostic]:
    """Report rules of one priority that set one key differently for one table.

    Args:
        matched: Each table to the rules that reach it.

    Yields:
        One finding for each two rules and key, at the later file, however many tables both reach.
    """
    tables_of: dict[tuple[str, str], list[str]] = {}
    rules: dict[str, RuleSource] = {}
    for table, reaching in matched.items():
        for low, high in itertools.combinations(sorted(reaching, key=lambda rule: rule.sort_key), 2):
            if low.priority == high.priority:
                rules[low.document.file], rules[high.document.file] = low, high
                tables_of.setdefault((low.document.file, high.document.file), []).append(table)
    for (first, second), tables in sorted(tables_of.items()):
        for keys in conflicts(rules[first].layer, rules[second].layer):
            yield _conflict(keys, rules[first], rules[second], tables)


def conflicts(first: Layer, second: Layer) -> list[Keys]:
    """Return the keys on which two levels disagree: another value, or a map where the other has a scalar.

    About tags nobody disagrees: they add up.
    """
    keys_in_conflict = (first.leaves.keys() & second.maps.keys()) | (second.leaves.keys() & first.maps.keys())
    for keys, setting in first.leaves.items():
        rival = second.leaves.get(keys)
        if rival is not None and keys != TAGS:
            name = ".".join(keys)
            if base_value(name, setting.value) != base_value(name, rival.value):
                keys_in_conflict.add(keys)
    return sorted(keys_in_conflict)


def _conflict(keys: Keys, first: RuleSource, second: RuleSource, tables: Sequence[str]) -> Diagnostic:
    name = ".".join(keys)
    low, high = first.layer.leaves.get(keys), second.layer.leaves.get(keys)
    place = low.origin if low else first.layer.maps[keys]
    more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
    message = f"{place} sets `{name}` differently, with the same priority {first.priority}, for `{min(tables)}`{more}"
    help = "give one rule a higher `priority`, or make them reach different tables"
    return second.document.error_at(high.path if high else keys, "P353", message, help)
