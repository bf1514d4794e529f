"""Draws a report as one HTML page: templates with everything escaped, one style sheet, no script.

The page carries a Content-Security-Policy that allows nothing but this very style sheet, by its hash: whatever a
table's name manages to say, no browser runs or loads it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from maintainer import __version__
from maintainer.report.html import charts as charts
from maintainer.report.html.charts import fleet_curves
from maintainer.report.html.fleet_view import MAX_FLEET_CURVES, FleetTable, FleetView
from maintainer.report.html.run_view import MAX_TABLES_WITH_DETAILS, RunView
from maintainer.report.text_layout import printable
from maintainer.units import format_size

_TEMPLATES = "templates"

MAX_RUNS_LISTED = 50
"""Runs that the fleet's page lists, the newest; all are columns of its chart."""


def render_run_page(view: RunView) -> str:
    """Return the report of one run as a whole HTML document."""
    return _render("run.html", view=view, most_details=MAX_TABLES_WITH_DETAILS, title=f"Run {view.run_id}")


def render_fleet_page(view: FleetView) -> str:
    """Return the report of many runs as a whole HTML document."""
    nights = [(run.label, float(run.bytes_rewritten), "bad" if run.failed else "before") for run in view.nights]
    tallest = format_size(max((run.bytes_rewritten for run in view.nights), default=0))
    chart = charts.bar_chart(nights, "bytes rewritten by run", unit_text=tallest)
    curves = fleet_curves({table.name: table.past for table in view.tables[:MAX_FLEET_CURVES]})
    return _render(
        "fleet.html", view=view, chart=chart, curves=curves, tallest=tallest, most_runs=MAX_RUNS_LISTED, title="Fleet"
    )


def _render(name: str, **values: object) -> str:
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return templates().get_template(name).render(style=style, style_hash=digest, version=__version__, **values)


@cache
def _style() -> str:
    return (resources.files(__package__) / _TEMPLATES / "style.css").read_text(encoding="utf-8")


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
    environment.globals["size_chart"] = charts.size_chart
    environment.globals["amplification"] = _amplification
    return environment


def _printable(value: object) -> object:
    """Escape control characters in every text that a template prints; what a function of ours drew stays as it is."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(printable(line) for line in value.split("\n"))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _amplification(table: FleetTable) -> str:
    value = table.amplification
    return "" if value is None or not table.bytes_rewritten else f"{value:.1f}"
