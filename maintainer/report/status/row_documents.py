"""Rows of ``history`` and ``status`` for programs: JSON and CSV with times as UTC ISO 8601."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.report.text.text_layout import iso_utc

FORMAT_VERSION = "1"


def history_csv(rows: Sequence[HistoryRow]) -> str:
    """Return rows as CSV (RFC 4180, so lines end in CR LF) with a heading."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_key(field.name) for field in fields(HistoryRow))
    writer.writerows(["" if value is None else value for value in _values(row).values()] for row in rows)
    return text.getvalue()


def history_json(rows: Sequence[HistoryRow]) -> str:
    """Return rows as one JSON document, ending in a newline."""
    return _document({"history": [_values(row) for row in rows]})


def status_json(rows: Sequence[StatusRow], now_ms: int) -> str:
    """Return rows as one JSON document, ending in a newline; ``at`` is the time of the look."""
    return _document({"at": iso_utc(now_ms), "tables": [_values(row) for row in rows]})


def _document(content: dict[str, object]) -> str:
    return json.dumps({"format_version": FORMAT_VERSION, **content}, indent=2, allow_nan=False) + "\n"


def _key(name: str) -> str:
    return name.removesuffix("_ms")


def _values(row: HistoryRow | StatusRow) -> dict[str, object]:
    """Return a row's fields in their order; ``at_ms`` as ``at``, and times as text."""
    return {
        _key(name): iso_utc(value) if name.endswith("at_ms") and value is not None else value
        for name, value in asdict(row).items()
    }
