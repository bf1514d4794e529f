"""What a commit, a vacuum or an undelete did, as the engine counted it: part of a step's outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from operator import add
from typing import Annotated

from maintainer.model.codec import DecimalText
from maintainer.model.plan.lanes import NOTHING_JUDGED, LaneUse, SourceStatistics
from maintainer.model.run.optimize_metrics import NO_FILES, FileSizeMetrics
from maintainer.model.table.commit_records import TableCommit
from maintainer.model.table.storage_facts import FileSizes
from maintainer.model.table.table_facts import DataFile


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An order-free digest of rows: their number and sums of hashes (plain integers, added over bins)."""

    rows: int
    sums: tuple[Annotated[int, DecimalText()], ...]

    def __add__(self, other: Fingerprint) -> Fingerprint:
        if len(self.sums) != len(other.sums):
            raise ValueError("fingerprints of different kinds")
        return Fingerprint(self.rows + other.rows, tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)))


@dataclass(frozen=True, slots=True)
class Proof:
    """What was read against what was written, measured before the commit unless ``after_commit``.

    ``rows_in_log`` is what the log said the read files hold (deletion vectors taken off), None where it could not say.
    ``uncovered_columns`` are columns the fingerprint cannot cover (named in every report). ``findings`` are other
    things that are wrong, each in a sentence. ``lanes`` are those in which the bins were written. ``carried_versions``
    are commits of others that deleted rows of the read files before ours: the new files have these rows soft-deleted,
    and all figures are without them. ``source_statistics`` are of the files whose rows were read one file by one.
    An attempt that does not count may yet write ``late_paths``, which no version will have.
    """

    read: Fingerprint
    written: Fingerprint
    rows_in_log: int | None
    uncovered_columns: tuple[str, ...] = ()
    duration_seconds: float = 0.0
    findings: tuple[str, ...] = ()
    lanes: tuple[LaneUse, ...] = ()
    carried_versions: tuple[int, ...] = ()
    after_commit: bool = False
    source_statistics: SourceStatistics = NOTHING_JUDGED
    late_paths: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every measured figure is equal."""
        return self.read == self.written and self.rows_in_log in (None, self.read.rows) and not self.findings


@dataclass(frozen=True, slots=True)
class FileFigures:
    """What some files come to; ``live_records`` is None where the log cannot say for each."""

    num_files: int = 0
    size_bytes: int = 0
    num_deletion_vectors: int = 0
    live_records: int | None = 0

    @staticmethod
    def of(files: Iterable[DataFile]) -> FileFigures:
        listed = tuple(files)
        unknown = any(file.live_records is None for file in listed)
        return FileFigures(
            len(listed),
            sum(file.size_bytes for file in listed),
            sum(file.deletion_vector is not None for file in listed),
            None if unknown else sum(file.live_records or 0 for file in listed),
        )


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """What a commit took beside the plan, and what of it remained untaken (``left`` in documents).

    A command of Delta's decides for itself. A rewrite of ours takes planned files with the deletion vectors that others
    gave them meanwhile, and leaves files that others removed.
    """

    beyond: FileFigures = FileFigures()
    untaken: FileFigures = field(default=FileFigures(), metadata={"alias": "left"})

    @staticmethod
    def of(planned: Iterable[DataFile], removed: Iterable[DataFile]) -> PlanDifference | None:
        """Compare by path and deletion vector; None where the same files went."""
        beyond, left = against(removed, planned)
        return PlanDifference(FileFigures.of(beyond), FileFigures.of(left)) if beyond or left else None

    def __str__(self) -> str:
        return f"it took {self.beyond.num_files} files beside the plan and left {self.untaken.num_files} of it"


def against(
    removed: Iterable[DataFile], planned: Iterable[DataFile]
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """Return the files removed that were not planned, and the planned files that were not removed."""
    went, planned_by_key = {file.key: file for file in removed}, {file.key: file for file in planned}
    beyond = tuple(file for key, file in went.items() if key not in planned_by_key)
    return beyond, tuple(file for key, file in planned_by_key.items() if key not in went)


class Verdict(StrEnum):
    """How a check ended. ``FAIL`` is *checked, wrong*; ``ERROR`` is *could not check*. They are never mixed up."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class CommitReceipt:
    """A commit that landed. Figures are counted from its actions, and sums of sizes are in bytes.

    ``difference`` is set where other files were taken than planned, ``verdict`` where the new version was checked:
    ``proof`` was before it. ``late_paths`` stand there, and here in older records.
    """

    version: int
    read_version: int
    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    num_deletion_vectors_removed: int = 0
    proof: Proof | None = None
    attempts: int = 1
    duration_seconds: float = 0.0
    sizes_removed: FileSizes = ()
    sizes_added: FileSizes = ()
    num_deletion_vector_rows_removed: int = 0
    files_removed: FileSizeMetrics = NO_FILES
    files_added: FileSizeMetrics = NO_FILES
    total_cluster_parallelism: int = 0
    difference: PlanDifference | None = None
    verdict: Verdict | None = None
    late_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VacuumReceipt:
    """What deletion did. ``remaining`` are planned files that are still there: then it is incomplete.

    ``stopped`` says why not all files were tried. ``trash`` is the folder that the files were moved to, None where they
    were deleted. ``num_files_emptied`` files of earlier runs went from the trash. ``version_before`` was read,
    ``version_after`` is its last commit, None without one. All files of ``oldest_version`` and newer were there after
    it. ``num_vanished`` others were deleted by somebody else. The events name delete markers of ``num_marked`` files.
    """

    num_files_deleted: int
    bytes_deleted: int
    remaining: tuple[str, ...] = ()
    version_before: int | None = None
    version_after: int | None = None
    duration_seconds: float = 0.0
    stopped: str | None = None
    trash: str | None = None
    num_files_emptied: int = 0
    bytes_emptied: int = 0
    oldest_version: int | None = None
    num_vanished: int = 0
    num_marked: int = 0

    @property
    def num_files_freed(self) -> int:
        """Files that left the storage: those of the trash do so when it is emptied."""
        return self.num_files_emptied + (self.num_files_deleted if self.trash is None else 0)

    @property
    def bytes_freed(self) -> int:
        """The bytes of ``num_files_freed``."""
        return self.bytes_emptied + (self.bytes_deleted if self.trash is None else 0)

    @property
    def changed_table(self) -> bool:
        """Whether a file went, from the table or from its trash, or the log has a commit of the deletion."""
        return self.num_files_deleted + self.num_files_emptied > 0 or self.version_after is not None


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
        each = (Amounts(it.num_files_removed, it.num_files_added, it.bytes_removed, it.bytes_added) for it in commits)
        return sum(each, Amounts())


@dataclass(frozen=True, slots=True)
class UndeleteReceipt:
    """What came back from the trash, or from under delete markers. ``refused`` did not, each with why."""

    run_id: str
    num_files_restored: int
    bytes_restored: int
    refused: tuple[str, ...] = ()
