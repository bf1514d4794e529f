"""What the reader makes of a file: plain scalars, and the places of keys and values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from maintainer.policy.diagnostics import SourceSpan
from maintainer.policy.yaml.yaml_document import Refusal, plain_scalar
from maintainer.policy.yaml.yaml_reader import PARSER, PURE_PARSER, read_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("22:00", "22:00"),
        ("02:00", "02:00"),
        ("9:30", "9:30"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("tRUE", "tRUE"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        (".", "."),
        ("+", "+"),
        ("0.1.0", "0.1.0"),
        ("64MiB", "64MiB"),
        ("true", True),
        ("FALSE", False),
        ("", None),
        ("~", None),
        ("Null", None),
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1e3", 1000.0),
        ("1.0e+3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-0.0", 0.0),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    read = plain_scalar(text)
    assert read == value
    assert type(read) is type(value)


SOURCE = """\
version: 1
table: "sales.orders"   # a comment
owner: 'team
  sales'
description: |
  two
  lines
limits: {maxBytes: 1GiB, timeout: 3h}
window:
- from: 22:00
  to: 04:00
consumers:
  - {name: é, maxLag: 3d}
vacuum:
  retention:
"""


def paths_below(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of a value and of everything in it."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_below(inner, (*path, key))


@pytest.mark.parametrize("parser", [PARSER, PURE_PARSER])
def test_places_of_keys_and_values(parser: type) -> None:
    document, findings = read_text(SOURCE, "t.yml", parser)
    assert findings == []
    assert document is not None
    lines = SOURCE.split("\n")

    def shown(span: SourceSpan) -> str:
        end = span.end_column - 1 if span.end_line == span.line else None
        return lines[span.line - 1][span.column - 1 : end]

    paths = list(paths_below(document.data))
    values = {path: shown(document.span_of(path)) for path in paths}
    assert values[("table",)] == '"sales.orders"'
    assert values[("owner",)] == "'team"
    assert document.span_of(("owner",)).end_line == 4
    assert values[("description",)] == "|"
    assert values[("limits",)] == "{maxBytes: 1GiB, timeout: 3h}"
    assert values[("limits", "timeout")] == "3h"
    assert values[("window",)] == "-"
    assert values[("window", 0)] == "from"
    assert values[("window", 0, "to")] == "04:00"
    assert values[("consumers", 0, "name")] == "é"
    assert values[("consumers", 0, "maxLag")] == "3d"
    # A value without room is shown by its key, a value that is not there by the nearest above it.
    assert values[("vacuum", "retention")] == "retention"
    assert shown(document.span_of(("vacuum", "every"))) == "retention"
    assert {path: shown(span) for path, span in document.key_spans.items()} == {
        path: path[-1] for path in paths if path and isinstance(path[-1], str)
    }
    assert document.data["description"] == "two\nlines\n"
    assert document.data["owner"] == "team sales"


def test_what_was_refused_is_left_out_and_remembered() -> None:
    document, findings = read_text("a: 1\nb: *x\nc: [1, !t 2, 3]\nd: 010\nd: 2\n? [k]\n: v\ne: {f: 1}\n", "t.yml")
    assert document is not None
    assert document.data == {"a": 1, "c": [1, 3], "e": {"f": 1}}
    assert document.unreadable == {("b",), ("c", 1), ("d",)}
    assert [finding.code for finding in findings] == ["Y109", "Y110", "Y117", "Y108", "Y114"]
    assert document.span_of(("c", 1)) == SourceSpan(3, 14, 3, 15)
    assert document.span_of(("e", "f")) == SourceSpan(8, 8, 8, 9)


def test_a_byte_order_mark_and_crlf_change_nothing() -> None:
    plain = "version: 1\ntable: a.b\n"
    document, _ = read_text(plain, "t.yml")
    other, _ = read_text(b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode(), "t.yml")
    assert document == other
    assert document is not None
    assert other is not None
    assert document.marks == other.marks


def test_places_of_several_documents_do_not_mix() -> None:
    first, _ = read_text("a: 1\n", "1.yml")
    second, _ = read_text("\n\na: 1\n", "2.yml")
    assert first is not None
    assert second is not None
    assert [document.span_of(("a",)).line for document in (first, second, first)] == [1, 3, 1]


def test_a_number_of_another_base_is_proposed_in_decimal_while_it_is_short() -> None:
    short, long = plain_scalar("-0x1F"), plain_scalar("0x" + "F" * 18)
    assert isinstance(short, Refusal)
    assert isinstance(long, Refusal)
    assert (short.code, long.code) == ("Y117", "Y117")
    assert short.help == "write `-31`, or put it in quotes if it is text"
    assert long.help == "write it as a decimal number, or put it in quotes if it is text"
