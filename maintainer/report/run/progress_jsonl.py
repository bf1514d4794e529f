"""Progress for machines: one JSON object a line, the first naming the format.

Times are UTC ISO 8601, durations seconds, sizes bytes. Readers ignore fields that they do not know; a field is never
renamed within one format number.
"""

from __future__ import annotations

import json
from typing import TextIO

from maintainer.errors.foreign_text import visible_json
from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import CommitReceipt, RunOutcome, StepOutcome, TableStatus
from maintainer.model.run.progress import (
    BatchStarted,
    LedgerAppending,
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
from maintainer.report.text_layout import iso_utc

FORMAT = 1

BEAT_SECONDS = 5
"""A machine hears this often that a step still runs."""

Json = dict[str, object]


def event_line(event: ProgressEvent) -> str:
    """Return an event as one line of JSON, ending in a newline."""
    return _line(event_json(event))


class ProgressJsonl:
    """A sink of progress events that writes them as lines; the version line comes first.

    Unlike the printer for people it lets a write error out: a machine must not take half a stream for the whole.
    """

    def __init__(self, stream: TextIO, maintainer_version: str) -> None:
        self._stream = stream
        self._last_beats_ms: dict[str, int] = {}
        self._write(_line({"type": "version", "format": FORMAT, "maintainer": maintainer_version}))

    def __call__(self, event: ProgressEvent) -> None:
        """Write an event.

        Raises:
            OSError: The stream cannot be written.
        """
        if isinstance(event, StepHeartbeat):
            if event.at_ms - self._last_beats_ms.get(event.step_id, 0) < BEAT_SECONDS * 1000:
                return
            self._last_beats_ms[event.step_id] = event.at_ms
        self._write(event_line(event))

    def _write(self, line: str) -> None:
        self._stream.write(line)
        self._stream.flush()


def event_json(event: ProgressEvent) -> Json:
    """Return an event as a JSON object; ``type`` comes first."""
    match event:
        case RunStarted():
            names = "run_id num_tables num_steps num_workers run_folder planned_bytes timeout_seconds"
            return _object("run_started", event, _picked(event, names))
        case RunStopping():
            return _object("run_stopping", event, _picked(event, "reason grace_seconds at_most_seconds"))
        case LedgerAppending():
            return _object("ledger_appending", event, _picked(event, "num_rows limit_seconds"))
        case BatchStarted():
            return _object("batch_started", event, _picked(event, "number total num_tables"))
        case TableStarted():
            return _object("table_started", event, _picked(event, "table num_steps"))
        case StepStarted():
            return _object("step_started", event, _picked(event, "table number step_id kind num_batches"))
        case StepHeartbeat():
            names = "table number step_id kind elapsed_seconds num_batches_done num_batches"
            progress = _picked(event.progress, _PROGRESS)
            return _object("step_heartbeat", event, {**_picked(event, f"{names} bytes_committed"), **progress})
        case StepFinished():
            return _object("step_finished", event, {**_picked(event, "table number"), **_step(event.outcome)})
        case Verified():
            names = (
                "table step_id result duration_seconds version_before version_after rows_before rows_after "
                "content_equal num_files_checked"
            )
            checks = [_picked(assertion, _ASSERTION) for assertion in event.assertions]
            return _object("verified", event, {**_picked(event, names), "assertions": checks, "detail": event.detail})
        case TableFinished():
            table = event.outcome
            ended = {"table": table.ref.identifier, "status": table.status.value, "problem": _problem(table.problem)}
            return _object("table_finished", event, {**ended, **_picked(table, "policy_file owner")})
        case RunFinished():
            return _object("run_finished", event, _run(event.outcome))
        case _:
            assert_never(event)


def _object(kind: str, event: ProgressEvent, fields: Json) -> Json:
    return {"type": kind, "at": iso_utc(event.at_ms), **fields}


def _picked(value: object, names: str) -> Json:
    """Return fields of a model value by their names, in this order."""
    return {name: getattr(value, name) for name in names.split()}


_PROGRESS = "phase bytes_done bytes_total num_tasks_done num_tasks num_files_done num_files"
_ASSERTION = "expectation column outcome version carried_from expected observed error"


def _step(step: StepOutcome) -> Json:
    vacuum = step.vacuum
    deleted = vacuum and {
        **_picked(vacuum, "num_files_deleted bytes_deleted"),
        "num_files_remaining": len(vacuum.remaining),
    }
    return {
        **_picked(step, "step_id kind status"),
        "started_at": iso_utc(step.started_at_ms),
        **_picked(step, "duration_seconds version_before version_after"),
        "commits": [_commit(receipt) for receipt in step.commits],
        "vacuum": deleted,
        "assertions": [_picked(assertion, _ASSERTION) for assertion in step.assertions],
        "error": _problem(step.error),
        "note": step.note,
    }


def _commit(receipt: CommitReceipt) -> Json:
    proof = receipt.proof
    return {
        **_picked(receipt, "version num_files_removed num_files_added bytes_removed bytes_added attempts"),
        "proof": None if proof is None else {"holds": proof.holds, "rows": proof.read.rows},
    }


def _problem(problem: Problem | None) -> Json | None:
    return None if problem is None else _picked(problem, "code what where help")


def _run(outcome: RunOutcome) -> Json:
    return {
        **_picked(outcome, "run_id duration_seconds"),
        **_picked(outcome.preparation, "start_seconds planning_seconds"),
        "interrupted_by": outcome.interrupted_by,
        "tables": {status.value: outcome.count(status) for status in TableStatus},
    }


def _line(value: Json) -> str:
    # ASCII only: U+2028 and lone surrogates in a name must not break a reader of lines.
    return visible_json(json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)) + "\n"
