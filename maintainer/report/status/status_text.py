"""``status`` as text: one line for each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo

from maintainer.model.plan.plan import Problem
from maintainer.model.run.auto_compaction import SwitchSource
from maintainer.model.run.history_rows import StatusRow
from maintainer.report.text.style import PLAIN, Role, Style
from maintainer.report.text.text_layout import UTC, columns, count, moment, printable
from maintainer.units import format_size

_ROLE = {
    "ok": Role.GOOD,
    "failed": Role.BAD,
    "quarantined": Role.BAD,
    "problem": Role.BAD,
    "due": Role.CHANGE,
    "drift": Role.WARN,
    "blocked": Role.WARN,
    "hot": Role.WARN,
    "unsupported": Role.WARN,
}
_HEADING = (
    "TABLE",
    "STATE",
    "SMALL",
    "FILES",
    "SIZE",
    "DELETED",
    "LAST OPTIMIZE",
    "LAST VACUUM",
    "PROOF",
    "AUTO",
    "NEXT",
)


def render_status(rows: Sequence[StatusRow], now_ms: int, style: Style = PLAIN, *, tz: tzinfo = UTC) -> str:
    """Return rows as text in the order given, ending in a newline.

    Args:
        rows: What to print.
        now_ms: Now, for ages (``2d ago``).
        style: Colour or none.
        tz: Zone in which it is today or yesterday.
    """
    if not rows:
        return "No table is selected.\n"
    cells = [_HEADING, *(_cells(row, now_ms, tz, style) for row in rows)]
    lines = columns(cells, right=frozenset({2, 3, 4, 5}))
    lines[0] = style.paint(lines[0], Role.BOLD)
    return "\n".join([*lines, _totals(rows)]) + "\n"


def problem_line(problem: Problem) -> str:
    """Say in one line what is wrong beside the tables, and what to do."""
    text = f"warning[{problem.code}]: {problem.what}" + (f"; {problem.help}" if problem.help else "")
    return printable(" ".join(text.split()))


def _cells(row: StatusRow, now_ms: int, tz: tzinfo, style: Style) -> tuple[str, ...]:
    optimize = age(row.last_optimize_at_ms, now_ms, tz)
    if row.last_optimize_status not in (None, "succeeded"):
        optimize += f" ({printable(row.last_optimize_status or '')})"
    state, role = printable(row.state), _ROLE.get(row.state)
    return (
        printable(row.table),
        style.paint(state, role) if role else state,
        _small(row),
        _number(row.num_files),
        "-" if row.size_bytes is None else format_size(row.size_bytes),
        "-" if row.deleted_rows_ratio is None else _share(row.deleted_rows_ratio),
        optimize,
        age(row.last_vacuum_at_ms, now_ms, tz),
        printable(row.last_proof or "-"),
        _auto_compact(row),
        _now(row) + printable(row.next or "-") + _layout(row),
    )


def _now(row: StatusRow) -> str:
    return f"run {printable(row.running)} is working on it; " if row.running else ""


def _layout(row: StatusRow) -> str:
    """Describe the layout of an incremental Z-order, behind what is next; empty for other tables."""
    if row.files_read is None or row.overlap_depth is None or row.unindexed_ratio is None:
        return ""
    return (
        f"; a query reads {row.files_read:,.1f} files, {row.overlap_depth:,.1f} over a point, "
        f"{row.unindexed_ratio:.0%} unindexed"
    )


def _auto_compact(row: StatusRow) -> str:
    """Print ``on (table)``, ``off`` by default, ``?`` where a setting cannot be read."""
    if row.auto_compact is None:
        return "?" if row.auto_compact_source else "-"
    word = "on" if row.auto_compact else "off"
    match row.auto_compact_source:
        case None | SwitchSource.DEFAULT.value:
            return word
        case SwitchSource.PROPERTY.value | SwitchSource.LEGACY_PROPERTY.value:
            return f"{word} (table)"
        case source:
            return f"{word} ({printable(source)})"


def _small(row: StatusRow) -> str:
    """Print small files, and their share of the table's bytes: ``12 (3%)``."""
    if row.small_files and row.small_bytes is not None and row.size_bytes:
        return f"{row.small_files:,} ({_share(row.small_bytes / row.size_bytes)})"
    return _number(row.small_files)


def _share(ratio: float) -> str:
    """Print a share in whole per cent; more than nothing is at least ``<1%``."""
    return "<1%" if 0 < ratio < 0.005 else f"{ratio:.0%}"


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def age(at_ms: int | None, now_ms: int, tz: tzinfo) -> str:
    """Say when something was: ``never``, ``today 22:04``, ``yesterday 22:04``, ``6d ago``, after 30 days the date."""
    if at_ms is None:
        return "never"
    then, now = moment(at_ms, tz), moment(now_ms, tz)
    days = (now.date() - then.date()).days
    if days < 0 or days > 30:
        return f"{then:%Y-%m-%d}"
    if days < 2:
        return f"{'today' if days == 0 else 'yesterday'} {then:%H:%M}"
    return f"{days}d ago"


def _totals(rows: Sequence[StatusRow]) -> str:
    tables = [row for row in rows if not row.is_ledger]
    states = Counter(row.state for row in tables)
    by_state = ", ".join(f"{number:,} {printable(state)}" for state, number in states.items())
    of_ledger = "".join(f"; our own ledger: {printable(row.state)}" for row in rows if row.is_ledger)
    return f"{count(len(tables), 'table')}: {by_state or 'none'}{of_ledger}"
