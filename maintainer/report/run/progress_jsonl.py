"""Progress for machines: one JSON object a line, the first naming the format.

Times are UTC ISO 8601, durations seconds, sizes bytes. Readers ignore fields that they do not know; a field is never
renamed within one format number.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, TextIO

from maintainer.errors.foreign_text import visible_json
from maintainer.model.codec import encode
from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import RunOutcome, StepOutcome, TableStatus
from maintainer.model.run.progress import (
    ProgressEvent,
    RunFinished,
    StepFinished,
    StepHeartbeat,
    TableFinished,
    Verified,
)
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import type_of
from maintainer.report.text_layout import iso_utc

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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


_NOT_SAID = frozenset(
    {
        *("at_ms", "preparation", "is_ledger", "progress", "outcome"),
        *("table_id", "location", "version", "by", "lost", "hot", "rewritten", "rows_known"),
    }
)
"""Fields of events that are said in other words, or are for records alone."""


def event_json(event: ProgressEvent) -> Json:
    """Return an event as a JSON object; ``type`` comes first."""
    more: Json = {}
    match event:
        case StepHeartbeat(progress=progress):
            more = _values(progress)
        case StepFinished(outcome=step):
            more = _step(step)
        case Verified(assertions=assertions):
            more = {"assertions": [_values(assertion) for assertion in assertions]}
        case TableFinished(outcome=table):
            more = {"table": table.ref.identifier, "status": table.status, "problem": _problem(table.problem)}
            more.update(policy_file=table.policy_file, owner=table.owner)
        case RunFinished(outcome=run):
            more = _run(run)
    own = {name: value for name, value in _values(event).items() if name not in _NOT_SAID}
    return {"type": type_of(event), "at": iso_utc(event.at_ms), **own, **more}


def _values(value: DataclassInstance) -> Json:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _picked(value: object, names: str) -> Json:
    """Return fields of a model value by their names, in this order."""
    return {name: getattr(value, name) for name in names.split()}


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
        "assertions": [_values(assertion) for assertion in step.assertions],
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
    return None if problem is None else _values(problem)


def _run(outcome: RunOutcome) -> Json:
    return {
        **_picked(outcome, "run_id duration_seconds"),
        **_picked(outcome.preparation, "start_seconds planning_seconds"),
        "interrupted_by": outcome.interrupted_by,
        "requests": None if outcome.requests is None else encode(outcome.requests),
        "tables": {status.value: outcome.count(status) for status in TableStatus},
    }


def _line(value: Json) -> str:
    # ASCII only: U+2028 and lone surrogates in a name must not break a reader of lines.
    return visible_json(json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)) + "\n"
