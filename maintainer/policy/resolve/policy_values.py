"""Write a policy as its keys and values, in base units or in words, and name what differs between two policies.

A list whose members have names of their own (properties, expectations, consumers) is put into words member by member,
so that a change of one of them is named as that.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from maintainer.policy.predicate.partition_predicate import Predicate
from maintainer.policy.resolve.policy_fields import field_key
from maintainer.policy.resolve.resolved import WEEKDAYS, ResolvedPolicy
from maintainer.policy.schema.schema_keys import key_formats
from maintainer.units import format_duration, format_size

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
    for field in dataclasses.fields(part):  # type: ignore[arg-type]
        if not field.metadata:
            continue  # no key of a policy file
        name, value, words = field_key(field), getattr(part, field.name), field.metadata.get("words", {})
        key = ".".join(filter(None, (section, name)))
        if dataclasses.is_dataclass(value) and not isinstance(value, Predicate):
            yield from base_settings(value, key)
        elif field.name == "properties":
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
