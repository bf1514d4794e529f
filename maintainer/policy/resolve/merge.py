"""Merge levels of settings by "was it set", with the place of every value and of what it replaced.

A level is flat: a leaf is anything but a map, addressed by its keys. Maps therefore merge by key, and lists and
scalars replace, without a rule for either. A key without a value (``null``) is as if it were not written, so
the level below shows through; nothing is ever decided by truthiness.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from maintainer.policy.resolve.resolved import BUILT_IN, Origin
from maintainer.policy.schema.schema_keys import PROJECT_SCHEMA, load_schema
from maintainer.policy.yaml.yaml_document import Document, Path

Keys: TypeAlias = "tuple[str, ...]"
"""Where a setting is in a policy: ``("optimize", "maxFileSize")``."""

SETTING_KEYS = tuple(load_schema(PROJECT_SCHEMA)["properties"]["defaults"]["properties"])
"""Top-level keys that every level may set, in the order in which people read them."""


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
    document: Document | None = field(default=None, compare=False, repr=False)
    path: Path = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one file says at one level: leaves, and the maps that it wrote (also empty ones)."""

    level: Level
    file: str
    leaves: Mapping[Keys, Setting]
    maps: Mapping[Keys, Origin]


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of merging: the winning leaf of each key, and the place of each map that exists."""

    leaves: Mapping[Keys, Setting]
    maps: Mapping[Keys, Origin]

    def get(self, dotted: str) -> Setting | None:
        """Return the winning setting of a dotted key, None if nobody set it."""
        return self.leaves.get(tuple(dotted.split(".")))


def document_layer(document: Document, level: Level, base: Path = ()) -> Layer:
    """Read the settings of a document, or of the map at ``base`` in it, as one level."""
    data: object = document.data
    for key in base:
        data = data.get(key) if isinstance(data, dict) else None
    leaves: dict[Keys, Setting] = {}
    maps: dict[Keys, Origin] = {}
    if isinstance(data, dict):
        for key in SETTING_KEYS:
            if key in data:
                _flatten(document, level, (*base, key), (key,), data[key], leaves, maps)
    return Layer(level, document.file, leaves, maps)


def built_in_layer(values: Mapping[str, object]) -> Layer:
    """Make a level from dotted keys and values that no file holds."""
    leaves = {tuple(key.split(".")): Setting(value, Level.BUILT_IN, BUILT_IN) for key, value in values.items()}
    maps = {keys[:end]: BUILT_IN for keys in leaves for end in range(1, len(keys))}
    return Layer(Level.BUILT_IN, BUILT_IN.file, leaves, maps)


def merge(layers: Iterable[Layer]) -> Merged:
    """Merge levels from low to high; within the sequence, the later one wins."""
    leaves: dict[Keys, Setting] = {}
    maps: dict[Keys, Origin] = {}
    for layer in layers:
        for keys, origin in layer.maps.items():
            # A map where a lower level has a scalar (autoCompact): the map replaces it.
            leaves.pop(keys, None)
            maps[keys] = origin
        for keys, setting in layer.leaves.items():
            if keys in maps and keys not in layer.maps:
                _drop_map(keys, leaves, maps)
            below = leaves.get(keys)
            leaves[keys] = setting if below is None else replace(setting, below=below)
    return Merged(leaves, maps)


def _drop_map(keys: Keys, leaves: dict[Keys, Setting], maps: dict[Keys, Origin]) -> None:
    """Remove a map and everything in it: a scalar takes its place."""
    for inner in [inner for inner in leaves if inner[: len(keys)] == keys]:
        del leaves[inner]
    for inner in [inner for inner in maps if inner[: len(keys)] == keys]:
        del maps[inner]


def _flatten(
    document: Document,
    level: Level,
    path: Path,
    keys: Keys,
    value: object,
    leaves: dict[Keys, Setting],
    maps: dict[Keys, Origin],
) -> None:
    if value is None:
        return
    if isinstance(value, dict):
        maps[keys] = _origin(document, path, of_key=True)
        for key, inner in value.items():
            _flatten(document, level, (*path, key), (*keys, key), inner, leaves, maps)
        return
    leaves[keys] = Setting(value, level, _origin(document, path, of_key=False), None, document, path)


def _origin(document: Document, path: Path, *, of_key: bool) -> Origin:
    span = document.key_span_of(path) if of_key else document.span_of(path)
    return Origin(document.file, span.line, span.column)
