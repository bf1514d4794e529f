"""Help for keys of policies and of maintainer.yml: one key as text, all of them as Markdown tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from maintainer.policy.schema.schema_keys import TYPE_WORDS, KeyDescription, describe, either, key_names, written
from maintainer.report.text.markdown import code, escaped, table
from maintainer.report.text.style import PLAIN, Role, Style

_WIDTH = 100


def render_key(key: KeyDescription, style: Style = PLAIN) -> Iterator[str]:
    """Yield the lines: what the key is for, what it may be, its default, unit and examples, the keys in it."""
    schema = key.schema
    yield f"{style.paint(key.name, Role.BOLD)}   (in {key.file})"
    yield from textwrap.wrap(schema.get("description", ""), _WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""
    facts = [
        ("type", _type(schema)),
        ("allowed", _allowed(schema)),
        ("unit", schema.get("x-unit")),
        ("default", _default(schema)),
        ("keys", ", ".join("any name" if name == "*" else name for name in key.keys) or None),
    ]
    for label, text in facts:
        if text:
            first, *rest = textwrap.wrap(text, _WIDTH - 12)
            yield f"  {label:9} {first}"
            yield from (f"  {'':9} {line}" for line in rest)
    if "x-notSupported" in schema:
        yield f"  {'note':9} {style.paint(_not_supported(schema), Role.WARN)}"
    for index, example in enumerate(schema.get("examples", ())):
        yield f"  {'example' if not index else '':9} {key.name.rpartition('.')[2]}: {written(example)}"


def _types(schema: dict[str, object]) -> list[str]:
    types = schema.get("type", "object")
    return [types] if isinstance(types, str) else list(types) if isinstance(types, list) else []


def _type(schema: dict[str, object]) -> str:
    names = _types(schema)
    words = [TYPE_WORDS[name] for name in names if name != "null"]
    return either(words) + (", or nothing for the value of the level below" if "null" in names else "")


def _bounds(schema: dict[str, object]) -> str | None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return None
    unbounded = most is None or (isinstance(most, (int, float)) and most >= 2**31 - 1)
    return f"{least} or more" if unbounded else f"{least} to {most}"


def _allowed(schema: dict[str, object]) -> str | None:
    enum = schema.get("enum")
    if isinstance(enum, list):
        return ", ".join(written(value) for value in enum if value is not None)
    if "const" in schema:
        return str(schema["const"])
    return None if "x-format" in schema else _bounds(schema)


def _not_supported(schema: dict[str, object]) -> str:
    return f"not supported yet: {schema['x-notSupported']}"


def _default(schema: dict[str, object]) -> str | None:
    if "default" in schema:
        return written(schema["default"])
    text = schema.get("x-default")
    return str(text) if text is not None else None


_HEADER = ("key", "what it is for", "what it may be", "default", "example")
_REPEATED = re.compile(r"(defaults|environments\.\*\.overrides)\.")
"""Keys below these are listed once, as keys of a policy."""


def render_keys() -> Iterator[str]:
    """Yield the lines: one table for policies, one for maintainer.yml; keys in the order of the schemas."""
    keys = [description for name in key_names() if (description := describe(name)) is not None]
    for place, heading in (("a policy", "Keys of a policy"), ("maintainer.yml", "Keys of `maintainer.yml`")):
        rows = [_row(key) for key in keys if key.file == place and not _REPEATED.match(key.name)]
        yield f"### {heading}"
        yield ""
        yield from table(_HEADER, rows)
        yield ""


def _row(key: KeyDescription) -> tuple[str, ...]:
    schema = key.schema
    notes = f"<br>Note: {_prose(_not_supported(schema))}." if "x-notSupported" in schema else ""
    examples = schema.get("examples", ())
    default = code(written(schema["default"])) if "default" in schema else _prose(schema.get("x-default", ""))
    example = code(f"{key.name.rpartition('.')[2]}: {written(examples[0])}") if examples else ""
    return (code(key.name), _prose(schema.get("description", "")) + notes, _allowed_cell(schema), default, example)


def _prose(text: str) -> str:
    """Escape text of ours, in which backticks mark code."""
    return "".join(code(part) if index % 2 else escaped(part) for index, part in enumerate(text.split("`")))


def _allowed_cell(schema: dict[str, object]) -> str:
    """Return the values where they are few, else a format, else the type with its bounds."""
    values = schema.get("enum")
    if isinstance(values, list):
        return ", ".join(code(written(value)) for value in values if value is not None)
    if "const" in schema:
        return code(written(schema["const"]))
    unit = schema.get("x-unit")
    if isinstance(unit, str):
        return escaped(unit.partition(";")[0])
    names = _types(schema)
    words = _prose(either([TYPE_WORDS[name] for name in names if name != "null"]))
    bounds = _bounds(schema) if {"integer", "number"}.intersection(names) and "minimum" in schema else None
    return f"{words}, {bounds}" if bounds else words
