"""Markdown in which names from outside cannot open a tag, a link, a mention or a table cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from maintainer.report.text.text_layout import printable

# Each alternative is what GitHub's Markdown gives a meaning to in running text; a bar would end a table cell. An
# underscore counts only at the edge of a word, a colon only in a web address.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~@&#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.", re.IGNORECASE)


def escaped(text: str) -> str:
    """Return text for a paragraph or a table cell, every character with a meaning written as an entity.

    Entities and not backslashes: they also hold inside HTML elements, and an ``@name`` notifies nobody.
    """
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", printable(text))


def code(text: str) -> str:
    """Return text as a code span that works in a table cell, whatever backticks and bars it holds."""
    shown = printable(text)
    if "|" in shown or "`" in shown:
        # GFM cuts cells at bars before it reads code spans; an HTML element takes entities.
        return f"<code>{escaped(text)}</code>"
    return f"`{shown}`" if shown.strip() else f"<code>{shown}</code>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Return the lines of a table; cells are Markdown already."""
    rule = ["---:" if index in right else "---" for index in range(len(header))]
    return [_row(header), _row(rule), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def folded(summary: str, lines: Sequence[str]) -> list[str]:
    """Return lines that GitHub and GitLab show folded under a summary."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]
