from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.cli.context import warn
from maintainer.model.plan.lanes import SourceStatistics
from maintainer.model.run.outcome import Assertion, TableOutcome, TableStatus
from maintainer.model.run.progress import (
    LedgerAppending,
    Phase,
    ProgressEvent,
    RunStarted,
    RunStopping,
    StepFinished,
    StepHeartbeat,
    StepProgress,
    StepStarted,
    Verified,
)
from maintainer.model.run.receipts import Verdict
from maintainer.model.table.table_facts import TableRef
from maintainer.report.run.outcome_text import verified_detail
from maintainer.report.run.progress_jsonl import ProgressJsonl, event_line
from maintainer.report.run.progress_text import PlannedNames, ProgressText, WholeRun, progress_words
from maintainer.report.style import Style
from maintainer.units import format_size
from tests.support.runs import sample_runs as samples
from tests.support.runs.sample_plans import TEN_PM, full_plan
from tests.support.runs.sample_runs import RUN, compact_done, progress_events
from tests.support.suites.golden_text import assert_golden

GOLDEN = Path(__file__).parents[1] / "golden"

TABLES = tuple(table.ref.identifier for table in full_plan().tables)


class Screen(io.StringIO):
    """As much of a terminal as rich uses: new lines, going up, clearing lines. Anything else is an error.

    A line that is wider than the screen wraps on a real terminal, so a live line may not be.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self.row = 0

    def write(self, text: str) -> int:
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\n|\r|[^\x1b\r\n]+", text):
            if part == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            elif part == "\x1b[2K":
                self.lines[self.row] = ""
            elif part == "\x1b[1A":
                self.row -= 1
                assert self.row >= 0
            elif part in ("\r", "\x1b[?25l", "\x1b[?25h"):
                continue
            else:
                assert part[0] != "\x1b", part
                self.lines[self.row] += part
        return len(text)

    @property
    def shown(self) -> list[str]:
        return [line.rstrip() for line in self.lines[: self.row + 1] if line.strip()]


def play(printer: ProgressText, events: Iterable[ProgressEvent]) -> None:
    for event in events:
        printer(event)


def piped(events: Iterable[ProgressEvent], style: Style | None = None) -> str:
    stream = io.StringIO()
    play(ProgressText(stream, style or Style(), planned=PlannedNames(TABLES)), events)
    return stream.getvalue()


def test_lines_for_a_pipeline() -> None:
    assert_golden(GOLDEN / "progress.txt", piped(progress_events()))


def test_colour_only_repeats_what_the_words_say() -> None:
    painted = piped(progress_events(), Style(color=True))
    assert "\x1b[1;31mFAIL" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == piped(progress_events())


def test_what_is_wrong_in_many_places_is_one_short_line_and_whole_when_all_is_asked_for() -> None:
    wrong = SourceStatistics.of(90, [f"part-{number}.parquet: wrong" for number in range(15)])
    step = compact_done()
    proofs = [replace(each.proof, source_statistics=wrong) for each in step.commits if each.proof]
    commits = tuple(replace(each, proof=proof) for each, proof in zip(step.commits, proofs, strict=True))
    ended = StepFinished(TEN_PM, "a.b", 1, replace(step, commits=commits, note=wrong.note))
    (line,) = piped([ended]).splitlines()
    assert "wrong in 15 places" in line
    assert line.count("parquet") == 2
    stream = io.StringIO()
    play(ProgressText(stream, verbose=True), [ended])
    assert all(f"part-{number}.parquet" in stream.getvalue() for number in range(15))


def test_a_pipeline_hears_at_most_once_in_thirty_seconds() -> None:
    start = StepStarted(TEN_PM, "a.b", "a.b/compact", "compact", 1)
    beats = [StepHeartbeat(TEN_PM + s * 1000, "a.b", "a.b/compact", "compact", 1, float(s)) for s in range(1, 100)]
    lines = piped([RunStarted(TEN_PM, RUN, 1, 1, 1, "x"), start, *beats]).splitlines()
    assert [line.split("still running")[1].strip() for line in lines[2:]] == [
        "30s  reading the log", "1m  reading the log", "1m30s  reading the log",
    ]  # fmt: skip


def test_what_a_step_does_and_how_far_it_is() -> None:
    mib = 1 << 20
    said = {
        StepProgress(): "reading the log",
        StepProgress(Phase.READING, 0, 180 * mib): "reading 180 MiB",
        StepProgress(Phase.READING, 45 * mib, 180 * mib): "reading 45 MiB of 180 MiB",
        StepProgress(Phase.READING, 0, 180 * mib, 12, 64): "reading 180 MiB, 12 of 64 tasks",
        StepProgress(Phase.WRITING, 82 * mib, 180 * mib, 1, 1): "writing 82 MiB of 180 MiB, 1 of 1 task",
        StepProgress(Phase.COMMITTING, 0, 180 * mib): "committing 180 MiB",
        StepProgress(Phase.LOOKING): "looking at the files",
        StepProgress(Phase.LOOKING, num_files_done=1200, num_files=3400): "looking at 1,200 of 3,400 files",
        StepProgress(Phase.CHECKING, num_files=1): "checking the new version, 0 of 1 file",
        StepProgress(Phase.DELETING, num_files_done=1200, num_files=3400): "deleting 1,200 of 3,400 files",
    }
    assert {progress: progress_words(progress) for progress in said} == said


def test_a_pipeline_hears_the_same_figures_as_a_terminal(terminal: Screen) -> None:
    start = StepStarted(TEN_PM, "a.b", "a.b/compact", "compact", 1, num_batches=3)
    progress = StepProgress(Phase.WRITING, 82 << 20, 180 << 20, 12, 64)
    beat = StepHeartbeat(TEN_PM + 40_000, "a.b", "a.b/compact", "compact", 1, 40.0, 1, 3, 100 << 20, progress)
    figures = "1/3 commits  writing 82 MiB of 180 MiB, 12 of 64 tasks"
    run = RunStarted(TEN_PM, RUN, 2, 1, 1, "x", planned_bytes=400 << 20)
    assert piped([run, start, beat]).splitlines()[-1] == (
        f"22:00:40         {'a.b':<12}   compact     still running  40s  {figures}"
    )
    printer = ProgressText(terminal, live=True, now_ms=lambda: TEN_PM + 40_000)
    play(printer, [run, start, beat])
    assert terminal.shown[1:] == [
        f"22:00:00  [1/1]  a.b  compact     ...          40s  {figures}",
        "          0 of 2 tables   182 MiB of 400 MiB rewritten   40s",
    ]
    printer.close()


def test_a_machine_hears_of_a_step_each_five_seconds() -> None:
    stream = io.StringIO()
    sink = ProgressJsonl(stream, "0.1.0")
    for second in range(1, 13):
        sink(StepHeartbeat(TEN_PM + second * 1000, "a.b", "a.b/compact", "compact", 1, float(second)))
    beats = [json.loads(line) for line in stream.getvalue().splitlines()[1:]]
    assert [beat["elapsed_seconds"] for beat in beats] == [1.0, 6.0, 11.0]


def test_a_check_that_failed_before_is_said_once() -> None:
    note = "expect_a failed before as well: version 77 has the same rows by proof"
    assertions = (
        Assertion("expect_a", Verdict.FAIL, 78, observed="3", error="not this commit's: failed before as well: ..."),
        *(Assertion(f"expect_{number}", Verdict.PASS, 78) for number in range(35)),
    )
    event = Verified(TEN_PM, "a.b", "a.b/compact", "pass", 1.0, 77, 78, 450, 450, assertions=assertions, detail=note)
    assert verified_detail(event) == f"rows 450 (v77 = v78), 35 of 36 checks passed, {note}"


def test_the_ledger_is_named_while_it_is_appended_to() -> None:
    said = piped([LedgerAppending(TEN_PM, 12, 300.0)])
    assert said == "writing 12 rows to the ledger (gives up after 5m)\n"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("TERM", "xterm")
    return Screen()


def test_a_terminal_ends_with_the_lines_of_a_pipeline_without_start_and_heartbeat(terminal: Screen) -> None:
    printer = ProgressText(terminal, live=True, planned=PlannedNames(TABLES))
    play(printer, progress_events())
    printer.close()
    last_lines = [
        line for line in piped(progress_events()).splitlines() if " START" not in line and "still running" not in line
    ]
    assert terminal.shown == last_lines


def test_a_terminal_shows_one_live_line_for_each_running_step(terminal: Screen) -> None:
    printer = ProgressText(terminal, live=True, planned=PlannedNames(TABLES), now_ms=lambda: TEN_PM + 66_000)
    play(printer, progress_events()[:8])
    assert terminal.shown == [
        f"run {RUN}   3 tables, 4 steps, 2 at once   .maintainer/runs/{RUN}",
        "22:00:05  [2/4]  sales.orders   properties  OK          0.8s  v1842",
        "22:00:05  [1/4]  sales.items    zorder      ...         1m1s",
        "22:00:06  [3/4]  sales.orders   compact     ...           1m  0/2 commits  reading the log",
        "          0 of 3 tables   1m6s",
    ]
    printer.close()
    assert len(terminal.shown) == 2


def test_live_lines_are_cut_to_the_terminal_and_the_rest_is_counted(
    terminal: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "6")
    printer = ProgressText(terminal, live=True)
    for number in range(1, 8):
        printer(StepStarted(TEN_PM, f"schema.table_with_a_long_name_{number}", f"{number}", "compact", number))
    live = terminal.shown
    printer.close()
    assert len(live) == 4
    assert all(len(line) <= 40 for line in live)
    assert live[-1] == "          ... and 4 more running"


def test_live_lines_move_on_by_themselves(terminal: Screen) -> None:
    now = iter(range(TEN_PM, TEN_PM + 10_000_000, 1000))
    printer = ProgressText(terminal, live=True, now_ms=lambda: next(now))
    printer(StepStarted(TEN_PM, "a.b", "a.b/compact", "compact", 1))
    before, until = terminal.shown, time.monotonic() + 30
    while terminal.shown == before and time.monotonic() < until:
        time.sleep(0.05)
    assert terminal.shown != before
    printer.close()
    assert terminal.shown == []


def test_a_warning_stands_above_the_live_lines(terminal: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    printer = ProgressText(terminal, live=True, now_ms=lambda: TEN_PM)
    printer(StepStarted(TEN_PM, "a.b", "a.b/compact", "compact", 1))
    warn("the ledger [could] not be written", "E652")
    assert terminal.shown == [
        "warning[E652]: the ledger [could] not be written",
        "22:00:00  [1/0]  a.b  compact     ...           0s",
    ]
    printer.close()
    assert terminal.shown == ["warning[E652]: the ledger [could] not be written"]
    assert sys.stderr is terminal


def test_a_closed_terminal_does_not_hurt_the_run(terminal: Screen) -> None:
    printer = ProgressText(terminal, live=True)
    terminal.close()
    play(printer, progress_events())
    printer.close()


def test_a_closed_stream_does_not_hurt_the_run() -> None:
    stream = io.StringIO()
    printer = ProgressText(stream)
    stream.close()
    play(printer, progress_events())


def test_names_that_the_stream_cannot_spell_are_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    play(ProgressText(stream), [StepStarted(TEN_PM, "größe\x1b[2J", "x", "compact", 1)])
    assert raw.getvalue() == b"22:00:00  [1/0]  gr\\xf6\\xdfe\\x1b[2J  compact     START\n"


def test_json_lines() -> None:
    stream = io.StringIO()
    sink = ProgressJsonl(stream, "0.1.0")
    seen_beat = False
    for event in progress_events():
        if not isinstance(event, StepHeartbeat) or not seen_beat:
            sink(event)
        seen_beat = seen_beat or isinstance(event, StepHeartbeat)
    assert_golden(GOLDEN / "progress.jsonl", stream.getvalue())
    first, *rest = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert first == {"type": "version", "format": 1, "maintainer": "0.1.0"}
    assert all(list(line)[:2] == ["type", "at"] for line in rest)


def test_json_lines_let_a_write_error_out() -> None:
    stream = io.StringIO()
    sink = ProgressJsonl(stream, "0.1.0")
    stream.close()
    with pytest.raises(ValueError, match="closed file"):
        sink(progress_events()[0])


def test_the_run_as_a_whole_stands_below_with_what_is_left_of_its_time() -> None:
    whole = WholeRun(RunStarted(TEN_PM, RUN, 100, 93, 2, "x", planned_bytes=10 << 30, timeout_seconds=7200.0))
    whole.step(samples.compact_done())
    for status in (TableStatus.DONE, TableStatus.FAILED, TableStatus.VERIFY_FAILED, TableStatus.YIELDED):
        whole.table(TableOutcome(TableRef("t"), status))
    rewritten = format_size(sum(commit.bytes_removed for commit in samples.compact_done().commits))
    assert whole.line(TEN_PM + 1_082_000) == (
        f"4 of 100 tables, 2 failed   {rewritten} of 10 GiB rewritten   18m2s, 1h41m58s left"
    )
    assert whole.line(TEN_PM + 9_000_000) == (
        f"4 of 100 tables, 2 failed   {rewritten} of 10 GiB rewritten   2h30m, 0s left"
    )
    assert WholeRun(RunStarted(TEN_PM, RUN, 1, 1, 1, "x")).line(TEN_PM) is None
    assert WholeRun().line(TEN_PM) is None


def test_whoever_asks_for_the_end_is_answered_at_once() -> None:
    stream = io.StringIO()
    event = RunStopping(TEN_PM, "SIGINT", 10.0, 50.0)
    ProgressText(stream)(event)
    assert stream.getvalue() == (
        "SIGINT: no further table is started; running steps have 10s to finish their commit, then they are cancelled; "
        "the run ends within 50s. What is not committed changes nothing. Press Ctrl-C again to cancel now.\n"
    )
    again = io.StringIO()
    ProgressText(again)(RunStopping(TEN_PM, "SIGINT", 0.0, 4.0))
    assert again.getvalue() == (
        "SIGINT: running steps are cancelled now; the run ends within 4s. What is not committed changes nothing.\n"
    )
    assert json.loads(event_line(event)) == {
        "type": "run_stopping", "at": "2026-11-21T22:00:00.000Z", "reason": "SIGINT", "grace_seconds": 10.0,
        "at_most_seconds": 50.0,
    }  # fmt: skip
