"""Draws a report as one HTML page: templates with everything escaped, one style sheet, one small script.

The page carries a Content-Security-Policy that allows nothing but this very style sheet and script, by their hashes:
whatever a table's name manages to say, no browser runs or loads it. Without the script the page says the same; tables
then do not sort. A notebook gets small pieces of the same templates.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import assert_never

import jinja2
from markupsafe import Markup, escape

from maintainer.model.product_version import __version__
from maintainer.report.document.blocks import Document, Heading, Line, Subjects, TableBlock, Text, spans, subject_table
from maintainer.report.style import Role
from maintainer.report.text_layout import printable

_TEMPLATES = "templates"


@dataclass(frozen=True, slots=True)
class Served:
    """What a page has beside its figures where it is served: its links, and how often a browser asks again."""

    home_link: str = ""
    live_link: str = ""
    refresh_seconds: int = 0


ON_DISK = Served()


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its title in a browser's tab, and the document of its head and of what is below it."""

    title: str
    head: Document
    body: Document


_IN_BACKTICKS = re.compile(r"`([^`\n]+)`")


def message_page(heading: str, lines: Sequence[str]) -> Page:
    """Return a page that says why there is no other one."""
    return Page(heading, (Heading(heading, 1),), tuple(map(Line, lines)))


def render_page(page: Page, served: Served = ON_DISK) -> str:
    """Return a page as a whole HTML document."""
    style, script = _text_of("style.css"), _text_of("page.js")
    ours = f"style-src {_hash(style)}; script-src {_hash(script)}"
    policy = f"default-src 'none'; {ours}; base-uri 'none'; form-action 'none'"
    template = templates().get_template("page.html")
    return template.render(style=style, script=script, policy=policy, page=page, served=served, version=__version__)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _text_of(name: str) -> str:
    return (resources.files(__package__) / _TEMPLATES / name).read_text(encoding="utf-8")


@cache
def templates() -> jinja2.Environment:
    """Return the templates of pages and fragments: everything that they print is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("maintainer.report.html", _TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    ours = {"coded": coded, "inline": inline, "subject_table": _subject_table, "unbroken": _unbroken}
    environment.filters |= {"number": "{:,}".format, **ours}
    environment.filters |= {"kind": lambda block: type(block).__name__, "not_handled": assert_never}
    environment.filters["small"] = lambda heading: " ".join([heading.split(" ")[0].lower(), *heading.split(" ")[1:]])
    environment.filters["css"] = lambda role: _CLASSES.get(role, "")
    return environment


def _subject_table(block: Subjects) -> TableBlock:
    """Return what is said of tables as rows, each with its table first; of one table without its name."""
    table = subject_table(block.subjects)
    symbol, name, step, *others = table.heading
    if block.is_one:
        rows = [replace(row, cells=(row.cells[0], *row.cells[2:])) for row in table.rows]
        return replace(table, heading=(symbol, step, *others), rows=rows)
    rows = [
        replace(row, cells=(row.cells[1], (*spans(row.cells[0]), " ", *spans(row.cells[2])), *row.cells[3:]))
        for row in table.rows
    ]
    return replace(table, heading=(name, step, *others), rows=rows, caption="What is done to each table, and why")


def _unbroken(figure: str) -> Markup:
    """Return a figure that a narrow tile does not part from its unit."""
    return Markup("&nbsp;").join(map(Markup, re.split(r"(?<=\d) (?=[KMGTP]?i?B\b)", escape(_printable(figure)))))


def _printable(value: object) -> object:
    """Escape control characters in every text that a template prints; what a function of ours drew stays as it is."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(printable(line) for line in value.split("\n"))


def inline(text: Text) -> Markup:
    """Return a text of a document: names, values and commands are code, and all of it is escaped."""
    parts = []
    for span in spans(text):
        is_code = span.is_code and span.text
        part = Markup("<code>{}</code>").format(_printable(span.text)) if is_code else coded(span.text)
        if span.link:
            part = Markup('<a href="{}">{}</a>').format(span.link, part)
        if span.role in _CLASSES and span.text:
            part = Markup('<span class="{}">{}</span>').format(_CLASSES[span.role], part)
        if span.drawing:
            caption = Markup("<figcaption>{}</figcaption>").format(part) if part else part
            part = Markup("<figure>{}{}</figure>").format(span.drawing, caption)
        parts.append(part)
    return Markup("").join(parts)


_CLASSES = {
    Role.GOOD: "good",
    Role.CHANGE: "work",
    Role.BAD: "bad",
    Role.WARN: "warn",
    Role.DIM: "soft",
    Role.BOLD: "strong",
}


def coded(text: str) -> Markup:
    """Return a text whose parts in back-ticks (commands, keys) are code; all of it is escaped."""
    parts = _IN_BACKTICKS.split(text)
    marked = [Markup("<code>{}</code>") if number % 2 else Markup("{}") for number in range(len(parts))]
    return Markup("").join(mark.format(_printable(part)) for mark, part in zip(marked, parts, strict=True))


MAX_ROWS_SHOWN = 50
"""Rows of a table that a notebook shows; the rest is counted."""


def notebook_html(title: str, lines: Sequence[str] = (), table: TableBlock | None = None) -> str:
    """Return a fragment of HTML: the title in bold, a line each, at most ``MAX_ROWS_SHOWN`` rows."""
    template = templates().get_template("notebook.html")
    return template.render(title=title, lines=lines, table=table, most_rows=MAX_ROWS_SHOWN)


def notebook_text(text: str) -> str:
    """Return text of a fixed width as a fragment of HTML."""
    return templates().get_template("notebook_text.html").render(text=text)
