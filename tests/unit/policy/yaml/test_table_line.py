"""The name in a file's first lines is the one that YAML reads, or there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.policy.yaml.discovery import table_in_first_lines
from maintainer.policy.yaml.yaml_reader import read_text

CERTAIN = {
    "version: 1\ntable: sales.orders\n": "sales.orders",
    "\ufeff# a\n\n  # b\nversion: 1 # c\nowner: team-a\ntags: [a, b.c]\ntable: s3://b-1/lake/o  # d\noptimize:\n": (
        "s3://b-1/lake/o"
    ),
    'table: "sales.`a b`"\r\nversion: 1\r\n': "sales.`a b`",
    "table: 'lake/ü'\n": "lake/ü",
    "table: ./lake/o\n": "./lake/o",
    "table: file:/data/o\n# more\n": "file:/data/o",
}

UNSURE = [
    "{version: 1, table: a.b}\n",
    '"table": a.b\n',
    "version: 1\nmatch: {tables: [a.b]}\n",
    'description: "x\ntable: a.b\n"\ntable: c.d\n',
    "description: >\n  x\ntable: a.b\n",
    "owner: x\n  y\ntable: a.b\n",
    "table: a.b\n  c\n",
    'table: "\\x61.b"\n',
    "table: a.b",
    "table: &x a.b\n",
    "table: |\n  a.b\n",
    "table:\n",
    "table: 5\n",
    "---\ntable: a.b\n",
    "optimize:\n  table: a.b\n",
    "",
]


@pytest.mark.parametrize("text", CERTAIN)
def test_a_plain_beginning_names_the_table_as_yaml_does(text: str) -> None:
    document, findings = read_text(text, "policies/t.yml")
    assert document is not None
    assert not findings
    assert table_in_first_lines(text.encode()) == document.data["table"] == CERTAIN[text]


@pytest.mark.parametrize("text", UNSURE)
def test_whatever_else_has_to_be_read(text: str) -> None:
    assert table_in_first_lines(text.encode()) is None


def test_bytes_that_are_no_text_are_no_failure() -> None:
    assert table_in_first_lines(b"\xff\xfetable: a.b\n") is None
    assert table_in_first_lines(b"table: a.b\nowner: \xff\n") == "a.b"


PIECES = [
    "table:",
    " ",
    "a.b",
    "'",
    '"',
    "\n",
    "  ",
    "version: 1\n",
    "#",
    "- ",
    "owner: x\n",
    "[",
    "]",
    "a",
    "\\",
    ": ",
    ">",
    "?",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_text_is_read_in_two_ways(text: str) -> None:
    name = table_in_first_lines(text.encode())
    document, _ = read_text(text, "policies/t.yml")
    if name is not None and document is not None:
        assert document.data.get("table") == name
