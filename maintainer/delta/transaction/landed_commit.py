"""Compare the commit in the log with what we handed over.

Our own commits fail when the version exists. A writer that checks and then renames (Delta's log store for disks) can
put its commit in the place of ours, and Delta's cache of the log would not notice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.commit_history import commit_at, find_stamp, info_of
from maintainer.delta.log.conflicting_commit import read_conflicting_commit, removed_key
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.proof_actions import check_removes
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import CommitConflict
from maintainer.model.plan.steps import Batch
from maintainer.model.run.optimize_metrics import FileSizeMetrics
from maintainer.model.run.outcome import CommitReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.storage_facts import file_sizes

REWRITE_ACTIONS = frozenset({"commitInfo", "add", "remove", "domainMetadata"})
"""All that a rewrite writes."""

Actions = list[dict[str, Any]]


def landed_actions(
    jvm: DeltaJvm, storage: TableStorage, stamp: CommitStamp, where: str, version: int
) -> Actions | None:
    """Read the actions of our landed commit from storage; None if the log cannot be read now.

    Raises:
        CommitConflict: C701, another writer's commit stands there and ours is nowhere in the log.
    """
    try:
        entry = commit_at(storage, version)
        if entry is None:
            return None
        actions = list(storage.actions(entry, with_adds=True))
        if info_of(actions).get("userMetadata") == stamp.to_json():
            return actions
        if find_stamp(storage, stamp, after_version=-1) is not None:
            return None
        other_commit = read_conflicting_commit(entry, actions)
    except Exception:
        # The commit has landed: a storage error after it must not turn success into failure.
        return None
    jvm.forget_log(storage.root_uri)
    raise CommitConflict(
        f"another writer replaced our commit with its own ({other_commit})",
        where=where,
        found=f"version {version} was ours and is not any more",
        help="only our own commit is lost; the files that it wrote stay until a vacuum with `deleteUntracked: true`. "
        "Find out who writes to this table without a check for existing versions: that writer loses the commits of "
        "others, too",
    )


def differences(actions: Sequence[Mapping[str, Any]], written: Sequence[WrittenFile], batch: Batch) -> tuple[str, ...]:
    """Return how a landed rewrite differs from what we handed over, as sentences; empty if it does not.

    The statistics of its files are judged, and not compared: see ``rewrite_proof.judge_landed``.
    """
    problems = check_removes([action["remove"] for action in actions if "remove" in action], batch)
    adds = sorted(_proven_part(action["add"]) for action in actions if "add" in action)
    if adds != sorted(_proven_part(file.add) for file in written):
        problems.append(f"the log adds {len(adds)} files that are not the {len(written)} which were proven")
    others = sorted({kind for action in actions for kind in action} - REWRITE_ACTIONS)
    problems += [f"the log has an action {kind} that was not handed over" for kind in others]
    return tuple(problems)


def _proven_part(add: Mapping[str, Any]) -> tuple[str, str, int]:
    """Which file a new one is."""
    return (*removed_key(dict(add)), int(add["size"]))


def rewrite_receipt(
    version: int,
    read_version: int,
    sizes_removed: Sequence[int],
    sizes_added: Sequence[int],
    deleted_rows: Sequence[int],
) -> CommitReceipt:
    """The receipt of a rewrite from its files' sizes; ``deleted_rows`` are those of each removed deletion vector."""
    return CommitReceipt(
        version=version,
        read_version=read_version,
        num_files_removed=len(sizes_removed),
        num_files_added=len(sizes_added),
        bytes_removed=sum(sizes_removed),
        bytes_added=sum(sizes_added),
        num_deletion_vectors_removed=len(deleted_rows),
        sizes_removed=file_sizes(sizes_removed),
        sizes_added=file_sizes(sizes_added),
        num_deletion_vector_rows_removed=sum(deleted_rows),
        files_removed=FileSizeMetrics.of(sizes_removed),
        files_added=FileSizeMetrics.of(sizes_added),
    )
