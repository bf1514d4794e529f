"""Learn from the log what became of a commit: landed, not landed or unknown. Nothing is guessed.

The commit in the log is compared with what we handed over. Our own commits fail when the version exists. A writer that
checks and then renames (Delta's log store for disks) can put its commit in the place of ours, and Delta's cache of the
log would not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.actions import removed_key
from maintainer.delta.log.commit_history import commit_at, commit_of, find_stamp, info_of, lost_to
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.proof_actions import check_removes
from maintainer.delta.storage.failures.engine_failures import (
    NOT_COMMITTED_HELP,
    commit_failed,
    describe,
    is_cancelled,
    is_conflict,
    is_unanswered,
    message_of,
)
from maintainer.delta.storage.failures.machine_failures import storage_error
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.engine.process_loss import is_engine_lost
from maintainer.errors import CommitConflict, CommitNotLanded, CommitUnknown, Interrupted, MaintainerError
from maintainer.model.plan.steps import Batch
from maintainer.model.run.optimize_metrics import FileSizeMetrics
from maintainer.model.run.receipts import CommitReceipt
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
        other_commit = commit_of(entry, info_of(actions))
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


USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def stamped(jvm: DeltaJvm, stamp: CommitStamp) -> AbstractContextManager[None]:
    """Put the stamp on every commit of our session within the block; the session's value is put back."""
    return jvm.setting(USER_METADATA, stamp.to_json())


def settle(find: Callable[[], int | None], error: BaseException, *, where: str) -> int | None:
    """Find in the log what became of a commit that raised: its version, or None if it certainly did not land.

    An exception that came back from the JVM means that the commit call has ended, so the log is final. A lost
    connection, an interrupt on our side, or a store that did not answer the commit's write, means that it may still be
    under way: then absence proves nothing.

    Raises:
        CommitUnknown: C703, the log could not be read, or the commit may still be under way and is not there yet.
    """

    def unknown(why: str, found: str) -> CommitUnknown:
        return CommitUnknown(
            f"it is not known whether the commit landed: {why}", where=where, found=found,
            help="nothing was removed; the next run looks for the commit in the table's history",
        )  # fmt: skip

    try:
        version = find()
    except BaseException as second:
        raise unknown("the log cannot be read", f"{safe_message(error)}; then {safe_message(second)}") from error
    if version is None and (is_engine_lost(error) or not isinstance(error, Exception)):
        raise unknown("the connection broke while it was running", safe_message(error)) from error
    if version is None and not isinstance(error, MaintainerError) and is_unanswered(describe(error)):
        raise unknown("the storage did not answer, and the log does not have it yet", safe_message(error)) from error
    return version


def safe_message(error: BaseException) -> str:
    """Return one line about an exception, also when the JVM that could explain it is gone."""
    try:
        return message_of(error)
    except Exception:  # the JVM itself may be gone
        return type(error).__name__


def not_landed(error: BaseException, where: str) -> MaintainerError:
    """Return the error for a commit that failed and is not in the log."""
    if isinstance(error, MaintainerError):
        return error
    chain = describe(error)
    if is_cancelled(chain):
        return Interrupted(
            "cancelled while committing; the commit did not land", where=where, help="run `maintainer apply` again"
        )
    what = "the commit failed and did not land; what was written was removed"
    return storage_error(chain, where) or commit_failed(what, where, chain, NOT_COMMITTED_HELP)


def settled(
    attempt: Callable[[], int | None],
    find: Callable[[], int | None],
    refused: Callable[[Exception], MaintainerError],
    *,
    where: str,
) -> int | None:
    """Make a stamped commit: the version that ``attempt`` returns, or the one that the log has after an error.

    Raises:
        MaintainerError: What ``refused`` makes of an error after which the log does not have it; or as ``settle``.
    """
    try:
        return attempt()
    except BaseException as error:
        landed = settle(find, error, where=where)
        if landed is not None:
            return landed
        if isinstance(error, MaintainerError) or not isinstance(error, Exception):
            raise
        raise refused(error) from error


def commit_once(
    jvm: DeltaJvm,
    storage: TableStorage,
    stamp: CommitStamp,
    where: str,
    attempt: Callable[[], int | None],
    *,
    after_version: int,
) -> int:
    """Make one stamped commit without data files; return the version it landed as.

    ``attempt`` returns the version, or None if only the log can tell (a command of Delta's that commits). The stamp
    is looked for above ``after_version``.

    Raises:
        CommitConflict: C701, another writer won.
        CommitNotLanded: C702, it failed and did not land.
        CommitUnknown: C703, the answer was lost and the log could not settle it.
    """

    def refused(error: Exception) -> MaintainerError:
        if not is_conflict(describe(error)):
            return not_landed(error, where)
        found = message_of(error)
        return lost_to(
            "another writer won", storage, after_version=after_version, where=where, found=found, help="plan again"
        )

    find = partial(find_stamp, storage, stamp, after_version=after_version)
    with stamped(jvm, stamp):
        version = settled(attempt, find, refused, where=where)
    if version is not None:
        landed_actions(jvm, storage, stamp, where, version)
        return version
    landed_version = find()
    if landed_version is None:
        jvm.forget_log(storage.root_uri)
        raise CommitNotLanded("the commit is not in the log", where=where, help="run `maintainer apply` again")
    return landed_version
