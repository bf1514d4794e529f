"""`history` as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import tzinfo

from maintainer.model.insight import HistoryRow
from maintainer.report.layout import UTC, columns, count, iso_utc, moment, printable
from maintainer.report.steps import step_word
from maintainer.report.style import PLAIN, Role, Style
from maintainer.units import format_duration, format_size

FORMAT_VERSION = "1"
_STATUS_WORD = {
    "succeeded": "ok",
    "nothing_left": "nothing",
    "verify_failed": "VERIFY FAILED",
    "failed": "FAILED",
    "unknown": "UNKNOWN",
    "": "-",
}
_BAD = frozenset({"verify_failed", "failed", "unknown"})


def render_history(
    rows: Sequence[HistoryRow], style: Style = PLAIN, *, tz: tzinfo = UTC, one_table: bool = False
) -> str:
    """Return rows as text in the order given, ending in a newline.

    Args:
        rows: What to print.
        style: Colour or none.
        tz: Zone of the times; the heading names it.
        one_table: All rows are of one table: the column of its name is left out.
    """
    if not rows:
        return "No runs are recorded yet.\n"
    zones = {f"{moment(row.at_ms, tz):%Z}" for row in rows}
    # One zone stands in the heading; two (summer time came or went) stand with each time.
    zone = zones.pop() if len(zones) == 1 else None
    form = "%Y-%m-%d %H:%M" if zone is not None else "%Y-%m-%d %H:%M %Z"
    heading = (f"WHEN ({zone})" if zone else "WHEN", "RUN", "TABLE", "STEP", "RESULT", "VERSIONS", "PROOF", "DETAIL")
    cells = [heading, *(_cells(row, form, tz) for row in rows)]
    if one_table:
        cells = [(*cell[:2], *cell[3:]) for cell in cells]
    lines = columns(cells)
    lines[0] = style.paint(lines[0], Role.BOLD)
    for index, row in enumerate(rows, start=1):
        if row.status in _BAD or row.proof == "fail":
            lines[index] = style.paint(lines[index], Role.BAD)
    return "\n".join(lines) + "\n"


def _cells(row: HistoryRow, form: str, tz: tzinfo) -> tuple[str, ...]:
    return (
        moment(row.at_ms, tz).strftime(form),
        printable(row.run_id or "-"),
        printable(row.table),
        step_word(row.step),
        _STATUS_WORD.get(row.status, printable(row.status)),
        _versions(row),
        printable(row.proof or "-"),
        _detail(row),
    )


def _versions(row: HistoryRow) -> str:
    if row.version_after is None:
        return "-"
    return f"{row.version_after}" if row.version_before is None else f"{row.version_before} -> {row.version_after}"


def _detail(row: HistoryRow) -> str:
    parts = []
    if row.num_files_added:
        parts.append(f"{row.num_files_removed:,} -> {count(row.num_files_added, 'file')}")
    elif row.num_files_removed:
        parts.append(count(row.num_files_removed, "file"))
    if row.bytes_removed:
        parts.append(format_size(row.bytes_removed))
    if row.duration_seconds is not None:
        parts.append(format_duration(float(row.duration_seconds)))
    if row.error_code or row.error:
        parts.append(": ".join(printable(part) for part in (row.error_code, row.error) if part))
    if row.run_id is None:
        parts.append("outside maintainer" + (f", by {printable(row.by)}" if row.by else ""))
    if row.git_commit:
        parts.append(f"@ {printable(row.git_commit[:12])}")
    return ", ".join(parts)


def history_csv(rows: Sequence[HistoryRow]) -> str:
    """Return rows as CSV (RFC 4180, so lines end in CR LF) with a heading; times as UTC ISO 8601 in ``at``."""
    names = [field.name for field in fields(HistoryRow)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["at" if name == "at_ms" else name for name in names])
    for row in rows:
        values = asdict(row)
        values["at_ms"] = iso_utc(row.at_ms)
        writer.writerow(["" if values[name] is None else values[name] for name in names])
    return text.getvalue()


def history_json(rows: Sequence[HistoryRow]) -> str:
    """Return rows as one JSON document, ending in a newline; times as UTC ISO 8601 in ``at``."""
    documents = []
    for row in rows:
        values = asdict(row)
        documents.append({"at": iso_utc(values.pop("at_ms")), **values})
    return json.dumps({"format_version": FORMAT_VERSION, "history": documents}, indent=2, allow_nan=False) + "\n"
