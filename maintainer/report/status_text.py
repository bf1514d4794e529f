"""``status`` as text, one line for each table; ``history``, one for each step or for alike commits of others."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo

from maintainer.model.plan.plan import DIRTY, Problem
from maintainer.model.run.auto_compaction import SwitchSource
from maintainer.model.run.history_rows import (
    APPENDED,
    BY_HOOK,
    LOST,
    NOT_RECORDED,
    NOTHING_TO_DO,
    UNDELETE,
    VERIFY,
    HistoryRow,
    StatusRow,
)
from maintainer.model.table.commit_records import MAINTENANCE
from maintainer.report.plan.step_text import step_word
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import (
    UTC,
    alike,
    columns,
    display_width,
    moment,
    pad,
    printable,
    short_commit,
    short_share,
)
from maintainer.units import by_cause, count_of, format_duration, format_size

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
_HEADING = ("TABLE", "STATE", "SMALL", "FILES", "SIZE", "OPTIMIZED", "VACUUMED", "PROOF", "NEXT")

WIDTH = 100
"""Columns that a line of ``status`` takes at most, unless a single word is longer."""

_LEAST_NEXT = 24
"""Where fewer columns are left of a line, what is next stands below it."""


def render_status(rows: Sequence[StatusRow], now_ms: int, style: Style = PLAIN, *, tz: tzinfo = UTC) -> str:
    """Return rows as text in the order given, at most ``WIDTH`` columns wide, ending in a newline.

    Args:
        rows: What to print.
        now_ms: Now, for ages (``2d ago``).
        style: Colour or none.
        tz: Zone in which it is today or yesterday.
    """
    if not rows:
        return "No table is selected.\n"
    totals = _totals(rows)
    groups = by_cause(rows, lambda row: row.next if row.state == "problem" and row.version is None else None)
    rows = [_of_group(group) for group in groups]
    heading, *cells = status_table(rows, now_ms, style, tz=tz)
    figures = columns([heading[1:-1], *(row[1:-1] for row in cells)], right=frozenset(n - 1 for n in STATUS_NUMBERS))
    # ``columns`` pads no last cell: what is next begins at the same place in each line.
    wide = max(map(display_width, figures))
    names = [row[0] for row in cells]
    room = max(len(heading[0]), WIDTH - wide - 2)
    width = max(display_width(name) for name in ("TABLE", *names) if display_width(name) <= room)
    lines = [style.paint(f"{pad(heading[0], width)}  {pad(figures[0], wide)}  {heading[-1]}", Role.BOLD)]
    for name, figure, row, following in zip(
        names, figures[1:], rows, (cells_of[-1] for cells_of in cells), strict=True
    ):
        if display_width(name) > width:
            lines.append(name)
            name = ""
        line, left = f"{pad(name, width)}  {pad(figure, wide)}".rstrip(), WIDTH - width - wide - 4
        text = "" if following == "-" or (row.state == "ok" and following.startswith(NOTHING_TO_DO)) else following
        if left >= _LEAST_NEXT and display_width(text) <= left and text:
            lines.append(f"{pad(name, width)}  {pad(figure, wide)}  {text}")
        else:
            lines += [line, *textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join([*(line.rstrip() for line in lines), totals]) + "\n"


def _of_group(rows: Sequence[StatusRow]) -> StatusRow:
    """Return the first row of tables that cannot be read for one reason, which names the others."""
    first, *others = rows
    return replace(first, next=f"{first.next}; {alike([row.table for row in others])}") if others else first


STATUS_NUMBERS = frozenset({2, 3, 4})
"""The places of figures in a row of ``status_table``."""


def status_table(
    rows: Sequence[StatusRow], now_ms: int, style: Style = PLAIN, *, tz: tzinfo = UTC
) -> list[tuple[str, ...]]:
    """Return the heading and the cells of each row, as ``render_status`` prints them."""
    return [_HEADING, *(_cells(row, now_ms, tz, style) for row in rows)]


def problem_line(problem: Problem) -> str:
    """Say in one line what is wrong beside the tables, and what to do."""
    text = f"warning[{problem.code}]: {problem.what}" + (f"; {problem.help}" if problem.help else "")
    return printable(" ".join(text.split()))


def _cells(row: StatusRow, now_ms: int, tz: tzinfo, style: Style) -> tuple[str, ...]:
    state, role = printable(row.state), _ROLE.get(row.state)
    return (
        printable(row.table),
        style.paint(state, role) if role else state,
        _small(row),
        _number(row.num_files),
        "-" if row.size_bytes is None else format_size(row.size_bytes),
        age(row.last_optimize_at_ms, now_ms, tz),
        age(row.last_vacuum_at_ms, now_ms, tz),
        printable(row.last_proof or "-"),
        "; ".join(_next_parts(row)),
    )


def _next_parts(row: StatusRow) -> Iterator[str]:
    """Say what is next, and behind it what else a person should know of the table."""
    if row.running:
        yield f"run {printable(row.running)} is working on it"
    yield printable(row.next or "-")
    if row.last_optimize_status not in (None, "succeeded"):
        yield f"the last optimize ended {printable((row.last_optimize_status or '').replace('_', ' '))}"
    if row.files_read is not None and row.overlap_depth is not None and row.unindexed_ratio is not None:
        yield (
            f"a query reads {row.files_read:,.1f} files, {row.overlap_depth:,.1f} over a point, "
            f"{short_share(row.unindexed_ratio)} unindexed"
        )
    if row.deleted_rows_ratio:
        yield f"{short_share(row.deleted_rows_ratio)} of the rows are deleted"
    if row.auto_compact or (row.auto_compact is None and row.auto_compact_source):
        yield f"auto compaction {_auto_compact(row)}"


def _auto_compact(row: StatusRow) -> str:
    """Print where it was switched on: ``on (table)``, ``on`` by default; why it is not known where a setting is odd."""
    if row.auto_compact is None:
        return f"unknown: {printable(row.auto_compact_source or '')}"
    match row.auto_compact_source:
        case None | SwitchSource.DEFAULT.value:
            return "on"
        case SwitchSource.PROPERTY.value | SwitchSource.LEGACY_PROPERTY.value:
            return "on (table)"
        case source:
            return f"on ({printable(source)})"


def _small(row: StatusRow) -> str:
    """Print small files, and their share of the table's bytes where something can be done about it: ``12 (3%)``."""
    if row.small_files and row.small_bytes is not None and row.size_bytes and row.state != "ok":
        return f"{row.small_files:,} ({short_share(row.small_bytes / row.size_bytes)})"
    return _number(row.small_files)


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
    return f"{count_of(len(tables), 'table')}: {by_state or 'none'}{of_ledger}"


_STATUS_WORD = {
    "succeeded": "ok",
    "nothing_left": "nothing",
    "verify_failed": "VERIFY FAILED",
    "failed": "FAILED",
    "incomplete": "INCOMPLETE",
    "interrupted": "INTERRUPTED",
    "unknown": "UNKNOWN",
    "": "-",
}
FOLD = 3
"""As many commits in a row, alike and not ours, are one line."""

_BAD = frozenset({"verify_failed", "failed", "incomplete", "unknown"})


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
        return "No step fits.\n"
    rows = folded(rows)
    lines = columns(_table_of_steps(rows, tz, one_table))
    lines[0] = style.paint(lines[0], Role.BOLD)
    for index, row in enumerate(rows, start=1):
        if row.status in _BAD or row.proof == "fail":
            lines[index] = style.paint(lines[index], Role.BAD)
    return "\n".join([*lines, *_links(rows, one_table)]) + "\n"


def history_table(rows: Sequence[HistoryRow], *, tz: tzinfo = UTC, one_table: bool = False) -> list[tuple[str, ...]]:
    """Return the heading and the cells of each row, as ``render_history`` prints them."""
    return _table_of_steps(folded(rows), tz, one_table)


def _table_of_steps(rows: Sequence[HistoryRow], tz: tzinfo, one_table: bool) -> list[tuple[str, ...]]:
    zones = {f"{moment(row.at_ms, tz):%Z}" for row in rows}
    # One zone stands in the heading; two (summer time came or went) stand with each time.
    zone = zones.pop() if len(zones) == 1 else None
    form = "%Y-%m-%d %H:%M" if zone is not None else "%Y-%m-%d %H:%M %Z"
    heading = (f"WHEN ({zone})" if zone else "WHEN", "RUN", "TABLE", "STEP", "RESULT", "VERSIONS", "PROOF", "DETAIL")
    cells = [heading, *(_history_cells(row, form, tz) for row in rows)]
    return [(*cell[:2], *cell[3:]) for cell in cells] if one_table else cells


def no_steps(num_runs: int) -> str:
    """Return what is said where no run did a step."""
    if not num_runs:
        return "No runs are recorded yet.\n"
    return f"No steps are recorded: {count_of(num_runs, 'run')}, and none of them had anything to do.\n"


def folded(rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    """Join commits of others that follow one another with one operation by one writer, where they are ``FOLD`` or more.

    A stream that appends every minute is one line then. Maintenance is never joined, nor is anything of ours.
    """
    result: list[HistoryRow] = []
    for _, group in itertools.groupby(enumerate(rows), key=lambda pair: _folds_as(*pair)):
        alike = [row for _, row in group]
        if len(alike) < FOLD:
            result += alike
            continue
        newest, oldest = alike[0], alike[-1]
        result.append(
            replace(
                newest,
                step=f"{newest.step} x{len(alike):,}",
                version_before=None if oldest.version_after is None else oldest.version_after - 1,
                num_files_removed=sum(row.num_files_removed for row in alike),
                num_files_added=sum(row.num_files_added for row in alike),
                bytes_removed=sum(row.bytes_removed for row in alike),
                bytes_added=sum(row.bytes_added for row in alike),
                duration_seconds=None,
                reason=APPENDED if newest.reason == APPENDED else None,
            )
        )
    return result


def _folds_as(number: int, row: HistoryRow) -> tuple[object, ...]:
    """Return what neighbours must share to be joined; a row that stays alone shares nothing with any other."""
    if row.run_id is not None or row.step.upper() in MAINTENANCE:
        return (number,)
    return (row.table, row.step, row.by, row.reason == APPENDED)


def _is_without_folder(row: HistoryRow) -> bool:
    """Return whether only the table's log knows of a commit of ours."""
    return row.reason is not None and row.reason.endswith((LOST, NOT_RECORDED, BY_HOOK))


def _links(rows: Sequence[HistoryRow], one_table: bool) -> Iterator[str]:
    ours = next(
        (row for row in rows if row.run_id is not None and not _is_without_folder(row)),
        None,
    )
    if ours is None or not one_table:
        return
    report = "" if ours.step in (UNDELETE, VERIFY) else f"   its report: maintainer report {ours.run_id}"
    yield f"the run: maintainer show {ours.run_id}{report}"
    policy_file = re.sub(r":\d+\Z", "", ours.policy_file or "")  # of a rule with its line
    if ours.git_commit and "/" in policy_file:
        commit, dirty, _ = ours.git_commit.partition(DIRTY)
        look = f"git show {printable(commit[:12])}:./{printable(policy_file)}"
        if dirty:
            yield f"its policies had changes that were not committed; without them: {look}"
        else:
            yield f"its policy as it was: {look}"


def _history_cells(row: HistoryRow, form: str, tz: tzinfo) -> tuple[str, ...]:
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
    if row.version_before is None:
        return f"{row.version_after}"
    # A first commit has no version before it.
    return f"{row.version_before} -> {row.version_after}" if row.version_before >= 0 else f"0 .. {row.version_after}"


def _detail(row: HistoryRow) -> str:
    parts = []
    if row.num_files_added and not row.num_files_removed and row.run_id is None:
        parts.append(f"+{count_of(row.num_files_added, 'file')}")
    elif row.step == UNDELETE:
        parts.append(f"{count_of(row.num_files_added, 'file')} brought back, {format_size(row.bytes_added)}")
    elif row.num_files_added:
        parts.append(f"{row.num_files_removed:,} -> {count_of(row.num_files_added, 'file')}")
    elif row.num_files_removed:
        parts.append(count_of(row.num_files_removed, "file"))
    if row.bytes_removed or (row.run_id is None and row.bytes_added):
        parts.append(format_size(row.bytes_removed or row.bytes_added))
    if row.duration_seconds is not None:
        parts.append(format_duration(float(row.duration_seconds)))
    if row.error_code or row.error:
        parts.append(": ".join(printable(part) for part in (row.error_code, row.error) if part))
    if row.reason == APPENDED:
        parts.append(APPENDED)
    elif row.run_id is None:
        parts.append("outside maintainer" + (f", by {printable(row.by)}" if row.by else ""))
        if row.reason:
            parts.append(printable(row.reason))
    elif row.reason is not None and _is_without_folder(row):
        parts.append(row.reason)
    if row.git_commit:
        parts.append(f"@ {short_commit(row.git_commit)}")
    return ", ".join(parts)
