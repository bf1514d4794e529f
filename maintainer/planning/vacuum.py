"""Vacuum: which files may be deleted, and who decided how long they were kept.

Only files that the log itself removed are named, only those removed before the horizon, and none that a
rewrite replaced which was never proven.
"""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.errors import NotSupportedYet
from maintainer.model.plan import LeftAlone
from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.steps import VacuumStep
from maintainer.model.table import RemovedFile, TableFacts, TableRecord
from maintainer.planning.decision import Decision, count_of
from maintainer.planning.properties import (
    DELETED_FILE_RETENTION,
    DELETED_FILE_RETENTION_DEFAULT_MS,
    interval_property_ms,
    property_of,
)
from maintainer.policy.resolved import ResolvedPolicy, VacuumPolicy
from maintainer.units import format_duration, format_size

FLOOR_SECONDS = 7 * 86_400
"""Files younger than this may belong to a writer that has not committed yet; as in Delta's own safety check."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Files removed strictly before it may go. ``decided_by`` names the policy line or property that won."""

    removed_before_ms: int
    retention_seconds: int
    decided_by: str


def vacuum_horizon(policy: ResolvedPolicy, facts: TableFacts, now_ms: int) -> Horizon:
    """Return the horizon: the longest of everything that asks for files to be kept.

    That is the policy's retention, the table property ``delta.deletedFileRetentionDuration`` as it is now (seven
    days where it is not set), seven days unless ``allowShortRetention``, and the lag of every consumer. Of equal
    ones the first in this order is named.

    Raises:
        TableError: T418, the table property cannot be read.
        NotSupportedYet: E620, something of the policy that would have to be honoured and is not built.
        ValueError: The policy has no ``vacuum``.
    """
    vacuum = _checked(policy)
    retention = str(policy.origin("vacuum.retention"))
    property_ms = interval_property_ms(facts, DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT_MS)
    unset = " (Delta's default)" if property_of(facts, DELETED_FILE_RETENTION) is None else ""
    wishes = [
        (vacuum.retention_seconds, f"vacuum.retention ({retention})"),
        (-(-property_ms // 1000), f"table property {DELETED_FILE_RETENTION}{unset}"),
    ]
    if not vacuum.allow_short_retention:
        wishes.append((FLOOR_SECONDS, "the floor of seven days"))
    for consumer in policy.consumers:
        if consumer.max_lag_seconds is not None:
            wishes.append((consumer.max_lag_seconds, f"consumer {consumer.name} ({policy.origin('consumers')})"))
    seconds = max(wish for wish, _ in wishes)
    decided_by = next(name for wish, name in wishes if wish == seconds)
    return Horizon(now_ms - seconds * 1000, seconds, decided_by)


def _checked(policy: ResolvedPolicy) -> VacuumPolicy:
    """Refuse what would have to be honoured: a deletion must never ignore a part of its policy."""
    vacuum = policy.vacuum
    if vacuum is None:
        raise ValueError("the policy has no vacuum")
    unread = next((consumer for consumer in policy.consumers if consumer.checkpoint is not None), None)
    if unread is not None:
        raise NotSupportedYet(
            f"reading the checkpoint of consumer {unread.name} is not supported yet",
            where=str(policy.origin("consumers")),
            help="write `maxLag:` for it instead; vacuum keeps at least that",
        )
    if vacuum.delete_untracked:
        raise NotSupportedYet(
            "deleting files that the log never knew is not supported yet",
            where=str(policy.origin("vacuum.deleteUntracked")),
            help="remove `deleteUntracked`",
        )
    return vacuum


def plan_vacuum(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord, now_ms: int) -> Decision:
    """Decide which removed files are deleted.

    Args:
        policy: The effective policy, with ``vacuum``.
        facts: The table, with ``removed_files`` read (see ``schedule.vacuum_wanted``).
        record: What the ledger knows: versions whose proof is missing protect what they removed. A file whose
            removing version the log no longer tells is protected as long as there is any such version.
        now_ms: The time of planning.

    Raises:
        ValueError: ``removed_files`` were not read.
    """
    horizon = vacuum_horizon(policy, facts, now_ms)
    if facts.removed_files is None:
        raise ValueError("vacuum is planned from facts without removed files")
    live = {file.path for file in facts.files}
    expired = sorted(
        (file for file in facts.removed_files if file.removed_at_ms < horizon.removed_before_ms),
        key=lambda file: (file.removed_at_ms, file.path),
    )
    left: list[LeftAlone] = []
    revived = [file for file in expired if file.path in live]
    if revived:
        text = f"{_of(revived)} removed once and live again"
        left.append(LeftAlone(Reason(ReasonCode.LIVE_AGAIN, text)))
    unproven = [file for file in expired if file.path not in live and _is_unproven(file, record)]
    if unproven:
        versions = ", ".join(str(version) for version in record.unproven_versions)
        text = f"{_of(unproven)} kept: the rewrite of version {versions} is not proven"
        left.append(LeftAlone(Reason(ReasonCode.UNPROVEN_REWRITE, text, str(policy.origin("vacuum")))))
    files = tuple(file for file in expired if file.path not in live and not _is_unproven(file, record))
    if not files:
        by = "" if horizon.decided_by.startswith("vacuum.retention") else f" ({horizon.decided_by} decides)"
        text = f"no file was removed more than {format_duration(horizon.retention_seconds)} ago{by}"
        if not left:
            left.append(LeftAlone(Reason(ReasonCode.NOTHING_EXPIRED, text, str(policy.origin("vacuum.retention")))))
        return Decision(None, tuple(left))
    text = f"{_of(list(files))} removed more than {format_duration(horizon.retention_seconds)} ago"
    reason = Reason(ReasonCode.REMOVED_FILES_EXPIRED, text, str(policy.origin("vacuum.retention")))
    step = VacuumStep(files, horizon.removed_before_ms, horizon.retention_seconds, horizon.decided_by, (reason,))
    return Decision(step, tuple(left))


def _is_unproven(file: RemovedFile, record: TableRecord) -> bool:
    if not record.unproven_versions:
        return False
    return file.removed_in_version is None or file.removed_in_version in record.unproven_versions


def _of(files: list[RemovedFile]) -> str:
    return f"{count_of(len(files), 'file')} ({format_size(sum(file.size_bytes for file in files))})"
