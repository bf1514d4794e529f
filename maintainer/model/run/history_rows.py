"""Rows of `history` and `status`, from whatever source they were gathered."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.errors.foreign_text import without_secrets
from maintainer.model.plan.plan import FromPolicyFile

LOST = "its run folder is not here"
"""The reason of a row of ours of which only the table's own log still knows."""

NOT_RECORDED = "its run was killed before it recorded this; the next apply does"
"""The reason of a commit of ours whose run folder is here, and does not tell of it yet."""

BY_HOOK = "auto compaction right after a write"
"""The reason of a row that our hook in a writer made; it has no run folder."""

UNDELETE = "undelete"
"""The kind of a row about files that came back from the trash: it is no step of a plan."""

VERIFY = "verify"
"""The kind of a row about a commit that `verify` checked: it changed nothing."""

APPENDED = "rows that a run appended"
"""The reason of a commit to the ledger that brought a run's rows."""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One step of one run, or one commit that was not ours.

    ``run_id`` is None for a commit made outside of maintainer; then ``step`` is Delta's operation, ``by`` says who, and
    ``reason`` has its parameters.
    ``status`` is a step's (``succeeded``, ``failed``, ...) or empty. Sizes are bytes; times are milliseconds since
    1970 UTC. ``num_files_removed`` counts deleted files for a vacuum. ``proof`` is ``pass``, ``fail``, ``error`` or
    None. ``error`` and ``spelled_anew`` are both for what ``verify`` found, or could not find out. ``note`` says why a
    step without an error did not simply succeed, as far as a run folder tells.
    """

    at_ms: int
    table: str
    step: str
    status: str
    run_id: str | None = None
    version_before: int | None = None
    version_after: int | None = None
    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    duration_seconds: float | None = None
    proof: str | None = None
    reason: str | None = None
    error_code: str | None = None
    error: str | None = None
    policy_file: str | None = None
    git_commit: str | None = None
    by: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        # A command of somebody else's is recorded with its parameters: `COPY INTO` with the address of its source.
        for name in ("reason", "error", "by", "note"):
            value = getattr(self, name)
            object.__setattr__(self, name, value and without_secrets(value))


NOTHING_TO_DO = "nothing to do"
"""How ``next`` begins where there is nothing: beside ``ok`` it says no more, and ``why`` says all."""


@dataclass(frozen=True, slots=True)
class StatusRow(FromPolicyFile):
    """One table at one look.

    ``state`` is one of ``ok``, ``due``, ``drift``, ``failed``, ``hot``, ``unsupported``, ``quarantined``,
    ``suspended``, ``blocked``, ``problem``, ``unmanaged``. Figures are None where the table could not be read or
    nobody counted. ``small_files`` are those under the policy's ``minFileSize``, with ``small_bytes`` in them.
    ``deleted_rows_ratio`` (0 to 1) is the share of rows that deletion vectors hide. Times are milliseconds since 1970
    UTC, None for never. ``last_optimize_at_ms`` and ``last_vacuum_at_ms`` are when files were last rewritten, and
    taken away. ``last_proof`` is as ``HistoryRow.proof``, and ``last_proof_at_ms`` when one last passed; ``next`` is a
    sentence or a command.
    ``others_...`` say the same of other tools, as far as the commits from version ``commits_seen_from`` on tell (None:
    no commit was read), and ``maintained_twice`` what they did lately or do by a property of the table.
    ``auto_compact`` is whether writers compact by themselves, and ``auto_compact_source`` who says so: ``session``, a
    table property by its name, ``default``; or, where ``auto_compact`` is None, why nobody can say. ``files_read`` (by
    an average sample query), ``overlap_depth`` and ``unindexed_ratio`` describe an incremental Z-order's layout
    (``layout_figures``). ``scheduled`` says that the next apply would rewrite files; ``running`` is the run that works
    on the table now, None without one.
    """

    table: str
    state: str
    small_files: int | None = None
    num_files: int | None = None
    size_bytes: int | None = None
    version: int | None = None
    last_optimize_at_ms: int | None = None
    last_optimize_status: str | None = None
    last_vacuum_at_ms: int | None = None
    last_proof: str | None = None
    last_proof_at_ms: int | None = None
    next: str | None = None
    auto_compact: bool | None = None
    auto_compact_source: str | None = None
    files_read: float | None = None
    overlap_depth: float | None = None
    unindexed_ratio: float | None = None
    scheduled: bool = False
    running: str | None = None
    policy_file: str | None = None
    owner: str | None = None
    small_bytes: int | None = None
    deleted_rows_ratio: float | None = None
    others_optimized_at_ms: int | None = None
    others_optimized_by: str | None = None
    others_vacuumed_at_ms: int | None = None
    others_vacuumed_by: str | None = None
    commits_seen_from: int | None = None
    maintained_twice: str | None = None

    @property
    def optimized_at_ms(self) -> int | None:
        """When anybody last rewrote files; None for never, 0 where that is not known: other commits may tell."""
        return self._newest(self.last_optimize_at_ms, self.others_optimized_at_ms)

    @property
    def vacuumed_at_ms(self) -> int | None:
        """The same of files that were taken away."""
        return self._newest(self.last_vacuum_at_ms, self.others_vacuumed_at_ms)

    def _newest(self, *times_ms: int | None) -> int | None:
        return max(at_ms or 0 for at_ms in times_ms) or (None if self.commits_seen_from == 0 else 0)

    @property
    def by_others(self) -> tuple[str, ...]:
        """Who else takes care of the table, or did what was done last."""
        if self.maintained_twice is not None:
            return (self.maintained_twice,)
        optimized = (self.others_optimized_at_ms or 0) > (self.last_optimize_at_ms or 0)
        vacuumed = (self.others_vacuumed_at_ms or 0) > (self.last_vacuum_at_ms or 0)
        return (
            *([f"optimized by {self.others_optimized_by or 'another tool'}"] if optimized else ()),
            *([f"vacuumed by {self.others_vacuumed_by or 'another tool'}"] if vacuumed else ()),
        )
