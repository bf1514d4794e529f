"""Draws a report as one HTML page: templates with everything escaped, one style sheet, one small script.

The page carries a Content-Security-Policy that allows nothing but this very style sheet and script, by their hashes:
whatever a table's name manages to say, no browser runs or loads it. Without the script the page says the same; tables
then do not sort.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from maintainer.model.product_version import __version__
from maintainer.report.document.blocks import Document, Text, spans, subject_table
from maintainer.report.html import charts
from maintainer.report.html.fleet_view import FleetTable, FleetView
from maintainer.report.html.live_view import LiveView
from maintainer.report.html.run_view import MAX_TABLES_WITH_DETAILS, RunView
from maintainer.report.style import Role
from maintainer.report.text_layout import printable
from maintainer.units import count_of, format_size

_TEMPLATES = "templates"

MAX_RUNS_LISTED = 50
"""Runs that the fleet's page lists, the newest; all are columns of its chart."""


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


def render_run_page(view: RunView, served: Served = ON_DISK) -> str:
    """Return the report of one run as a whole HTML document."""
    title = f"{view.project}, {view.started}"
    values = {"view": view, "most_details": MAX_TABLES_WITH_DETAILS, "home_link": served.home_link}
    return render_page("run.html", title, refresh_seconds=served.refresh_seconds, **values)


def render_fleet_page(view: FleetView, served: Served = ON_DISK) -> str:
    """Return the report of many runs as a whole HTML document."""
    tallest = format_size(max((run.bytes_rewritten for run in view.nights), default=0))
    chart = charts.bar_chart([run.column for run in view.nights], "bytes rewritten by run", unit_text=tallest)
    values = {"view": view, "chart": chart, "tallest": tallest, "most_runs": MAX_RUNS_LISTED}
    return render_page(
        "fleet.html",
        f"{view.project}, all tables",
        refresh_seconds=served.refresh_seconds,
        live_link=served.live_link,
        **values,
    )


def render_live_page(view: LiveView, served: Served) -> str:
    """Return what a run is doing now as a whole HTML document."""
    title = f"{view.done} of {view.total} done, {view.project}"
    return render_page("live.html", title, refresh_seconds=served.refresh_seconds, view=view)


def render_message_page(heading: str, lines: Sequence[str], served: Served) -> str:
    """Return a page that says why there is no other one."""
    return render_page("message.html", heading, refresh_seconds=served.refresh_seconds, heading=heading, lines=lines)


def render_document(page: Page, served: Served = ON_DISK) -> str:
    """Return a page as a whole HTML document."""
    return render_page(
        "document.html",
        page.title,
        refresh_seconds=served.refresh_seconds,
        page=page,
        home_link=served.home_link,
        live_link=served.live_link,
    )


def render_page(template: str, title: str, *, refresh_seconds: int = 0, **values: object) -> str:
    """Return a page of a template.

    Args:
        template: Its file name.
        title: What stands in the browser's tab.
        refresh_seconds: How often a browser asks for it again; 0 for never.
        values: What the template prints.
    """
    style, script = _text_of("style.css"), _text_of("page.js")
    return (
        templates()
        .get_template(template)
        .render(
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; "
            "form-action 'none'",
            title=title,
            refresh_seconds=refresh_seconds,
            version=__version__,
            **values,
        )
    )


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
    environment.filters["size"] = format_size
    environment.filters["number"] = _number
    environment.filters["coded"] = coded
    environment.filters["inline"] = inline
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["subject_table"] = subject_table
    environment.globals["count_of"] = count_of
    environment.globals["size_chart"] = charts.size_chart
    environment.globals["box_chart"] = charts.box_chart
    environment.globals["amplification"] = _amplification
    return environment


def _printable(value: object) -> object:
    """Escape control characters in every text that a template prints; what a function of ours drew stays as it is."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(printable(line) for line in value.split("\n"))


def inline(text: Text) -> Markup:
    """Return a text of a document: names, values and commands are code, and all of it is escaped."""
    parts = []
    for span in spans(text):
        part = (
            Markup("<code>{}</code>").format(_printable(span.text)) if span.is_code and span.text else coded(span.text)
        )
        css = _CLASSES.get(span.role) if span.role else None
        parts.append(Markup('<span class="{}">{}</span>').format(css, part) if css else part)
    return Markup("").join(parts)


_CLASSES = {Role.GOOD: "good", Role.BAD: "bad", Role.WARN: "warn", Role.DIM: "soft", Role.BOLD: "strong"}


def coded(text: str, inside: str = "") -> Markup:
    """Return a text whose parts in back-ticks (commands, keys) are code; all of it is escaped.

    Args:
        text: The text.
        inside: An element to put around a text of several parts, for a place that lays out each of its children.
    """
    parts = _IN_BACKTICKS.split(text)
    marked = [Markup("<code>{}</code>") if number % 2 else Markup("{}") for number in range(len(parts))]
    whole = Markup("").join(mark.format(_printable(part)) for mark, part in zip(marked, parts, strict=True))
    return Markup("<{0}>{1}</{0}>").format(inside, whole) if inside and len(parts) > 1 else whole


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _amplification(table: FleetTable) -> str:
    value = table.amplification
    return "" if value is None or not table.bytes_rewritten else f"{value:.1f}"
