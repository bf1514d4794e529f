"""A few words for each reason why a table is left alone, where many tables share one line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from maintainer.model.plan.reasons import ReasonCode

LEFT_ALONE_WORDS: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.AT_TARGET: "files are large enough",
        ReasonCode.NO_PARTNER: "no two small files fit together",
        ReasonCode.SPELLED_APART: "a partition has several spellings in the log",
        ReasonCode.SPELLING_CHANGES: "a command would change how a partition is spelled",
        ReasonCode.LOST_VALUE: "files lack a partition value in the log",
        ReasonCode.SAME_ZORDER: "in Z-order already",
        ReasonCode.WAITS_FOR_TURN: "Z-order takes them in a later turn",
        ReasonCode.BELOW_NEXT_LEVEL: "too few new files for the next level of the Z-order",
        ReasonCode.BEFORE_TIMESTAMP: "written before the time from which Z-order starts",
        ReasonCode.OFF_ON_TABLE: "the table's own property says no",
        ReasonCode.NOTHING_TO_ORDER: "nothing to order by",
        ReasonCode.REQUEST_IGNORED: "the table's request is ignored",
        ReasonCode.SAME_REWRITE: "rewritten already",
        ReasonCode.SAME_CLUSTERING: "clustered already",
        ReasonCode.SEALED_CUBE: "cubes are large enough",
        ReasonCode.OTHER_CLUSTERING: "clustered by other columns",
        ReasonCode.OUTSIDE_WHERE: "not chosen by `optimize.where`",
        ReasonCode.NEWEST_PARTITION: "newest partitions are skipped",
        ReasonCode.HOT: "others are updating them",
        ReasonCode.RESTING: "they rest after our own rewrites",
        ReasonCode.HOT_PARTITION: "their partitions were written too lately",
        ReasonCode.UPDATED_PARTITION: "others are updating their partitions",
        ReasonCode.LOST_TO_WRITER: "rewrites lost against their writers lately",
        ReasonCode.NOT_DUE: "not due yet",
        ReasonCode.NOT_WORTH_IT: "less to rewrite than `optimize.when` asks for",
        ReasonCode.NOTHING_EXPIRED: "nothing is old enough to be deleted",
        ReasonCode.UNPROVEN_REWRITE: "a rewrite is not proven yet",
        ReasonCode.OUTSIDE_WINDOW: "outside their window",
        ReasonCode.SUSPENDED: "suspended by their policy",
        ReasonCode.BELOW_MIN_SIZE: "smaller than `match.minSize` of the rule that would manage them",
        ReasonCode.NO_TABLE_YET: "not there yet",
        ReasonCode.QUARANTINED: "in quarantine",
        ReasonCode.OVER_LIMIT: "over a limit",
        ReasonCode.OVER_BUDGET: "no budget left",
        ReasonCode.PLAN_STALE: "changed since the plan",
        ReasonCode.NO_LONGER_LIVE: "files are gone since the plan",
        ReasonCode.LIVE_AGAIN: "old files are in use again",
        ReasonCode.NOT_BY_ENGINE: "the engine cannot do it",
        ReasonCode.KEPT_FOR_CLONE: "a clone needs the old files",
        ReasonCode.NESTED_TABLE: "another table lies inside",
        ReasonCode.BEHIND_SYMLINK: "files behind links",
        ReasonCode.UNTRACKED: "files that the log does not mention stay",
        ReasonCode.LARGE_DELETE: "a delete is larger than allowed",
        ReasonCode.CANNOT_BE_SURE: "not known which old files are needed",
        ReasonCode.COPIED_TABLE: "a copy of another table",
    }
)
"""Each fits behind `nothing to do:` and before `(6 tables)`; ``docs/reasons.md`` explains the codes."""
