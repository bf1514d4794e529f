"""Fields of events: commits, tables, proofs and errors as a run's record holds them."""

from __future__ import annotations

from typing import Any

from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import CommitReceipt, Proof, VacuumReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts


def stamp_fields(stamp: CommitStamp) -> dict[str, Any]:
    """Return the fields that name a try of a commit."""
    return {"run": stamp.run_id, "step": stamp.step_id, "batch": stamp.batch, "policy": stamp.policy_digest}


def table_fields(facts: TableFacts) -> dict[str, Any]:
    """Return the fields that name a table."""
    return {"table": facts.ref.identifier, "table_id": facts.table_id, "location": facts.location}


def proof_fields(proof: Proof | None) -> dict[str, Any] | None:
    """Return a proof as it is recorded. Sums are text: they exceed what JSON readers keep exactly."""
    if proof is None:
        return None
    return {
        "rows_read": proof.read.rows,
        "rows_written": proof.written.rows,
        "rows_in_log": proof.rows_in_log,
        "sums_read": [str(value) for value in proof.read.sums],
        "sums_written": [str(value) for value in proof.written.sums],
        "uncovered_columns": list(proof.uncovered_columns),
        "carried_versions": list(proof.carried_versions),
    }


def receipt_fields(receipt: CommitReceipt | VacuumReceipt | None) -> dict[str, Any]:
    """Return what was done."""
    if receipt is None:
        return {}
    if isinstance(receipt, CommitReceipt):
        return {
            "version": receipt.version,
            "read_version": receipt.read_version,
            "num_files_removed": receipt.num_files_removed,
            "num_files_added": receipt.num_files_added,
            "bytes_removed": receipt.bytes_removed,
            "bytes_added": receipt.bytes_added,
            "attempts": receipt.attempts,
        }
    return {
        "version": receipt.version_after,
        "num_files_deleted": receipt.num_files_deleted,
        "bytes_deleted": receipt.bytes_deleted,
        "read_version": receipt.version_before,
        "num_files_remaining": len(receipt.remaining),
        "stopped": receipt.stopped,
        "trash": receipt.trash,
        "num_files_emptied": receipt.num_files_emptied,
        "bytes_emptied": receipt.bytes_emptied,
    }


def problem_fields(problem: Problem | None) -> dict[str, Any]:
    """Return the error of an event; no field where there was none."""
    if problem is None:
        return {}
    return {"error": {"code": problem.code, "what": problem.what, "where": problem.where, "help": problem.help}}
