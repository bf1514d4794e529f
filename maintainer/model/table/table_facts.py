"""Facts of a table at one version, read from its log, as planning sees them. Frozen values, no I/O.

Names are Delta's. Sizes are bytes as recorded in the log (compressed, on storage); times are milliseconds since 1970
UTC, as in the log. A run reads a table before it commits, and each commit says what it removed and added. Both are
written down, so that a report shows a table as it really was and reads nothing again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from maintainer.model.cached_property import cached_property
from maintainer.model.table.commit_records import OwnRewrites, TableCommit, WriterRhythm
from maintainer.model.table.storage_facts import FileSizes, StorageLook, VacuumHistory, combined, file_sizes

PartitionValues = tuple[tuple[str, str | None], ...]
"""``(column, value)`` in the table's partition column order, logical names.

Of ``DataFile.partition_values`` each value has one spelling: timestamps are ``yyyy-mm-dd hh:mm:ss`` in UTC. Of
``DataFile.partition_texts`` it is what the log says, letter for letter, and a column that the log lacks is absent."""


_QUOTED_NAME = re.compile(r"(?!(?i:delta)\.)(?:(?:`(?:[^`]|``)+`|[^.`/\\]+)(?:\.(?!$)|$)){2,}")
"""A name of two parts or more whose slashes stand in back-ticks; ``delta.`/path` `` is a path."""

FileKey = tuple[str, str]
"""Path and deletion vector id of a data file (empty without one): what Delta reconciles actions by."""


@dataclass(frozen=True, slots=True, order=True)
class TableRef:
    """A table as a policy names it: a catalog name, or a path or URI.

    ``identifier`` is what people, plans and the ledger call it: a path below the project is relative to it, so that
    it is the same in every clone. ``path`` is where such a table is; None where the identifier says it itself.
    """

    identifier: str
    path: str | None = None

    @property
    def is_path(self) -> bool:
        """Whether this is a path or URI and not a catalog name."""
        has_slash = "/" in self.identifier or "\\" in self.identifier
        return self.path is not None or (has_slash and _QUOTED_NAME.fullmatch(self.identifier) is None)

    @property
    def location(self) -> str:
        """What the engine opens: a catalog name, an absolute path or a URI."""
        return self.path or self.identifier

    def __str__(self) -> str:
        return self.identifier


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Soft-deleted rows of one data file. ``unique_id`` is Delta's: storage type, path or inline data, offset."""

    unique_id: str
    cardinality: int
    size_bytes: int


OUR_FILE_NAME = re.compile(r"part-[0-9A-Za-z-]+-[0-9a-f]{16}-[0-9a-f]{8}-part-\d{5}-.+")
"""The names that a run and the hook give to new files: run, batch and attempt in front of Delta's own name."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One live file: an AddFile of the snapshot. Its identity is ``key``, never the path alone.

    ``path`` is exactly the string in the log (relative, URL-encoded). ``physical_records`` counts rows in the
    Parquet file, None where the log has no statistics. ``tags`` are the AddFile's, sorted by name;
    ``clustering_provider`` is ``liquid`` for a file that Delta's clustering wrote. ``stored_values`` is None where the
    log spells the partition values as ``partition_values`` does.
    """

    path: str
    size_bytes: int
    modification_time_ms: int
    partition_values: PartitionValues = ()
    physical_records: int | None = None
    deletion_vector: DeletionVector | None = None
    tags: tuple[tuple[str, str], ...] = ()
    clustering_provider: str | None = None
    stored_values: PartitionValues | None = None

    @property
    def partition_texts(self) -> PartitionValues:
        """The partition values as the log spells them: what decides which files may become one file.

        One text may be several values, such as a time without a zone, which each reader takes to be in its own.
        """
        return self.partition_values if self.stored_values is None else self.stored_values

    @property
    def lost_columns(self) -> tuple[str, ...]:
        """Partition columns of which the log has no value for the file, not even null; readers see null."""
        if self.stored_values is None or len(self.stored_values) == len(self.partition_values):
            return ()
        stored = {name for name, _ in self.stored_values}
        return tuple(name for name, _ in self.partition_values if name not in stored)

    @property
    def key(self) -> FileKey:
        return (self.path, self.deletion_vector.unique_id if self.deletion_vector else "")

    def tag(self, name: str) -> str | None:
        """Return the value of a tag, None where the file does not carry it."""
        return dict(self.tags).get(name)

    @property
    def is_ours(self) -> bool:
        """Whether a rewrite of ours wrote it, as its name says; Delta's own commands name their files themselves."""
        return OUR_FILE_NAME.fullmatch(self.path.rpartition("/")[2]) is not None

    @property
    def deleted_records(self) -> int:
        """Rows that the deletion vector hides."""
        return self.deletion_vector.cardinality if self.deletion_vector else 0

    @property
    def live_records(self) -> int | None:
        """Rows that a reader sees, None where the log cannot say."""
        return None if self.physical_records is None else self.physical_records - self.deleted_records

    @property
    def deleted_rows_ratio(self) -> float | None:
        """Share of soft-deleted rows (0 to 1); None with a deletion vector but no statistics."""
        if self.deletion_vector is None:
            return 0.0
        if not self.physical_records:
            return None
        return self.deleted_records / self.physical_records


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A file that the log removed and that was still on storage when we looked: what vacuum may delete.

    ``path`` is as in the log for data files, and relative to the table's root, URL-encoded, for the others.
    ``kind`` is ``data``, ``deletion_vector``, ``change_data`` (the change feed of an old version; its time is that
    version's) or ``untracked`` (not in the log; its time is its own last change). ``removed_in_version`` is
    the commit that removed it, and ``added_in_version`` the first that added it; None where the log no longer says.
    ``replaced`` says that its rows live on in other files: a rewrite removed it (``dataChange=false``), not a deletion
    of rows.
    """

    path: str
    size_bytes: int
    removed_at_ms: int
    kind: str = "data"
    removed_in_version: int | None = None
    replaced: bool = False
    added_in_version: int | None = None


@dataclass(frozen=True, slots=True)
class Protocol:
    """Reader and writer versions and the features they name (both tuples sorted)."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


FileRange = tuple["str | None", "str | None", bool]
"""Smallest and largest value of a column in a file as the log spells them, and whether it has nulls."""


@dataclass(frozen=True)
class ColumnRanges:
    """What the log says of some columns in each live file, for one version.

    ``by_file`` has the ranges of a file by its key, in the order of ``columns`` (dotted names as the schema spells
    them, in back-ticks where needed). Values are None where all are null or nobody knows; ``all_null`` has the file's
    key and the column's place where the log says that all are.
    """

    columns: tuple[str, ...]
    by_file: Mapping[tuple[str, str], tuple[FileRange, ...]]
    all_null: frozenset[tuple[tuple[str, str], int]] = frozenset()


@dataclass(frozen=True)
class ColumnSample:
    """Values of some columns in rows drawn from the table, as text; one tuple a column, null is None."""

    columns: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A commit of somebody else's that removed files or hid rows of them: DELETE, UPDATE, MERGE, overwrite, OPTIMIZE.

    ``partitions`` are those that it read or changed, as far as the log bounds them; None where it may have read the
    whole table, so that it conflicts with a rewrite of any file.
    """

    version: int
    at_ms: int
    operation: str
    partitions: frozenset[PartitionValues] | None = None

    def meets(self, partitions: Collection[PartitionValues]) -> bool:
        """Return whether the update read or changed one of the partitions."""
        return self.partitions is None or not self.partitions.isdisjoint(partitions)


@dataclass(frozen=True)
class TableFacts:
    """Everything planning may know about one table at one version; ``planning.needs`` says when it asks for the rest.

    ``location`` is the canonical URI of the root. ``schema_json`` is the log's schema string; ``columns`` are
    the top-level logical names in order. ``columns_with_stats`` are the dotted logical names that carry
    statistics, in back-ticks where a part has a dot itself. ``removed_files`` is None when nobody asked for them (no
    vacuum is due); ``history`` and ``storage`` come with them. ``column_ranges`` and ``column_sample`` are None where
    no incremental Z-order asked for them, ``files_with_dropped_columns`` (keys of files) where nobody asked (no purge,
    or no column was ever dropped), ``rewritten_paths`` where nobody asked what rewrites added lately. ``writers`` and
    ``updates`` (newest first) are what others committed lately, ``own_rewrites`` what we did since, ``doubtful_files``
    by their writers those whose bounds cannot be trusted; read where something would be rewritten.
    ``maintenance_by_others`` are the newest commits of each kind of maintenance that no run of ours made, of those
    from ``first_commit_read`` on, which were read for the files, and of those that were read besides.
    """

    ref: TableRef
    location: str
    table_id: str
    version: int
    committed_at_ms: int
    schema_json: str
    columns: tuple[str, ...]
    partition_columns: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]
    protocol: Protocol
    files: tuple[DataFile, ...]
    clustering_columns: tuple[str, ...] = ()
    columns_with_stats: tuple[str, ...] = ()
    removed_files: tuple[RemovedFile, ...] | None = None
    history: VacuumHistory | None = None
    storage: StorageLook | None = None
    column_ranges: ColumnRanges | None = None
    column_sample: ColumnSample | None = None
    files_with_dropped_columns: frozenset[tuple[str, str]] | None = None
    zordered_paths: frozenset[str] | None = None
    rewritten_paths: frozenset[str] | None = None
    writers: WriterRhythm | None = None
    updates: tuple[Update, ...] | None = None
    own_rewrites: OwnRewrites | None = None
    doubtful_files: tuple[tuple[str, frozenset[str]], ...] = ()
    maintenance_by_others: tuple[TableCommit, ...] = field(default=(), compare=False)
    first_commit_read: int | None = field(default=None, compare=False)

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of all live files."""
        return sum(file.size_bytes for file in self.files)

    @cached_property
    def file_keys(self) -> frozenset[FileKey]:
        """Identities of all live files, for asking whether a file is still live."""
        return frozenset(self.texts_by_key)

    @cached_property
    def texts_by_key(self) -> Mapping[FileKey, PartitionValues]:
        """The texts of each live file's partition values, by its identity."""
        return {file.key: file.partition_texts for file in self.files}

    def newest_by_others(self, operations: Collection[str], *, with_auto: bool = True) -> TableCommit | None:
        """The newest commit of others with one of these operations, of those that were read."""
        of_kind = (
            commit
            for commit in self.maintenance_by_others
            if commit.operation.upper() in operations and (with_auto or not commit.is_auto)
        )
        return max(of_kind, key=lambda commit: commit.version, default=None)

    @cached_property
    def property_map(self) -> dict[str, str]:
        """Table properties as a dict, for look-ups."""
        return dict(self.properties)


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What the records of earlier runs say of a table (``journal.memory``). Times in ms, UTC; None for what never was.

    ``last_optimize_at_ms`` and ``last_vacuum_at_ms`` are when the run began in which a step last succeeded, also one
    that found nothing to do: ``every`` counts from there. ``last_rewrite_at_ms`` and ``last_delete_at_ms`` are when
    files were last really rewritten, or taken from the table or its trash, however the step ended.
    ``last_listing_at_ms`` is when its folder was last listed for untracked files; ``vacuumed_bytes`` are the bytes that
    its last vacuums deleted, oldest first. ``lost_in_a_row`` are the runs since a rewrite last landed in which another
    writer won. ``copies`` are other places that hold a table with the same id, as far as runs have seen them.
    ``quarantines`` are those in force, id and wrong version (None where it is none); ``quarantined`` is the newest
    reason. ``seen_elsewhere`` is whether runs met the table's id at another place, too, whatever became of that.
    """

    last_optimize_at_ms: int | None = None
    last_vacuum_at_ms: int | None = None
    unproven_versions: tuple[int, ...] = ()
    quarantined: str | None = None
    last_listing_at_ms: int | None = None
    vacuumed_bytes: tuple[int, ...] = ()
    lost_in_a_row: int = 0
    last_lost_at_ms: int | None = None
    copies: tuple[str, ...] = ()
    quarantines: tuple[tuple[str, int | None], ...] = ()
    seen_elsewhere: bool = False
    last_rewrite_at_ms: int | None = None
    last_delete_at_ms: int | None = None


MAX_BOXES = 120
"""Files of a table whose boxes are kept for a picture; of more, every n-th."""


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """The live files of a table at one version, counted by size. ``at_ms`` is when it was read, or left."""

    at_ms: int
    version: int
    sizes: FileSizes

    @staticmethod
    def of(facts: TableFacts, at_ms: int) -> FilesSeen:
        """Count the files of a table that was just read."""
        return FilesSeen(at_ms, facts.version, file_sizes(file.size_bytes for file in facts.files))

    @property
    def num_files(self) -> int:
        return sum(bucket.num_files for bucket in self.sizes)

    @property
    def size_bytes(self) -> int:
        """Bytes of all live files."""
        return sum(bucket.size_bytes for bucket in self.sizes)

    def changed(
        self, removed: Iterable[FileSizes], added: Iterable[FileSizes], *, version: int, at_ms: int
    ) -> FilesSeen:
        """Return the table with files removed and added, as it was at another version and time."""
        return FilesSeen(at_ms, version, combined(self.sizes, removed, added))


FileBox = tuple[int, int, int, int]
"""Lowest and highest rank of a file in the first column, then in the second; both inclusive."""


@dataclass(frozen=True, slots=True)
class LayoutBoxes:
    """Where the files of a table with a Z-order lie in its first two columns, before a step and after it.

    A box says between which values a file's rows lie: the less boxes overlap, the fewer files a query reads. Ranks are
    steps of about as many rows each, those of the layout's revision or of a scale for one full Z-order; ``num_ranks``
    is how many a column has.

    ``num_before`` and ``num_after`` count all files, of which at most `MAX_BOXES` are kept. ``after`` is None where
    nobody looked any more.
    """

    columns: tuple[str, str]
    num_ranks: tuple[int, int]
    before: tuple[FileBox, ...]
    num_before: int
    after: tuple[FileBox, ...] | None = None
    num_after: int = 0
