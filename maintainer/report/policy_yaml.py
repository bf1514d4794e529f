"""Effective settings as YAML that our own reader reads back: values on one line, or a whole policy file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

# What YAML 1.2 core can only read as text: no number, no truth, no sign with a meaning.
_PLAIN = re.compile(r"(?![-+.]?[0-9])[A-Za-z0-9_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*\Z")
_QUANTITY = re.compile(
    r"[0-9]+(?:[KMGTP]iB|[dhms](?: [0-9]+[hms])*)\Z|[0-9]{2}:[0-9]{2}\Z|[0-9]{4}-[0-9]{2}-[0-9]{2}\Z"
)
_WORDS = frozenset({"true", "false", "null", "~"})


def flow(value: object) -> str:
    """Spell a value on one line: ``[a, b]``, ``{name: x, maxLag: 3d}``, text quoted where it must be."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    if isinstance(value, str):
        return _text(value)
    return json.dumps(value)


def block(values: Mapping[str, object], indent: int = 0) -> list[str]:
    """Spell a map as lines: one key a line, inner maps indented, everything else on its line."""
    lines = []
    for key, value in values.items():
        start = " " * indent + _text(key) + ":"
        if isinstance(value, Mapping) and value:
            lines += [start, *block(value, indent + 2)]
        else:
            lines.append(f"{start} {flow(value)}")
    return lines


def _text(text: str) -> str:
    if _QUANTITY.match(text) or (_PLAIN.match(text) and text.lower() not in _WORDS):
        return text
    return json.dumps(text, ensure_ascii=True)
