"""Effective policies (every value, where it was written, and what it replaced) and the help for keys."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maintainer.policy.project.project_settings import LEDGER_POLICY
from maintainer.policy.resolve.merge import SETTING_KEYS, TAGS, Level, Setting, base_value, spelled
from maintainer.policy.resolve.resolve import Resolution
from maintainer.policy.resolve.resolved import Origin, base_settings
from maintainer.policy.schema.schema_keys import (
    TYPE_WORDS,
    KeyDescription,
    describe,
    either,
    key_formats,
    key_names,
    written,
)
from maintainer.report.document.blocks import Block, Heading, Line, Row, Span, TableBlock, Text, joined_texts, literal
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.document.terminal_writer import plain, terminal_text
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import WIDEST_PADDED_NAME, printable
from maintainer.units import decimal_size, format_size

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


FORMAT_VERSION = "1"


def explain_text(resolution: Resolution, style: Style = PLAIN, *, is_there: bool = True) -> str:
    """Return one line for each value: dotted key, value, origin, and the chain of what it replaced.

    ``is_there`` is False where somebody looked and found no table in that place.
    """
    policy = resolution.policy
    title = Line((Span(policy.table.identifier, Role.BOLD), f"   {policy.source}"))
    return terminal_text([title, *explain_blocks(resolution, is_there=is_there)], style).removesuffix("\n")


def explain_blocks(resolution: Resolution, *, is_there: bool = True) -> Iterator[Block]:
    """Yield the same below its title as a document."""
    policy = resolution.policy
    if policy.file == LEDGER_POLICY:
        yield Line(
            "no file names the ledger: a built-in policy applies to it; a file that names it would replace that policy"
        )
    elif policy.rule_line is not None and not is_there:
        yield Line(f"there is no table here now; if there were one, the rule at {policy.source} would manage it")
    elif policy.rule_line is not None:
        start = "" if policy.managed_from is None else f" from {format_size(policy.managed_from[0])} on"
        yield Line(f"no file names this table: the rule at {policy.source} manages it{start}")
    elif not resolution.named_by_file:
        yield Line("no file names this table and no rule manages it: nothing is done to it. Rules would give it this")
    yield _value_table(resolution, _keys(resolution))
    if policy.vacuum is None:
        of_small = any(of_size.vacuum for _, of_size in policy.sizes)
        small, for_it = (" of a smaller table", " for it") if of_small else ("", "")
        yield Line(f"vacuum: nothing{small} is deleted, because no file has a `vacuum:` map{for_it}")
    for least, of_size in resolution.sizes[1:]:
        yield Line(f"if the table has {format_size(least)} or more (`match.minSize`, measured when planning):")
        changed = [key for key in _keys(of_size) if of_size.values[key] != resolution.values.get(key)]
        yield _value_table(of_size, changed) if changed else Line("nothing else")
    yield Line(f"digest {policy.digest}")


def _value_table(resolution: Resolution, keys: Sequence[str]) -> TableBlock:
    rows = []
    for key in keys:
        note = Span(_overrides(key, resolution), Role.DIM)
        rows.append(Row((literal(key), literal(_value(key, resolution)), literal(_place(resolution, key)), note)))
    return TableBlock((), rows, widest=WIDEST_PADDED_NAME)


def explain_json(resolution: Resolution) -> dict[str, Any]:
    """Return the same as one JSON document (``schemas/explain.schema.json``); sizes in bytes, durations in seconds."""
    policy = resolution.policy
    sizes = [
        {"min_size_bytes": least, "digest": of_size.policy.digest, **_values_json(of_size)}
        for least, of_size in resolution.sizes[1:]
    ]
    return {
        "format_version": FORMAT_VERSION,
        "table": policy.table.identifier,
        "file": policy.file,
        "named_by_file": resolution.named_by_file,
        "rule_line": policy.rule_line,
        "digest": policy.digest,
        **_values_json(resolution),
        **({"sizes": sizes} if sizes else {}),
    }


def _values_json(resolution: Resolution) -> dict[str, Any]:
    values = []
    for key in _keys(resolution):
        own = _value_json(key, resolution.values[key], resolution.policy.origin(key))
        below = [_value_json(key, base_value(key, each.value), each.origin) for each in _below(key, resolution)]
        values.append({"key": key, **own, "overrides": below})
    return {"policy": dict(base_settings(resolution.policy)), "values": values}


def _value_json(key: str, value: object, origin: Origin) -> dict[str, Any]:
    return {"value": value, "text": flow(spelled(key, value)), "origin": _origin_json(origin)}


def merged_yaml(resolution: Resolution) -> str:
    """Return the effective policy as one file that resolves to the same digest without any other file."""
    tree: dict[str, Any] = {}
    for key in _keys(resolution):
        path = _path(key)
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        value = spelled(key, resolution.values[key])
        if not (key == "autoCompact" and ("autoCompact",) in resolution.merged.maps):
            node[path[-1]] = value
    lines = ["version: 1", *block({"table": resolution.policy.table.identifier}), *block(tree)]
    if resolution.sizes:
        lines.insert(0, "# for a small table: rules with match.minSize say more, see `maintainer explain`")
    return "\n".join(lines) + "\n"


def _keys(resolution: Resolution) -> list[str]:
    """Order keys by section, then as the schema does; names that it does not know, such as properties, come last."""
    places = {name: number for number, name in enumerate(key_names())}

    def place(key: str) -> tuple[int, int, str]:
        return (SETTING_KEYS.index(key.partition(".")[0]), places.get(key, len(places)), key)

    return sorted(resolution.values, key=place)


def _path(key: str) -> tuple[str, ...]:
    """Split a dotted key; the name of a table property has dots of its own."""
    section, _, rest = key.partition(".")
    return (section, rest) if section == "properties" else tuple(key.split("."))


def _setting(key: str, resolution: Resolution) -> Setting | None:
    return resolution.merged.leaves.get(_path(key))


def _below(key: str, resolution: Resolution) -> Iterator[Setting]:
    setting = _setting(key, resolution)
    while setting is not None and setting.below is not None:
        setting = setting.below
        if setting.level is not Level.BUILT_IN:
            yield setting


def _value(key: str, resolution: Resolution) -> str:
    value = resolution.values[key]
    is_size = isinstance(value, int) and not isinstance(value, bool) and key_formats().get(key) == "size"
    decimal = decimal_size(value) if is_size and isinstance(value, int) else None
    return printable(flow(spelled(key, value))) + (f" ({decimal})" if decimal is not None else "")


def _overrides(key: str, resolution: Resolution) -> str:
    settings = ((base_value(key, setting.value), setting.origin) for setting in _below(key, resolution))
    below = [f"{printable(flow(spelled(key, value)))}  {origin}" for value, origin in settings]
    verb = "adds to" if _path(key) == TAGS else "overrides"
    return f"{verb} {', '.join(below)}" if below else ""


def _place(resolution: Resolution, key: str) -> str:
    origin = resolution.policy.origin(key)
    setting = _setting(key, resolution)
    suffix = {Level.DEFAULTS: " (defaults)", Level.ENVIRONMENT: " (environment)"}
    return f"{printable(str(origin))}{suffix.get(setting.level, '') if setting else ''}"


def _origin_json(origin: Origin) -> Mapping[str, object]:
    if origin.line == 0:
        return {"file": None, "line": None, "column": None, "built_in": True}
    return {"file": origin.file, "line": origin.line, "column": origin.column, "built_in": False}


_WIDTH = 100


def render_key(key: KeyDescription, style: Style = PLAIN) -> str:
    """Return what the key is for, what it may be, its default, unit and examples, the keys in it."""
    schema = key.schema
    facts = [
        ("type", _type(schema)),
        ("allowed", plain(_values(schema)) or ("" if "x-format" in schema else _bounds(schema))),
        ("unit", schema.get("x-unit")),
        ("default", plain(_default(schema))),
        ("keys", ", ".join("any name" if name == "*" else name for name in key.keys) or None),
    ]
    told = [(label, textwrap.wrap(text, _WIDTH - 12)) for label, text in facts if text]
    name = key.name.rpartition(".")[2]
    told.append(("example", [f"{name}: {written(example)}" for example in schema.get("examples", ())]))
    rows = [Row(("" if number else label, line)) for label, lines in told for number, line in enumerate(lines)]
    what = textwrap.wrap(schema.get("description", ""), _WIDTH, initial_indent="  ", subsequent_indent="  ")
    title = Line((Span(key.name, Role.BOLD), f"   (in {key.file})"))
    return terminal_text([title, *map(Line, what), Line(), TableBlock((), rows, gap=3, indent=2)], style)


def _types(schema: dict[str, object]) -> list[str]:
    types = schema.get("type", "object")
    return [types] if isinstance(types, str) else list(types) if isinstance(types, list) else []


def _type(schema: dict[str, object]) -> str:
    names = _types(schema)
    words = [TYPE_WORDS[name] for name in names if name != "null"]
    return either(words) + (", or empty to inherit" if "null" in names else "")


def _bounds(schema: dict[str, object]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return ""
    unbounded = most is None or (isinstance(most, (int, float)) and most >= 2**31 - 1)
    return f"{least} or more" if unbounded else f"{least} to {most}"


def _values(schema: dict[str, object]) -> Text:
    """Return the values of a key that takes few; empty for any other."""
    enum = schema.get("enum")
    values = enum if isinstance(enum, list) else [schema["const"]] if "const" in schema else []
    return joined_texts((literal(written(value)) for value in values if value is not None), ", ")


def _default(schema: dict[str, object]) -> Text:
    return literal(written(schema["default"])) if "default" in schema else str(schema.get("x-default", ""))


_HEADER = ("key", "what it is for", "what it may be", "default", "example")
_REPEATED = re.compile(r"(defaults|environments\.\*\.overrides)\.")
"""Keys below these are listed once, as keys of a policy."""


def keys_markdown() -> str:
    """Return one table for policies, one for maintainer.yml; keys in the order of the schemas."""
    keys = [description for name in key_names() if (description := describe(name)) is not None]
    blocks: list[Block] = []
    for place, heading in (("a policy", "Keys of a policy"), ("maintainer.yml", "Keys of `maintainer.yml`")):
        rows = [_row(key) for key in keys if key.file == place and not _REPEATED.match(key.name)]
        blocks += [Heading(heading, 1), TableBlock(_HEADER, rows)]
    return markdown_text(blocks)


def _row(key: KeyDescription) -> Row:
    schema = key.schema
    names, unit = _types(schema), schema.get("x-unit")
    words = either([TYPE_WORDS[name] for name in names if name != "null"])
    bounds = _bounds(schema) if {"integer", "number"}.intersection(names) and "minimum" in schema else ""
    allowed = unit.partition(";")[0] if isinstance(unit, str) else ", ".join(filter(None, (words, bounds)))
    examples = [literal(f"{key.name.rpartition('.')[2]}: {written(value)}") for value in schema.get("examples", ())]
    example: Text = examples[0] if examples else ""
    description = schema.get("description", "")
    return Row((literal(key.name), description, _values(schema) or allowed, _default(schema), example))
