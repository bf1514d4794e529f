"""Read the JSON Schemas that are shipped with the package, and look up their keys by dotted names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from maintainer.policy.diagnostics.diagnostics import nearest

JsonObject: TypeAlias = "dict[str, Any]"

POLICY_SCHEMA = "policy.schema.json"
PROJECT_SCHEMA = "project.schema.json"
TESTS_SCHEMA = "tests.schema.json"


def schema_text(name: str) -> str:
    """Return a schema file as it is on disk.

    An installed package carries the files inside (``maintainer/schemas``); a clone has them beside it.

    Raises:
        FileNotFoundError: The installation is damaged.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "schemas", package.parent / "schemas"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise FileNotFoundError(f"{name} is missing from the installation of maintainer; install it again")


@lru_cache(maxsize=8)
def load_schema(name: str) -> JsonObject:
    """Return a schema as JSON; read once. Not to be changed by the caller."""
    schema: JsonObject = json.loads(schema_text(name))
    return schema


def resolve_reference(reference: str, name: str) -> tuple[JsonObject, str]:
    """Follow a ``$ref`` found in the schema ``name``; returns what it names and the schema that holds it.

    Only ``[file]#/a/b`` between our own files; ``KeyError`` where it leads nowhere, which tests exclude.
    """
    file, _, pointer = reference.partition("#")
    target = load_schema(file or name)
    for part in pointer.strip("/").split("/"):
        target = target[part]
    return target, file or name


@dataclass(frozen=True)
class KeyDescription:
    """One key: its dotted name, the file it belongs in, its schema, and the keys in it.

    Items of lists have no part of their own in the name: ``consumers.maxLag``. A name that is free (a property,
    an environment) is written ``*``.
    """

    name: str
    file: str
    schema: JsonObject
    keys: tuple[str, ...]


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


def policy_keys() -> dict[str, KeyDescription]:
    """Return every key of a policy by its dotted name."""
    return {name: key for name, key in _all_keys().items() if key.file == "a policy"}


@lru_cache(maxsize=1)
def key_formats() -> dict[str, str]:
    """Return the ``x-format`` of every key of a policy that has one."""
    return {name: key.schema["x-format"] for name, key in policy_keys().items() if "x-format" in key.schema}


def _plain(name: str) -> str:
    return name.replace("[]", "").strip(".")


@lru_cache(maxsize=1)
def _all_keys() -> dict[str, KeyDescription]:
    keys: dict[str, KeyDescription] = {}
    for file, place in ((POLICY_SCHEMA, "a policy"), (PROJECT_SCHEMA, "maintainer.yml")):
        for description in _walk(load_schema(file), file, "", place):
            keys.setdefault(description.name, description)
    return keys


def _walk(schema: JsonObject, file: str, name: str, place: str) -> Iterator[KeyDescription]:
    for part, inner in _inner(schema, file):
        target, home = resolve_reference(inner["$ref"], file) if "$ref" in inner else (inner, file)
        full = f"{name}.{part}" if name else part
        yield KeyDescription(full, place, target, tuple(key for key, _ in _inner(target, home)))
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
