"""Writes a document as Markdown for GitHub and GitLab; what does not fit is counted, never dropped silently.

The text is read in two ways: rendered by a forge, and as it is, in a chat or a log. Names and values come from
outside. None of them can open a tag, a link, a mention or a table cell: a character with a meaning has a backslash
before it. A word that a forge acts upon after Markdown was read (``@name``, ``#12``, a web address, ``$x$``) stands in
a code span, where it does not; a backslash would not keep it from that. No HTML entities: where Markdown is not
rendered they cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import assert_never

from maintainer.errors.foreign_text import printable
from maintainer.report.document.blocks import (
    Block,
    Bullets,
    CodeBlock,
    Document,
    Findings,
    Fold,
    Heading,
    Line,
    Row,
    Subject,
    Subjects,
    TableBlock,
    Text,
    Tiles,
    finding_table,
    spans,
    subject_table,
)
from maintainer.report.style import ROLE_OF_SYMBOL, Role, Symbol
from maintainer.units import count_of

_LOUD = (Role.BOLD, Role.BAD)
_NO_LIMIT = 1 << 60


def markdown_text(document: Document, room: int = _NO_LIMIT) -> str:
    """Return a document as Markdown, ending in a newline; rows and items take at most so many characters."""
    writer, lines = _Writer(room), list[str]()
    for block in document:
        written = writer.lines(block)
        lines += ["", *written] if lines and written else written
    return "\n".join(lines) + "\n"


def inline(text: Text) -> str:
    """Return a text for a paragraph or a cell."""
    parts = []
    for is_loud, pieces in groupby(spans(text), key=lambda span: span.role in _LOUD):
        part = "".join(code(span.text) if span.is_code else _prose(span.text) for span in pieces)
        parts.append(f"**{part}**" if is_loud and part.strip() else part)
    return "".join(parts)


def _prose(text: str) -> str:
    return " " if text.isspace() else escaped(text)


class _Writer:
    def __init__(self, room: int) -> None:
        self._room = room

    def lines(self, block: Block) -> list[str]:
        match block:
            case Heading(text, level):
                return [f"{'#' * (level + 2)} {inline(text)}"]
            case Line(text):
                return [inline(text)] if text else []
            case Bullets(items, nouns):
                shown = self._fitting([(f"* {inline(item)}",) for item in items])
                return [*(line for (line,) in shown), *_left_out(len(items) - len(shown), nouns, with_gap=bool(shown))]
            case TableBlock():
                return self._table(block)
            case Tiles():
                return self._table(block.table)
            case Subjects(subjects):
                return self._subjects(subjects)
            case Findings(findings, at_most):
                counted = ["", escaped(block.counted)] if block.counted else []
                return [*self._table(finding_table(findings[:at_most])), *counted]
            case CodeBlock(lines):
                return code_block(lines)
            case Fold(summary, blocks):
                inner = [line for part in blocks for line in self.lines(part)]
                return folded("".join(span.text for span in spans(summary)), inner) if inner else []
            case _:
                assert_never(block)

    def _fitting(self, rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        shown, self._room = fitting(rows, self._room)
        return shown

    def _table(self, block: TableBlock) -> list[str]:
        rows = [tuple(map(_cell, row.cells)) for row in block.rows]
        shown = self._fitting(rows)
        lines = table(block.heading, shown, block.right) if shown else []
        return [*lines, *_left_out(len(rows) - len(shown), block.nouns, with_gap=bool(shown))]

    def _subjects(self, subjects: Sequence[Subject]) -> list[str]:
        lines = self.lines(subject_table(subjects))
        aside = [subject for subject in subjects if any(statement.is_aside for statement in subject.statements)]
        if aside:
            number = count_of(sum(len(subject.names) for subject in aside), "table")
            rows = subject_table(aside, is_aside=True).rows
            columns = {1: "table", 3: "left alone", 4: "why"}
            if not any(span.text for row in rows for span in spans(row.cells[3])):  # no file is left alone
                del columns[3]
            shown = [Row(tuple(row.cells[place] for place in columns)) for row in rows]
            inner = self.lines(TableBlock(tuple(columns.values()), shown))
            lines += ["", *folded(f"Left alone in {number}", inner)]
        return lines


def _left_out(number: int, nouns: tuple[str, str], *, with_gap: bool) -> list[str]:
    more = f"{count_of(number, *(f'more {noun}' for noun in nouns))} did not fit: see the saved plan."
    return [*([""] if with_gap else []), more] if number else []


def _cell(cell: Text) -> str:
    """Return a cell; one of our symbols has no meaning in a cell, and stands as it is."""
    text = "".join(span.text for span in spans(cell))
    return inline(cell) if text not in ROLE_OF_SYMBOL else f"**{text}**" if text == Symbol.BLOCKED else text


# What begins or ends emphasis, links, tags, cells and code; an underscore counts at the edge of a word only, an angle
# bracket before what may be a tag, an ampersand before what may be an entity, a backslash before punctuation.
_SPECIAL = re.compile(
    r"[`*\[|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\](?=[(\[:])|<(?=[A-Za-z/!?])|&(?=#|[A-Za-z])|\\(?=[!-/:-@\[-`{-~]|$)"
)
_AT_THE_START = re.compile(r"^(\s*)(?:([>#]|[-+](?=[-+\s]*$|\s)|=(?==*\s*$))|(\d+)([.)])(?=\s|$))")
"""What makes a list, a quotation or a heading of a line."""

_OWN_CODE = re.compile(r"(?<![^\s(\"'])`([^`]+)`(?=[\s.,;:)\"']|$)")
"""Code spans of our own sentences: ``run `maintainer plan` ``."""

_ACTED_UPON = re.compile(r"@\w|://|\bwww\.|\bmailto:|\bGH-\d|[#!%&~^]\d|\$", re.IGNORECASE)
_EDGES = "(\"'.,;:)"
"""What may stand around a word, and so between two code spans: without it they would be read as one."""


def escaped(text: str) -> str:
    """Return text for a paragraph or a table cell: as it is to a person, and text to whatever renders it."""
    parts = _OWN_CODE.split(printable(text))  # every other one is code
    line = "".join(code(part) if number % 2 else _words(part) for number, part in enumerate(parts))
    return _AT_THE_START.sub(r"\1\3\\\2\4", line)


def _words(text: str) -> str:
    parts = []
    end = 0
    for match in re.finditer(r"\S+", text):
        word = match[0].strip(_EDGES)
        if _ACTED_UPON.search(word):
            start = match.start() + match[0].index(word)
            parts += [_plain(text[end:start]), code(word)]
            end = start + len(word)
    return "".join([*parts, _plain(text[end:])])


def _plain(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", text)


def code(text: str) -> str:
    r"""Return text as a code span that works in a table cell, too; nothing for an empty text.

    Cells are cut at bars before code spans are read, and elsewhere a code span knows no backslash. So a bar stands
    between two spans, as ``\|``.
    """
    return "\\|".join(_span(part) for part in printable(text).split("|"))


def _span(text: str) -> str:
    if not text.strip():
        return text
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    # A space at both ends is taken off again.
    space = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{space}{text}{space}{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Return the lines of a table; cells are Markdown already."""
    rule = ["---:" if index in right else "---" for index in range(len(header))]
    return [_row(header), _row(rule), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def fitting(rows: Iterable[tuple[str, ...]], room: int) -> tuple[list[tuple[str, ...]], int]:
    """Return the rows of a table that fit into so many characters, from the first on, and the room that is left."""
    chosen: list[tuple[str, ...]] = []
    for row in rows:
        needed = sum(len(cell) + 3 for cell in row) + 2
        if needed > room:
            return chosen, 0
        room -= needed
        chosen.append(row)
    return chosen, room


def folded(summary: str, lines: Sequence[str]) -> list[str]:
    """Return lines that GitHub and GitLab show folded under a summary, which holds no text from outside."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]


def code_block(texts: Iterable[str]) -> list[str]:
    """Return lines as they are, each printable, in a fenced block that none of them can end."""
    lines = [printable(text) for text in texts]
    longest = max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence]
