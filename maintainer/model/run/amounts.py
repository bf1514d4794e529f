"""What the commits of a step come to: files and bytes added up, and the proofs that they have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from operator import add

from maintainer.model.run.outcome import StepOutcome
from maintainer.model.run.receipts import CommitReceipt, Proof
from maintainer.model.table.commit_records import TableCommit


@dataclass(frozen=True, slots=True)
class Amounts:
    """What was taken from a table and given to it; sizes in bytes."""

    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        """Add figure by figure."""
        return Amounts(*map(add, astuple(self), astuple(other)))

    @staticmethod
    def of(commits: Iterable[CommitReceipt | TableCommit]) -> Amounts:
        """Add up commits."""
        each = (Amounts(it.num_files_removed, it.num_files_added, it.bytes_removed, it.bytes_added) for it in commits)
        return sum(each, Amounts())

    @staticmethod
    def of_step(step: StepOutcome) -> Amounts:
        """Add up a step's commits and what it deleted, which includes what it moved to the trash."""
        deleted = step.vacuum
        return Amounts.of(step.commits) + (
            Amounts(deleted.num_files_deleted, bytes_removed=deleted.bytes_deleted) if deleted else Amounts()
        )


def proofs_of(step: StepOutcome) -> tuple[Proof, ...]:
    """Return the proofs of a step's commits; not every commit has one."""
    return tuple(commit.proof for commit in step.commits if commit.proof is not None)
