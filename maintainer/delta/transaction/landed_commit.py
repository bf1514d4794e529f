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
from maintainer.model.table.commit_records import CommitStamp

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
