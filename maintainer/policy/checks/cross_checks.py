"""Find what no single file shows: a table or profile that is named twice, a missing profile, rules that disagree."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity, nearest
from maintainer.policy.resolve.merge import Keys, Layer
from maintainer.policy.resolve.resolved import Origin
from maintainer.policy.resolve.setting_units import base_value
from maintainer.policy.resolve.sources import ProfileSource, RuleSource, TableSource
from maintainer.policy.yaml.yaml_document import Document, Path


def check_tables(tables: Iterable[TableSource]) -> Iterator[Diagnostic]:
    """Report every file whose table another file has already named, whatever the spelling."""
    first: dict[str, TableSource] = {}
    for table in sorted(tables, key=lambda table: table.document.file):
        other = first.setdefault(table.key, table)
        if other is not table:
            alike = "" if other.written == table.written else f" (as `{other.written}`)"
            place = f"{other.document.file}:{other.document.span_of(('table',)).line}"
            yield _error(
                "P350",
                f"`{table.written}` has a policy already{alike}",
                table.document,
                ("table",),
                f"one table, one file: the other is {place}",
            )


def check_profiles(profiles: Iterable[ProfileSource]) -> Iterator[Diagnostic]:
    """Report every profile whose name another file has already taken."""
    first: dict[str, ProfileSource] = {}
    for profile in sorted(profiles, key=lambda profile: profile.document.file):
        other = first.setdefault(profile.name, profile)
        if other is not profile:
            yield _error(
                "P352",
                f"there are two profiles `{profile.name}`",
                profile.document,
                (),
                f"the other is {other.document.file}; a profile's name is its file's name, so rename one",
            )


def check_extends(tables: Iterable[TableSource], known: Iterable[str]) -> Iterator[Diagnostic]:
    """Report every name in ``extends`` that is no profile."""
    names = sorted(set(known))
    for table in tables:
        for position, name in table.extends_at.items():
            if name not in names:
                near = nearest(name, names)
                help = f"did you mean `{near}`?" if near else f"make policies/_profiles/{name}.yml"
                yield _error("P351", f"there is no profile `{name}`", table.document, ("extends", position), help)


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
    """Return the keys on which two levels disagree: another value, or a map where the other has a scalar."""
    keys_in_conflict = (first.leaves.keys() & second.maps.keys()) | (second.leaves.keys() & first.maps.keys())
    for keys, setting in first.leaves.items():
        rival = second.leaves.get(keys)
        if rival is not None:
            name = ".".join(keys)
            if base_value(name, setting.value) != base_value(name, rival.value):
                keys_in_conflict.add(keys)
    return sorted(keys_in_conflict)


def _conflict(keys: Keys, first: RuleSource, second: RuleSource, tables: Sequence[str]) -> Diagnostic:
    name = ".".join(keys)
    place = _place(keys, first.layer)
    more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
    return _error(
        "P353",
        f"{place} sets `{name}` differently, with the same priority {first.priority}, for `{min(tables)}`{more}",
        second.document,
        _data_path(keys, second.layer),
        "give one rule a higher `priority`, or make them reach different tables",
    )


def _place(keys: Keys, layer: Layer) -> Origin:
    setting = layer.leaves.get(keys)
    return setting.origin if setting else layer.maps[keys]


def _data_path(keys: Keys, layer: Layer) -> Path:
    setting = layer.leaves.get(keys)
    return setting.path if setting else keys


def _error(code: str, message: str, document: Document, path: Path, help: str) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, document.file, document.span_of(path), help)
