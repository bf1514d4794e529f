"""Small pieces of HTML for notebooks: a heading, some lines, a table. Templates escape everything."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.report.document.blocks import Table
from maintainer.report.html.page import templates

MAX_ROWS_SHOWN = 50
"""Rows of a table that a notebook shows; the rest is counted."""


def notebook_html(title: str, lines: Sequence[str] = (), table: Table | None = None) -> str:
    """Return a fragment of HTML: the title in bold, a line each, at most ``MAX_ROWS_SHOWN`` rows."""
    template = templates().get_template("notebook.html")
    return template.render(title=title, lines=lines, table=table, most_rows=MAX_ROWS_SHOWN)


def notebook_text(text: str) -> str:
    """Return text of a fixed width as a fragment of HTML."""
    return templates().get_template("notebook_text.html").render(text=text)
