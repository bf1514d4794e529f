"""Plan changes of table properties: one step for all that differ between the policy and the table.

Keys are compared without regard to case and values by their meaning (``TRUE`` is ``true``, ``interval 1 week`` is
``interval 7 days``), because Delta normalizes keys but stores values as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.errors import TableError
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.run.auto_compaction import AUTO_COMPACT, DEFAULT, LEGACY_AUTO_OPTIMIZE, OWN_PROPERTIES
from maintainer.model.table.table_facts import TableFacts
from maintainer.policy.diagnostics import nearest
from maintainer.policy.property_names import (
    KNOWN_PROPERTIES,
    RESERVED_BY_SPARK,
    PropertyKind,
    canonical_name,
    format_interval,
    kind_of,
    parse_interval_ms,
)
from maintainer.policy.resolve.resolved import AutoCompactPolicy, ResolvedPolicy
from maintainer.units import format_duration

DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"

DELETED_FILE_RETENTION_DEFAULT_MS = 7 * 86_400_000
LOG_RETENTION_DEFAULT_MS = 30 * 86_400_000

_SETTABLE = (PropertyKind.BOOLEAN, PropertyKind.INTERVAL, PropertyKind.TEXT)


@dataclass(frozen=True, slots=True)
class _Wanted:
    value: str
    reason: Reason


def property_of(facts: TableFacts, key: str) -> str | None:
    """Return a property's value whatever the case of its key; None where it is not set."""
    lower = key.lower()
    return next((value for name, value in facts.properties if name.lower() == lower), None)


def interval_property_ms(facts: TableFacts, key: str, default_ms: int) -> int:
    """Return an interval property in milliseconds, the default where it is not set.

    Raises:
        TableError: T418, the value is not an interval as Delta reads them.
    """
    value = property_of(facts, key)
    if value is None:
        return default_ms
    parsed = parse_interval_ms(value)
    if parsed is None:
        what, allowed = f"the table property {key} is not an interval", "interval 30 days"
        help = f"write the interval that is meant, in its policy: `properties: {{{key}: interval 30 days}}`"
        raise TableError(what, code="T418", where=str(facts.ref), found=value, allowed=allowed, help=help)
    return parsed


def same_value(key: str, value: str | None, other: str | None) -> bool:
    """Return whether two values of a property mean the same to Delta; None is not set."""
    if value is None or other is None:
        return value is other
    match kind_of(key):
        case PropertyKind.BOOLEAN:
            return value.lower() == other.lower()
        case PropertyKind.INTERVAL:
            parsed = parse_interval_ms(value)
            return value == other if parsed is None else parsed == parse_interval_ms(other)
        case _:
            return value == other


def managed_properties(policy: ResolvedPolicy, facts: TableFacts) -> tuple[tuple[str, str | None], ...]:
    """Return the properties that the policy has a say in, as they are now, sorted by name.

    These are pinned: a plan is stale when one of them has changed. Retention counts wherever vacuum is managed.
    """
    names = {canonical_name(key) for key, _ in policy.properties}
    if policy.auto_compact is not None:
        names |= {AUTO_COMPACT, LEGACY_AUTO_OPTIMIZE}
        names |= set(OWN_PROPERTIES) if policy.auto_compact.enabled else set()
    if policy.vacuum is not None:
        names |= {DELETED_FILE_RETENTION, LOG_RETENTION}
    return tuple((name, property_of(facts, name)) for name in sorted(names))


def plan_properties(policy: ResolvedPolicy, facts: TableFacts) -> SetPropertiesStep | None:
    """Decide which table properties are set.

    Raises:
        TableError: T415 no such property, T416 it may change the protocol or is Delta's own, T417 two parts of
            the policy disagree, T418 a value that Delta would refuse.
    """
    entries = _held(policy, facts)
    _add_auto_compact(policy, facts, entries)
    _add_retention(policy, facts, entries)
    changes = [
        (name, property_of(facts, name), entry)
        for name, entry in sorted(entries.items())
        if not same_value(name, property_of(facts, name), entry.value)
    ]
    if not changes:
        return None
    return SetPropertiesStep(
        before=tuple((name, before) for name, before, _ in changes),
        after=tuple((name, entry.value) for name, _, entry in changes),
        reasons=tuple(entry.reason for _, _, entry in changes),
    )


def _drift(facts: TableFacts, name: str, value: str, origin: str) -> _Wanted:
    before = property_of(facts, name)
    says = "sets none" if value == DEFAULT and name in OWN_PROPERTIES else f"says {value}"
    text = f"{name} is {'not set' if before is None else before}, the policy {says}"
    return _Wanted(value, Reason(ReasonCode.PROPERTY_DRIFT, text, origin))


def _held(policy: ResolvedPolicy, facts: TableFacts) -> dict[str, _Wanted]:
    entries: dict[str, _Wanted] = {}
    for key, value in policy.properties:
        origin = policy.place_of(f"properties.{key}")
        name = canonical_name(key)
        if name in entries:
            raise _disagree(f"the property {name} is written twice, in different case", origin)
        if not same_value(name, property_of(facts, name), value):
            _check_settable(name, value, origin)
        entries[name] = _drift(facts, name, value, origin)
    return entries


def _disagree(
    what: str, where: str | None, found: str | None = None, help: str = "remove one of the two"
) -> TableError:
    return TableError(what, code="T417", where=where, found=found, help=help)


def _check_settable(name: str, value: str, origin: str) -> None:
    kind, help = kind_of(name), "keys of your own must not start with `delta.`"
    if kind is None:
        settable = [key.removeprefix("delta.") for key, kind in KNOWN_PROPERTIES.items() if kind in _SETTABLE]
        close = nearest(name[len("delta.") :], settable)
        help = f"did you mean delta.{close}?" if close else help
        raise TableError(f"{name} is not a table property of Delta", code="T415", where=origin, found=name, help=help)
    if name.lower() in RESERVED_BY_SPARK:
        raise TableError(f"Spark keeps {name} for itself", code="T415", where=origin, found=name, help=help)
    if kind not in _SETTABLE:
        change, help = "is Delta's own", "leave it out of the policy: Delta sets it by itself"
        if kind is PropertyKind.PROTOCOL:
            change = "changes what readers and writers must support"
            help = "set it by hand with ALTER TABLE; once the table has this value, the policy may name it"
        what = f"{name} {change}; setting it is not supported yet"
        raise TableError(what, code="T416", where=origin, found=value, help=help)
    allowed = None
    if kind is PropertyKind.BOOLEAN and value.lower() not in ("true", "false"):
        allowed = "true or false"
    elif kind is PropertyKind.INTERVAL and parse_interval_ms(value) is None:
        allowed = "interval 7 days"
    if allowed is not None:
        what, help = f"Delta would refuse this value of {name}", "correct the value in the policy"
        raise TableError(what, code="T418", where=origin, found=value, allowed=allowed, help=help)


def _add_auto_compact(policy: ResolvedPolicy, facts: TableFacts, entries: dict[str, _Wanted]) -> None:
    """Add ``autoCompact``. The deprecated ``delta.autoOptimize=true`` would win over false, so it is turned off.

    Where the policy says false and nothing is set, nothing is written: off is what Delta does by itself.
    """
    if policy.auto_compact is None:
        return
    origin, value = policy.place_of("autoCompact"), "true" if policy.auto_compact.enabled else "false"
    held = entries.get(AUTO_COMPACT)
    if held is not None and not same_value(AUTO_COMPACT, held.value, value):
        found = f"{value} and {held.value} ({held.reason.origin})"
        raise _disagree(f"autoCompact and properties.{AUTO_COMPACT} disagree", origin, found)
    if policy.auto_compact.enabled or property_of(facts, AUTO_COMPACT) is not None:
        entries[AUTO_COMPACT] = _drift(facts, AUTO_COMPACT, value, origin)
    legacy = property_of(facts, LEGACY_AUTO_OPTIMIZE)
    if not policy.auto_compact.enabled and legacy is not None and LEGACY_AUTO_OPTIMIZE not in entries:
        entries[LEGACY_AUTO_OPTIMIZE] = _drift(facts, LEGACY_AUTO_OPTIMIZE, "false", origin)
    if policy.auto_compact.enabled:
        _add_hook_settings(policy, policy.auto_compact, facts, entries)


def _add_hook_settings(
    policy: ResolvedPolicy, auto: AutoCompactPolicy, facts: TableFacts, entries: dict[str, _Wanted]
) -> None:
    """Add how our hook for writers decides; what the policy no longer says goes back to the default."""
    only = None if auto.modified_partitions_only is None else str(auto.modified_partitions_only).lower()
    values = (auto.min_num_files, auto.min_file_size_bytes, auto.max_file_size_bytes, only)
    for name, value in zip(OWN_PROPERTIES, values, strict=True):
        if value is not None or property_of(facts, name) not in (None, DEFAULT):
            origin = policy.place_of(name.removeprefix("maintainer."))
            entries[name] = _drift(facts, name, DEFAULT if value is None else str(value), origin)


def _add_retention(policy: ResolvedPolicy, facts: TableFacts, entries: dict[str, _Wanted]) -> None:
    """Raise the table's retention to the policy's, and the log's to the table's.

    Since Delta 4.1 ``RETAIN`` is ignored and the property alone decides what a VACUUM keeps, whoever runs it,
    and Delta refuses ``deletedFileRetentionDuration`` above ``logRetentionDuration``, defaults included.
    """
    if policy.vacuum is not None:
        seconds, origin = policy.vacuum.retention_seconds, policy.place_of("vacuum.retention")
        held = entries.get(DELETED_FILE_RETENTION)
        if held is not None and (parse_interval_ms(held.value) or 0) < seconds * 1000:
            found = f"{format_duration(seconds)} and {held.value} ({held.reason.origin})"
            help = f"remove the property, or set it to {format_interval(seconds)} or more"
            raise _disagree(f"vacuum.retention and properties.{DELETED_FILE_RETENTION} disagree", origin, found, help)
        now_ms = interval_property_ms(facts, DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT_MS)
        if held is None and now_ms < seconds * 1000:
            entries[DELETED_FILE_RETENTION] = _raised(DELETED_FILE_RETENTION, now_ms, seconds, origin)
    if DELETED_FILE_RETENTION in entries or LOG_RETENTION in entries:
        _hold_log_retention(facts, entries)


def _hold_log_retention(facts: TableFacts, entries: dict[str, _Wanted]) -> None:
    def planned_ms(name: str, default_ms: int) -> int:
        entry = entries.get(name)
        if entry is not None:
            return parse_interval_ms(entry.value) or 0
        return interval_property_ms(facts, name, default_ms)

    files_ms = planned_ms(DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT_MS)
    log_ms = planned_ms(LOG_RETENTION, LOG_RETENTION_DEFAULT_MS)
    if files_ms <= log_ms:
        return
    origin = (entries.get(DELETED_FILE_RETENTION) or entries[LOG_RETENTION]).reason.origin
    if LOG_RETENTION in entries:
        what = f"properties.{LOG_RETENTION} is shorter than the retention of deleted files: Delta refuses that"
        found = f"{entries[LOG_RETENTION].value}, deleted files are kept {format_duration(files_ms // 1000)}"
        help = f"set {LOG_RETENTION} to {format_interval(-(-files_ms // 1000))} or more"
        raise _disagree(what, entries[LOG_RETENTION].reason.origin, found, help)
    entries[LOG_RETENTION] = _raised(LOG_RETENTION, log_ms, -(-files_ms // 1000), origin)


def _raised(name: str, now_ms: int, seconds: int, origin: str | None) -> _Wanted:
    text = f"{name} keeps {format_duration(now_ms // 1000)}, the policy needs {format_duration(seconds)}"
    return _Wanted(format_interval(seconds), Reason(ReasonCode.RETENTION_TOO_SHORT_ON_TABLE, text, origin))
