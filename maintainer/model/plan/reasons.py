"""The closed set of reasons why something is done or left alone, each a code with its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from maintainer.errors.foreign_text import without_secrets
from maintainer.model.codec import once


class ReasonCode(StrEnum):
    """Why a step is taken, or why something is left alone. A closed set; each has a heading in docs/reasons.md."""

    # Why a step is taken.
    PROPERTY_DRIFT = "property_drift"
    SMALL_FILES = "small_files"
    DELETED_ROWS = "deleted_rows"
    DROPPED_COLUMNS = "dropped_columns"
    ZORDER_DUE = "zorder_due"
    UNINDEXED_FILES = "unindexed_files"
    CUBE_FRAGMENTS = "cube_fragments"
    CURVE_PIECE = "curve_piece"
    NEW_REVISION = "new_revision"
    REWRITE_DUE = "rewrite_due"
    CLUSTERING_DUE = "clustering_due"
    REMOVED_FILES_EXPIRED = "removed_files_expired"
    RETENTION_TOO_SHORT_ON_TABLE = "retention_too_short_on_table"
    UNTRACKED_FILES_OLD = "untracked_files_old"
    TRASH_EXPIRED = "trash_expired"
    # What is said of files that are rewritten, and of the table.
    DOUBTFUL_BOUNDS = "doubtful_bounds"
    MAINTAINED_TWICE = "maintained_twice"
    # Why files, partitions, steps or tables are left alone.
    AT_TARGET = "at_target"
    NO_PARTNER = "no_partner"
    OUTSIDE_WHERE = "outside_where"
    HOT = "hot"
    RESTING = "resting"
    HOT_PARTITION = "hot_partition"
    UPDATED_PARTITION = "updated_partition"
    LOST_TO_WRITER = "lost_to_writer"
    NEWEST_PARTITION = "newest_partition"
    NOT_DUE = "not_due"
    NOT_WORTH_IT = "not_worth_it"
    NOTHING_EXPIRED = "nothing_expired"
    UNPROVEN_REWRITE = "unproven_rewrite"
    SPELLED_APART = "spelled_apart"
    SPELLING_CHANGES = "spelling_changes"
    LOST_VALUE = "lost_value"
    SAME_ZORDER = "same_zorder"
    WAITS_FOR_TURN = "waits_for_turn"
    BELOW_NEXT_LEVEL = "below_next_level"
    BEFORE_TIMESTAMP = "before_timestamp"
    OFF_ON_TABLE = "off_on_table"
    NOTHING_TO_ORDER = "nothing_to_order"
    REQUEST_IGNORED = "request_ignored"
    SAME_REWRITE = "same_rewrite"
    SAME_CLUSTERING = "same_clustering"
    SEALED_CUBE = "sealed_cube"
    OTHER_CLUSTERING = "other_clustering"
    OUTSIDE_WINDOW = "outside_window"
    SUSPENDED = "suspended"
    BELOW_MIN_SIZE = "below_min_size"
    NO_TABLE_YET = "no_table_yet"
    QUARANTINED = "quarantined"
    OVER_LIMIT = "over_limit"
    OVER_BUDGET = "over_budget"
    PLAN_STALE = "plan_stale"
    NO_LONGER_LIVE = "no_longer_live"
    LIVE_AGAIN = "live_again"
    NOT_BY_ENGINE = "not_by_engine"
    KEPT_FOR_CLONE = "kept_for_clone"
    NESTED_TABLE = "nested_table"
    BEHIND_SYMLINK = "behind_symlink"
    UNTRACKED = "untracked"
    LARGE_DELETE = "large_delete"
    CANNOT_BE_SURE = "cannot_be_sure"
    COPIED_TABLE = "copied_table"


STILL_WRITTEN = frozenset(
    {
        ReasonCode.HOT,
        ReasonCode.RESTING,
        ReasonCode.HOT_PARTITION,
        ReasonCode.UPDATED_PARTITION,
        ReasonCode.LOST_TO_WRITER,
    }
)
"""Why files are left to their writers for a while."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, in a code for machines and a sentence for people, and the policy line behind it (``file:line``)."""

    code: ReasonCode
    text: str
    origin: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", once(without_secrets(self.text)))
