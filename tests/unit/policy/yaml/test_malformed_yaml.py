"""Malformed files: what is refused, with code, line and column of every finding, and what to write."""

from __future__ import annotations

import time

import pytest
import yaml

from maintainer.policy.diagnostics import START_OF_FILE
from maintainer.policy.yaml.yaml_composer import MAX_NODES
from maintainer.policy.yaml.yaml_reader import PARSER, PURE_PARSER, read_text, syntax_diagnostic
from tests.support.policies.policy_reading import findings_of, places_of

HEAD = "version: 1\ntable: a.b\n"
Places = list[tuple[str, int, int]]
FILES: dict[str, tuple[str | bytes, Places]] = {
    "nothing": (b"", [("Y112", 1, 1)]),
    "only a comment": ("# policies come later\n", [("Y112", 1, 1)]),
    "only a document marker": ("---\n", [("Y112", 1, 1)]),
    "a list": ("- a\n- b\n", [("Y113", 1, 1)]),
    "plain text": ("just text\n", [("Y113", 1, 1)]),
    "a NUL": ("version: 1\x00\n", [("Y105", 1, 11)]),
    "a NEL": (HEAD + "owner: a\u0085b: c\n", [("Y105", 3, 9)]),
    "a line separator": (HEAD + "owner: \u2028x\n", [("Y105", 3, 8)]),
    "a direction mark": (HEAD + "owner: \u202etxt\n", [("Y105", 3, 8)]),
    "a byte order mark inside": (HEAD + "owner: \ufeffx\n", [("Y105", 3, 8)]),
    "a NUL by an escape": (HEAD + 'owner: "team\\0"\n', [("Y105", 3, 8)]),
    "an ANSI escape by an escape": (HEAD + 'description: "\\x1b[2J"\n', [("Y105", 3, 14)]),
    "a direction mark by an escape": (HEAD + 'tags: ["\\u202etxt"]\n', [("Y105", 3, 8)]),
    "a NEL by an escape": (HEAD + 'owner: "a\\Nb"\n', [("Y105", 3, 8)]),
    "a carriage return by an escape": (HEAD + 'suspend: {reason: "a\\rb"}\n', [("Y105", 3, 19)]),
    "a bell in a table's name": ('version: 1\ntable: "a.b\\a"\n', [("Y105", 2, 8)]),
    "a delete in a key": (HEAD + 'properties: {"a\\x7f": b}\n', [("Y105", 3, 14)]),
    "an escape in a predicate": (HEAD + "optimize: {where: \"a = '\\e'\"}\n", [("Y105", 3, 19)]),
    "an owner of two lines": (HEAD + 'owner: "a\\nb"\n', [("P205", 3, 8)]),
    "a consumer of two lines": (HEAD + 'consumers: [{name: "a\\tb", maxLag: 1d}]\n', [("P205", 3, 20)]),
    "carriage returns alone": ("version: 1\rtable: a.b\r", [("Y105", 1, 11), ("Y105", 1, 22)]),
    "Latin-1": (b"version: 1\nowner: M\xfcller\n", [("Y104", 2, 9)]),
    "Latin-1 behind a mark and CRLF": (b"\xef\xbb\xbfversion: 1\r\nowner: M\xfcller\r\n", [("Y104", 2, 9)]),
    "UTF-16": ("version: 1\n".encode("utf-16"), [("Y104", 1, 1)]),
    "a surrogate": (b"owner: \xed\xa0\x80\n", [("Y104", 1, 8)]),
    "a tab as indentation": (HEAD + "optimize:\n\tmaxThreads: 8\n", [("Y106", 4, 1)]),
    "a tab before a value": (HEAD + "owner:\tteam\n", [("Y106", 3, 7)]),
    "a tab behind a value": (HEAD + "owner: team\t# who\n", [("Y106", 3, 12)]),
    "a tab in quotes": (HEAD + 'owner: "a\tb"\n', [("Y106", 3, 10)]),
    "a directive": ("%YAML 1.1\n---\n" + HEAD, [("Y122", 1, 1)]),
    "a directive behind a comment": ("# x\n\n%TAG ! tag:x,2000:\n---\n" + HEAD, [("Y122", 3, 1)]),
    "two documents": (HEAD + "---\n" + HEAD, [("Y111", 3, 1)]),
    "text behind the end": (HEAD + "...\nowner: x\n", [("Y111", 4, 1)]),
    "a duplicate key": (HEAD + "owner: x\nowner: y\n", [("Y108", 4, 1)]),
    "a duplicate key in braces": (HEAD + "limits: {maxFiles: 8, maxFiles: 9}\n", [("Y108", 3, 23)]),
    "a duplicate of a refused value": (HEAD + "owner: *x\nowner: y\n", [("Y109", 3, 8), ("Y108", 4, 1)]),
    "an anchor": (HEAD + "tags: &t [a]\n", [("Y109", 3, 7)]),
    "an anchor on a key": (HEAD + "&k owner: x\n", [("Y109", 3, 1)]),
    "an alias": (HEAD + "tags: *t\n", [("Y109", 3, 7)]),
    "an alias in a list": ("version: 1\nmatch:\n  tables: [*orders]\n", [("Y109", 3, 12)]),
    "a merge key": (HEAD + "optimize:\n  <<: {maxThreads: 3}\n", [("Y109", 4, 3)]),
    "an alias that holds itself": (HEAD + "tags: &a [*a]\n", [("Y109", 3, 7), ("Y109", 3, 11)]),
    "a tag": (HEAD + "owner: !!str 5\n", [("Y110", 3, 8)]),
    "a tag of somebody": (HEAD + "owner: !env FOO\n", [("Y110", 3, 8)]),
    "a tag that would run": (HEAD + "owner: !!python/object/apply:os.system [id]\n", [("Y110", 3, 8)]),
    "a number as a key": (HEAD + "1: a\n", [("Y114", 3, 1)]),
    "true as a key": (HEAD + "true: a\n", [("Y114", 3, 1)]),
    "null as a key": (HEAD + "~: a\n", [("Y114", 3, 1)]),
    "no key": (HEAD + ": a\n", [("Y107", 3, 1)]),
    "no key in braces": (HEAD + "limits: {: a}\n", [("Y107", 3, 10)]),
    "a list as a key": (HEAD + "[1, 2]: e\n", [("Y114", 3, 1)]),
    "a map as a key": (HEAD + "? {a: b}\n: e\n", [("Y114", 3, 3)]),
    "brackets in brackets": (HEAD + "x: " + "[" * 2000, [("Y115", 3, 23)]),
    "too many values": (HEAD + "tags: [" + "a," * 10_001 + "]\n", [("Y116", 3, 19994)]),
    "octal": (HEAD + "limits: {maxFiles: 010}\n", [("Y117", 3, 20)]),
    "octal that is none": (HEAD + "limits: {maxFiles: 08}\n", [("Y117", 3, 20)]),
    "octal of YAML 1.2": (HEAD + "limits: {maxFiles: 0o17}\n", [("Y117", 3, 20)]),
    "hexadecimal": (HEAD + "limits: {maxFiles: 0x1F}\n", [("Y117", 3, 20)]),
    "binary": (HEAD + "limits: {maxFiles: 0b101}\n", [("Y117", 3, 20)]),
    "beyond 64 bits": (HEAD + "limits: {maxFiles: 9223372036854775808}\n", [("Y118", 3, 20)]),
    "5000 digits": (HEAD + f"limits: {{maxFiles: {'9' * 5000}}}\n", [("Y118", 3, 20)]),
    "a float that overflows": (HEAD + "optimize: {maxDeletedRowsRatio: 1e999}\n", [("Y118", 3, 33)]),
    "a float that vanishes": (HEAD + "optimize: {maxDeletedRowsRatio: 1e-999}\n", [("Y118", 3, 33)]),
    "not a number": (HEAD + "optimize: {maxDeletedRowsRatio: .nan}\n", [("Y119", 3, 33)]),
    "minus infinity": (HEAD + "optimize: {maxDeletedRowsRatio: -.INF}\n", [("Y119", 3, 33)]),
    "a star": ("version: 1\nmatch:\n  tables: [*.orders]\n", [("Y120", 3, 12)]),
    "an at sign": (HEAD + "owner: @team\n", [("Y120", 3, 8)]),
    "a percent sign": (HEAD + "owner: %10\n", [("Y120", 3, 8)]),
    "a backtick": (HEAD + "owner: `x`\n", [("Y120", 3, 8)]),
    "two colons": (HEAD + "owner: foo: bar\n", [("Y121", 3, 11)]),
    "a quote left open": (HEAD + "owner: 'abc\n", [("Y107", 3, 8)]),
    "an unknown escape": (HEAD + 'owner: "a\\d"\n', [("Y107", 3, 11)]),
    "a bracket left open": (HEAD + "tags: [a, b\nowner: x\n", [("Y107", 3, 7)]),
    "a brace left open": (HEAD + "limits: {maxFiles: 1\n", [("Y107", 3, 9)]),
    "a bracket too many": (HEAD + "tags: [a]]\n", [("Y107", 3, 10)]),
    "indentation that fits nothing": (HEAD + "vacuum:\n  every: 1d\n retention: 7d\n", [("Y107", 5, 2)]),
    "a line without a colon": (HEAD + "owner\n", [("Y107", 3, 1)]),
    "a list item among keys": (HEAD + "- owner\n", [("Y107", 3, 1)]),
    "a block text with a typo": (HEAD + "owner: |x\n  a\n", [("Y107", 3, 9)]),
    "a comment in a text": (HEAD + "owner: a # b\n  c\n", [("Y107", 4, 3)]),
    # From here on it is YAML, and not a policy.
    "yes": (HEAD + "autoCompact: yes\n", [("P203", 3, 14)]),
    "underscores in a number": (HEAD + "limits: {maxFiles: 1_000}\n", [("P203", 3, 20)]),
    "a version with a dot": ("version: 1.10\ntable: a.b\n", [("P203", 1, 10)]),
    "a version as text": ('version: "1"\ntable: a.b\n', [("P203", 1, 10)]),
    "another version": ("version: 2\ntable: a.b\n", [("P209", 1, 10)]),
    "no version": ("table: a.b\n", [("P202", 1, 1)]),
    "no table": ("version: 1\nowner: x\n", [("P202", 1, 1)]),
    "a table and a match": (HEAD + "match: {tables: [b]}\n", [("P208", 3, 1)]),
    "a priority for a table": (HEAD + "priority: 3\n", [("P208", 3, 1)]),
    "an unknown key behind CRLF": ((HEAD + "onwer: x\n").replace("\n", "\r\n"), [("P201", 3, 1)]),
    "unknown keys, each by itself": (HEAD + "onwer: x\nvaccum: {}\n", [("P201", 3, 1), ("P201", 4, 1)]),
    "two mistakes of two kinds": (HEAD + "onwer: x\nowner: a\nowner: b\n", [("P201", 3, 1), ("Y108", 5, 1)]),
    "a time with one digit": (
        HEAD + "window: [{from: 9:30, to: 24:00}]\n",
        [("P205", 3, 17), ("P205", 3, 27)],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_each_malformed_file_is_reported_at_its_place(name: str) -> None:
    content, expected = FILES[name]
    started = time.process_time()
    findings = findings_of(content)
    assert [(finding.code, finding.span.line, finding.span.column) for finding in findings] == expected
    assert all(finding.help and "\n" not in finding.message for finding in findings)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("name", FILES)
def test_the_pure_parser_reports_the_same(name: str) -> None:
    content, _ = FILES[name]
    assert read_text(content, "t.yml", PURE_PARSER) == read_text(content, "t.yml")


def test_there_are_enough_kinds() -> None:
    assert len(FILES) >= 60
    assert len({code for _, places in FILES.values() for code, _, _ in places}) >= 25


@pytest.mark.parametrize(
    ("content", "help"),
    [
        ("tables: [*.orders]\n", 'put it in quotes: `"*.orders"`'),
        ("budget: {tables: {*: {maxBytes: 1GiB}}}\n", 'put it in quotes: `"*":`'),
        ("tables:\n  *.orders: 1\n", 'put it in quotes: `"*.orders":`'),
        ("owner: a\nowner: b\n", "first set on line 1; YAML would silently keep only the last"),
        ("x: 0x1F\n", "write `31`, or put it in quotes if it is text"),
        ("x: -0017\n", "write `-17`, or put it in quotes if it is text"),
        ("1: a\n", 'put it in quotes: `"1"`'),
    ],
)
def test_the_help_says_what_to_write(content: str, help: str) -> None:
    _, findings = read_text(content, "t.yml")
    assert [finding.help for finding in findings] == [help]


@pytest.mark.parametrize(
    ("content", "line", "lines"),
    [
        ("version: 1\n<<<<<<< HEAD\ntable: a.b\n=======\ntable: a.c\n>>>>>>> branch\n", 2, "2, 4 and 6"),
        ("<<<<<<< HEAD\nversion: 1\n||||||| base\n=======\nversion: 1\n>>>>>>> branch\n", 1, "1, 3, 4 and 6"),
        (
            "table: a.b\noptimize:\n<<<<<<< HEAD\n  maxThreads: 3\n=======\n  maxThreads: 4\n>>>>>>> branch\n",
            3,
            "3, 5 and 7",
        ),
    ],
)
def test_a_conflict_of_git_is_named(content: str, line: int, lines: str) -> None:
    document, (finding,) = read_text(content, "t.yml")
    assert document is None
    assert (finding.code, finding.span.line, finding.span.column) == ("Y107", line, 1)
    assert finding.message == "a conflict of Git that was not resolved"
    assert finding.help == f"keep what is right of both versions, and remove the markers on the lines {lines}"


def test_text_that_only_looks_like_a_marker_is_text() -> None:
    _, findings = read_text("version: 1\ntable: a.b\ndescription: |\n  <<<<<<< HEAD\n  >>>>>>> x\n", "t.yml")
    assert findings == []


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("optimize:\n\u00a0\u00a0maxThreads: 8\n", 2, "a no-break space is used for indentation"),
        ("optimize:\n  \u00a0maxThreads: 8\n", 2, "a no-break space is used for indentation"),
        ("optimize:\n  every: 1d\n\u2003\u2003maxThreads: 8\n", 3, "the space U+2003 is used for indentation"),
        ("version: 1\nowner:\u00a0team\n", 2, "a no-break space is used behind `:`"),
    ],
)
@pytest.mark.parametrize("parser", [PARSER, PURE_PARSER])
def test_a_space_that_is_none_is_named(content: str, line: int, message: str, parser: type) -> None:
    _, (finding,) = read_text(content, "t.yml", parser)
    assert (finding.code, finding.span.line, finding.message) == ("Y124", line, message)
    assert finding.help == "write ordinary spaces; YAML reads this character as a letter"


def test_a_no_break_space_inside_a_text_is_text() -> None:
    document, findings = read_text(
        'owner: a\u00a0b\ndescription: |\n  \u00a0indented\n  x:\u00a0y\n"a:\u00a0b": 1\n', "t.yml"
    )
    assert findings == []
    assert document is not None
    assert document.data == {"owner": "a\u00a0b", "description": "\u00a0indented\nx:\u00a0y\n", "a:\u00a0b": 1}


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]\n"
        for below, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert {code for code, _, _ in places_of(laughs)} >= {"Y109"}


def test_what_only_the_quicker_parser_refuses_is_refused() -> None:
    class RefusingParser(PURE_PARSER):
        def get_event(self) -> object:
            raise yaml.MarkedYAMLError(problem="too much for me")

    document, (finding,) = read_text("version: 1\ntable: a.b\n", "t.yml", RefusingParser)
    assert document is None
    assert (finding.code, finding.message) == ("Y107", "not YAML: too much for me")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "? - "])
def test_depth_stops_the_reader_at_once(opening: str) -> None:
    events = 0

    class CountingParser(PURE_PARSER):
        def get_event(self) -> object:
            nonlocal events
            events += 1
            return super().get_event()  # type: ignore[no-untyped-call]

    _, findings = read_text(opening * 20_000, "t.yml", CountingParser)
    assert findings[0].code in ("Y115", "Y107", "Y114")
    assert events < MAX_NODES + 10


def test_findings_of_one_file_are_bounded() -> None:
    many = HEAD + "".join(f"k{number}: *x\n" for number in range(3000))
    assert len(findings_of(many)) == 100


def test_a_parsers_error_without_a_place_is_shown_at_the_start() -> None:
    finding = syntax_diagnostic(yaml.YAMLError("no idea"), HEAD, "t.yml")
    assert (finding.code, finding.span, finding.message) == ("Y107", START_OF_FILE, "not YAML: no idea")
    assert str(finding) == "t.yml:1:1: error[Y107] not YAML: no idea"


@pytest.mark.parametrize(
    ("text", "place", "help"),
    [
        ("owner: \u201cteam-sales\u201d\n", (3, 8), 'use straight quotes: `"team-sales"`'),
        ("tags: [a, \u2018b\u2019]\n", (3, 11), 'use straight quotes: `"b"`'),
        ("\u00abowner\u00bb: x\n", (3, 1), 'use straight quotes: `"owner"`'),
    ],
)
def test_quotes_of_a_word_processor_around_a_text_are_refused(text: str, place: tuple[int, int], help: str) -> None:
    for parser in (PARSER, PURE_PARSER):
        _, [finding] = read_text(HEAD + text, "policies/t.yml", parser)
        assert (finding.code, finding.span.line, finding.span.column, finding.help) == ("Y125", *place, help)


@pytest.mark.parametrize(
    "text", ["\u2019s-Gravenhage", '"\u201cteam\u201d"', "\u201cgold\u201d and \u201csilver\u201d", "a \u201cb\u201d"]
)
def test_such_quotes_within_a_text_are_part_of_it(text: str) -> None:
    document, findings = read_text(f"{HEAD}description: {text}\n", "policies/t.yml")
    assert document is not None
    assert not findings
    assert document.data["description"] == text.strip('"')
