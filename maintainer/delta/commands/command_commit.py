"""Run a Delta command that commits, and find its commit in the log: landed, not landed or unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from maintainer.delta.commands.command_session import CommandSession
from maintainer.delta.commands.command_storage import CommandStorage
from maintainer.delta.jvm import changed_settings
from maintainer.delta.log.commit_history import find_stamp
from maintainer.delta.storage.failures.engine_failures import (
    NOT_COMMITTED_HELP,
    commit_failed,
    describe,
    is_cancelled,
    is_conflict,
    message_of,
)
from maintainer.delta.storage.failures.machine_failures import (
    damaged_file_error,
    is_missing,
    missing_file_error,
    storage_error,
)
from maintainer.delta.transaction.commit_fate import USER_METADATA, settled
from maintainer.errors import CommitConflict, FileAbsent, Interrupted, MaintainerError
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts

LEFT_BEHIND = "files that the command wrote may be left in the table's folder; they are not part of the table"


def run_stamped(
    session: CommandSession,
    storage: Callable[[], CommandStorage],
    facts: TableFacts,
    statement: str,
    settings: Mapping[str, str | None],
    stamp: CommitStamp,
) -> int | None:
    """Run a statement with the stamp in its commits; return the first version that carries it.

    Args:
        session: The worker's.
        storage: Opens the table's storage afresh.
        facts: The table right before; the stamp is looked for above its version.
        statement: The command.
        settings: What it runs with; put back afterwards.
        stamp: Ours.

    Returns:
        The version, or None if the command succeeded and committed nothing.

    Raises:
        CommitConflict: C701, another writer won.
        CommitNotLanded: C702, it failed and nothing of it is in the log.
        TableError: T405, permission denied.
        EnvironmentUnfit: E631, storage is full.
        CommitUnknown: C703, the answer was lost and the log could not settle it.
        Interrupted: C710, cancelled, and nothing of it is in the log.
    """
    where = facts.ref.identifier

    def find() -> int | None:
        return find_stamp(storage(), stamp, after_version=facts.version)

    def attempt() -> int | None:
        with changed_settings(session.spark, {**settings, USER_METADATA: stamp.to_json()}):
            session.rows(statement)
        return find()

    return settled(attempt, find, lambda error: _not_landed(error, where), where=where)


def _not_landed(error: Exception, where: str) -> MaintainerError:
    chain = describe(error)
    if is_conflict(chain):
        return CommitConflict(
            "another writer won", where=where, found=message_of(error), help=f"plan again; {LEFT_BEHIND}"
        )
    if is_cancelled(chain):
        return Interrupted(
            "cancelled before anything was committed", where=where, help=f"run `maintainer apply` again; {LEFT_BEHIND}"
        )
    failure = storage_error(chain, where) or damaged_file_error(chain, where) or missing_file_error(chain, where)
    if failure is not None:
        failure.help = f"{failure.help}; {LEFT_BEHIND}"
        return failure
    if is_missing(chain):
        return FileAbsent(
            "a file was missing while the command ran; nothing was committed",
            where=where,
            found=message_of(error),
            help="if it is a file of the table, the table was damaged before: see `maintainer explain T408`",
        )
    what = "Delta's command failed; nothing was committed"
    return commit_failed(what, where, chain, f"{NOT_COMMITTED_HELP}; {LEFT_BEHIND}")
