"""Plan a vacuum: which files may be deleted, and which are kept although they are old enough.

Only files that the log removed before the horizon are deleted, and never files that an unproven rewrite replaced.
Files that the log does not know are deleted only where the policy says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.storage_facts import ProtectionReason, StorageLook
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.schedule import is_due
from maintainer.planning.selection.decision import Decision
from maintainer.planning.vacuum.deletion_limits import Horizon, broken_caps, refuse_trash, vacuum_horizon
from maintainer.policy.resolve.resolved import ResolvedPolicy, VacuumMode
from maintainer.units import count_of, format_duration, format_size

UNTRACKED = "untracked"

MAX_VERSIONS_NAMED = 20
"""In the sentence about rewrites that are not proven, the newest."""


def listing_wanted(table: TableInput) -> bool:
    """Return whether the folder is listed for untracked files: in mode full each time, in auto only to delete them.

    And in auto on a local disk, where it costs no requests, if the log is cut: only there what it lost can be counted.
    """
    vacuum = table.policy.vacuum
    if vacuum is None or vacuum.mode is VacuumMode.LITE:
        return False
    if vacuum.mode is VacuumMode.FULL:
        return True
    listed_at_ms = table.record.last_listing_at_ms
    due = table.options.ignore_every or is_due(vacuum.untracked_every_seconds, listed_at_ms, table.now_ms)
    on_disk = not store_kind(table.facts.location).asks_by_request
    return due and (vacuum.delete_untracked or (on_disk and _begins_at(table.facts) > 0))


def _begins_at(facts: TableFacts) -> int:
    """Return the oldest version that the log has; 0 where it is whole, or was not looked at."""
    return 0 if facts.history is None else facts.history.first_version


def untracked_before_ms(policy: ResolvedPolicy, horizon: Horizon, now_ms: int) -> int:
    """Return the time before which untracked files must have last changed: the longer of their age and the horizon.

    Where none may be deleted, those past the horizon are counted.
    """
    vacuum = policy.vacuum
    age = vacuum.untracked_age_seconds if vacuum is not None and vacuum.delete_untracked else 0
    return min(horizon.removed_before_ms, now_ms - age * 1000)


def cannot_be_sure(policy: ResolvedPolicy, facts: TableFacts) -> tuple[Reason, ...]:
    """Return why it cannot be known what is still needed; then nothing is deleted."""
    reasons = []
    for position in facts.history.positions if facts.history is not None else ():
        if position.problem is not None:
            text = f"the checkpoint of consumer {position.consumer} does not say what it still needs: "
            origin = policy.place_of("consumers")
            reasons.append(Reason(ReasonCode.CANNOT_BE_SURE, text + position.problem, origin))
    for protection in facts.storage.protections if facts.storage is not None else ():
        if _code_of(protection.why) is ReasonCode.CANNOT_BE_SURE:
            reasons.append(Reason(ReasonCode.CANNOT_BE_SURE, protection.text))
    return tuple(reasons)


def _unread_checkpoints(policy: ResolvedPolicy, facts: TableFacts) -> list[Reason]:
    """Name consumers whose checkpoint could not be read: they may need any file."""
    read = {position.consumer for position in facts.history.positions} if facts.history is not None else set()
    origin = policy.place_of("consumers")
    return [
        Reason(ReasonCode.CANNOT_BE_SURE, f"the checkpoint of consumer {consumer.name} was not read", origin)
        for consumer in policy.consumers
        if consumer.checkpoint is not None and consumer.name not in read
    ]


def plan_vacuum(table: TableInput) -> Decision:
    """Decide which files are deleted.

    Versions whose proof is missing protect what they removed and added. A file whose removing version the log no longer
    has is protected as long as there is any such version.

    Args:
        table: With ``vacuum`` in the policy, and ``removed_files`` read (see ``needs``).

    Raises:
        TableError: T418, the table's retention cannot be read; T431, a trash on an object store.
        ValueError: ``removed_files`` were not read though nothing stands in the way.
    """
    policy, facts, record, now_ms = table.policy, table.facts, table.record, table.now_ms
    assert policy.vacuum is not None
    if policy.vacuum.trash_seconds:
        refuse_trash(facts.location, policy.place_of("vacuum.trash"))
    horizon = vacuum_horizon(table)
    unsure = (*cannot_be_sure(policy, facts), *_unread_checkpoints(policy, facts))
    if unsure:
        return Decision(None, tuple(LeftAlone(reason) for reason in unsure), blocked=unsure)
    if facts.removed_files is None:
        raise ValueError("vacuum is planned from facts without removed files")
    storage = facts.storage or StorageLook()
    old = _old_files(policy, facts.removed_files, horizon, now_ms)
    files, left_alone = _protected(policy, facts, record, old)
    left_alone.extend(_left_by_storage(storage))
    step = _step(policy, files, storage, horizon, now_ms)
    if step is None:
        if not left_alone:
            left_alone.append(_nothing(horizon, _begins_at(facts) if storage.listing is None else 0))
        return Decision(None, tuple(left_alone))
    broken = broken_caps(policy, facts, record, files)
    if broken:
        size_bytes = sum(file.size_bytes for file in files)
        over = [LeftAlone(reason, len(files), size_bytes) for reason in broken[:1]]
        over.extend(LeftAlone(reason) for reason in broken[1:])
        return Decision(None, (*left_alone, *over), blocked=broken)
    return Decision(step, tuple(left_alone))


def _old_files(
    policy: ResolvedPolicy, candidates: Iterable[RemovedFile], horizon: Horizon, now_ms: int
) -> list[RemovedFile]:
    before = {True: untracked_before_ms(policy, horizon, now_ms), False: horizon.removed_before_ms}
    return sorted(
        (file for file in candidates if file.removed_at_ms < before[file.kind == UNTRACKED]),
        key=lambda file: (file.removed_at_ms, file.path),
    )


def unproven_text(versions: Sequence[int]) -> str:
    """Say which rewrites are not proven, the newest by their versions."""
    newest = ", ".join(map(str, versions[-MAX_VERSIONS_NAMED:]))
    if len(versions) == 1:
        return f"the rewrite of version {newest} is not proven"
    more = len(versions) - MAX_VERSIONS_NAMED
    older = f" and of {count_of(more, 'older version')}" if more > 0 else ""
    return f"the rewrites of versions {newest}{older} are not proven"


def _protected(
    policy: ResolvedPolicy, facts: TableFacts, record: TableRecord, old: Sequence[RemovedFile]
) -> tuple[tuple[RemovedFile, ...], list[LeftAlone]]:
    assert policy.vacuum is not None
    live = {file.path for file in facts.files}
    left_alone: list[LeftAlone] = []
    revived = [file for file in old if file.path in live]
    if revived:
        left_alone.append(
            LeftAlone(Reason(ReasonCode.LIVE_AGAIN, f"{_files_text(revived)} removed once and live again"))
        )
    free = [file for file in old if file.path not in live]
    going = free if policy.vacuum.delete_untracked else [file for file in free if file.kind != UNTRACKED]
    unproven = [file for file in going if is_unproven(file, record.unproven_versions)]
    if unproven:
        text = f"{_files_text(unproven)} kept: {unproven_text(record.unproven_versions)}"
        left_alone.append(LeftAlone(Reason(ReasonCode.UNPROVEN_REWRITE, text, policy.place_of("vacuum"))))
    untracked = [file for file in free if file.kind == UNTRACKED]
    if untracked and not policy.vacuum.delete_untracked:
        age = format_duration(policy.vacuum.untracked_age_seconds)
        begins = f" (it begins at version {first})" if (first := _begins_at(facts)) > 0 else ""
        text = f"{_files_text(untracked)} that the log does not mention{begins}; `deleteUntracked: true` would delete "
        text += f"those unchanged for {age}"
        left_alone.append(LeftAlone(Reason(ReasonCode.UNTRACKED, text, policy.place_of("vacuum.deleteUntracked"))))
    return tuple(file for file in going if not is_unproven(file, record.unproven_versions)), left_alone


def _left_by_storage(storage: StorageLook) -> Iterable[LeftAlone]:
    for protection in storage.protections:
        yield LeftAlone(Reason(_code_of(protection.why), protection.text))
    if storage.listing is not None and storage.listing.stopped:
        yield LeftAlone(Reason(ReasonCode.UNTRACKED, f"nothing untracked is deleted: {storage.listing.stopped}"))


def _code_of(why: ProtectionReason) -> ReasonCode:
    match why:
        case ProtectionReason.CLONE:
            return ReasonCode.KEPT_FOR_CLONE
        case ProtectionReason.NEEDED:
            return ReasonCode.LIVE_AGAIN
        case ProtectionReason.NESTED_TABLE:
            return ReasonCode.NESTED_TABLE
        case ProtectionReason.SYMLINK:
            return ReasonCode.BEHIND_SYMLINK
        case ProtectionReason.UNKNOWN_REFERENCE | ProtectionReason.CLOCK:
            return ReasonCode.CANNOT_BE_SURE
        case _:
            assert_never(why)


def _nothing(horizon: Horizon, first_version: int) -> LeftAlone:
    by = "" if horizon.decided_by.startswith("vacuum.retention") else f" ({horizon.decided_by} decides)"
    whose = "nothing" if first_version == 0 else f"nothing that version {first_version} or later"
    text = f"{whose} removed more than {format_duration(horizon.retention_seconds)} ago is left on storage{by}"
    if first_version > 0:
        text += (
            "; the log no longer says what earlier versions removed: `mode: full` would count it and delete none of it"
        )
    return LeftAlone(Reason(ReasonCode.NOTHING_EXPIRED, text, horizon.origin))


def _step(
    policy: ResolvedPolicy, files: tuple[RemovedFile, ...], storage: StorageLook, horizon: Horizon, now_ms: int
) -> VacuumStep | None:
    assert policy.vacuum is not None
    if not files and not storage.trash:
        return None
    reasons: list[Reason] = []
    tracked = [file for file in files if file.kind != UNTRACKED]
    untracked = [file for file in files if file.kind == UNTRACKED]
    if tracked:
        text = f"{_files_text(tracked)} removed more than {format_duration(horizon.retention_seconds)} ago"
        reasons.append(Reason(ReasonCode.REMOVED_FILES_EXPIRED, text, horizon.origin))
    before_ms = untracked_before_ms(policy, horizon, now_ms)
    if untracked:
        age = format_duration((now_ms - before_ms) // 1000)
        text = f"{_files_text(untracked)} that the log does not mention, not changed for more than {age}"
        reasons.append(Reason(ReasonCode.UNTRACKED_FILES_OLD, text, policy.place_of("vacuum.deleteUntracked")))
    if storage.trash:
        count, size = sum(trash.num_files for trash in storage.trash), sum(trash.size_bytes for trash in storage.trash)
        text = f"{count_of(count, 'file')} ({format_size(size)}) in the trash past their time"
        reasons.append(Reason(ReasonCode.TRASH_EXPIRED, text))
    return VacuumStep(
        files=files,
        removed_before_ms=horizon.removed_before_ms,
        retention_seconds=horizon.retention_seconds,
        decided_by=horizon.decided_by,
        reasons=tuple(reasons),
        untracked_before_ms=before_ms if untracked else None,
        trash_seconds=policy.vacuum.trash_seconds if files else 0,
        emptied=storage.trash,
        listing=storage.listing,
        after=storage.after if files else None,
    )


def is_unproven(file: RemovedFile, versions: Collection[int]) -> bool:
    """Whether a version that is not proven may have replaced the file, or has added it: its proof reads both."""
    return bool(versions) and (
        file.removed_in_version is None or file.removed_in_version in versions or file.added_in_version in versions
    )


def _files_text(files: Sequence[RemovedFile]) -> str:
    return f"{count_of(len(files), 'file')} ({format_size(sum(file.size_bytes for file in files))})"
