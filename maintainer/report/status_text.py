"""``status`` as text, one line for each table; ``history``, one for each step or for alike commits of others."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from maintainer.model.plan.plan import DIRTY, Problem, is_place
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
from maintainer.model.run.outcome import ENDED_STEPS, FAILED_STEPS
from maintainer.model.table.commit_records import MAINTENANCE
from maintainer.report.document.blocks import Document, Line, Row, Span, TableBlock, Text, literal
from maintainer.report.document.folding import FOLD, first_names, merged, nameless, wording
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.plan.step_text import step_word
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import moment, printable, proof_word, short_commit, short_share, unsearched
from maintainer.units import by_cause, count_of, format_duration, format_size

_ROLES: Mapping[str, Role | None] = {
    "problem": Role.BAD,
    "failed": Role.BAD,
    "quarantined": Role.BAD,
    "blocked": Role.WARN,
    "drift": Role.WARN,
    "due": Role.CHANGE,
    "hot": Role.WARN,
    "suspended": None,
    "unsupported": Role.WARN,
    "ok": Role.GOOD,
}
"""How each state is shown, the worst first."""

_HEADING = ("TABLE", "STATE", "SMALL", "FILES", "SIZE", "OPTIMIZED", "VACUUMED", "PROOF", "NEXT")

WIDTH = 100
"""Columns that a line of ``status`` takes at most, unless a single word is longer."""


def render_status(
    rows: Sequence[StatusRow], now_ms: int, style: Style = PLAIN, *, tz: tzinfo = UTC, verbose: bool = False
) -> str:
    """Return rows as text at most ``WIDTH`` columns wide, the worst first, ending in a newline.

    Args:
        rows: What to print. What is equal but for figures is one line; a group with nothing to do has names only where
            somebody else maintains it, too.
        now_ms: Now, for ages (``2d ago``).
        style: Colour or none.
        tz: Zone in which it is today or yesterday.
        verbose: Print each row, in the order given.
    """
    groups = [[row] for row in rows] if verbose else status_groups(rows)
    shown: Document = (status_table(groups, now_ms, tz=tz), Line(status_totals(rows)))
    return terminal_text(shown if rows else (Line("No table is selected."),), style)


def status_groups(rows: Sequence[StatusRow]) -> list[list[StatusRow]]:
    """Put what is equal but for figures together, the worst first; the ledger only where nothing else is."""
    shown = [row for row in rows if not row.is_ledger] or rows
    order = {state: place for place, state in enumerate(_ROLES)}
    return by_cause(sorted(shown, key=lambda row: order.get(row.state, order["ok"])), _alike, at_least=FOLD)


def status_table(groups: Sequence[Sequence[StatusRow]], now_ms: int, *, tz: tzinfo = UTC) -> TableBlock:
    """Return a row for each group, with some of its names behind what is next."""
    rows = [status_cells(group, now_ms, tz) for group in groups]
    return TableBlock(
        _HEADING, rows, frozenset({2, 3, 4}), width=WIDTH, caption="Each table as it is now, and what is next"
    )


def _alike(row: StatusRow) -> Hashable:
    """Return what rows must share to be one line; None for one that stands alone."""
    if row.running:
        return None
    said = row.next or ""
    is_idle = row.state == "ok" and said.startswith(NOTHING_TO_DO)
    said = "" if is_idle else f"{is_place(row)} {wording(nameless(said, row.table))}"
    return (row.state, row.owner, row.last_proof, said, row.last_optimize_status, row.auto_compact, row.by_others)


def problem_line(problem: Problem) -> str:
    """Say in one line what is wrong beside the tables, and what to do."""
    text = f"warning[{problem.code}]: {problem.what}" + (f"; {problem.help}" if problem.help else "")
    return printable(" ".join(text.split()))


def status_cells(rows: Sequence[StatusRow], now_ms: int, tz: tzinfo, *, names_first: bool = False) -> Row:
    """Return the row of a group, with some of its names behind what is next, or in the first cell."""
    first, names = rows[0], [row.table for row in rows]
    title: Text = literal(first.table)
    said = "; ".join(_next_parts(first))
    idle = said == "-" or (first.state == "ok" and said.startswith(NOTHING_TO_DO))
    if len(rows) > 1:
        counted = count_of(len(rows), "place" if is_place(first) else "table")
        title = f"{counted} of {first.owner}" if first.owner else counted
        title = f"{title}: {first_names(names)}" if names_first else title
        said = "; ".join((merged([row.next or "-" for row in rows]), *first.by_others))
    said = "; ".join(first.by_others) if idle else said
    if len(rows) > 1 and not names_first and (first.state != "ok" or first.maintained_twice):
        said = f"{said}: {first_names(names)}"
    return Row((
        title,
        Span(first.state, _ROLES.get(first.state)),
        _small(rows),
        _number(_sum(row.num_files for row in rows)),
        "-" if (size := _sum(row.size_bytes for row in rows)) is None else format_size(size),
        _oldest([row.optimized_at_ms for row in rows], now_ms, tz),
        _oldest([row.vacuumed_at_ms for row in rows], now_ms, tz),
        proof_word(first.last_proof),
        said,
    ))  # fmt: skip


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _oldest(times_ms: Sequence[int | None], now_ms: int, tz: tzinfo) -> str:
    """Say when something was done to the table that has waited longest for it; ``-`` where that is not known."""
    known = [at_ms for at_ms in times_ms if at_ms is not None]
    return "-" if 0 in known else age(min(known) if len(known) == len(times_ms) else None, now_ms, tz)


def _next_parts(row: StatusRow) -> Iterator[str]:
    """Say what is next, and behind it what else a person should know of the table."""
    if row.running:
        yield f"run {row.running} is working on it"
    yield row.next or "-"
    if row.last_optimize_status not in (None, "succeeded"):
        yield f"the last optimize ended {(row.last_optimize_status or '').replace('_', ' ')}"
    if row.files_read is not None and row.overlap_depth is not None and row.unindexed_ratio is not None:
        yield (
            f"a query reads {row.files_read:,.1f} files, {row.overlap_depth:,.1f} overlap at a point, "
            f"{short_share(row.unindexed_ratio)} unindexed"
        )
    yield from row.by_others
    if row.deleted_rows_ratio:
        yield f"{short_share(row.deleted_rows_ratio)} of the rows are deleted"
    if row.auto_compact or (row.auto_compact is None and row.auto_compact_source):
        yield f"auto compaction {_auto_compact(row)}"


def _auto_compact(row: StatusRow) -> str:
    """Print where it was switched on: ``on (table)``, ``on`` by default; why it is not known where a setting is odd."""
    if row.auto_compact is None:
        return f"unknown: {row.auto_compact_source or ''}"
    match row.auto_compact_source:
        case None | SwitchSource.DEFAULT.value:
            return "on"
        case SwitchSource.PROPERTY.value | SwitchSource.LEGACY_PROPERTY.value:
            return "on (table)"
        case source:
            return f"on ({source})"


def _small(rows: Sequence[StatusRow]) -> str:
    """Print small files and their share of the bytes, ``12 (3%)``; none of a table that is well with those it has."""
    if rows[0].state == "ok":
        return "-"
    small, size = _sum(row.small_files for row in rows), _sum(row.size_bytes for row in rows)
    small_bytes = _sum(row.small_bytes for row in rows)
    if small and small_bytes is not None and size:
        return f"{small:,} ({short_share(small_bytes / size)})"
    return _number(small)


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


def status_totals(rows: Sequence[StatusRow]) -> str:
    """Count tables by state, and places that could not be searched."""
    tables = [row for row in rows if not (row.is_ledger or is_place(row))]
    by_state = ", ".join(f"{number:,} {state}" for state, number in Counter(row.state for row in tables).items())
    of_ledger = "".join(f"; our own ledger: {row.state}" for row in rows if row.is_ledger)
    return f"{count_of(len(tables), 'table')}: {by_state or 'none'}{unsearched(sum(map(is_place, rows)))}{of_ledger}"


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
_BAD = FAILED_STEPS | {"error"}


def render_history(
    rows: Sequence[HistoryRow],
    style: Style = PLAIN,
    *,
    tz: tzinfo = UTC,
    one_table: bool = False,
    verbose: bool = False,
) -> str:
    """Return rows as text in the order given, ending in a newline.

    Args:
        rows: What to print.
        style: Colour or none.
        tz: Zone of the times; the heading names it.
        one_table: All rows are of one table: the column of its name is left out.
        verbose: A line for each step of ours, also where a run did the same to many tables.
    """
    if not rows:
        return "No step fits.\n"
    table = history_table(rows, tz=tz, one_table=one_table, of_tables=not one_table and not verbose)
    return terminal_text([table, *map(Line, _links(rows, one_table))], style)


def history_table(rows: Sequence[HistoryRow], *, tz: tzinfo, one_table: bool, of_tables: bool = False) -> TableBlock:
    """Return a row for each step, or for several that are alike; ``of_tables`` as ``folded`` has it."""
    shown = folded(rows, of_tables=of_tables)
    zones = {f"{moment(row.at_ms, tz):%Z}" for row in shown}
    # One zone stands in the heading; two (summer time came or went) stand with each time.
    zone = zones.pop() if len(zones) == 1 else None
    form = "%Y-%m-%d %H:%M" if zone is not None else "%Y-%m-%d %H:%M %Z"
    heading = (f"WHEN ({zone})" if zone else "WHEN", "RUN", "TABLE", "STEP", "RESULT", "VERSIONS", "PROOF", "DETAIL")
    wanted = [not (one_table and name == "TABLE") for name in heading]
    cells = []
    for row in shown:
        role = Role.BAD if row.status in _BAD or row.proof == "fail" else None
        cells.append(Row(tuple(itertools.compress(_history_cells(row, form, tz), wanted)), role))
    return TableBlock(tuple(itertools.compress(heading, wanted)), cells, caption="Each step, the newest first")


def no_steps(num_runs: int) -> str:
    """Return what is said where no run did a step."""
    if not num_runs:
        return "No runs are recorded yet.\n"
    return f"No steps are recorded: {count_of(num_runs, 'run')}, and none of them changed anything.\n"


def folded(rows: Sequence[HistoryRow], *, of_tables: bool = False) -> list[HistoryRow]:
    """Join commits of others that follow one another with one operation by one writer, where they are ``FOLD`` or more.

    A stream that appends every minute is one line then. Maintenance is never joined, nor is anything of ours on one
    table; ``of_tables`` joins steps of one run that went well in the same way on different tables.
    """
    result: list[HistoryRow] = []
    if of_tables:
        groups = by_cause(rows, _of_one_run, at_least=FOLD)
        rows = [_of_tables(group) if len(group) > 1 else group[0] for group in groups]
    for _, group in itertools.groupby(enumerate(rows), key=lambda pair: _folds_as(*pair)):
        alike = [row for _, row in group]
        if len(alike) < FOLD:
            result += alike
            continue
        newest, oldest = alike[0], alike[-1]
        step, reason = f"{newest.step} x{len(alike):,}", APPENDED if newest.reason == APPENDED else None
        before = None if oldest.version_after is None else oldest.version_after - 1
        after = newest.version_after
        result.append(replace(_added_up(alike), step=step, version_before=before, version_after=after, reason=reason))
    return result


def _of_tables(rows: Sequence[HistoryRow]) -> HistoryRow:
    return replace(_added_up(rows), table=count_of(len({row.table for row in rows}), "table"))


def _added_up(rows: Sequence[HistoryRow]) -> HistoryRow:
    sums = {name: sum(getattr(row, name) for row in rows) for name in _SUMMED}
    took = sum(row.duration_seconds or 0 for row in rows) if rows[0].run_id else None
    return replace(rows[0], version_before=None, version_after=None, duration_seconds=took, **sums)


_SUMMED = ("num_files_removed", "num_files_added", "bytes_removed", "bytes_added")


def _of_one_run(row: HistoryRow) -> Hashable:
    """Return what steps of a run share that went well in the same way; None for what stays by itself."""
    went_well = row.status in ENDED_STEPS and row.proof in (None, "pass")
    if row.run_id is None or not went_well or row.error or row.step in (UNDELETE, VERIFY) or _is_without_folder(row):
        return None
    return (row.run_id, row.step, row.status, row.proof, row.git_commit, row.note)


def _folds_as(number: int, row: HistoryRow) -> tuple[object, ...]:
    """Return what neighbours must share to be joined; a row that stays alone shares nothing with any other."""
    if row.run_id is not None or row.step.upper() in MAINTENANCE:
        return (number,)
    return (row.table, row.step, row.by, row.reason == APPENDED)


def _is_without_folder(row: HistoryRow) -> bool:
    """Return whether only the table's log knows of a commit of ours."""
    return row.reason is not None and row.reason.endswith((LOST, NOT_RECORDED, BY_HOOK))


def _links(rows: Sequence[HistoryRow], one_table: bool) -> Iterator[str]:
    ours = next((row for row in rows if row.run_id is not None and not _is_without_folder(row)), None)
    if ours is None or not one_table:
        return
    report = "" if ours.step in (UNDELETE, VERIFY) else f"   its report: maintainer report {ours.run_id}"
    yield f"the run: maintainer show {ours.run_id}{report}"
    policy_file = re.sub(r":\d+\Z", "", ours.policy_file or "")  # of a rule with its line
    if ours.git_commit and "/" in policy_file:
        commit, dirty, _ = ours.git_commit.partition(DIRTY)
        look = f"git show {commit[:12]}:./{policy_file}"
        if dirty:
            yield f"its policies had changes that were not committed; without them: {look}"
        else:
            yield f"its policy as it was: {look}"


def _history_cells(row: HistoryRow, form: str, tz: tzinfo) -> tuple[Text, ...]:
    return (
        moment(row.at_ms, tz).strftime(form),
        row.run_id or "-",
        literal(row.table),
        step_word(row.step),
        _STATUS_WORD.get(row.status) or proof_word(row.status),
        _versions(row),
        proof_word(row.proof),
        ", ".join(_details(row)),
    )


def _versions(row: HistoryRow) -> str:
    if row.version_after is None:
        return "-"
    if row.version_before is None:
        return f"{row.version_after}"
    # A first commit has no version before it.
    return f"{row.version_before} -> {row.version_after}" if row.version_before >= 0 else f"0 .. {row.version_after}"


def _details(row: HistoryRow) -> Iterator[str]:
    if row.num_files_added and not row.num_files_removed and row.run_id is None:
        yield f"+{count_of(row.num_files_added, 'file')}"
    elif row.step == UNDELETE:
        yield f"{count_of(row.num_files_added, 'file')} brought back, {format_size(row.bytes_added)}"
    elif row.num_files_added:
        yield f"{row.num_files_removed:,} -> {count_of(row.num_files_added, 'file')}"
    elif row.num_files_removed:
        yield count_of(row.num_files_removed, "file")
    if row.bytes_removed or (row.run_id is None and row.bytes_added):
        yield format_size(row.bytes_removed or row.bytes_added)
    if row.duration_seconds is not None:
        yield format_duration(float(row.duration_seconds))
    if row.error_code or row.error:
        yield ": ".join(part for part in (row.error_code, row.error) if part)
    if row.note:
        yield row.note
    if row.run_id is None and row.reason != APPENDED:
        yield "outside maintainer" + (f", by {row.by}" if row.by else "")
    if row.reason and (row.run_id is None or row.reason == APPENDED or _is_without_folder(row)):
        yield row.reason
    if row.git_commit:
        yield f"@ {short_commit(row.git_commit)}"
