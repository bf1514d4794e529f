"""Define what the rest of the program knows of a policy: complete, frozen, in base units, with origins.

Nothing behind this module sees YAML. A value that nobody wrote has its built-in default and the origin
``built-in``. Sizes are bytes, durations are seconds, and ``origins`` maps each dotted key
(``optimize.maxFileSize``) to the file, line and column that decided it.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time

from maintainer.model.plan.lanes import Codec, Lane
from maintainer.model.plan.plan import BUILT_IN_POLICY, ContentCheck, RowCountCheck
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.predicate.partition_predicate import Predicate


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a value in a file. Lines and columns count from 1; ``built-in`` has line 0."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return self.file if self.line == 0 else f"{self.file}:{self.line}"


BUILT_IN = Origin(BUILT_IN_POLICY, 0, 0)


class ZOrderMode(str, enum.Enum):
    """``full`` rewrites every selected partition; ``incremental`` only what is not yet in order."""

    FULL = "full"
    INCREMENTAL = "incremental"


class VacuumMode(str, enum.Enum):
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

    columns: tuple[str, ...]
    mode: ZOrderMode = ZOrderMode.INCREMENTAL
    strategies: tuple[Strategy, ...] = (Strategy.UNINDEXED, Strategy.LEVELED, Strategy.PIECES)
    batch_bytes: int = 10_000_000_000
    bytes_per_iteration: int | None = None
    revision: int | None = None
    from_timestamp: str | None = None
    honour_table_properties: bool = field(
        default=False, metadata={"key": "tableProperties", "words": {True: "honour", False: "ignore"}}
    )


@dataclass(frozen=True, slots=True)
class WorthPolicy:
    """``optimize.when``: all that is set must hold before a rewrite is worth it."""

    min_small_files: int | None = None
    min_small_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RewritePolicy:
    """Files of whole partitions as somebody wants them: a number or a size (at most one of them), and an order."""

    num_files: int | None = field(default=None, metadata={"key": "files"})
    file_size_bytes: int | None = None
    sort_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """Bounds of liquid clustering, for tables that have clustering columns.

    A cube of ``min_cube_size_bytes`` or more is left as it is. Delta's own is 100 GiB: below it one new file makes
    OPTIMIZE rewrite the whole table, 41 GB for 1 GB appended. With 10 GiB a night costs what came in and at most that
    much beside it; more cubes mean a few more files a query. ``full`` takes files clustered by other columns, too.
    """

    min_cube_size_bytes: int = 10 << 30
    target_cube_size_bytes: int = 15 << 30
    full: bool = False

    @property
    def bin_size_bytes(self) -> int:
        """Bound of what is clustered together: the larger of the two sizes, as Delta does."""
        return max(self.min_cube_size_bytes, self.target_cube_size_bytes)


@dataclass(frozen=True, slots=True)
class PurgePolicy:
    """Files are written anew whose share of soft-deleted rows is above the ratio, or that hold dropped columns."""

    deleted_rows_ratio: float = 0.0
    dropped_columns: bool = True


@dataclass(frozen=True, slots=True)
class OptimizePolicy:
    """File sizes and layout.

    ``min_file_size_bytes`` is exclusive (a file of exactly that size is not small) and defaults to 3/4 of
    ``max_file_size_bytes``, so that what a rewrite produced is not small again. ``lanes`` are those that may be used;
    Spark always may.
    """

    min_file_size_bytes: int
    max_file_size_bytes: int
    max_threads: int
    max_deleted_rows_ratio: float
    batch_size_bytes: int
    zorder: ZOrderPolicy | None = None
    where: Predicate | None = None
    skip_newest_partitions: int = 0
    quiet_for_seconds: int = 0
    quiet_after_updates_seconds: int = 0
    every_seconds: int = 0
    when: WorthPolicy = field(default_factory=WorthPolicy)
    repartition: bool = False
    rewrite: RewritePolicy | None = None
    cluster: ClusterPolicy = field(default_factory=ClusterPolicy)
    purge: PurgePolicy | None = None
    lanes: tuple[Lane, ...] = (Lane.COPY, Lane.LOCAL, Lane.SPARK)
    local_max_size_bytes: int = 256 << 20
    codec: Codec | None = None


@dataclass(frozen=True, slots=True)
class AutoCompactPolicy:
    """Compaction right after a write: by Delta's hook, or by ours (``maintainer.auto_compact``).

    ``enabled`` is Delta's table property. The rest become properties below ``maintainer.autoCompact.``, which our hook
    reads; None leaves a setting to the writer's session and to Delta's default.
    """

    enabled: bool = field(metadata={"key": ""})
    min_num_files: int | None = None
    min_file_size_bytes: int | None = None
    max_file_size_bytes: int | None = None
    modified_partitions_only: bool | None = None


@dataclass(frozen=True, slots=True)
class VacuumPolicy:
    """What may be deleted: files that the log removed more than the retention ago.

    With ``delete_untracked`` also files that are not in the log and did not change for ``untracked_age_seconds``;
    the folder is listed for them at most every ``untracked_every_seconds``. ``trash_seconds`` above 0: files are moved
    out of the table and deleted so much later. ``allow_large_delete`` lifts all caps on deletion, ``allow_rewritten``
    those on bytes, and only for files that a rewrite replaced.
    """

    retention_seconds: int
    allow_short_retention: bool
    every_seconds: int
    mode: VacuumMode
    delete_untracked: bool
    untracked_age_seconds: int
    untracked_every_seconds: int = 0
    allow_large_delete: bool = field(default=False, metadata={"words": {True: "true"}})
    trash_seconds: int = 0
    allow_rewritten: bool = field(default=False, metadata={"key": "allowLargeDelete", "words": {True: "rewritten"}})


@dataclass(frozen=True, slots=True)
class Consumer:
    """Someone who reads old versions: vacuum keeps what they need."""

    name: str
    max_lag_seconds: int | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """When steps may start. ``days`` are ISO weekdays (Monday 1); ``end`` before ``start`` crosses midnight."""

    days: tuple[int, ...]
    start: time
    end: time
    timezone: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """A Great Expectations expectation by its registered name, with its keyword arguments."""

    type: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class VerifyPolicy:
    """What is proven about a change, beside the proof that always precedes a commit."""

    row_count: RowCountCheck
    content: ContentCheck
    files: bool
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitsPolicy:
    """Bounds of one table in one run; None means unbounded."""

    timeout_seconds: int
    max_bytes: int | None = None
    max_files: int | None = None
    max_deletes: int | None = None


@dataclass(frozen=True, slots=True)
class Suspension:
    """Nothing is done until the day given (exclusive of the day itself: on it, work starts again)."""

    until: date | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """The effective policy of one table.

    ``optimize`` is always present (the smallest policy compacts). ``vacuum`` is None unless some level wrote
    a ``vacuum`` map: deletion is never a default. ``auto_compact`` None means: not managed. ``rule_line`` is where in
    ``file`` the rule is that manages a table without a file of its own; None for any other.
    ``digest`` is ``sha256:`` over the canonical JSON of every effective value; origins do not enter it.

    Rules with ``match.minSize`` do not reach the table here. ``sizes`` are its policies by the least size of the table
    in bytes, ascending from 0, and empty where no such rule may reach it: see `of_size`. ``managed_from`` is the
    ``match.minSize`` below which no rule manages the table, with its place.
    """

    table: TableRef
    file: str
    digest: str
    optimize: OptimizePolicy
    verify: VerifyPolicy
    limits: LimitsPolicy
    vacuum: VacuumPolicy | None = None
    auto_compact: AutoCompactPolicy | None = None
    properties: tuple[tuple[str, str], ...] = ()
    consumers: tuple[Consumer, ...] = ()
    windows: tuple[Window, ...] = field(default=(), metadata={"key": "window"})
    suspend: Suspension | None = None
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict)
    rule_line: int | None = None
    sizes: tuple[tuple[int, ResolvedPolicy], ...] = ()
    managed_from: tuple[int, Origin] | None = None

    def of_size(self, size_bytes: int) -> ResolvedPolicy:
        """Return the policy for a table whose live files have this size together."""
        return next((policy for least, policy in reversed(self.sizes) if least <= size_bytes), self)

    def planned(self, digest: str, size_bytes: int) -> ResolvedPolicy:
        """Return the policy that a plan was made by, if it is one of these, whatever the table's size is now."""
        return next((policy for _, policy in self.sizes if policy.digest == digest), self.of_size(size_bytes))

    @property
    def source(self) -> str:
        """Where the table comes from: its own file, or file and line of the rule that manages it."""
        return self.file if self.rule_line is None else f"{self.file}:{self.rule_line}"

    @property
    def is_ledger(self) -> bool:
        """Whether this is our own ledger, see `TablePlan.is_ledger`."""
        return self.file == BUILT_IN_POLICY

    def origin(self, key: str) -> Origin:
        """Return the origin of a dotted key, or of the nearest key above it, else ``built-in``."""
        while key:
            if key in self.origins:
                return self.origins[key]
            key = key.rpartition(".")[0]
        return BUILT_IN

    def place_of(self, key: str) -> str:
        """Return the origin of a dotted key as text: ``policies/orders.yml:12``."""
        return str(self.origin(key))


def policy_digest(values: Mapping[str, object]) -> str:
    """Return ``sha256:`` and the hash of the canonical JSON of effective values.

    Args:
        values: Dotted key to value in base units (bytes, seconds, canonical predicate text), so that
            ``1GiB`` and ``1024MiB`` agree. Neither origins nor the table's name belong in it: a digest must
            not depend on the machine or on how files are laid out.
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()
