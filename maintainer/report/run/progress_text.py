"""Progress while a run goes on: lines for a pipeline, and the same with live lines for a terminal.

In a pipeline each step has a ``START`` line, a line each 30 s while it runs, and one for its end; the cursor never
moves. On a terminal a step that runs is one live line at the bottom, which its last line replaces; below them stands
the run as a whole. Writing must never
hurt a run: a stream that is closed or full makes the printer fall silent.

The run as a whole while it goes on, as the last live line on a terminal: how far, and what is left of its budget.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TextIO

from maintainer.model.closed_types import assert_never
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import (
    BatchStarted,
    ProgressEvent,
    RunFinished,
    RunStarted,
    RunStopping,
    StepFinished,
    StepHeartbeat,
    StepStarted,
    TableFinished,
    TableStarted,
    Verified,
)
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import STATUS_WORD, TABLE_STATUS_TEXT, figures, message, verified_detail
from maintainer.report.text.style import PLAIN, Role, Style
from maintainer.report.text.text_layout import UTC, clock_time, count, cut, pad, pad_left, padded_width, printable
from maintainer.units import format_duration, format_size

_FAILED = frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED})


@dataclass(slots=True)
class WholeRun:
    """Counts what ended. Bytes are those that rewrites read."""

    started: RunStarted | None = None
    tables_ended: int = 0
    tables_failed: int = 0
    rewritten_bytes: int = 0

    def step(self, outcome: StepOutcome) -> None:
        """A step ended."""
        self.rewritten_bytes += sum(one.bytes_removed for one in outcome.commits)

    def table(self, outcome: TableOutcome) -> None:
        """A table ended; our own ledger is none of those that are counted."""
        if outcome.is_ledger:
            return
        self.tables_ended += 1
        self.tables_failed += outcome.status in _FAILED

    def line(self, now_ms: int) -> str | None:
        """The line; None for a run of one table, whose own line says it all."""
        started = self.started
        if started is None or started.num_tables < 2:
            return None
        failed = f", {self.tables_failed:,} failed" if self.tables_failed else ""
        parts = [f"{self.tables_ended:,} of {started.num_tables:,} tables{failed}"]
        if started.planned_bytes:
            parts.append(f"{format_size(self.rewritten_bytes)} of {format_size(started.planned_bytes)} rewritten")
        seconds = max(0, now_ms - started.at_ms) // 1000
        if started.timeout_seconds is not None:
            left = max(0, round(started.timeout_seconds) - seconds)
            parts.append(f"{_short(seconds)}, {_short(left)} left")
        else:
            parts.append(_short(seconds))
        return "   ".join(parts)


def _short(seconds: int) -> str:
    return format_duration(seconds).replace(" ", "")


HEARTBEAT_SECONDS = 30
"""How often a pipeline hears that a step still runs."""
MAX_LIVE_LINES = 8
"""Running steps shown on a terminal at once; the others are counted."""

_WORD_WIDTH = 10
_STATUS_WIDTH = 7
_DURATION_WIDTH = 7
_RESULT_WORD = {"pass": ("PASS", Role.GOOD), "fail": ("FAIL", Role.BAD), "error": ("ERROR", Role.BAD)}


@dataclass(slots=True)
class _Running:
    """A step that was started and has not ended."""

    event: StepStarted
    last_beat_ms: int
    num_batches_done: int = 0


class ProgressText:
    """A sink of progress events that prints them.

    Safe to call from several threads. Give it ``tick`` once a second on a terminal, so that durations go on.

    Args:
        stream: Where to print; stderr, as stdout is for results.
        style: Colour or none.
        live: Whether the stream is a terminal on which the cursor may move (`style.cursor_wanted`).
        tables: Names of the tables of the plan, for a column that is wide enough from the first line on.
        tz: Zone of the times of day.
        terminal_size: Returns columns and lines of the terminal; asked before each drawing.
        verbose: Also say when a table with nothing to do was looked at.
        in_plan: Tables of which the plan said already why nothing may be done; here they have a code alone.
    """

    def __init__(
        self,
        stream: TextIO,
        style: Style = PLAIN,
        *,
        live: bool = False,
        tables: Sequence[str] = (),
        tz: tzinfo = UTC,
        terminal_size: Callable[[], tuple[int, int]] = lambda: (80, 24),
        verbose: bool = False,
        in_plan: Collection[str] = (),
    ) -> None:
        self._in_plan = frozenset(in_plan)
        self._stream = stream
        self._style = style
        self._live = live
        self._tz = tz
        self._terminal_size = terminal_size
        self._verbose = verbose
        self._table_width = padded_width(printable(name) for name in tables)
        self._num_steps = 0
        self._whole = WholeRun()
        self._running: dict[str, _Running] = {}
        self._drawn = 0
        self._silent = False
        self._lock = threading.RLock()

    def __call__(self, event: ProgressEvent) -> None:
        """Print an event. Never raises for a stream that cannot be written."""
        with self._lock:
            lines = self._lines(event)
            if self._live:
                self._redraw(lines, event.at_ms)
            else:
                self._write("".join(line + "\n" for line in lines))

    def tick(self, now_ms: int) -> None:
        """Draw the live lines anew with the time that has passed; does nothing in a pipeline."""
        with self._lock:
            if self._live and self._running:
                self._redraw([], now_ms)

    def close(self) -> None:
        """Take the live lines away, so that an error message starts on a clean line."""
        with self._lock:
            self._running.clear()
            if self._live:
                self._redraw([], 0)

    def _lines(self, event: ProgressEvent) -> list[str]:
        """The lines that stay on the screen for an event; keeps count of what runs."""
        match event:
            case RunStarted():
                self._num_steps = event.num_steps
                self._whole = WholeRun(event)
                return [_run_line(event)]
            case BatchStarted():
                return [f"batch {event.number} of {event.total}   {count(event.num_tables, 'table')}"]
            case TableStarted():
                return []
            case StepStarted():
                self._running[event.step_id] = _Running(event, event.at_ms)
                return [] if self._live else [self._start_line(event)]
            case StepHeartbeat():
                return self._heartbeat(event)
            case StepFinished():
                self._running.pop(event.outcome.step_id, None)
                if event.number:  # 0 is our own ledger's
                    self._whole.step(event.outcome)
                return [self._finished_line(event)]
            case Verified():
                return [self._verified_line(event)]
            case RunStopping():
                return [_stopping_line(event)]
            case TableFinished():
                self._whole.table(event.outcome)
                return self._table_lines(event.at_ms, event.outcome)
            case RunFinished():
                self._running.clear()
                return [self._interrupted_line(event.outcome)] if event.outcome.interrupted_by else []
            case _:
                assert_never(event)

    def _start_line(self, event: StepStarted) -> str:
        batches = count(event.num_batches, "commit") if event.num_batches > 1 else ""
        head = self._head(event.at_ms, event.number, event.table, step_word(event.kind))
        return f"{head}  {pad('START', _STATUS_WIDTH)}  {' ' * _DURATION_WIDTH}  {batches}".rstrip()

    def _heartbeat(self, event: StepHeartbeat) -> list[str]:
        running = self._running.get(event.step_id)
        if running is None:
            return []
        running.num_batches_done = event.num_batches_done
        if self._live or event.at_ms - running.last_beat_ms < HEARTBEAT_SECONDS * 1000:
            return []
        running.last_beat_ms = event.at_ms
        head = self._head(event.at_ms, None, event.table, step_word(event.kind))
        return [f"{head}  still running  {_seconds(int(event.elapsed_seconds))}{_batches(running)}"]

    def _finished_line(self, event: StepFinished) -> str:
        step = event.outcome
        word, role = STATUS_WORD[step.status]
        took = "" if step.status is StepStatus.SKIPPED else _seconds(step.duration_seconds)
        done = figures(step)
        why = "" if step.status is StepStatus.SUCCEEDED and not step.note else message(step)
        detail = "   ".join(part for part in (done, why) if part)
        return self._end_line(event.at_ms, event.number, event.table, step_word(step.kind), (word, role), took, detail)

    def _verified_line(self, event: Verified) -> str:
        word = _RESULT_WORD.get(event.result, (printable(event.result).upper(), Role.BAD))
        took = _seconds(event.duration_seconds)
        return self._end_line(event.at_ms, None, event.table, "verify", word, took, verified_detail(event))

    def _table_lines(self, at_ms: int, outcome: TableOutcome) -> list[str]:
        """A line for a table that never came to a step; the others have said all with their steps."""
        problem = outcome.problem
        word: tuple[str, Role]
        if outcome.status is TableStatus.BLOCKED:
            word = ("BLOCKED", Role.WARN)
        elif outcome.status in (TableStatus.NOT_REACHED, TableStatus.UNSUPPORTED):
            word = ("SKIP", Role.WARN)
        elif outcome.status is TableStatus.WAITING and problem is not None:
            word = ("WAIT", Role.DIM)
        elif problem is not None and not any(step.error == problem for step in outcome.steps):
            word = ("FAIL", Role.BAD)
        elif outcome.status is TableStatus.UP_TO_DATE and self._verbose:
            word = ("OK", Role.GOOD)
        elif outcome.status is TableStatus.WAITING and self._verbose:
            word = ("WAIT", Role.DIM)
        else:
            return []
        if problem is None:
            detail = TABLE_STATUS_TEXT[outcome.status]
        elif outcome.ref.identifier in self._in_plan:
            detail = f"{printable(problem.code)}, in full at the end"
        else:
            detail = f"{printable(problem.code)}: {printable(problem.what)}"
        return [self._end_line(at_ms, None, outcome.ref.identifier, "", word, "", detail)]

    def _interrupted_line(self, outcome: RunOutcome) -> str:
        return self._style.paint(f"Interrupted by {printable(outcome.interrupted_by or '')}", Role.WARN)

    def _end_line(
        self, at_ms: int, number: int | None, table: str, word: str, status: tuple[str, Role], took: str, detail: str
    ) -> str:
        painted = self._style.paint(pad(status[0], _STATUS_WIDTH), status[1])
        head = self._head(at_ms, number, table, word)
        return f"{head}  {painted}  {pad_left(took, _DURATION_WIDTH)}  {detail}".rstrip()

    def _head(self, at_ms: int, number: int | None, table: str, word: str) -> str:
        total = f"{self._num_steps}"
        place = "" if not number else f"[{number:>{len(total)}}/{total}]"
        name = pad(printable(table), self._table_width)
        return f"{clock_time(at_ms, self._tz)}  {pad(place, 2 * len(total) + 3)}  {name}  {pad(word, _WORD_WIDTH)}"

    def _redraw(self, lines: Sequence[str], now_ms: int) -> None:
        """Replace the live lines: go up to the first, clear downwards, print what stays, draw them again."""
        width, height = self._terminal_size()
        live = self._live_lines(now_ms, height - 2)
        if not lines and not live and not self._drawn:
            return
        up = f"\r\x1b[{self._drawn}A\x1b[J" if self._drawn else ""
        stay = "".join(line + "\n" for line in lines)
        # One cell is left free: a full line would wrap, and then going up would miss.
        draw = "".join(cut(line, max(1, width - 1)) + "\n" for line in live)
        self._write(up + stay + draw)
        self._drawn = len(live)

    def _live_lines(self, now_ms: int, height: int) -> list[str]:
        """The steps that run, and below them the run as a whole; at most so many lines."""
        running = sorted(self._running.values(), key=lambda one: (not one.event.number, one.event.number))
        whole = self._whole.line(now_ms) if running else None
        at_most = max(1, min(MAX_LIVE_LINES, height - (whole is not None)))
        lines = []
        for one in running[:at_most]:
            head = self._head(one.event.at_ms, one.event.number, one.event.table, step_word(one.event.kind))
            elapsed = pad_left(_seconds(max(0, now_ms - one.event.at_ms) // 1000), _DURATION_WIDTH)
            lines.append(f"{head}  {pad('...', _STATUS_WIDTH)}  {elapsed}{_batches(one)}")
        if len(running) > at_most:
            lines[-1] = f"          ... and {len(running) - at_most + 1} more running"
        return lines if whole is None else [*lines, f"          {whole}"]

    def _write(self, text: str) -> None:
        if self._silent or not text:
            return
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):
            self._silent = True


def _run_line(event: RunStarted) -> str:
    what = f"{count(event.num_tables, 'table')}, {count(event.num_steps, 'step')}, {event.num_workers:,} at once"
    return f"run {printable(event.run_id)}   {what}   {printable(event.run_folder)}"


def _seconds(seconds: float) -> str:
    """A duration without blanks, so that it stays one column: ``4m35s``."""
    return format_duration(seconds).replace(" ", "")


def _batches(running: _Running) -> str:
    total = running.event.num_batches
    return f"  {running.num_batches_done}/{total} commits" if total > 1 else ""


def _stopping_line(event: RunStopping) -> str:
    """What a person wants to know who has just pressed Ctrl-C, and nothing seems to happen."""
    grace = format_duration(round(event.grace_seconds))
    text = f"{printable(event.reason)}: no further table is begun; what runs has {grace} to finish its commit,"
    return f"{text} then it is cancelled. Once more: cancelled now."
