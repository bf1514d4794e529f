"""Auto compaction as data: whether it is on and who says so, its settings, and the result of one attempt.

Whether it is on follows Delta's own precedence (``AutoCompactBase.getAutoCompactType`` of 4.4.0): the session's
``spark.databricks.delta.autoCompact.enabled`` if it is set at all, then the deprecated table property
``delta.autoOptimize`` if it is true, then ``delta.autoOptimize.autoCompact``, else off.

Delta has the other settings only in the session. We keep them on the table, below ``maintainer.autoCompact.``, so
that every writer decides alike; our own hook reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from maintainer.model.run.optimize_metrics import OptimizeMetrics

OPERATION = "delta.commit.hooks.autoOptimize"
"""What Delta calls auto compaction in its events; ours are called the same."""

STEP_KIND = "auto_compact"
"""The step of our own hook, by which its commits are known; they have no run folder."""

RUN_PREFIX = "maintainer-auto-compact-"
"""How the name begins that the commits of one call of our hook carry in place of a run's id."""

SESSION_PREFIX = "spark.databricks.delta.autoCompact."
SESSION_ENABLED = SESSION_PREFIX + "enabled"
AUTO_COMPACT = "delta.autoOptimize.autoCompact"
LEGACY_AUTO_OPTIMIZE = "delta.autoOptimize"

OWN_PREFIX = "maintainer.autoCompact."
MIN_NUM_FILES = OWN_PREFIX + "minNumFiles"
MIN_FILE_SIZE = OWN_PREFIX + "minFileSize"
MAX_FILE_SIZE = OWN_PREFIX + "maxFileSize"
MODIFIED_PARTITIONS_ONLY = OWN_PREFIX + "modifiedPartitionsOnly"
QUIET_AFTER_UPDATES = OWN_PREFIX + "quietAfterUpdates"
OWN_PROPERTIES = (MIN_NUM_FILES, MIN_FILE_SIZE, MAX_FILE_SIZE, MODIFIED_PARTITIONS_ONLY)

SESSION_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Where Delta notes the version of the newest commit that a session made, on whatever table."""

DEFAULT = "default"
"""Value of a property of ours that no longer has a say: setting it is one commit of a kind that is always allowed."""

DEFAULT_MIN_NUM_FILES = 50
DEFAULT_MAX_FILE_SIZE_BYTES = 128 << 20
DEFAULT_QUIET_SECONDS = 600
"""As ``optimize.quietAfterUpdates``."""
MAX_PARTITIONS = 128
"""Partitions compacted in one go, as Delta's ``autoCompact.maxNumModifiedPartitions``."""


class SwitchSource(StrEnum):
    """Who says whether auto compaction is on."""

    ARGUMENT = "argument"
    SESSION = "session"
    LEGACY_PROPERTY = "delta.autoOptimize"
    PROPERTY = "delta.autoOptimize.autoCompact"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class AutoCompactSwitch:
    """Whether auto compaction is on, and who says so."""

    enabled: bool
    source: SwitchSource

    @property
    def text(self) -> str:
        """For people: ``on (session)``."""
        return f"{'on' if self.enabled else 'off'} ({self.source.value})"


def switch_of(session_value: str | None, properties: Mapping[str, str]) -> AutoCompactSwitch:
    """Work out whether auto compaction is on for writers of a table.

    Args:
        session_value: ``spark.databricks.delta.autoCompact.enabled`` of the writer's session, None where not set.
        properties: The table's properties; keys are found without regard to case, as Delta finds them.

    Raises:
        ValueError: The value that decides is neither true nor false; Delta's own hook would fail, too.
    """
    if session_value is not None:
        return AutoCompactSwitch(_boolean(SESSION_ENABLED, session_value), SwitchSource.SESSION)
    by_lower = {key.lower(): value for key, value in properties.items()}
    legacy = by_lower.get(LEGACY_AUTO_OPTIMIZE.lower())
    if legacy is not None and _boolean(LEGACY_AUTO_OPTIMIZE, legacy):
        return AutoCompactSwitch(True, SwitchSource.LEGACY_PROPERTY)
    value = by_lower.get(AUTO_COMPACT.lower())
    if value is not None:
        return AutoCompactSwitch(_boolean(AUTO_COMPACT, value), SwitchSource.PROPERTY)
    return AutoCompactSwitch(False, SwitchSource.DEFAULT)


def try_switch_of(session_value: str | None, properties: Mapping[str, str]) -> AutoCompactSwitch | str:
    """Return ``switch_of``, or the sentence that says why it is unknown."""
    try:
        return switch_of(session_value, properties)
    except ValueError as error:
        return str(error)


def _boolean(key: str, value: str) -> bool:
    text = value.strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{key} is `{value}`, neither true nor false")
    return text == "true"


@dataclass(frozen=True, slots=True)
class AutoCompactSettings:
    """When a partition is compacted, and to what.

    ``min_num_files`` small files qualify a partition; a file is small strictly under ``min_file_size_bytes``.
    ``modified_partitions_only``: only partitions written since the last auto compaction. What others updated less
    than ``quiet_after_updates_seconds`` ago is left alone; 0 never leaves anything.
    """

    min_num_files: int
    min_file_size_bytes: int
    max_file_size_bytes: int
    modified_partitions_only: bool
    quiet_after_updates_seconds: int = DEFAULT_QUIET_SECONDS

    def __post_init__(self) -> None:
        if self.min_num_files < 0:
            raise ValueError(f"minNumFiles is {self.min_num_files}; 0 or more is allowed")
        if not 0 < self.min_file_size_bytes <= self.max_file_size_bytes:
            raise ValueError(
                f"minFileSize is {self.min_file_size_bytes} and maxFileSize {self.max_file_size_bytes}; "
                "both must be more than 0, and minFileSize at most maxFileSize"
            )


class AutoCompactStatus(StrEnum):
    """What one attempt came to."""

    COMPACTED = "compacted"
    DISABLED = "disabled"
    NOT_QUALIFIED = "not_qualified"
    YIELDED = "yielded"  # another writer won; nothing of ours was committed (or only earlier batches)
    FAILED = "failed"  # nothing was committed (or only earlier batches), or its fate is in the reason


@dataclass(frozen=True, slots=True)
class AutoCompactResult:
    """What came of one attempt: always a value, never an exception.

    ``version`` is the last commit's, None without one. ``reason`` says why in words. ``partitions`` are those that
    qualified, as in paths (``day=2026-11-20``; empty text for a table without partitions).
    """

    status: AutoCompactStatus
    table: str
    reason: str
    switch: AutoCompactSwitch | None = None
    settings: AutoCompactSettings | None = None
    partitions: tuple[str, ...] = ()
    version: int | None = None
    metrics: OptimizeMetrics | None = None
    error_code: str | None = None
    duration_seconds: float = 0.0

    @property
    def compacted(self) -> bool:
        """Whether it committed something."""
        return self.version is not None
