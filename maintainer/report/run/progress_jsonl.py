"""Progress for machines: one JSON object a line, the first naming the format.

Times are UTC ISO 8601, durations seconds, sizes bytes. Readers ignore fields that they do not know; a field is never
renamed within one format number.
"""

from __future__ import annotations

import json
from typing import TextIO

from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import Assertion, CommitReceipt, RunOutcome, StepOutcome, TableStatus
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
from maintainer.report.text.text_layout import iso_utc

FORMAT = 1
Json = dict[str, object]


def version_line(maintainer_version: str) -> str:
    """Return the first line of a stream."""
    return _line({"type": "version", "format": FORMAT, "maintainer": maintainer_version})


def event_line(event: ProgressEvent) -> str:
    """Return an event as one line of JSON, ending in a newline."""
    return _line(event_json(event))


class ProgressJsonl:
    """A sink of progress events that writes them as lines; the version line comes first.

    Unlike the printer for people it lets a write error out: a machine must not take half a stream for the whole.
    """

    def __init__(self, stream: TextIO, maintainer_version: str) -> None:
        self._stream = stream
        self._write(version_line(maintainer_version))

    def __call__(self, event: ProgressEvent) -> None:
        """Write an event.

        Raises:
            OSError: The stream cannot be written.
        """
        self._write(event_line(event))

    def _write(self, line: str) -> None:
        self._stream.write(line)
        self._stream.flush()


def event_json(event: ProgressEvent) -> Json:
    """Return an event as a JSON object; ``type`` comes first."""
    match event:
        case RunStarted():
            return _object(
                "run_started",
                event.at_ms,
                run_id=event.run_id,
                num_tables=event.num_tables,
                num_steps=event.num_steps,
                num_workers=event.num_workers,
                run_folder=event.run_folder,
                planned_bytes=event.planned_bytes,
                timeout_seconds=event.timeout_seconds,
            )
        case RunStopping():
            return _object("run_stopping", event.at_ms, reason=event.reason, grace_seconds=event.grace_seconds)
        case BatchStarted():
            return _object(
                "batch_started", event.at_ms, number=event.number, total=event.total, num_tables=event.num_tables
            )
        case TableStarted():
            return _object("table_started", event.at_ms, table=event.table, num_steps=event.num_steps)
        case StepStarted():
            return _object("step_started", event.at_ms, **_step_key(event), num_batches=event.num_batches)
        case StepHeartbeat():
            return _object(
                "step_heartbeat",
                event.at_ms,
                **_step_key(event),
                elapsed_seconds=event.elapsed_seconds,
                num_batches_done=event.num_batches_done,
                num_batches=event.num_batches,
            )
        case StepFinished():
            return _object("step_finished", event.at_ms, table=event.table, number=event.number, **_step(event.outcome))
        case Verified():
            return _verified(event)
        case TableFinished():
            table = event.outcome
            return _object(
                "table_finished",
                event.at_ms,
                table=table.ref.identifier,
                status=table.status.value,
                problem=_problem(table.problem),
                policy_file=table.policy_file,
                owner=table.owner,
            )
        case RunFinished():
            return _object("run_finished", event.at_ms, **_run(event.outcome))
        case _:
            assert_never(event)


def _object(kind: str, at_ms: int, /, **fields: object) -> Json:
    return {"type": kind, "at": iso_utc(at_ms), **fields}


def _step_key(event: StepStarted | StepHeartbeat) -> Json:
    return {"table": event.table, "number": event.number, "step_id": event.step_id, "kind": event.kind}


def _verified(event: Verified) -> Json:
    return _object(
        "verified",
        event.at_ms,
        table=event.table,
        step_id=event.step_id,
        result=event.result,
        duration_seconds=event.duration_seconds,
        version_before=event.version_before,
        version_after=event.version_after,
        rows_before=event.rows_before,
        rows_after=event.rows_after,
        content_equal=event.content_equal,
        num_files_checked=event.num_files_checked,
        assertions=[_assertion(one) for one in event.assertions],
        detail=event.detail,
    )


def _step(step: StepOutcome) -> Json:
    vacuum = step.vacuum
    return {
        "step_id": step.step_id,
        "kind": step.kind,
        "status": step.status.value,
        "started_at": iso_utc(step.started_at_ms),
        "duration_seconds": step.duration_seconds,
        "version_before": step.version_before,
        "version_after": step.version_after,
        "commits": [_commit(receipt) for receipt in step.commits],
        "vacuum": None
        if vacuum is None
        else {
            "num_files_deleted": vacuum.num_files_deleted,
            "bytes_deleted": vacuum.bytes_deleted,
            "num_files_remaining": len(vacuum.remaining),
        },
        "assertions": [_assertion(one) for one in step.assertions],
        "error": _problem(step.error),
        "note": step.note,
    }


def _commit(receipt: CommitReceipt) -> Json:
    proof = receipt.proof
    return {
        "version": receipt.version,
        "num_files_removed": receipt.num_files_removed,
        "num_files_added": receipt.num_files_added,
        "bytes_removed": receipt.bytes_removed,
        "bytes_added": receipt.bytes_added,
        "attempts": receipt.attempts,
        "proof": None if proof is None else {"holds": proof.holds, "rows": proof.read.rows},
    }


def _assertion(assertion: Assertion) -> Json:
    return {
        "expectation": assertion.expectation,
        "column": assertion.column,
        "outcome": assertion.outcome,
        "version": assertion.version,
        "expected": assertion.expected,
        "observed": assertion.observed,
        "error": assertion.error,
    }


def _problem(problem: Problem | None) -> Json | None:
    if problem is None:
        return None
    return {"code": problem.code, "what": problem.what, "where": problem.where, "help": problem.help}


def _run(outcome: RunOutcome) -> Json:
    return {
        "run_id": outcome.run_id,
        "duration_seconds": outcome.duration_seconds,
        "start_seconds": outcome.preparation.start_seconds,
        "planning_seconds": outcome.preparation.planning_seconds,
        "interrupted_by": outcome.interrupted_by,
        "tables": {status.value: outcome.count(status) for status in TableStatus},
    }


def _line(value: Json) -> str:
    # ASCII only: U+2028 and lone surrogates in a name must not break a reader of lines.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False) + "\n"
