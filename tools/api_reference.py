"""Writes docs/api.md, the reference of the Python API, from its docstrings: `python -m tools.api_reference`.

griffe reads the sources and the sections of the docstrings.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

import maintainer

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "api.md"
CLASSES = ("Project", "Table", "Plan", "Run", "RunFailed", "Rows", "Text")
"""The classes of the API, in the order of the page; the last two are returned, and have no public name."""

HEAD = """# Python reference

For those who write Python: the objects of the [Python API](python-api.md), from their docstrings.
It begins with `from maintainer import Project`;
the other objects come from it. In a notebook each shows itself.
"""


_AS_WE_WRITE: dict[str, Any] = {
    "search_paths": [str(ROOT)],
    "docstring_parser": "google",
    "docstring_options": {"returns_multiple_items": False, "returns_named_value": False},
}


def page() -> str:
    """The whole page."""
    top = griffe.load("maintainer", **_AS_WE_WRITE)
    package = top["app.python_api"]
    public = set(maintainer.__all__) - {"__version__", "auto_compact"}
    assert public <= set(CLASSES), f"no section for {public - set(CLASSES)}"
    lines = [HEAD.rstrip("\n")]
    for name in CLASSES:
        member = package[name]
        lines += _class(member.final_target if isinstance(member, griffe.Alias) else member)
    lines += ["", "## auto_compact", "", "For writers; [Auto compaction](auto-compaction.md) has the whole story."]
    lines += _documented(top["app.auto_compact_hook.auto_compact"], "##")
    return "\n".join(lines) + "\n"


def _class(member: griffe.Object | griffe.Alias) -> list[str]:
    lines = ["", f"## {member.name}", *_text(member)]
    public = [child for child in member.members.values() if not child.name.startswith("_") and child.has_docstring]
    attributes = [child for child in public if isinstance(child, griffe.Attribute)]
    if attributes:
        lines += ["", "| property | type | what |", "|---|---|---|"]
        lines += [
            f"| `{attribute.name}` | {_code(attribute.annotation)} | {_first(attribute)} |" for attribute in attributes
        ]
    for child in public:
        if child.is_function:
            lines += ["", f"### {member.name}.{child.name}", *_documented(child, member.name)]
    return lines


def _documented(function: griffe.Object | griffe.Alias, owner: str) -> list[str]:
    assert isinstance(function, griffe.Function)
    return ["", "```python", *_signature(function), "```", *_text(function)]


def _signature(function: griffe.Function) -> list[str]:
    parameters, star = [], False
    for parameter in function.parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is griffe.ParameterKind.keyword_only and not star:
            parameters.append("*")
            star = True
        default = "" if parameter.default is None else f" = {_value(function, str(parameter.default))}"
        parameters.append(f"{parameter.name}: {parameter.annotation}{default}")
    result = f" -> {function.returns}"
    whole = f"{function.name}({', '.join(parameters)}){result}"
    if len(whole) <= 100:
        return [whole]
    return [f"{function.name}(", *(f"    {parameter}," for parameter in parameters), f"){result}"]


def _value(function: griffe.Function, default: str) -> str:
    """A default as it is written; of a constant its value."""
    return repr(getattr(import_module(function.module.path), default)) if default.isupper() else default


def _text(member: griffe.Object | griffe.Alias) -> list[str]:
    """The docstring: its text, then a list for each section."""
    assert member.docstring is not None, f"{member.path} has no docstring"
    lines: list[str] = []
    for section in member.docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.text:
            lines += ["", _markdown(section.value)]
        elif section.kind is griffe.DocstringSectionKind.parameters:
            lines += ["", *(f"* `{item.name}`: {_line(item.description)}" for item in section.value)]
        elif section.kind is griffe.DocstringSectionKind.raises:
            lines += ["", "Raises:", ""]
            lines += [f"* `{item.annotation}`: {_line(item.description)}" for item in section.value]
        elif section.kind is griffe.DocstringSectionKind.returns:
            lines += ["", *(f"Returns: {_line(item.description)}" for item in section.value)]
        else:
            raise AssertionError(f"{member.path} has a section of another kind: {section.kind}")
    return lines


def _first(member: griffe.Object | griffe.Alias) -> str:
    assert member.docstring is not None
    return _line(member.docstring.value.split("\n\n")[0]).replace("|", "\\|")


def _line(text: str) -> str:
    return _markdown(" ".join(text.split()))


def _markdown(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _code(annotation: object) -> str:
    return f"`{annotation}`".replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
