"""Looks keys up in the JSON Schemas by their dotted names, for `maintainer schema KEY`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from maintainer.policy.diagnostics import nearest
from maintainer.policy.schema_files import POLICY_SCHEMA, PROJECT_SCHEMA, JsonObject, load_schema, resolve_reference
from maintainer.policy.support import NOT_SUPPORTED_YET, NOT_SUPPORTED_YET_IN_PROJECT


@dataclass(frozen=True)
class KeyDescription:
    """One key: its dotted name, the file it belongs in, its schema, and what of it is not supported yet.

    Items of lists have no part of their own in the name: ``consumers.maxLag``. A name that is free (a property,
    an environment) is written ``*``.
    """

    name: str
    file: str
    schema: JsonObject
    keys: tuple[str, ...]
    not_yet: tuple[str, ...]


def describe(name: str) -> KeyDescription | None:
    """Return what is known of a key, None if there is none of that name."""
    return _all_keys().get(_plain(name))


def suggestion(name: str) -> str | None:
    """Return the key that was likely meant: one that ends in the name, else one spelled like it."""
    plain = _plain(name)
    ending = [key for key in _all_keys() if key.endswith(f".{plain}")]
    return ending[0] if ending else nearest(plain, _all_keys())


def key_names() -> tuple[str, ...]:
    """Return all dotted names, those of policies first, in the order of the schemas."""
    return tuple(_all_keys())


def _plain(name: str) -> str:
    return name.replace("[]", "").strip(".")


@lru_cache(maxsize=1)
def _all_keys() -> dict[str, KeyDescription]:
    found: dict[str, KeyDescription] = {}
    for file, place in ((POLICY_SCHEMA, "a policy"), (PROJECT_SCHEMA, "maintainer.yml")):
        for description in _walk(load_schema(file), file, "", place):
            found.setdefault(description.name, description)
    return found


def _walk(schema: JsonObject, file: str, name: str, place: str) -> Iterator[KeyDescription]:
    for part, inner in _inner(schema, file):
        target, home = resolve_reference(inner["$ref"], file) if "$ref" in inner else (inner, file)
        full = f"{name}.{part}" if name else part
        yield KeyDescription(full, place, target, tuple(key for key, _ in _inner(target, home)), _not_yet(full))
        yield from _walk(target, home, full, place)


def _inner(schema: JsonObject, file: str) -> list[tuple[str, JsonObject]]:
    """The keys that may stand in a map, or in the maps of a list."""
    items = schema.get("items")
    if isinstance(items, dict):
        return _inner(items, file)
    inner = list(schema.get("properties", {}).items())
    if isinstance(schema.get("additionalProperties"), dict):
        inner.append(("*", schema["additionalProperties"]))
    return inner


def _not_yet(name: str) -> tuple[str, ...]:
    notes = []
    for entry, help in {**NOT_SUPPORTED_YET, **NOT_SUPPORTED_YET_IN_PROJECT}.items():
        key, value = entry if isinstance(entry, tuple) else (entry, None)
        if _plain(key) == name:
            what = "not supported yet" if value is None else f"`{str(value).lower()}` is not supported yet"
            notes.append(f"{what}: {help}")
    return tuple(notes)
