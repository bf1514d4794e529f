"""Progress while a run goes on: lines for a pipeline, and the same with live lines for a terminal.

In a pipeline each step has a ``START`` line, a line each 30 s while it runs, and one for its end; the cursor never
moves. On a terminal a step that runs is one live line at the bottom, which its last line replaces; below them stands
the run as a whole: how far it is, and what is left of its time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TextIO, assert_never

from maintainer.model.plan.plan import is_place
from maintainer.model.run.outcome import FAILED_TABLES, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import (
    BatchStarted,
    LedgerAppending,
    Phase,
    ProgressEvent,
    RunFinished,
    RunStarted,
    RunStopping,
    StepFinished,
    StepHeartbeat,
    StepProgress,
    StepStarted,
    TableFinished,
    TableStarted,
    Verified,
)
from maintainer.model.run.receipts import Verdict
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import (
    STEP_ENDS,
    TABLE_ENDS,
    WorkDone,
    details,
    figures,
    message,
    verified_detail,
)
from maintainer.report.style import PLAIN, LiveLines, QuietStream, Role, Style
from maintainer.report.text_layout import clock_time, pad, pad_left, padded_width, printable
from maintainer.units import count_of, format_duration, format_size

HEARTBEAT_SECONDS = 30
"""How often a pipeline hears that a step still runs."""
MAX_NOTE = 300
"""Characters of what is said behind a step that ended, unless ``verbose``."""
MAX_LIVE_LINES = 8
"""Running steps shown on a terminal at once; the others are counted."""

_WORD_WIDTH = 10
_STATUS_WIDTH = 7
_DURATION_WIDTH = 7
_VERDICT_ROLE = {Verdict.PASS: Role.GOOD, Verdict.FAIL: Role.BAD, Verdict.ERROR: Role.BAD}


@dataclass(slots=True)
class WholeRun:
    """Counts tables that ended, and the bytes that rewrites read, of steps that ended and of those that run."""

    started: RunStarted | None = None
    tables_ended: int = 0
    tables_failed: int = 0
    rewritten_bytes: int = 0

    def step(self, outcome: StepOutcome) -> None:
        """Count a step that ended."""
        self.rewritten_bytes += WorkDone((outcome,)).bytes_removed

    def table(self, outcome: TableOutcome) -> None:
        """Count a table that ended; our own ledger and places are not counted."""
        if not (outcome.is_ledger or is_place(outcome)):
            self.tables_ended += 1
            self.tables_failed += outcome.status in FAILED_TABLES

    def line(self, now_ms: int, running_bytes: int = 0) -> str | None:
        """Return the line; None for a run of one table, whose own line says it all.

        Args:
            now_ms: Now, milliseconds since 1970 UTC.
            running_bytes: What the steps that run have rewritten so far.
        """
        started = self.started
        if started is None or started.num_tables < 2:
            return None
        failed = f", {self.tables_failed:,} failed" if self.tables_failed else ""
        parts = [f"{self.tables_ended:,} of {started.num_tables:,} tables{failed}"]
        if started.planned_bytes:
            rewritten = format_size(self.rewritten_bytes + running_bytes)
            parts.append(f"{rewritten} of {format_size(started.planned_bytes)} rewritten")
        seconds = max(0, now_ms - started.at_ms) // 1000
        parts.append(_short(seconds))
        if started.timeout_seconds is not None:
            parts[-1] += f", {_short(max(0, round(started.timeout_seconds) - seconds))} left"
        return "   ".join(parts)


@dataclass(slots=True)
class _RunningStep:
    event: StepStarted
    last_beat_ms: int
    num_batches_done: int = 0
    bytes_committed: int = 0
    progress: StepProgress | None = None

    @property
    def rewritten_bytes(self) -> int:
        """What the step has rewritten so far: its commits, and of its current batch what is written."""
        return self.bytes_committed + (self.progress.bytes_rewritten if self.progress is not None else 0)

    @property
    def detail(self) -> str:
        """How many of several commits are done, and what the step does now."""
        total = self.event.num_batches
        commits = f"  {self.num_batches_done}/{total} commits" if total > 1 else ""
        return f"{commits}  {progress_words(self.progress)}" if self.progress is not None else commits


@dataclass(frozen=True, slots=True)
class PlannedNames:
    """The tables of the plan, and those of which it explained why nothing may be done: here they have a code alone."""

    tables: Sequence[str] = ()
    explained: Collection[str] = ()


class ProgressText:
    """A sink of progress events that prints them. A stream that is closed or full makes it fall silent.

    Args:
        stream: Where to print; stderr, as stdout is for results.
        style: Colour or none.
        live: Whether the stream is a terminal on which the cursor may move (`style.cursor_wanted`).
        planned: The tables, for a column that is wide enough from the first line on.
        tz: Zone of the times of day.
        now_ms: The clock of the live lines, milliseconds since 1970 UTC.
        verbose: Also say when a table with nothing to do was looked at.
    """

    def __init__(
        self,
        stream: TextIO,
        style: Style = PLAIN,
        *,
        live: bool = False,
        planned: PlannedNames = PlannedNames(),
        tz: tzinfo = UTC,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        verbose: bool = False,
    ) -> None:
        self._stream = QuietStream(stream)
        self._style = style
        self._tz = tz
        self._now_ms = now_ms
        self._verbose = verbose
        self._explained = frozenset(planned.explained)
        self._table_width = padded_width(printable(name) for name in planned.tables)
        self._num_steps = 0
        self._whole = WholeRun()
        self._running: dict[str, _RunningStep] = {}
        self._lock = threading.RLock()
        self._live = LiveLines(stream, color=style.color, lines=self._live_lines) if live else None

    def __call__(self, event: ProgressEvent) -> None:
        """Print an event. Never raises for a stream that cannot be written."""
        with self._lock:
            lines = self._lines(event)
        # Without the lock: rich holds its own one while it asks for the live lines.
        if self._live is not None:
            self._live.print(lines)
        else:
            self._stream.write("".join(line + "\n" for line in lines))

    def close(self) -> None:
        """Take the live lines away, so that an error message starts on a clean line."""
        with self._lock:
            self._running.clear()
        if self._live is not None:
            self._live.close()

    def _lines(self, event: ProgressEvent) -> list[str]:
        """Return the lines that stay on the screen for an event, and keep count of what runs."""
        match event:
            case RunStarted():
                self._num_steps = event.num_steps
                self._whole = WholeRun(event)
                what = f"{count_of(event.num_tables, 'table')}, {count_of(event.num_steps, 'step')}"
                folder = printable(event.run_folder)
                return [f"run {printable(event.run_id)}   {what}, {event.num_workers:,} at once   {folder}"]
            case BatchStarted():
                return [f"batch {event.number} of {event.total}   {count_of(event.num_tables, 'table')}"]
            case TableStarted():
                return []
            case StepStarted():
                self._running[event.step_id] = _RunningStep(event, event.at_ms)
                batches = count_of(event.num_batches, "commit") if event.num_batches > 1 else ""
                head = self._head(event.at_ms, event.number, event.table, event.kind)
                return [] if self._live else [self._line(head, "START", None, "", batches)]
            case StepHeartbeat():
                return self._heartbeat(event)
            case StepFinished():
                self._running.pop(event.outcome.step_id, None)
                if event.number:  # 0 is our own ledger's
                    self._whole.step(event.outcome)
                lines = details(event.outcome) if self._verbose else []
                return [self._finished_line(event), *(f"    {line}" for line in lines)]
            case Verified():
                head, word = self._head(event.at_ms, None, event.table, "verify"), event.result.upper()
                role, took = _VERDICT_ROLE[Verdict(event.result)], _short(event.duration_seconds)
                return [self._line(head, word, role, took, verified_detail(event))]
            case RunStopping():
                return [_stopping_line(event)]
            case LedgerAppending():
                limit = format_duration(round(event.limit_seconds))
                what = f"writing {count_of(event.num_rows, 'row')} to the ledger (gives up after {limit})"
                return [self._style.paint(what, Role.DIM)]
            case TableFinished():
                self._whole.table(event.outcome)
                return self._table_lines(event.at_ms, event.outcome)
            case RunFinished():
                self._running.clear()
                by = event.outcome.interrupted_by
                return [self._style.paint(f"Interrupted by {printable(by)}", Role.WARN)] if by else []
            case _:
                assert_never(event)

    def _heartbeat(self, event: StepHeartbeat) -> list[str]:
        running = self._running.get(event.step_id)
        if running is None:
            return []
        running.num_batches_done = event.num_batches_done
        running.bytes_committed, running.progress = event.bytes_committed, event.progress
        if self._live or event.at_ms - running.last_beat_ms < HEARTBEAT_SECONDS * 1000:
            return []
        running.last_beat_ms = event.at_ms
        head = self._head(event.at_ms, None, event.table, event.kind)
        return [f"{head}  still running  {_short(int(event.elapsed_seconds))}{running.detail}"]

    def _finished_line(self, event: StepFinished) -> str:
        step = event.outcome
        took = "" if step.status is StepStatus.SKIPPED else _short(step.duration_seconds)
        why = "" if step.status is StepStatus.SUCCEEDED and not step.note else message(step)
        if not self._verbose and len(why) > MAX_NOTE:
            why = f"{why[:MAX_NOTE]}... (the rest is in results.json, and here with -v)"
        detail = "   ".join(part for part in (figures(step), why) if part)
        end = STEP_ENDS[step.status]
        head = self._head(event.at_ms, event.number, event.table, step.kind)
        return self._line(head, end.word, end.role, took, detail)

    def _table_lines(self, at_ms: int, outcome: TableOutcome) -> list[str]:
        """Return a line for a table that did not come to a step; the steps of the others have said all."""
        status, problem, end = outcome.status, outcome.problem, TABLE_ENDS[outcome.status]
        word, role = end.word, end.role or Role.DIM
        if status is TableStatus.UP_TO_DATE or (status is TableStatus.WAITING and problem is None):
            word = word if self._verbose else ""
        if (
            status is not TableStatus.DONE
            and not word
            and problem is not None
            and all(step.error != problem for step in outcome.steps)
        ):
            word, role = "FAIL", Role.BAD
        if not word:
            return []
        if problem is None:
            detail = end.text
        elif outcome.ref.identifier in self._explained:
            detail = f"{printable(problem.code)}, in full at the end"
        else:
            detail = f"{printable(problem.code)}: {printable(problem.what)}"
        return [self._line(self._head(at_ms, None, outcome.ref.identifier, ""), word, role, "", detail)]

    def _line(self, head: str, word: str, role: Role | None, took: str, detail: str) -> str:
        painted = self._style.paint(pad(word, _STATUS_WIDTH), role) if role else pad(word, _STATUS_WIDTH)
        return f"{head}  {painted}  {pad_left(took, _DURATION_WIDTH)}  {detail}".rstrip()

    def _head(self, at_ms: int, number: int | None, table: str, kind: str) -> str:
        total = f"{self._num_steps}"
        place = "" if not number else f"[{number:>{len(total)}}/{total}]"
        name, word = pad(printable(table), self._table_width), pad(step_word(kind), _WORD_WIDTH)
        return f"{clock_time(at_ms, self._tz)}  {pad(place, 2 * len(total) + 3)}  {name}  {word}"

    def _live_lines(self, height: int) -> list[str]:
        """Return the steps that run, and below them the run as a whole; with two lines less than the terminal has."""
        with self._lock:
            now_ms = self._now_ms()
            running = sorted(self._running.values(), key=lambda step: (not step.event.number, step.event.number))
            rewritten_bytes = sum(step.rewritten_bytes for step in running if step.event.number)
            whole = self._whole.line(now_ms, rewritten_bytes) if running else None
            at_most = max(1, min(MAX_LIVE_LINES, height - 2 - (whole is not None)))
            lines = []
            for step in running[:at_most]:
                head = self._head(step.event.at_ms, step.event.number, step.event.table, step.event.kind)
                took = pad_left(_short(max(0, now_ms - step.event.at_ms) // 1000), _DURATION_WIDTH)
                lines.append(f"{head}  {pad('...', _STATUS_WIDTH)}  {took}{step.detail}")
            if len(running) > at_most:
                lines[-1] = f"          ... and {len(running) - at_most + 1} more running"
            return lines if whole is None else [*lines, f"          {whole}"]


_OF_FILES = (Phase.LOOKING, Phase.DELETING)


def progress_words(progress: StepProgress) -> str:
    """Say what a step does, and how far it is: ``writing 82.0 MiB of 182.9 MiB, 12 of 64 tasks``."""
    text = progress.phase.value
    if progress.num_files:
        text = text.removesuffix(" the files") if progress.phase in _OF_FILES else f"{text},"
        text += f" {progress.num_files_done:,} of {count_of(progress.num_files, 'file')}"
    elif progress.bytes_total and progress.bytes_done:
        text += f" {format_size(progress.bytes_done)} of {format_size(progress.bytes_total)}"
    elif progress.bytes_total:
        text += f" {format_size(progress.bytes_total)}"
    if progress.num_tasks:
        text += f", {progress.num_tasks_done:,} of {count_of(progress.num_tasks, 'task')}"
    return text


def _short(seconds: float) -> str:
    """Print a duration without blanks, so that it stays one column: ``4m35s``."""
    return format_duration(seconds).replace(" ", "")


def _stopping_line(event: RunStopping) -> str:
    grace, at_most = (format_duration(round(seconds)) for seconds in (event.grace_seconds, event.at_most_seconds))
    ends = f"the run ends within {at_most}. What is not committed changes nothing."
    if not event.grace_seconds:
        return f"{printable(event.reason)}: running steps are cancelled now; {ends}"
    return (
        f"{printable(event.reason)}: no further table is started; running steps have {grace} to finish "
        f"their commit, then they are cancelled; {ends} Press Ctrl-C again to cancel now."
    )
