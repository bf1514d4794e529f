"""The JSON Schemas that say what a file may hold: ``schemas/*.json``, shipped inside the package."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

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
    package = Path(__file__).resolve().parent.parent
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
