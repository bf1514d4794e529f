"""Learn from the log what became of a commit: landed, not landed or unknown. Nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.commit_history import find_stamp
from maintainer.delta.log.conflicting_commit import lost_to
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
from maintainer.delta.transaction.landed_commit import landed_actions
from maintainer.engine.process_loss import is_engine_lost
from maintainer.errors import CommitNotLanded, CommitUnknown, Interrupted, MaintainerError
from maintainer.model.table.commit_records import CommitStamp

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
