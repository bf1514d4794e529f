"""Read a table at one version for checks after a commit; rows of what changed are counted in the files.

Rows of a landed commit are compared by DuckDB, where this process can read the files: no Spark session is needed. Only
"the same" is an answer there. Whatever differs, or cannot be read exactly, is looked at by Spark, which decides.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import OWN_LOG, DeltaJvm, JavaObject
from maintainer.delta.log.actions import PartitionNames, data_file, live_rows
from maintainer.delta.log.schema_names import table_schema
from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.rows_here import is_compared_here, rows_here
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, deleted_rows
from maintainer.delta.proof.second_engine.duckdb_rows import count_rows
from maintainer.delta.proof.statistics_figures import Measured, RowFigures
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.file_store import (
    FilesHere,
    FileStore,
    Listed,
    StoredFile,
    TransferError,
    local_path,
    seen_of,
    unheard,
)
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction, LiveFiles, LiveFilesReader
from maintainer.delta.transaction.requirements import refuse_unsafe_reads
from maintainer.delta.verify.version_proof import VERSION_SETTINGS, FilesOfVersion
from maintainer.engine.step_meter import StepMeter
from maintainer.model.plan.lanes import MAX_DELETED_ROWS
from maintainer.model.run.receipts import Fingerprint
from maintainer.model.table.table_facts import DataFile, TableFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = logging.getLogger(__name__)

FRAMES_KEPT = 2

FOOTER_BYTES = (8 << 10, 64 << 10)
"""At least and at most so much of a file's end is read first; nearly every footer is in it."""

FOOTER_SHARE = 16
"""And between the two, this part of the file: footers grow with row groups and columns, as files do."""

FOOTERS_AT_ONCE = 256

MAGIC = b"PAR1"
"""What a Parquet file begins and ends with."""

SKIPS_FILES = "files that cannot be read would be skipped silently"
"""What comes of a session that is set so, for the message."""

MAX_FILES_BY_NAME = 1_000
"""Files that a frame is made of one by one; above it Delta's own reader is as quick."""


class DeltaVersionReader(FilesOfVersion):
    """Implements ``VersionReader`` on a worker's session, whose settings it may change."""

    def __init__(self, jvm: DeltaJvm, live_files: LiveFilesReader, meter: StepMeter | None = None) -> None:
        self._jvm = jvm
        self._live_files = live_files
        self._meter = meter or StepMeter()
        self._frames: OrderedDict[tuple[str, str, int], DataFrame] = OrderedDict()
        self._older: tuple[tuple[str, str, int], JavaObject] | None = None
        jvm.set_settings(VERSION_SETTINGS)

    def dataframe(self, facts: TableFacts, version: int) -> DataFrame:
        """The table at the version, by ``versionAsOf``.

        The last two are kept: one commit's checks ask for N-1 and N several times, and each time Delta would build
        the version's state anew. A version never changes; its files are read again whenever Spark runs the frame.

        Raises:
            TableError: T403, the version cannot be read (cleaned away, or its log is damaged).
        """
        self._jvm.activate()
        key = (facts.location, facts.table_id, version)
        frame = self._frames.get(key)
        if frame is None:
            with table_errors(f"{facts.ref.identifier}@{version}"):
                path = self._jvm.path_text(self._jvm.log_at(facts.location))
                reader = self._jvm.spark.read.format("delta").options(**OWN_LOG)
                frame = reader.option("versionAsOf", version).load(path)
        self._frames[key] = frame
        self._frames.move_to_end(key)
        while len(self._frames) > FRAMES_KEPT:
            self._frames.popitem(last=False)
        return frame

    def columns(self, facts: TableFacts, version: int) -> tuple[str, ...]:
        """The columns of the version's schema, in order, as Kernel or else Delta reads it; no data file is read.

        Raises:
            TableError: T403, the version cannot be read.
        """
        self._jvm.activate()
        with table_errors(f"{facts.ref.identifier}@{version}"):
            return self._live_files.of_version(facts, version).columns

    def row_count(self, facts: TableFacts, version: int, *, scan: bool, beside: int | None = None) -> int:
        """Rows at the version: from the files, or (``scan=False``) as the log says; -1 where the log cannot say.

        Files that the version ``beside`` has as well are counted by the log, where it counts them. The others are
        opened: this process reads their footers, where all their rows count or it can read their deletion vectors.
        Which files a version has was looked at when its columns were read.
        Spark counts the rest, and says what is wrong with a file that cannot be read.

        Raises:
            EnvironmentUnfit: E606, Spark would have to count, and its session skips files that it cannot read.
        """
        self._jvm.activate()
        with table_errors(f"{facts.ref.identifier}@{version}"):
            files = self._live_files.of_version(facts, version, looks=False)
            if not scan:
                return -1 if files.rows is None else files.rows
            shared = None if beside is None else self._live_files.of_version(facts, beside, looks=False)
            counted, opened = by_log_and_opened(files, shared)
            rows = self._rows_in_footers(facts, version, opened)
            if rows is not None:
                return counted + rows
            conf = self._jvm.spark.conf
            refuse_unsafe_reads(lambda key: conf.get(key, None), facts.ref.identifier, SKIPS_FILES)
            if len(opened) <= MAX_FILES_BY_NAME:
                # Delta's snapshot of the version is asked for its schema; its state is not built.
                log, snapshot = self._jvm.log_at(facts.location), self._snapshot(facts, version)
                frame = self._jvm.read_files(log, snapshot, opened, "Verify")
                # Adaptive execution would make two jobs of it, and there is nothing to adapt: it ends in one row.
                with self._jvm.setting("spark.sql.adaptive.enabled", "false"):
                    return counted + int(frame.count())
        frame = self.dataframe(facts, version)
        with table_errors(f"{facts.ref.identifier}@{version}"):
            return int(frame.count())

    def _rows_in_footers(self, facts: TableFacts, version: int, adds: Sequence[AddAction]) -> int | None:
        """Count rows without those that deletion vectors take out; None where that cannot be done here."""
        storage = self._live_files.storage(facts.location)
        vectors = [(add["deletionVector"], storage.deletion_vector_uri({"add": add}))
                   for add in adds if add.get("deletionVector")]  # fmt: skip
        if sum(int(vector["cardinality"]) for vector, _ in vectors) > MAX_DELETED_ROWS:
            return None
        try:
            deleted = sum(
                len(deleted_rows(vector, None if uri is None else storage.files.read(uri))) for vector, uri in vectors
            )
            return rows_in_footers(storage, adds) - deleted
        except (CannotCompareError, FileNotFoundError, TransferError) as error:
            _LOG.info("%s@%d: rows counted by Spark: %s", facts.ref.identifier, version, error)
            return None

    def _snapshot(self, facts: TableFacts, version: int) -> JavaObject:
        """Delta's snapshot of a version. The last older one is kept: Delta would open it anew by a Spark job."""
        self._jvm.activate()
        log = self._jvm.log_at(facts.location)
        newest = self._jvm.update(log)
        if int(newest.version()) == version:
            return newest
        key = (facts.location, facts.table_id, version)
        if self._older is None or self._older[0] != key:
            self._older = (key, self._jvm.snapshot_at(log, version))
        return self._older[1]

    def _storage(self, facts: TableFacts) -> TableStorage:
        return self._live_files.storage(facts.location)

    def _files(self, facts: TableFacts, version: int) -> Iterable[DataFile]:
        """The live files of a version, as the log says; their partitions are not asked for."""
        adds, names = self._live_files.of_version(facts, version).adds.values(), PartitionNames((), ())
        return (data_file(add, names) for add in adds)

    def _sizes(self, facts: TableFacts, uris: Collection[str]) -> Mapping[str, int]:
        wanted = set(uris)
        found = files_at(self._storage(facts), wanted, seen_of(wanted, self._meter.files))
        return {uri: file.size_bytes for uri, file in found.items()}


def by_log_and_opened(files: LiveFiles, shared: LiveFiles | None) -> tuple[int, list[AddAction]]:
    """Rows of files that two versions share, as the log counts them, and the files that are to be opened."""
    counted, opened = 0, list[AddAction]()
    for key, add in files.adds.items():
        rows = None if shared is None or key not in shared.adds else live_rows((add,))
        if rows is None:
            opened.append(add)
        else:
            counted += rows
    return counted, opened


def rows_in_footers(storage: TableStorage, adds: Sequence[AddAction]) -> int:
    """Count the rows of data files with DuckDB, which is given their footers; every file ends where the log says.

    Raises:
        CannotCompareError: A file is not whole, or DuckDB does not read its footer.
        FileNotFoundError: One is not there.
    """
    rows = 0
    for start in range(0, len(adds), FOOTERS_AT_ONCE):
        with tempfile.TemporaryDirectory(prefix="maintainer-") as folder:
            paths = []
            for number, footer in enumerate(_footers(storage, adds[start : start + FOOTERS_AT_ONCE])):
                paths.append(f"{folder}/{number}.parquet")
                Path(paths[-1]).write_bytes(MAGIC + footer)
            rows += count_rows(paths)
    return rows


def _footers(storage: TableStorage, adds: Sequence[AddAction]) -> Iterator[bytes]:
    files = [StoredFile(storage.uri(str(add["path"])), int(add["size"]), 0, False, False) for add in adds]
    yield from storage.files.abreast(partial(_footer, storage.files), files)


def _footer(files: FileStore, file: StoredFile) -> bytes:
    least, most = FOOTER_BYTES
    first_bytes = min(most, max(least, file.size_bytes // FOOTER_SHARE))
    end = files.read_end(file, first_bytes)
    length = int.from_bytes(end[-8:-4], "little") + 8
    is_whole = min(first_bytes, file.size_bytes) <= len(end) <= file.size_bytes
    if not is_whole or end[-4:] != MAGIC or length > file.size_bytes:
        raise CannotCompareError(f"{file.name} is no whole Parquet file of {file.size_bytes} bytes")
    return (end if length <= len(end) else files.read_end(file, length))[-length:]


def files_at(storage: TableStorage, uris: set[str], listed: Listed = unheard) -> dict[str, StoredFile]:
    """Return the URIs that are on storage, by listing each folder once; a symlink's target counts as the file."""
    folders = storage.by_store({uri.rpartition("/")[0] for uri in uris})
    listings = (children for files, there in folders for children in files.children_of(there, listed).values())
    found = {uri: file for children in listings for uri, file in children.items() if uri in uris}
    return {uri: file for uri, file in zip(found, map(_followed, found.values()), strict=True) if file is not None}


def _followed(file: StoredFile) -> StoredFile | None:
    """The file with the size of what a link on a local disk leads to; None where that is nothing."""
    if not file.is_symlink or not file.uri.startswith("file:"):
        return file
    try:
        return replace(file, size_bytes=os.stat(local_path(file.uri)).st_size)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


MAX_FETCHED_BYTES = 1 << 30
"""Of a larger commit on a store Spark compares the rows, where its executors read."""


def same_rows(
    storage: TableStorage, metadata: Mapping[str, Any], sources: Sequence[AddAction], adds: Sequence[AddAction]
) -> Measured | None:
    """Read both sides of a commit that claims to change no data.

    Args:
        storage: The table's.
        metadata: The ``metaData`` action of the commit's version; its schema is that of the version before.
        sources: Files whose rows the commit took away; their statistics are judged where they are there.
        adds: The files that it added, with their statistics.

    Returns:
        The figures, if the rows are the same in each partition; None where Spark must look.
    """
    if any(add.get("deletionVector") for add in adds):
        return None
    if storage.files.asks_by_request and sum(int(add["size"]) for add in (*sources, *adds)) > MAX_FETCHED_BYTES:
        return None
    deleted = (int((source.get("deletionVector") or {}).get("cardinality") or 0) for source in sources)
    if not is_compared_here(metadata["configuration"], sum(deleted)):
        return None
    here = storage.files.here()
    if here is None:
        return None
    try:
        return _measured(storage, here, metadata, sources, adds)
    except (CannotCompareError, TransferError) as error:
        _LOG.info("%s: rows compared by Spark: %s", storage.root_uri, error)
        return None
    finally:
        here.close()


def _measured(
    storage: TableStorage,
    here: FilesHere,
    metadata: Mapping[str, Any],
    sources: Sequence[AddAction],
    adds: Sequence[AddAction],
) -> Measured | None:
    total = Fingerprint(0, (0, 0))
    written: dict[str, RowFigures] = {}
    judged: dict[str, RowFigures | None] = {}
    before, after = _by_partition(sources), _by_partition(adds)
    for partition in {**before, **after}:
        new = after.get(partition, ())
        here.fetch({storage.uri(str(add["path"])): int(add["size"]) for add in (*before.get(partition, ()), *new)})
        part = rows_here(storage, here, metadata, before.get(partition, ()), new)
        if part.read != part.written:
            return None
        total += part.read
        written.update(zip((str(add["path"]) for add in new), part.files, strict=True))
        if part.sources:
            judged.update(zip((str(source["path"]) for source in before[partition]), part.sources, strict=True))
    return Measured(
        total,
        total,
        statistics_columns(*table_schema(metadata)),
        tuple(written[str(add["path"])] for add in adds),
        (),
        tuple(judged.get(str(source["path"])) for source in sources),
    )


def _by_partition(adds: Iterable[AddAction]) -> dict[str, list[AddAction]]:
    """Group files by their partition values, letter by letter: those of another spelling are compared by Spark."""
    groups: dict[str, list[AddAction]] = defaultdict(list)
    for add in adds:
        groups[json.dumps(add.get("partitionValues") or {}, sort_keys=True)].append(add)
    return groups
