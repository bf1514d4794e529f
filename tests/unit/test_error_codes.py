"""Codes have one meaning each, and ``docs/codes.md`` knows them all; messages have one style and a way out."""

from __future__ import annotations

import re
from functools import cache

import pytest

from maintainer.cli.main import COMMANDS
from tests.support.policies.source_errors import (
    CODE,
    ROOT,
    MadeError,
    code_literals,
    default_codes,
    is_printed,
    made_errors,
    texts,
    words_itself,
)

PAGE = (ROOT / "docs" / "codes.md").read_text(encoding="utf-8")
HEADING = re.compile(rf"^### ({CODE.pattern}): (.+)$", re.MULTILINE)
SECTION = re.compile(rf"^### ({CODE.pattern}): .+?$(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = dict(SECTION.findall(PAGE))
EXAMPLE = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"  --> .+|   = (?:found|allowed|help): .+|     \S.*")

NAMES = re.compile(r"\0|`|--|Delta|Spark|Great Expectations|Z-order|JAVA_HOME|SPARK_HOME|E\d|[a-z]")
"""What a message may begin with: lower case, something put in, or a name."""

pytestmark = pytest.mark.slow


@cache
def errors() -> tuple[MadeError, ...]:
    """What the source can say; read once, and not while tests are collected."""
    return tuple(made_errors())


def test_every_code_is_documented_and_every_documented_code_is_used() -> None:
    headings = [code for code, _ in HEADING.findall(PAGE)]
    assert headings == sorted(headings, key=lambda code: ("TAVEC".index(code[0]), code))
    assert set(headings) == set(code_literals())
    assert len(headings) == len(set(headings)) == len(SECTIONS)


@pytest.mark.parametrize("code", SECTIONS)
def test_the_example_is_a_message_that_the_program_prints(code: str) -> None:
    (example,) = EXAMPLE.findall(SECTIONS[code])
    first, *rest = example.splitlines()
    match = re.fullmatch(rf"(?:error|warning)\[{code}\]: (.+)", first)
    assert match is not None, first
    said = [error for error in errors() if error.code == code]
    elsewhere = {default_codes().get(name) for name in words_itself()}
    if said and code not in elsewhere and all(error.message.strip("\0") for error in said):
        assert any(error.pattern.fullmatch(match[1]) for error in said), match[1]
    assert is_printed(match[1]), match[1]
    for line in rest:
        assert FIELD.fullmatch(line), line
    (help_text,) = re.findall(r"^   = help: (.+(?:\n     .+)*)", example, re.MULTILINE)
    assert is_printed(help_text.replace("\n     ", "\n")), help_text


def test_messages_have_one_style_and_a_way_out() -> None:
    assert len(errors()) > 280
    assert [(error.place, error.message) for error in errors() if not NAMES.match(error.message)] == []
    assert [(error.place, error.message) for error in errors() if error.message.endswith(".")] == []
    # What a report shows is a step that carries no error of its own: the lines below it say the rest.
    helps = [error for error in errors() if not error.place.startswith("maintainer/report/")]
    assert [error.place for error in helps if error.help is None] == []
    assert [error.place for error in helps if error.help != "\0" and str(error.help).endswith(".")] == []


@pytest.mark.parametrize("kind", ["Refused", "TableError", "EnvironmentUnfit"])
def test_classes_of_many_meanings_are_given_a_code_each_time(kind: str) -> None:
    matching = [error for error in errors() if error.kind == kind]
    assert len(matching) > 3
    assert [error.place for error in matching if error.code == "E600"] == []


def test_only_commands_that_exist_are_recommended() -> None:
    in_source = [(place, name) for place, text in texts() for name in re.findall(r"`maintainer ([a-z]+)\b", text)]
    in_helps = [
        (error.place, name)
        for error in errors()
        for name in re.findall(r"^maintainer ([a-z]+)\b", error.help or "", re.MULTILINE)
    ]
    in_page = [("docs/codes.md", name) for name in re.findall(r"`maintainer ([a-z]+)\b", PAGE)]
    assert len(in_source) > 10
    assert len(in_page) > 10
    assert [mention for mention in (*in_source, *in_helps, *in_page) if mention[1] not in COMMANDS] == []
