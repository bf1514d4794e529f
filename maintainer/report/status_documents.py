"""Rows of ``history`` and ``status`` for programs: JSON and CSV with times as UTC ISO 8601, and Prometheus text.

Prometheus text is a file for the folder that a node exporter's textfile collector reads. Each figure is a gauge with
the table as label; an unknown figure is left out, never given as 0. Each state is a gauge, 1 for the table's state
and 0 for the others.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType

from maintainer.errors.foreign_text import visible_json
from maintainer.model.codec import encode
from maintainer.model.plan.plan import Problem
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.table.store_requests import RunRequests
from maintainer.report.text_layout import iso_utc, printable

FORMAT_VERSION = "1"

_FORMULA_SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, also in full width."""


def history_csv(rows: Sequence[HistoryRow]) -> str:
    """Return rows as CSV (RFC 4180, so lines end in CR LF) with a heading."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_key(field.name) for field in fields(HistoryRow))
    writer.writerows([_cell(value) for value in row_values(row).values()] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: text that begins like one stands behind an apostrophe."""
    if not isinstance(value, str):
        return "" if value is None else value
    shown = "\n".join(map(printable, value.split("\n")))
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA_SIGNS) else shown


def history_json(
    rows: Sequence[HistoryRow], problems: Problems = (), requests: Mapping[str, RunRequests] = MappingProxyType({})
) -> str:
    """Return rows as one JSON document, ending in a newline; ``requests`` are what runs asked of object stores."""
    asked = {run_id: encode(each) for run_id, each in requests.items()}
    history = [row_values(row) for row in rows]
    return _document({"history": history, "requests": asked, "problems": problem_values(problems)})


def status_json(rows: Sequence[StatusRow], now_ms: int, problems: Problems = ()) -> str:
    """Return rows as one JSON document, ending in a newline; ``at`` is the time of the look."""
    tables = [row_values(row) for row in rows]
    return _document({"at": iso_utc(now_ms), "tables": tables, "problems": problem_values(problems)})


def end_json(code: int, problems: Sequence[Problem]) -> str:
    """Return why a command has nothing else to show as one JSON document, ending in a newline."""
    return _document({"exit_code": int(code), "problems": problem_values([(None, one) for one in problems])})


Problems = Sequence[tuple[str | None, Problem]]
"""What could not be looked at: the table or place, None where it is neither, and why."""


def problem_values(problems: Problems) -> list[dict[str, str | None]]:
    """Return problems as the values of a JSON document."""
    return [{"table": table, **asdict(problem)} for table, problem in problems]


def _document(content: dict[str, object]) -> str:
    return visible_json(json.dumps({"format_version": FORMAT_VERSION, **content}, indent=2, allow_nan=False)) + "\n"


def _key(name: str) -> str:
    return name.removesuffix("_ms")


def row_values(row: HistoryRow | StatusRow) -> dict[str, object]:
    """Return a row's fields in their order; ``at_ms`` as ``at``, and times as text."""
    return {
        _key(name): iso_utc(value) if name.endswith("at_ms") and value is not None else value
        for name, value in asdict(row).items()
    }


STATES = (
    "ok",
    "due",
    "drift",
    "failed",
    "hot",
    "unsupported",
    "quarantined",
    "suspended",
    "blocked",
    "problem",
    "unmanaged",
)
"""Every state of a row, so that an alert on a state has a series also while no table is in it."""

FIGURES: tuple[tuple[str, str, Callable[[StatusRow], float | None]], ...] = (
    ("files", "Live data files.", lambda row: row.num_files),
    ("small_files", "Live data files under the policy's minFileSize.", lambda row: row.small_files),
    ("small_bytes", "Bytes in data files under the policy's minFileSize.", lambda row: row.small_bytes),
    ("deleted_rows_ratio", "Share of rows that deletion vectors hide, 0 to 1.", lambda row: row.deleted_rows_ratio),
    ("bytes", "Bytes of live data files.", lambda row: row.size_bytes),
    ("version", "Newest version of the table.", lambda row: row.version),
    (
        "last_optimize_timestamp_seconds",
        "When maintainer last rewrote files.",
        lambda row: _seconds(row.last_optimize_at_ms),
    ),
    (
        "last_vacuum_timestamp_seconds",
        "When maintainer last took files away, also into its trash or out of it.",
        lambda row: _seconds(row.last_vacuum_at_ms),
    ),
    ("last_proof_timestamp_seconds", "When a commit was last proven.", lambda row: _seconds(row.last_proof_at_ms)),
    (
        "last_proof_ok",
        "1 if the last proof held, 0 if it did not, could not be made, or found values spelled anew.",
        lambda row: None if row.last_proof is None else float(row.last_proof == "pass"),
    ),
)
"""The gauges of a table: name, what it says, and the figure; None where it is not known."""


Series = tuple[str, str, list[tuple[dict[str, str], float]]]
"""A gauge: its name, what it says, and a value for each set of labels."""


def status_series(rows: Sequence[StatusRow]) -> Iterator[Series]:
    """Yield the gauges of tables; those of our ledger have names of their own: sums are of the user's tables."""
    of_user, of_ledger = ([row for row in rows if row.is_ledger is kind] for kind in (False, True))
    for prefix, shown in (("maintainer_table", of_user), *([("maintainer_ledger", of_ledger)] if of_ledger else [])):
        for name, help_text, figure in FIGURES:
            known = [(_labels(row), value) for row in shown if (value := figure(row)) is not None]
            yield f"{prefix}_{name}", help_text, known
        states = [({**_labels(row), "state": state}, float(row.state == state)) for row in shown for state in STATES]
        yield f"{prefix}_state", "1 for the state that the table is in.", states


def status_prometheus(rows: Sequence[StatusRow], at_ms: int) -> str:
    """Return rows in the text exposition format, version 0.0.4; ``at_ms`` is the time of the look."""
    looked: Series = ("maintainer_status_timestamp_seconds", "When the tables were looked at.", [({}, at_ms / 1000)])
    lines: list[str] = []
    for name, help_text, samples in (*status_series(rows), looked):
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
        for labels, value in samples:
            pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(f"{name}{f'{{{pairs}}}' if pairs else ''} {_number(value)}")
    return "\n".join(lines) + "\n"


def _labels(row: StatusRow) -> dict[str, str]:
    return {"table": row.table, "owner": row.owner or ""}


def _escaped(value: str) -> str:
    # Made printable first: an escape that the format does not know would make readers refuse the whole file.
    lines = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in value.split("\n"))
    return "\\n".join(lines)


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / 1000


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
