"""Read the JSON Schemas and describe their keys, and put names of keys and types into words.

Days of the week are read as people write them: ranges, whole names, words for several days.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from maintainer.policy.diagnostics import did_you_mean, nearest
from maintainer.policy.yaml.yaml_document import Path as DataPath
from maintainer.policy.yaml.yaml_document import plain_scalar

JsonObject: TypeAlias = "dict[str, Any]"

POLICY_SCHEMA = "policy.schema.json"
PROJECT_SCHEMA = "project.schema.json"
TESTS_SCHEMA = "tests.schema.json"


def shipped_text(name: str) -> str:
    """Return a schema, or the page of codes, as it is on disk.

    An installed package carries the files inside (``maintainer/schemas``); a clone has them beside it.

    Raises:
        FileNotFoundError: The installation is damaged.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "schemas", package.parent / "schemas", package.parent / "docs"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise FileNotFoundError(f"{name} is missing from the installation of maintainer; install it again")


@lru_cache(maxsize=1)
def code_sections() -> dict[str, str]:
    """Return what ``docs/codes.md`` says of each code. The first line is its title, behind the code."""
    pattern = re.compile(r"^### (([A-Z]\d{3}): .*?)(?=^###? [A-Z]\d|\Z)", re.MULTILINE | re.DOTALL)
    return {code: f"{section.strip()}\n" for section, code in pattern.findall(shipped_text("codes.md"))}


def code_titles() -> dict[str, str]:
    """Return the general sentence of each code."""
    return {code: section[6:].partition("\n")[0] for code, section in code_sections().items()}


@lru_cache(maxsize=8)
def load_schema(name: str) -> JsonObject:
    """Return a schema as JSON; read once. Not to be changed by the caller."""
    schema: JsonObject = json.loads(shipped_text(name))
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


@lru_cache(maxsize=1)
def key_formats() -> dict[str, str]:
    """Return the ``x-format`` of every key of a policy that has one."""
    keys = _all_keys().items()
    return {name: key.schema["x-format"] for name, key in keys if key.file == "a policy" and "x-format" in key.schema}


def _plain(name: str) -> str:
    return name.replace("[]", "").strip(".")


@lru_cache(maxsize=1)
def _all_keys() -> dict[str, KeyDescription]:
    keys: dict[str, KeyDescription] = {}
    for file in (POLICY_SCHEMA, PROJECT_SCHEMA):
        for description in keys_of(file):
            keys.setdefault(description.name, description)
    return keys


@lru_cache(maxsize=4)
def keys_of(file: str) -> tuple[KeyDescription, ...]:
    """Return every key of one kind of file, in the order of its schema."""
    places = {POLICY_SCHEMA: "a policy", PROJECT_SCHEMA: "maintainer.yml", TESTS_SCHEMA: "a test of policies"}
    return tuple(_walk(load_schema(file), file, "", places[file]))


def _walk(schema: JsonObject, file: str, name: str, place: str) -> Iterator[KeyDescription]:
    for part, inner in _inner(schema, file):
        target, home = resolve_reference(inner["$ref"], file) if "$ref" in inner else (inner, file)
        full = f"{name}.{part}" if name else part
        yield KeyDescription(full, place, target, tuple(key for key, _ in _inner(target, home)))
        yield from _walk(target, home, full, place)


def _inner(schema: JsonObject, file: str) -> list[tuple[str, JsonObject]]:
    items = schema.get("items")
    if isinstance(items, dict):
        return _inner(items, file)
    inner = list(schema.get("properties", {}).items())
    if isinstance(schema.get("additionalProperties"), dict):
        inner.append(("*", schema["additionalProperties"]))
    return inner


TYPE_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "`true` or `false`",
    "object": "a map",
    "array": "a list",
}
"""JSON Schema's types as people say them."""

_FORMAT_WORDS = {
    "size": "a size",
    "duration": "a duration",
    "time": "a time of day",
    "date": "a date",
    "timezone": "a time zone",
}
_UNIT_HELP = {
    "size": "write a size like `128MiB` or `1GiB`",
    "duration": "write a duration like `7d`, `36h`, `1d 12h` or ISO 8601 `P7D`",
}
_TRUE_WORDS = frozenset({"yes", "y", "on", "true", "1"})
FALSE_WORDS = frozenset({"no", "n", "off", "false", "0"})


def dotted(path: DataPath) -> str:
    """Return a path as people write it: ``optimize.zorder.columns[0]``; `the file` for the top."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{cut_text(part)}" if text else cut_text(part)
    return text or "the file"


def shown(value: object) -> str:
    """Return a value as a message shows it, always short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str) and not isinstance(plain_scalar(value), str):
        return f'`"{cut_text(value)}"`'
    return f"`{cut_text(str(value))}`"


def expected(schema: JsonObject) -> str:
    """Say what a value may be: ``a size``, ``text or a whole number``, ```true`, `false` or a map``."""
    if schema.get("x-format") in _FORMAT_WORDS:
        return _FORMAT_WORDS[schema["x-format"]]
    types = _types(schema)
    booleans = ["`true`", "`false`"] if "boolean" in types else []
    words = [TYPE_WORDS[name] for name in types if name not in ("null", "boolean")]
    return either([*booleans, *words])


def either(words: list[str]) -> str:
    """Join alternatives: ``a``, ``a or b``, ``a, b or c``."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "nothing"


def type_help(schema: JsonObject, value: object, source: str | None = None) -> str | None:
    """Say how to write a value of the right type; ``source`` is a number as the file has it."""
    format, types = schema.get("x-format"), _types(schema)
    source = str(value) if source is None else source
    if format == "time" and type(value) in (int, float):
        meant = meant_time(source)
        return f"write `{meant}`" if meant else "write a time of day with two digits each, like `22:00`"
    if format == "size" and isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return f"write `{int(value)}`, or a size like `128MiB`"
    if format == "duration" and type(value) is int and 0 <= value < 10**6:
        return f"write `{value}d` for days or `{value}h` for hours"
    if format in _UNIT_HELP:
        return _UNIT_HELP[format]
    if "boolean" in types and isinstance(value, (str, int, float)):
        word = str(value).lower()
        if word in _TRUE_WORDS | FALSE_WORDS:
            return f"write `{'false' if word in FALSE_WORDS else 'true'}`"
    if "integer" in types and isinstance(value, (str, float)):
        digits = str(value).replace("_", "").replace(",", "").removesuffix(".0")
        if digits.isdigit() and digits.isascii() and len(digits) < 19:
            return f"write `{int(digits)}`"
    if "string" in types and isinstance(value, (int, float)):
        literal = str(value).lower() if isinstance(value, bool) else source
        return f'put it in quotes: `"{cut_text(literal)}"`'
    if (
        "number" in types
        and isinstance(value, str)
        and (share := re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%", value))
    ):
        number = Decimal(share[1]) / 100
        if number <= schema.get("maximum", number):
            return f"write `{number.normalize():f}`"
    if "object" in types and isinstance(value, str) and "type" in schema.get("required", ()):
        return f"write a map: `{{type: {cut_text(value)}, column: NAME}}`"
    return (_list_help(schema.get("items", {}), value) if "array" in types else None) or example_help(schema)


def _list_help(items: JsonObject, value: object) -> str | None:
    """Say how to write a list where one item or several joined ones were written; None where its items look different.

    A list is offered only if its items are right.
    """
    if isinstance(value, dict):
        known = items.get("properties", {}).keys()
        is_item = "object" in _types(items) and (value.keys() <= known or items.get("additionalProperties") is True)
        text = written(value)
        return f"put it in brackets: `[{text}]`" if is_item and len(text) <= 100 else None
    if "object" in _types(items):
        typed = isinstance(value, str) and "type" in items.get("required", ())
        return f"write a list of maps: `[{{type: {cut_text(str(value))}, column: NAME}}]`" if typed else None
    words = _several(str(value), items["enum"]) if "enum" in items else [str(value)]
    return f"write a list: `{written([cut_text(word) for word in words])}`" if words else None


def _several(text: str, allowed: list[str]) -> list[str] | None:
    """Return the allowed values that a text joins, such as ``s3, gcs`` or the days ``mon-fri``, if all are known."""
    if "mon" in allowed:
        return meant_days(text)
    words = text.replace(",", " ").casefold().split()
    return words if words and all(word in allowed for word in words) else None


def meant_time(text: str) -> str | None:
    """Return the time of day that ``22``, ``9:30``, ``2230``, ``22.30`` or ``10 pm`` likely means, if any."""
    match = re.fullmatch(r"([0-9]{1,2})(?:[:.h]?([0-5][0-9]))?(?: ?([ap])\.?m\.?)?", text.lower(), re.ASCII)
    if match is None:
        return None
    hour, half = int(match[1]), match[3]
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{match[2] or '00'}" if hour < 24 else None


def example_help(schema: JsonObject) -> str | None:
    """Show the first example of a key; None where it has none."""
    examples = schema.get("examples")
    return f"write it like `{written(examples[0])}`" if examples else None


def _types(schema: JsonObject) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def enum_help(allowed: list[str], value: object) -> str | None:
    """Name the value that was likely meant; `off` where someone wrote false."""
    if value is False and "off" in allowed:
        return "write `off`"
    days = meant_days(value) if "mon" in allowed and isinstance(value, str) else None
    if days and len(days) > 1:
        return f"write `{', '.join(days)}`"
    near = nearest(str(value), allowed) if isinstance(value, (str, int, float)) else None
    return did_you_mean(str(value), near) if near else None


MANY_TABLES = (
    "with `manage: true` a rule also manages tables without a file; "
    "`maintainer inventory --write` makes a file for each instead"
)


def written(example: object, *, in_brackets: bool = False) -> str:
    """Return an example as one line of YAML; text between brackets needs quotes more often."""
    if example is None or isinstance(example, bool):
        return {None: "null", True: "true", False: "false"}[example]
    if isinstance(example, dict):
        pairs = (
            f"{written(key, in_brackets=True)}: {written(value, in_brackets=True)}" for key, value in example.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(example, list):
        return "[" + ", ".join(written(item, in_brackets=True) for item in example) + "]"
    text = str(example)
    special = isinstance(example, str) and (
        text[:1] in "*&!%@`'\"[]{}" or ": " in text or "'" in text or (in_brackets and bool(set(text) & set(",[]{}")))
    )
    return f'"{text}"' if special else text


def cut_text(text: str) -> str:
    """Cut a text that a help repeats to 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEVERAL = {
    "weekday": "mon-fri",
    "weekdays": "mon-fri",
    "workdays": "mon-fri",
    "weekend": "sat-sun",
    "weekends": "sat-sun",
    "daily": "mon-sun",
    "everyday": "mon-sun",
}
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+(?:and\s+)?")
_RANGE = re.compile(r"\s*(?:-|\u2013|\.\.|\bto\b)\s*")


def meant_days(text: str) -> list[str] | None:
    """Return the days that ``mon-fri``, ``weekend`` or ``Sat, Sun`` likely means, as policies write them, if any."""
    days: list[str] = []
    for part in _SEPARATOR.split(_RANGE.sub("-", text.strip().casefold()[:100])):
        ends = [_day(word) for word in _SEVERAL.get(part, part).split("-")]
        if len(ends) > 2 or any(day is None for day in ends):
            return None
        first, last = (day for day in (ends[0], ends[-1]) if day is not None)
        days += [_DAYS[at % 7][:3] for at in range(first, last + (8 if last < first else 1))]
    return list(dict.fromkeys(days))


def _day(word: str) -> int | None:
    return next((at for at, day in enumerate(_DAYS) if len(word) >= 3 and day.startswith(word)), None)
