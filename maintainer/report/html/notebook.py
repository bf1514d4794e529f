"""Small pieces of HTML for notebooks: a heading, some lines, a table. Templates escape everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.report.html.page import templates

MAX_ROWS_SHOWN = 50
"""Rows of a table that a notebook shows; the rest is counted."""


@dataclass(frozen=True, slots=True)
class NotebookTable:
    """Rows of text under their heading. ``numbers`` are the places of columns that stand at the right."""

    heading: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[int] = frozenset()


def notebook_html(title: str, lines: Sequence[str] = (), table: NotebookTable | None = None) -> str:
    """Return a fragment of HTML: the title in bold, a line each, at most ``MAX_ROWS_SHOWN`` rows."""
    rows = [] if table is None else table.rows[:MAX_ROWS_SHOWN]
    num_more = 0 if table is None else len(table.rows) - len(rows)
    template = templates().get_template("notebook.html")
    return template.render(title=title, lines=lines, table=table, rows=rows, num_more=num_more)


def notebook_text(text: str) -> str:
    """Return text of a fixed width as a fragment of HTML."""
    return templates().get_template("notebook_text.html").render(text=text)
