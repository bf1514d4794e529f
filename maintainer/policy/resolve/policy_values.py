"""Write a policy as its keys and values in words, and name what differs between two policies.

A list whose members have names of their own (properties, expectations, consumers) is written member by member, so
that a change of one of them is named as that.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maintainer.policy.predicate.partition_predicate import Predicate
from maintainer.policy.resolve.policy_fields import field_key
from maintainer.policy.resolve.resolved import Consumer, Expectation, ResolvedPolicy, Window
from maintainer.units import format_duration, format_size

NOT_SET = "not set"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

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
    for key, value in written_settings(policy):
        # Two expectations of one type on one column differ in their arguments only.
        written[key] = value if key not in written else f"{written[key]}; {value}"
    for least, of_size in policy.sizes[1:]:
        for change in value_changes(policy_values(policy.sizes[0][1]), policy_values(of_size)):
            written[f"{change.key} from {format_size(least)} on"] = change.now
    return tuple(sorted(written.items()))


def value_changes(before: PolicyValues, now: PolicyValues) -> tuple[ValueChange, ...]:
    """Name every value that differs, in the order of the keys."""
    old, new = dict(before), dict(now)
    keys = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return tuple(ValueChange(key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in keys)


def written_settings(part: object, section: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value that a policy, or a part of one, sets: its dotted key, and the value in words."""
    for field in dataclasses.fields(part):  # type: ignore[arg-type]
        if not field.metadata:
            continue  # no key of a policy file
        name, value = field_key(field), getattr(part, field.name)
        key = ".".join(filter(None, (section, name)))
        if dataclasses.is_dataclass(value) and not isinstance(value, Predicate):
            yield from written_settings(value, key)
        elif field.name == "properties":
            yield from ((f"{key}.{name}", text) for name, text in value)
        elif field.name in ("expectations", "consumers"):
            yield from (_named_member(key, member) for member in value)
        elif "words" in field.metadata:
            # Two fields for one key: each has words for its own values only.
            yield from ((key, words) for words in [field.metadata["words"].get(value)] if words)
        elif value not in (None, ()):
            yield key, _in_words(field.name, value)


def _named_member(key: str, member: Expectation | Consumer) -> tuple[str, str]:
    if isinstance(member, Consumer):
        parts = dict(written_settings(member))
        return f"{key}.{parts.pop('name')}", _arguments(parts)
    arguments = dict(member.arguments)
    column = arguments.pop("column", None)
    return f"{key}.{member.type}" + (f"({column})" if isinstance(column, str) else ""), _arguments(arguments)


def _arguments(arguments: Mapping[str, object]) -> str:
    """Return ``mostly: 0.95, min_value: 1``; that there are none is a value, too."""
    return ", ".join(f"{name}: {_in_words('', value)}" for name, value in arguments.items()) or "expected"


def _in_words(name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() if name.endswith("_seconds"):
            return format_duration(value)
        case int() if name.endswith("_bytes"):
            return format_size(value)
        case enum.Enum():
            return str(value.value)
        case str():
            return value
        case tuple():
            return _listed(value)
        case Mapping() | list():
            return json.dumps(value, **_JSON)
        case _:
            return str(value)


def _listed(members: Sequence[Any]) -> str:
    windows: Iterable[str] = (_window(member) for member in members if isinstance(member, Window))
    return "; ".join(windows) or ", ".join(_in_words("", member) for member in members)


def _window(window: Window) -> str:
    days = "every day" if len(window.days) == len(_DAYS) else ", ".join(_DAYS[day - 1] for day in window.days)
    return f"{days} {window.start:%H:%M} to {window.end:%H:%M} {window.timezone}"


_JSON: dict[str, Any] = {"ensure_ascii": False, "sort_keys": True, "default": str}
