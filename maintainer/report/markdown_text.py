r"""Markdown that is read in two ways: rendered by GitHub and GitLab, and as it is, in a chat or a log.

Names and values come from outside. None of them can open a tag, a link, a mention or a table cell: a character with a
meaning has a backslash before it. A word that a forge acts upon after Markdown was read (``@name``, ``#12``, a web
address, ``$x$``) stands in a code span, where it does not; a backslash would not keep it from that. No HTML entities:
where Markdown is not rendered they cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from maintainer.errors.foreign_text import printable

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
    shown = printable(text)
    parts = []
    end = 0
    for span in _OWN_CODE.finditer(shown):
        parts += [_words(shown[end : span.start()]), code(span[1])]
        end = span.end()
    line = "".join([*parts, _words(shown[end:])])
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
