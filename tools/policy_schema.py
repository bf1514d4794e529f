"""Writes what the schemas of policy files say of settings: ``python -m tools.policy_schema`` from the repository root.

The settings are fields of `policy_settings`, of `ResolvedPolicy` and of `ProjectSettings`; a field's text is the one
below it. What stands around them (`table`, `match`, `manage`, `priority`, `extends`; in maintainer.yml `version` and
the maps `defaults`, `limits` and `overrides`) is written by hand in the same files. A test holds the committed files
and the models together.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import json
import sys
import types
from collections.abc import Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from maintainer.policy.predicate.partition_predicate import Predicate
from maintainer.policy.project.project_settings import ProjectSettings
from maintainer.policy.resolve.policy_fields import field_key
from maintainer.policy.resolve.resolved import ResolvedPolicy

SCHEMAS = Path(__file__).parent.parent / "schemas"
POLICY, PROJECT = "policy.schema.json", "project.schema.json"
IN_PLACE = ("owner", "description", "tags")
"""Settings without a definition of their own: they stand among the keys of each kind of file."""

_OURS = {"note": "x-default", "unit": "x-unit", "above_zero": "x-aboveZero", "form": "x-format"}
_SIZE: dict[str, Any] = {
    "type": ["string", "integer"],
    "pattern": "^[0-9]+ ?([KMGTP]iB|[kKmMgGtTpP][bB]?|[bB])?$",
    "minimum": 0,
    "x-format": "size",
    "x-unit": "bytes; `64MiB`, `1GiB`, or a plain integer",
}
_WORD = "".join(f"[{letter}{letter.upper()}]" for letter in "interval")
_UNITS = "|".join(
    "".join(f"[{letter}{letter.upper()}]" for letter in unit) for unit in ("week", "day", "hour", "minute", "second")
)
_DURATION: dict[str, Any] = {
    "type": ["string"],
    "pattern": "^(([0-9]+[wdhms] ?)*[0-9]+[wdhms]|P[0-9]+W|P([0-9]+D)(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?"
    f"|PT([0-9]+H)?([0-9]+M)?([0-9]+S)?|{_WORD}( +[0-9]+ +({_UNITS})[sS]?)+)$",
    "x-format": "duration",
    "x-unit": "duration; `7d`, `36h`, `1d 12h`, `P7D`",
}
_FORMS = {"size": _SIZE, "duration": _DURATION}
_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    Predicate: "string",
    date: "string",
    time: "string",
}


@functools.cache
def texts(kind: type) -> Mapping[str, str]:
    """The text below each field of a class, and of the one that it extends, on one line."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    found = {name: text for base in kind.__bases__ if base is not object for name, text in texts(base).items()}
    name = ""
    for node in definition.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Expr(value=ast.Constant(value=str() as text)) if name:
                found[name] = " ".join(text.split())
            case _:
                name = ""
    return found


def sections() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each top-level setting with its schema."""
    yield from _properties(ResolvedPolicy).items()


def _properties(kind: type) -> dict[str, Any]:
    hints, described = get_type_hints(kind), texts(kind)
    properties: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field_key(field) == ".":
            properties |= _properties(hints[field.name])
        elif field.name in described:
            properties.setdefault(field_key(field), _schema(field, hints[field.name], described[field.name]))
    return properties


def _schema(field: dataclasses.Field[Any], hint: Any, text: str) -> dict[str, Any]:
    said: dict[str, Any] = dict(field.metadata["said"])
    required, items, each = said.pop("required", False), said.pop("items", {}), said.pop("each", None)
    of = said.pop("of", None)
    form = _FORMS.get(str(said.get("form")))
    schema: dict[str, Any] = {"description": text, **(form or _kind(_bare(hint), items))}
    if words := field.metadata.get("words"):
        choice = {"type": "string", "enum": list(words.values())} if len(words) > 1 else {}
        schema |= {"items": choice} if schema.get("type") == "array" else choice
    if each is not None:
        value = {"description": each, **_kind(of or get_args(get_args(hint)[0])[1], {}), "type": ["object", "null"]}
        if of is not None:  # without a value of its own the project's holds
            for key in value["properties"].values():
                key.pop("default", None)
        schema = {"description": text, "type": "object", "additionalProperties": value}
    example = said.pop("example", None)
    examples = said.pop("examples", [field.metadata["default"] if example is None else example])
    schema |= {_OURS.get(keyword, keyword): value for keyword, value in said.items()}
    if "note" not in said and field.metadata["default"] is not None and not required:
        schema["default"] = field.metadata["default"]
    schema["examples"] = examples
    if not required:
        types_now = schema.get("type")
        if types_now is not None:
            schema["type"] = [*([types_now] if isinstance(types_now, str) else types_now), "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return {keyword: value for keyword, value in schema.items() if value is not None}


def _bare(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not types.NoneType]
        return options[0]
    return hint


def _kind(hint: Any, items: Mapping[str, Any]) -> dict[str, Any]:
    if get_origin(hint) is tuple:
        return _list(get_args(hint)[0], items)
    if dataclasses.is_dataclass(hint) and hint not in _TYPES:
        needed = [field_key(one) for one in dataclasses.fields(hint) if one.metadata.get("said", {}).get("required")]
        return {
            "type": "object",
            **({"required": needed} if needed else {}),
            "additionalProperties": False,
            "properties": _properties(hint if isinstance(hint, type) else type(hint)),
        }
    if get_origin(hint) in (Union, types.UnionType):
        return {}  # said by hand
    if issubclass(hint, enum.Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    return {"type": _TYPES[hint]}


def _list(hint: Any, items: Mapping[str, Any]) -> dict[str, Any]:
    if get_origin(hint) is tuple:  # names with values, which is a map in a file
        return {}
    item = {**_kind(hint, {}), **items}
    once = {} if dataclasses.is_dataclass(hint) else {"uniqueItems": True}
    return {"type": "array", "items": {name: value for name, value in item.items() if value is not None}, **once}


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    """The two schemas with the settings as the models have them."""
    settings = dict(sections())
    policy, project = (json.loads((SCHEMAS / name).read_text(encoding="utf-8")) for name in (POLICY, PROJECT))
    in_defaults = project["properties"]["defaults"]["properties"]
    for name in IN_PLACE:
        policy["properties"][name] = in_defaults[name] = settings.pop(name)
    policy["definitions"] = settings
    keys = project["properties"]
    overrides = keys["environments"]["additionalProperties"]["properties"]["overrides"]
    for name, setting in _properties(ProjectSettings).items():
        section, _, key = name.rpartition(".")
        (keys[section]["properties"] if section else keys)[key] = setting
    keys["environments"]["additionalProperties"]["properties"]["overrides"] = overrides
    yield POLICY, policy
    yield PROJECT, project


def text_of(document: Mapping[str, Any]) -> str:
    """A schema as its file has it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files; with ``--check``, only say which are not current."""
    for name, document in documents():
        if "--check" not in sys.argv:
            (SCHEMAS / name).write_text(text_of(document), encoding="utf-8")
        elif (SCHEMAS / name).read_text(encoding="utf-8") != text_of(document):
            sys.exit(f"schemas/{name} is not what the models say: python -m tools.policy_schema")


if __name__ == "__main__":
    main()
