"""Define what the rest of the program knows of a policy: complete, frozen, in base units, with origins.

Nothing behind this module sees YAML. A value that nobody wrote has its built-in default and the origin ``built-in``.
Sizes are bytes, durations are seconds, and ``origins`` maps each dotted key (``optimize.maxFileSize``) to the file,
line and column that decided it.

A policy is written as its keys and values, in base units or in words, so that what differs between two has a name. A
list whose members have names of their own (properties, expectations, consumers) is put into words member by member, so
that a change of one of them is named as that.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time
from typing import Any

from maintainer.model.plan.plan import BUILT_IN_POLICY
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.predicate.partition_predicate import Predicate
from maintainer.policy.resolve.policy_fields import field_key, setting
from maintainer.policy.resolve.policy_settings import (
    NAME,
    AutoCompactPolicy,
    ClusterPolicy,
    Consumer,
    Expectation,
    LimitsPolicy,
    OptimizePolicy,
    PurgePolicy,
    RewritePolicy,
    VacuumMode,
    VacuumPolicy,
    VerifyPolicy,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from maintainer.policy.schema.schema_keys import key_formats
from maintainer.units import format_duration, format_size

_TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
WEEKDAYS = dict(enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), start=1))


@dataclass(frozen=True, slots=True)
class Window:
    """When steps may start. ``days`` are ISO weekdays (Monday 1); ``end`` before ``start`` crosses midnight."""

    days: tuple[int, ...] = setting(
        ..., words=WEEKDAYS, minItems=1, maxItems=7, note="every day", example=["mon", "tue", "wed", "thu", "fri"]
    )
    """Days on which the window opens."""
    start: time = setting(
        ..., key="from", pattern=_TIME, form="time", unit="time of day; `22:00`", example="22:00", required=True
    )
    """Time of day at which the window opens."""
    end: time = setting(
        ..., key="to", pattern=_TIME, form="time", unit="time of day; `04:00`", example="04:00", required=True
    )
    """Time of day at which the window closes."""
    timezone: str = setting(
        ...,
        minLength=1,
        maxLength=100,
        form="timezone",
        note="`timezone` of maintainer.yml, else UTC",
        example="Europe/Berlin",
    )
    """An IANA time zone."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """Nothing is done until the day given (exclusive of the day itself: on it, work starts again)."""

    until: date | None = setting(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", form="date", unit="date; `2026-12-01`", example="2026-12-01"
    )
    """Maintenance starts again on this day. Without it, when you remove `suspend`."""
    reason: str = setting("", minLength=1, maxLength=500, example="migration", required=True)
    """Why; shown in plans."""
    below: tuple[Suspension, ...] = ()

    def on(self, day: date) -> Suspension | None:
        """Return what holds on a day: this one, or where it is over the first ``below`` that is not."""
        return next((each for each in (self, *self.below) if each.until is None or day < each.until), None)


__all__ = [  # what a policy is made of is read from here
    "BUILT_IN", "AutoCompactPolicy", "ClusterPolicy", "Consumer", "Expectation", "LimitsPolicy", "OptimizePolicy",
    "Origin", "PurgePolicy", "ResolvedPolicy", "RewritePolicy", "Suspension", "VacuumMode", "VacuumPolicy",
    "VerifyPolicy", "Window", "WorthPolicy", "ZOrderMode", "ZOrderPolicy", "policy_digest",
]  # fmt: skip

_CONSUMER = {"name": "orders-stream", "maxLag": "3d"}


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a value in a file. Lines and columns count from 1; ``built-in`` has line 0."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return self.file if self.line == 0 else f"{self.file}:{self.line}"


BUILT_IN = Origin(BUILT_IN_POLICY, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class OriginsInFile(Mapping[str, Origin]):
    """Origins by key. ``places`` name no file where it is ``file``: files that are written alike share them."""

    file: str
    places: Mapping[str, Origin]

    def __getitem__(self, key: str) -> Origin:
        origin = self.places[key]
        return origin if origin.file else replace(origin, file=self.file)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """The effective policy of one table.

    ``optimize`` is always present (the smallest policy compacts). ``vacuum`` is None unless some level wrote
    a ``vacuum`` map: deletion is never a default. ``auto_compact`` None means: not managed. ``rule_line`` is where in
    ``file`` the rule is that manages a table without a file of its own; None for any other.
    ``digest`` is ``sha256:`` over the canonical JSON of every effective value; origins do not enter it.

    Rules with ``match.minSize`` do not reach the table here. ``sizes`` are its policies by the least size of the table
    in bytes, ascending from 0, and empty where no such rule may reach it: see `of_size`. ``managed_from`` is the
    ``match.minSize`` below which no rule manages the table, with its place.
    """

    table: TableRef
    file: str
    digest: str
    optimize: OptimizePolicy = setting(..., example={"minFileSize": "64MiB", "maxFileSize": "256MiB"})
    """File sizes and layout: which files are rewritten, how large the new files are, and how rows are ordered."""
    verify: VerifyPolicy = setting(..., example={"rowCount": "scan", "content": "fingerprint"})
    """What to check after a change, in addition to the proof before each commit. A failure stops the later steps of the
    table."""
    limits: LimitsPolicy = setting(..., example={"maxBytes": "500GiB", "timeout": "3h"})
    """Limits for one table in one run. A plan above a limit is refused before anything is changed."""
    vacuum: VacuumPolicy | None = setting(example={"retention": "7d", "every": "7d"})
    """Deletes files that are no longer part of the table. Without this key no file is ever deleted."""
    auto_compact: AutoCompactPolicy | None = setting(type=["boolean", "object"], example=True)
    """Compaction right after a write: the table property `delta.autoOptimize.autoCompact`. Without this key the
    property is left alone. A map turns it on and configures `maintainer.auto_compact`, the hook for writers, by table
    properties `maintainer.autoCompact.*`."""
    properties: tuple[tuple[str, str], ...] = setting(
        (), propertyNames={"pattern": "^[A-Za-z0-9_.-]+$", "maxLength": 200}, maxProperties=100,
        additionalProperties={
            "description": "The value; Delta stores all values as text. `null` goes back to the inherited value.",
            "type": ["string", "integer", "boolean", "null"], "maxLength": 4000,
        },
        type="object", example={"delta.logRetentionDuration": "interval 30 days"},
    )  # fmt: skip
    """Other table properties to set. If a value on the table differs, `plan` shows it and `apply` corrects it."""
    consumers: tuple[Consumer, ...] = setting(
        (), items={"description": "One reader of old versions.", "examples": [_CONSUMER]}, maxItems=100,
        example=[_CONSUMER],
    )  # fmt: skip
    """Readers of old versions of the table. Vacuum keeps the files that they need: also for a change feed the data
    files, from which it reads rows that were appended."""
    windows: tuple[Window, ...] = setting(
        (), key="window", items={
            "description": "Days and times. If `to` is before `from`, the window ends the next day.",
            "examples": [{"from": "22:00", "to": "04:00"}],
        },
        maxItems=50, example=[{"days": ["sat", "sun"], "from": "22:00", "to": "04:00", "timezone": "Europe/Berlin"}],
    )  # fmt: skip
    """When steps may start. A step that has started may finish later. Without a window: at any time."""
    suspend: Suspension | None = setting(example={"until": "2026-12-01", "reason": "migration"})
    """Stops all maintenance of the table."""
    owner: str | None = setting(minLength=1, maxLength=200, pattern=NAME, example="team-sales")
    """Who is responsible. Shown in plans, reports and messages; selected by `--select owner:NAME`."""
    description: str | None = setting(maxLength=4000, example="Order lines, appended every 5 minutes.")
    """What the table is, in your words."""
    tags: tuple[str, ...] = setting(
        (), items={"pattern": "^[^\\s,]+$", "examples": ["nightly"], "maxLength": 100}, maxItems=100, spelled=[],
        example=["nightly", "tier1"],
    )  # fmt: skip
    """Words to select by: `--select tag:NAME`, and `match.tags` of rules. The tags of all levels add up: those of
    rules, profiles and the table's own file."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    rule_line: int | None = None
    sizes: tuple[tuple[int, ResolvedPolicy], ...] = ()
    managed_from: tuple[int, Origin] | None = None

    def of_size(self, size_bytes: int) -> ResolvedPolicy:
        """Return the policy for a table whose live files have this size together."""
        return next((policy for least, policy in reversed(self.sizes) if least <= size_bytes), self)

    def planned(self, digest: str, size_bytes: int) -> ResolvedPolicy:
        """Return the policy that a plan was made by, if it is one of these, whatever the table's size is now."""
        return next((policy for _, policy in self.sizes if policy.digest == digest), self.of_size(size_bytes))

    @property
    def source(self) -> str:
        """Where the table comes from: its own file, or file and line of the rule that manages it."""
        return self.file if self.rule_line is None else f"{self.file}:{self.rule_line}"

    @property
    def is_ledger(self) -> bool:
        """Whether this is our own ledger, see `TablePlan.is_ledger`."""
        return self.file == BUILT_IN_POLICY

    def origin(self, key: str) -> Origin:
        """Return the origin of a dotted key, or of the nearest key above it, else ``built-in``."""
        while key:
            if key in self.origins:
                return self.origins[key]
            key = key.rpartition(".")[0]
        return BUILT_IN

    def place_of(self, key: str) -> str:
        """Return the origin of a dotted key as text: ``policies/orders.yml:12``."""
        return str(self.origin(key))


def policy_digest(values: Mapping[str, object]) -> str:
    """Return ``sha256:`` and the hash of the canonical JSON of effective values.

    Args:
        values: Dotted key to value in base units (bytes, seconds, canonical predicate text), so that
            ``1GiB`` and ``1024MiB`` agree. Neither origins nor the table's name belong in it: a digest must
            not depend on the machine or on how files are laid out.
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


NOT_SET = "not set"

PolicyValues = tuple[tuple[str, str], ...]
"""Dotted keys with their values in words, in the order of the keys."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One effective value, as a policy file spells its key; values in words."""

    key: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.key} was {self.before}, now {self.now}"


def policy_values(policy: ResolvedPolicy) -> PolicyValues:
    """Return every value that a policy sets, or has by default."""
    written: dict[str, str] = {}
    for key, value in dict(base_settings(policy)).items():
        for name, words in _in_words(key, value):
            # Two expectations of one type on one column differ in their arguments only.
            written[name] = words if name not in written else f"{written[name]}; {words}"
    for least, of_size in policy.sizes[1:]:
        for change in value_changes(policy_values(policy.sizes[0][1]), policy_values(of_size)):
            written[f"{change.key} from {format_size(least)} on"] = change.now
    return tuple(sorted(written.items()))


def value_changes(before: PolicyValues, now: PolicyValues) -> tuple[ValueChange, ...]:
    """Name every value that differs, in the order of the keys."""
    old, new = dict(before), dict(now)
    keys = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return tuple(ValueChange(key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in keys)


def base_settings(part: object, section: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that a policy, or a part of one, sets: its dotted key, and the value as JSON has it.

    Sizes are bytes and durations seconds; all else is as a policy file says it.
    """
    for one in dataclasses.fields(part):  # type: ignore[arg-type]
        if not one.metadata:
            continue  # no key of a policy file
        name, value, words = field_key(one), getattr(part, one.name), one.metadata.get("words", {})
        key = ".".join(filter(None, (section, name)))
        if dataclasses.is_dataclass(value) and not isinstance(value, Predicate):
            yield from base_settings(value, key)
        elif one.name == "properties":
            yield from ((f"{key}.{name}", text) for name, text in value)
        elif words and not isinstance(value, tuple):
            # Two fields for one key: each has words for its own values only, and the later one wins.
            yield from ((key, {"true": True, "false": False}.get(word, word)) for word in [words.get(value)] if word)
        elif value not in (None, ()):
            yield key, _in_base_units(value, words)


def _in_base_units(value: object, words: Mapping[object, str]) -> Any:  # noqa: ANN401 (a JSON value)
    match value:
        case enum.Enum():
            return value.value
        case tuple():
            return [words[member] if words else _in_base_units(member, {}) for member in value]
        case time():
            return f"{value:%H:%M}"
        case date() | Predicate():
            return str(value)
        case _ if dataclasses.is_dataclass(value):
            return {**dict(base_settings(value)), **getattr(value, "arguments", {})}
        case _:
            return value


def _in_words(key: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 (a JSON value)
    """Yield a value in words; each member of a list by its own name, where it has one."""
    match key:
        case "consumers":
            for member in value:
                arguments = {name: _words(f"{key}.{name}", inner) for name, inner in member.items()}
                yield f"{key}.{arguments.pop('name')}", _arguments(arguments)
        case "verify.expectations":
            for member in value:
                arguments = {name: inner for name, inner in member.items() if name != "type"}
                column = f"({arguments.pop('column')})" if isinstance(arguments.get("column"), str) else ""
                yield f"{key}.{member['type']}{column}", _arguments(arguments)
        case "window":
            yield key, "; ".join(map(_window, value))
        case _ if isinstance(value, list):
            yield key, ", ".join(_words(key, member) for member in value)
        case _:
            yield key, _words(key, value)


def _arguments(arguments: Mapping[str, object]) -> str:
    """Return ``mostly: 0.95, min_value: 1``; that there are none is a value, too."""
    return ", ".join(f"{name}: {_words('', value)}" for name, value in arguments.items()) or "expected"


def _words(key: str, value: object) -> str:
    form = key_formats().get(key)
    match value:
        case int() if form == "duration":
            return format_duration(value)
        case int() if form == "size":
            return format_size(value)
        case str():
            return value
        case bool() | Mapping() | list():
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        case _:
            return str(value)


def _window(window: Mapping[str, Any]) -> str:
    days = "every day" if len(window["days"]) == len(WEEKDAYS) else ", ".join(map(str.title, window["days"]))
    return f"{days} {window['from']} to {window['to']} {window['timezone']}"
