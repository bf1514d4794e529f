"""Merge levels of settings by "was it set", with the place of every value and of what it replaced.

A level is flat: a leaf is anything but a map, addressed by its keys. Maps therefore merge by key, and lists and
scalars replace, without a rule for either. Only tags add up, and a ``suspend`` is taken whole. A key without a value
(``null``) is as if it were not written, so the level below shows through; nothing is ever decided by truthiness. Values
are read into base units by the unit that the schema gives a key.

The lowest level are the built-in defaults. There ``maxFileSize`` is 256 MiB and not Delta's 1 GiB: a bin is rewritten
by one task, so its size is what one core must read, hold and write before anything is proven, and what a failure
throws away. ``minFileSize`` has no value here: it follows the effective ``maxFileSize`` (`min_file_size_of`).
Deletion is never a default: the values of ``vacuum`` hold only once some level has written a ``vacuum`` map.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.policy_fields import defaults_of
from maintainer.policy.resolve.policy_settings import (
    LimitsPolicy,
    OptimizePolicy,
    VacuumPolicy,
    VerifyPolicy,
    ZOrderPolicy,
)
from maintainer.policy.resolve.resolved import BUILT_IN, Origin
from maintainer.policy.schema.schema_keys import PROJECT_SCHEMA, key_formats, load_schema
from maintainer.policy.yaml.yaml_document import Path, YamlDocument
from maintainer.units import exact_size, format_duration, parse_duration, parse_size

_ITEMS = ("consumers", "window")
"""Lists of maps whose items are settings, too; keys without a value are as if not written."""


def base_value(key: str, value: object) -> object:
    """Read a setting's value into base units: bytes, seconds, the canonical text of a predicate.

    Raises:
        UnitError: The value is not a size or duration (checked documents have none such).
        PredicateError: ``optimize.where`` is not a predicate.
    """
    if key.startswith("properties."):
        # As Delta keeps it: as text, truth in lower case.
        return str(value).lower() if isinstance(value, bool) else str(value)
    if key in _ITEMS and isinstance(value, list):
        return [_item(key, item) for item in value]
    format = key_formats().get(key)
    if format in ("size", "duration", "predicate") and isinstance(value, (int, str)):
        return _scalar(format, value)
    return value


def spelled(key: str, value: object) -> object:
    """Turn a base value back into what a policy file may hold: ``67108864`` is ``64MiB``."""
    format = key_formats().get(key)
    if format == "size" and isinstance(value, int):
        text = exact_size(value)
        return int(text) if text.isdigit() else text
    if format == "duration" and isinstance(value, int):
        return format_duration(value)
    if key in _ITEMS and isinstance(value, list):
        return [{name: spelled(f"{key}.{name}", inner) for name, inner in item.items()} for item in value]
    return value


@lru_cache(maxsize=4096, typed=True)
def _scalar(format: str, value: int | str) -> object:
    """Read one value; a fleet says the same few things thousands of times."""
    if format == "size":
        return parse_size(value)
    return parse_duration(str(value)) if format == "duration" else parse_predicate(str(value)).text


def _item(key: str, item: object) -> object:
    if not isinstance(item, dict):
        return item
    return {name: base_value(f"{key}.{name}", inner) for name, inner in item.items() if inner is not None}


Keys: TypeAlias = "tuple[str, ...]"
"""Where a setting is in a policy: ``("optimize", "maxFileSize")``."""

SETTING_KEYS = tuple(load_schema(PROJECT_SCHEMA)["properties"]["defaults"]["properties"])
"""Top-level keys that every level may set, in the order in which people read them."""


TAGS: Keys = ("tags",)
"""The one list that adds up over all levels: who selects by the tag of a profile means every table that extends it."""


SUSPEND: Keys = ("suspend",)
"""The one map that is not merged by key: the end of one suspension says nothing of another one's."""


class Level(enum.IntEnum):
    """Where a value comes from, low to high."""

    BUILT_IN = 0
    DEFAULTS = 1
    RULE = 2
    PROFILE = 3
    TABLE = 4
    ENVIRONMENT = 5


@dataclass(frozen=True, slots=True)
class Setting:
    """One value as written, where it stands, and the value of a lower level that it replaced."""

    value: object
    level: Level
    origin: Origin
    below: Setting | None = None
    document: YamlDocument | None = field(default=None, compare=False, repr=False)
    path: Path = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Merged:
    """Leaves, and the place of each map that was written, also of an empty one: of a file, or of all levels merged."""

    leaves: Mapping[Keys, Setting]
    maps: Mapping[Keys, Origin]

    def get(self, dotted: str) -> Setting | None:
        """Return the setting of a dotted key, None if nobody set it."""
        return self.leaves.get(tuple(dotted.split(".")))


Layer = Merged
"""What one file says at one level."""


def settings_in(document: YamlDocument, base: Path = ()) -> Iterator[tuple[Keys, object]]:
    """Yield the maps and the leaves of a document's settings, or of the map at ``base`` in it, each with its keys."""

    def below(keys: Keys, value: object) -> Iterator[tuple[Keys, object]]:
        if value is not None:
            yield keys, value
        for name, inner in value.items() if isinstance(value, dict) else ():
            yield from below((*keys, name), inner)

    for key in SETTING_KEYS:
        yield from below((key,), document.value_at((*base, key)))


def document_layer(document: YamlDocument, level: Level, base: Path = ()) -> Layer:
    """Read the settings of a document, or of the map at ``base`` in it, as one level."""
    leaves: dict[Keys, Setting] = {}
    maps: dict[Keys, Origin] = {}
    for keys, value in settings_in(document, base):
        path, is_map = (*base, *keys), isinstance(value, dict)
        span = document.key_span_of(path) if is_map else document.span_of(path)
        origin = Origin(document.file, span.line, span.column)
        if is_map:
            maps[keys] = origin
        else:
            leaves[keys] = Setting(value, level, origin, None, document, path)
    return Layer(leaves, maps)


def built_in_layer(values: Mapping[str, object]) -> Layer:
    """Make a level from dotted keys and values that no file holds."""
    leaves = {tuple(key.split(".")): Setting(value, Level.BUILT_IN, BUILT_IN) for key, value in values.items()}
    maps = {keys[:end]: BUILT_IN for keys in leaves for end in range(1, len(keys))}
    return Layer(leaves, maps)


def merge(layers: Iterable[Layer]) -> Merged:
    """Merge levels from low to high; within the sequence, the later one wins."""
    leaves: dict[Keys, Setting] = {}
    maps: dict[Keys, Origin] = {}
    for layer in layers:
        if SUSPEND in layer.maps:
            leaves.pop((*SUSPEND, "until"), None)
        for keys, origin in layer.maps.items():
            # A map where a lower level has a scalar (autoCompact): the map replaces it.
            leaves.pop(keys, None)
            maps[keys] = origin
        for keys, setting in layer.leaves.items():
            if keys in maps and keys not in layer.maps:
                _drop_map(keys, leaves, maps)
            below = leaves.get(keys)
            if below is not None and keys == TAGS:
                setting = replace(setting, value=_joined(below.value, setting.value))
            leaves[keys] = setting if below is None else replace(setting, below=below)
    return Merged(leaves, maps)


def _joined(lower: object, higher: object) -> object:
    """Return the tags of two levels, each once; in checked files both are lists."""
    return list(dict.fromkeys([*lower, *higher])) if isinstance(lower, list) and isinstance(higher, list) else higher


def _drop_map(keys: Keys, leaves: dict[Keys, Setting], maps: dict[Keys, Origin]) -> None:
    """Remove a map and everything in it: a scalar takes its place."""
    for inner in [inner for inner in leaves if inner[: len(keys)] == keys]:
        del leaves[inner]
    for inner in [inner for inner in maps if inner[: len(keys)] == keys]:
        del maps[inner]


_SECTIONS = (
    ("optimize", OptimizePolicy), ("verify", VerifyPolicy), ("limits", LimitsPolicy), ("vacuum", VacuumPolicy),
    ("optimize.zorder", ZOrderPolicy),
)  # fmt: skip
BUILT_IN_LAYERS = {tuple(name.split(".")): built_in_layer(defaults_of(kind, name)) for name, kind in _SECTIONS}
_WHERE_WRITTEN = (("vacuum",), ("optimize", "zorder"))


def built_in_layers(layers: Iterable[Layer]) -> list[Layer]:
    """Return the lowest levels of a table: those of ``vacuum`` and of ``zorder`` only where some level writes them."""
    maps = {keys for layer in layers for keys in layer.maps}
    return [layer for keys, layer in BUILT_IN_LAYERS.items() if keys not in _WHERE_WRITTEN or keys in maps]


def min_file_size_of(max_file_size_bytes: int) -> int:
    """Return the default ``minFileSize``: 3/4 of ``maxFileSize``, at least one byte.

    With Delta's own default (all of it) nearly every file that a rewrite wrote would count as small again.
    """
    return max(max_file_size_bytes * 3 // 4, 1)
