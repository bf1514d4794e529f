"""Define the settings of a policy: each with its default, bound, unit and text. The one keeper of all of them.

Sizes are bytes and durations are seconds. `schemas/policy.schema.json` is made from here by ``python -m
tools.policy_schema``, and the lowest level of every table is made of the defaults (`merge`). A default is written as a
policy file would have it; ``note`` says one in words that follows from something else, and such a one is no level's.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from maintainer.model.plan.lanes import Codec, Lane
from maintainer.model.plan.plan import ContentCheck, RowCountCheck
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.policy.predicate.partition_predicate import Predicate
from maintainer.policy.resolve.policy_fields import duration, setting, size

MOST = 2**63 - 1
_COLUMN = {"description": "A column; nested names are dotted.", "minLength": 1, "maxLength": 500}
NAME = "^[^\\t\\n]+$"
_EXPECTATION = {"description": "One expectation with its arguments.", "additionalProperties": True, "maxProperties": 50}
_NO_SIZE = "write a size like `128MiB`, or remove it"
_NO_LIMIT = "remove it for no limit; `suspend:` leaves a table alone"


class ZOrderMode(enum.StrEnum):
    """``full`` rewrites every selected partition; ``incremental`` only what is not yet in order."""

    FULL = "full"
    INCREMENTAL = "incremental"


class VacuumMode(enum.StrEnum):
    """How candidates for deletion are found: from the log, by listing, or whichever is cheaper and safe."""

    AUTO = "auto"
    FULL = "full"
    LITE = "lite"


@dataclass(frozen=True, slots=True)
class ZOrderPolicy:
    """Columns in their order of weight; nested names are dotted. All but the mode is for ``incremental`` only.

    ``bytes_per_iteration`` None is as ``batch_bytes``; ``revision`` None is the newest, 0 the files without one;
    ``from_timestamp`` is UTC as text. ``honour_table_properties`` lets ``use.optimization.*`` on the table decide.
    """

    columns: tuple[str, ...] = setting(
        ..., items=_COLUMN, minItems=1, maxItems=32, example=["customer_id", "product_id"]
    )
    """Columns to order by, the most filtered first. They must exist, have statistics, and not be partition columns. A
    list replaces an inherited one. `mode: incremental` stores up to 255 values of each column (of texts only the first
    characters) in a table property, which all readers of the metadata can see."""
    mode: ZOrderMode = setting(ZOrderMode.INCREMENTAL, example="full")
    """`incremental` orders new files, and rewrites older ones only where queries gain most. `full` rewrites every
    selected partition that is not in order."""
    strategies: tuple[Strategy, ...] = setting(
        (Strategy.UNINDEXED, Strategy.LEVELED, Strategy.PIECES),
        items={"description": "A strategy."},
        minItems=1,
        maxItems=3,
        example=["unindexed", "pieces"],
    )
    """Incremental only: how to choose files. They are tried in this order, and the first that finds files is used.
    `unindexed` takes files that are not on the curve yet, `leveled` joins files of one cube, `pieces` rewrites the part
    of the curve where queries gain most. A list replaces an inherited one; a strategy that is not listed is off."""
    batch_bytes: int = size(10_000_000_000, example="5GiB")
    """Incremental only: most bytes of unindexed files to put on the curve in one commit, oldest first. Never more than
    `optimize.batchSize`."""
    bytes_per_iteration: int | None = size(example="2GiB")
    """Incremental only: most bytes to rewrite in one turn of `leveled` or `pieces`. Default: the value of
    `batchBytes`."""
    revision: int | None = setting(minimum=0, maximum=1000000, example=3)
    """Incremental only: the revision whose files `leveled` and `pieces` rewrite. With 0 they rewrite nothing; unindexed
    files are still put on the curve. Default: the newest revision."""
    from_timestamp: str | None = setting(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$", example="2026-01-01 00:00:00"
    )
    """Incremental only: unindexed files that were written before this time (UTC) are left alone."""
    honour_table_properties: bool = setting(
        False, key="tableProperties", words={True: "honour", False: "ignore"}, example="honour"
    )
    """With `honour`, the table's properties `use.optimization.*` can turn incremental Z-order on or off, tune it, and
    request one round of leveled compaction. With `ignore` they have no effect."""


@dataclass(frozen=True, slots=True)
class WorthPolicy:
    """``optimize.when``: all that is set must hold before a rewrite is worth it."""

    min_small_files: int | None = setting(minimum=0, maximum=MOST, unit="files", example=20)
    """At least this many small files."""
    min_small_bytes: int | None = size(example="1GiB")
    """At least this many bytes in small files."""


@dataclass(frozen=True, slots=True)
class RewritePolicy:
    """Files of whole partitions as somebody wants them: a number or a size (at most one of them), and an order."""

    num_files: int | None = setting(key="files", minimum=1, maximum=100000, example=4)
    """How many files each partition gets (the whole table if it has no partitions). Set this or `fileSize`, not
    both."""
    file_size_bytes: int | None = size(
        above_zero="write a size like `128MiB`", note="maxFileSize, where `files` is not set", example="128MiB"
    )
    """Approximate size of each new file, computed from the bytes of the files read. Set this or `files`, not both."""
    sort_by: tuple[str, ...] = setting((), items=_COLUMN, minItems=1, maxItems=32, example=["event_time"])
    """Columns to sort by, across the files of a partition and within each file. They must exist and not be partition
    columns. A list replaces an inherited one."""


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """Bounds of liquid clustering, for tables that have clustering columns.

    A cube of ``min_cube_size_bytes`` or more is left as it is. Delta's own is 100 GiB: below it one new file makes
    OPTIMIZE rewrite the whole table, 41 GB for 1 GB appended. With 10 GiB a night costs what came in and at most that
    much beside it; more cubes mean a few more files a query. ``full`` takes files clustered by other columns, too.
    """

    min_cube_size_bytes: int = size(
        "10GiB", above_zero="write a size like `10GiB`", note="10GiB, where Delta has 100 GiB"
    )
    """A cube of at least this size is not rewritten. Smaller cubes are clustered again together with new files, so this
    bounds how much old data a run rewrites."""
    target_cube_size_bytes: int = size(
        "15GiB", above_zero="write a size like `10GiB`", note="1.5 times minCubeSize", example="15GiB"
    )
    """Bytes to cluster together into one cube. Less than 1.5 times minCubeSize counts as that."""
    full: bool = setting(False, note="false", example=True)
    """Whether files that were clustered by other columns are clustered again, like `OPTIMIZE FULL` after `ALTER TABLE
    ... CLUSTER BY`."""

    @property
    def bin_size_bytes(self) -> int:
        """Bound of what is clustered together. A cube is filled up to a file less: without room it stays too small."""
        return max(self.min_cube_size_bytes * 3 // 2, self.target_cube_size_bytes)


@dataclass(frozen=True, slots=True)
class PurgePolicy:
    """Files are written anew whose share of soft-deleted rows is above the ratio, or that hold dropped columns."""

    deleted_rows_ratio: float = setting(
        0, minimum=0, maximum=1, unit="ratio from 0 to 1", note="0: every file with deleted rows", example=0.01
    )
    """Files with a larger share of deleted rows (deletion vectors) than this are purged."""
    dropped_columns: bool = setting(True, note="true", example=True)
    """Whether files that still contain a column removed by `DROP COLUMN` (column mapping) are purged. Files are opened
    only if a column was dropped and the log does not show which files contain it."""


@dataclass(frozen=True, slots=True)
class OptimizePolicy:
    """File sizes and layout.

    ``min_file_size_bytes`` is exclusive (a file of exactly that size is not small) and defaults to 3/4 of
    ``max_file_size_bytes``, so that what a rewrite produced is not small again. ``lanes`` are those that may be used;
    Spark always may.
    """

    min_file_size_bytes: int = size(
        ..., note="3/4 of maxFileSize, so that what a rewrite produced is not small again", example="64MiB"
    )
    """Files smaller than this are compacted. A file of exactly this size is not small."""
    max_file_size_bytes: int = size("256MiB", above_zero="write a size like `256MiB`")
    """Size of the files that a rewrite writes: files are combined into bins of at most this size."""
    max_threads: int = setting(8, minimum=1, maximum=256)
    """How many bins of this table are rewritten at the same time."""
    max_deleted_rows_ratio: float = setting(0.05, minimum=0, maximum=1, unit="ratio from 0 to 1")
    """Files with a larger share of deleted rows (deletion vectors) than this are rewritten too. On clustered tables
    only `purge` does that."""
    batch_size_bytes: int = size("10GiB", above_zero="write a size like `10GiB`")
    """Most bytes to rewrite in one commit. A failure or a conflict costs at most this much work."""
    repartition: bool = setting(False, note="false: one task reads and writes a bin", example=True)
    """Compaction reads each bin with many tasks and shuffles the rows to one writer, like Delta's
    `optimize.repartition.enabled`. Faster for bins of thousands of tiny files; slower for others."""
    codec: Codec | None = setting(
        type=None,
        note="what Spark's session says, `snappy` unless somebody set `spark.sql.parquet.compression.codec`",
        example="zstd",
    )
    """How new data files are compressed. `zstd` makes smaller files than `snappy` and takes more CPU to write. Files
    that are not rewritten stay as they are."""
    lanes: tuple[Lane, ...] = setting(
        (Lane.COPY, Lane.LOCAL, Lane.SPARK), items={"type": None}, minItems=1, example=["spark"]
    )
    """Ways to rewrite a bin. `copy` joins large files by copying their row groups. `local` rewrites small bins in
    one process. `spark` runs a Spark job, and is always allowed."""
    local_max_size_bytes: int = size("256MiB", example="64MiB")
    """Largest bin, in bytes to read, that the lane `local` may rewrite."""
    zorder: ZOrderPolicy | None = setting(example={"columns": ["customer_id"], "mode": "full"})
    """Orders rows along a Z-curve. Queries that filter on these columns then skip files."""
    rewrite: RewritePolicy | None = setting(example={"fileSize": "128MiB", "sortBy": ["event_time"]})
    """Rewrites whole partitions into a number of files or files of a size, sorted if you want. It replaces compaction
    and Z-order. A partition is rewritten once, and again after files were added to it."""
    cluster: ClusterPolicy = setting(ClusterPolicy(), example={"minCubeSize": "10GiB"})
    """Bounds of liquid clustering. It affects only tables with clustering columns (`CLUSTER BY`). Files that were
    clustered together form a cube."""
    purge: PurgePolicy | None = setting(example={"deletedRowsRatio": 0.01})
    """Rewrites files with deleted rows or dropped columns, like `REORG TABLE ... APPLY (PURGE)`. An empty map (`{}`)
    purges everything it can. Without this key only files above `maxDeletedRowsRatio` are rewritten."""
    where: Predicate | None = setting(
        minLength=1,
        maxLength=4000,
        form="predicate",
        examples=["order_day >= '2026-01-01'", "order_day >= current_date() - 30"],
    )
    """Rewrite only partitions that match. Uses partition columns only, with comparisons, IN, BETWEEN, AND, OR, NOT, IS
    NULL, literals, and current_date() plus or minus days. Other functions and other SQL are errors."""
    skip_newest_partitions: int = setting(0, minimum=0, maximum=100000, example=1)
    """How many of the newest partitions to leave alone, because writers are still adding to them."""
    quiet_for_seconds: int = duration("0s", example="30m")
    """Partitions to which data was written more recently than this are left alone. A rewrite, ours or another tool's,
    writes none."""
    quiet_after_updates_seconds: int = duration("10m", example="1h")
    """Leaves hot files alone: those that another writer deleted from, updated, merged, overwrote or optimized more
    recently than this, or is likely to within this time. After maintainer rewrote a table that others update, it also
    waits this long. Appends do not count. `0s` turns this off."""
    every_seconds: int = duration("0s", example="1d")
    """Least time between two rewrites, by anybody, however often `apply` runs. It does not start anything by itself."""
    when: WorthPolicy = setting(WorthPolicy(), example={"minSmallFiles": 20, "minSmallBytes": "1GiB"})
    """Rewrite only if all of these conditions are true."""


@dataclass(frozen=True, slots=True)
class AutoCompactPolicy:
    """Compaction right after a write: by Delta's hook, or by ours (``maintainer.auto_compact``).

    ``enabled`` is Delta's table property. The rest become properties below ``maintainer.autoCompact.``, which our hook
    reads; None leaves a setting to the writer's session and to Delta's default.
    """

    enabled: bool = setting(True, key="")
    min_num_files: int | None = setting(minimum=2, maximum=2**31 - 1, unit="files", example=50)
    """The hook compacts a partition when it has this many small files, counted in the table's log."""
    min_file_size_bytes: int | None = size(above_zero=_NO_SIZE, example="64MiB")
    """Files smaller than this are small for the hook. Default: half of its `maxFileSize`."""
    max_file_size_bytes: int | None = size(above_zero=_NO_SIZE, example="128MiB")
    """Size of the files that the hook writes."""
    modified_partitions_only: bool | None = setting(example=True)
    """Whether the hook considers only partitions written since the last auto compaction."""


@dataclass(frozen=True, slots=True)
class VacuumPolicy:
    """What may be deleted: files that the log removed more than the retention ago.

    With ``delete_untracked`` also files that are not in the log and did not change for ``untracked_age_seconds``;
    the folder is listed for them at most every ``untracked_every_seconds``. ``trash_seconds`` above 0: files are moved
    out of the table and deleted so much later. ``allow_large_delete`` lifts all caps on deletion, ``allow_rewritten``
    those on bytes, and only for files that a rewrite replaced.
    """

    retention_seconds: int = duration("7d", examples=["7d", "14d"])
    """How long files are kept after a commit removed them from the table. Files that `consumers` need are kept
    longer."""
    allow_short_retention: bool = setting(False, example=True)
    """Allows a retention below 7 days. Must be in the same file as the retention. A retention of 0 is never allowed."""
    every_seconds: int = duration("0s", example="7d")
    """Least time between two vacuums, by anybody."""
    mode: VacuumMode = setting(VacuumMode.AUTO)
    """How to find files to delete. `lite` uses the log only. `full` also lists the folder each time. `auto` lists it
    only if `deleteUntracked` is true, or on a local disk if the log no longer goes back to version 0, and only every
    `untrackedEvery`."""
    delete_untracked: bool = setting(False, example=True)
    """Whether files that the log does not mention are deleted too, such as those of aborted writes or copied there by
    hand."""
    untracked_age_seconds: int = duration("30d")
    """Untracked files are deleted only if unchanged for this long. At least the retention."""
    untracked_every_seconds: int = duration("7d", example="30d")
    """Least time between two listings of the folder for untracked files."""
    allow_large_delete: bool = setting(
        False,
        spelled=False,
        words={True: "true", False: "false"},
        type=["boolean", "string"],
        enum=[True, False, "rewritten"],
        example=True,
    )
    """Allows a vacuum to delete unusually much: more than half of the table, more than `limits.maxDeletes`, or more
    than three times the median of the last vacuums. `rewritten` allows it only for files that a rewrite replaced, and
    never more than `limits.maxDeletes`."""
    trash_seconds: int = duration(
        "0s", above_zero="remove it to delete files at once", note="off: files are deleted at once", example="7d"
    )
    """Moves files into a folder beside the table first, and deletes them after this time. Until then `maintainer
    undelete TABLE --run ID` restores them. Local disks and HDFS only."""
    allow_rewritten: bool = setting(False, key="allowLargeDelete", words={True: "rewritten"})


@dataclass(frozen=True, slots=True)
class Consumer:
    """Someone who reads old versions: vacuum keeps what they need."""

    name: str = setting(..., minLength=1, maxLength=200, pattern=NAME, example="orders-stream", required=True)
    """Its name in messages."""
    max_lag_seconds: int | None = duration(example="3d")
    """How far it may be behind the newest version."""
    checkpoint: str | None = setting(minLength=1, maxLength=1000, example="/chk/audit")
    """Its streaming checkpoint folder, which is only read."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A Great Expectations expectation by its registered name, with its keyword arguments."""

    type: str = setting(
        ...,
        minLength=1,
        maxLength=200,
        form="expectation",
        example="expect_column_values_to_not_be_null",
        required=True,
    )
    """Name of the expectation."""
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VerifyPolicy:
    """What is proven about a change, beside the proof that always precedes a commit."""

    row_count: RowCountCheck = setting(RowCountCheck.SCAN)
    """How rows are counted: `log` uses the counts in the log; `scan` opens each file that only one of the two versions
    has, and uses the log for the others; `off` does not check."""
    content: ContentCheck = setting(ContentCheck.FINGERPRINT)
    """How rows are compared: `fingerprint` compares sums of row hashes in one pass, `exact` compares all rows (slow),
    `off` does not compare."""
    files: bool = setting(True)
    """Whether to check that every file of the newest version exists on storage."""
    expectations: tuple[Expectation, ...] = setting(
        (),
        items=_EXPECTATION,
        spelled=[],
        maxItems=200,
        example=[{"type": "expect_column_values_to_not_be_null", "column": "order_id"}],
    )
    """Great Expectations to run on the table after a change: `type` is the name, other keys are its arguments."""


@dataclass(frozen=True, slots=True)
class LimitsPolicy:
    """Bounds of one table in one run; None means unbounded."""

    max_bytes: int | None = size(above_zero=_NO_LIMIT, note="no limit", example="500GiB")
    """Most bytes to rewrite."""
    max_files: int | None = setting(minimum=1, maximum=MOST, unit="files", note="no limit", example=100000)
    """Most files to rewrite."""
    max_deletes: int | None = setting(minimum=1, maximum=MOST, unit="files", note="no limit", example=100000)
    """Most files a vacuum may delete."""
    timeout_seconds: int = duration("3h", above_zero="write the longest time, such as `12h`; without it, that is 3h")
    """Most time for one table."""
