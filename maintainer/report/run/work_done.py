"""What finished steps did, added up: files, bytes, proofs and checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maintainer.model.run.outcome import CommitReceipt, RunOutcome, StepOutcome, TableOutcome, Verdict


@dataclass(frozen=True, slots=True)
class WorkDone:
    """Totals of commits, deletions, proofs and checks; counted here, stored nowhere."""

    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int
    files_deleted: int
    bytes_deleted: int
    commits_proven: int
    commits_with_proof: int
    checks: int
    checks_passed: int
    checks_failed: int

    @staticmethod
    def of(steps: Iterable[StepOutcome]) -> WorkDone:
        """Add up steps."""
        steps = tuple(steps)
        commits = [receipt for step in steps for receipt in step.commits]
        vacuums = [step.vacuum for step in steps if step.vacuum]
        outcomes = [assertion.outcome for step in steps for assertion in step.assertions]
        return WorkDone(
            files_removed=sum(receipt.num_files_removed for receipt in commits),
            files_added=sum(receipt.num_files_added for receipt in commits),
            bytes_removed=sum(receipt.bytes_removed for receipt in commits),
            bytes_added=sum(receipt.bytes_added for receipt in commits),
            files_deleted=sum(vacuum.num_files_deleted for vacuum in vacuums),
            bytes_deleted=sum(vacuum.bytes_deleted for vacuum in vacuums),
            commits_proven=sum(proven(receipt) for receipt in commits),
            commits_with_proof=sum(receipt.proof is not None for receipt in commits),
            checks=len(outcomes),
            checks_passed=outcomes.count(Verdict.PASS),
            checks_failed=outcomes.count(Verdict.FAIL),
        )

    @staticmethod
    def of_tables(tables: Iterable[TableOutcome]) -> WorkDone:
        """Add up the steps of tables."""
        return WorkDone.of(step for table in tables for step in table.steps)

    @staticmethod
    def of_run(outcome: RunOutcome) -> WorkDone:
        """Add up the steps of a run's tables, our own ledger left out."""
        return WorkDone.of_tables(outcome.user_tables)


def proven(receipt: CommitReceipt) -> bool:
    """Return whether a commit has a proof and the proof holds."""
    return receipt.proof is not None and receipt.proof.holds
