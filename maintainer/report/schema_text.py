"""Help for one key of a policy, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from maintainer.policy.schema_keys import KeyDescription
from maintainer.policy.schema_messages import TYPE_WORDS, either, written
from maintainer.report.style import PLAIN, Role, Style

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
    for note in key.not_yet:
        yield f"  {'note':9} {style.paint(note, Role.WARN)}"
    for index, example in enumerate(schema.get("examples", ())):
        yield f"  {'example' if not index else '':9} {key.name.rpartition('.')[2]}: {written(example)}"


def _type(schema: dict[str, object]) -> str:
    types = schema.get("type", "object")
    names = [types] if isinstance(types, str) else list(types) if isinstance(types, list) else []
    words = [TYPE_WORDS[name] for name in names if name != "null"]
    return either(words) + (", or nothing for the value of the level below" if "null" in names else "")


def _allowed(schema: dict[str, object]) -> str | None:
    enum = schema.get("enum")
    if isinstance(enum, list):
        return ", ".join(written(value) for value in enum if value is not None)
    if "const" in schema:
        return str(schema["const"])
    least, most = schema.get("minimum"), schema.get("maximum")
    if "x-format" in schema or (least is None and most is None):
        return None
    if isinstance(most, int) and most >= 2**31 - 1:
        return f"{least} or more"
    return f"{least} to {most}"


def _default(schema: dict[str, object]) -> str | None:
    if "default" in schema:
        return written(schema["default"])
    text = schema.get("x-default")
    return str(text) if text is not None else None
