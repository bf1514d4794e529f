"""Carry over to new files what others deleted from the old ones while the new ones were written.

The new files hold the rows as they were read. A row that was deleted since is soft-deleted in its new file, by its
place, so that it stays deleted: a lane reads the files of a bin one after the other, without their soft-deleted rows,
and writes the rows as they come, or in an order that it keeps. So a row's place in its old file says its place in the
new one, and nothing is searched. Their deletion vectors go into one file, as Delta writes it ("Deletion Vector Format"
in its protocol).

Then everything is proven again, against the files as they are live now. The batch takes their deletion vectors of now,
and leaves out files that are no longer live, whose rows are all soft-deleted. Where that cannot be done the rewrite
yields, as it does to every other writer.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.actions import deletion_vector
from maintainer.delta.log.staged_file import WrittenFile, widened
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.copy_lane import read_footer
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction, LiveFiles
from maintainer.model.plan.lanes import MAX_DELETED_ROWS, Lane
from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.table.log_names import z85_encode
from maintainer.model.table.table_facts import FileKey

if TYPE_CHECKING:
    import numpy as np


class CannotCarryError(Exception):
    """Deletes of others cannot be carried over, so the rewrite yields to them. The text says why."""


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of one file as a lane read them: their number, and which of them were soft-deleted, ascending."""

    num_rows: int
    deleted_rows: Sequence[int] = ()

    @property
    def live_rows(self) -> int:
        """Rows that the lane wrote."""
        return self.num_rows - len(self.deleted_rows)

    def since_then(self, deleted_rows: Sequence[int] | None) -> list[int]:
        """Return the places, among the rows that were written, of rows that have been deleted since.

        Args:
            deleted_rows: The soft-deleted rows now, ascending; None where the file is no longer live at all.

        Raises:
            CannotCarryError: Rows that were deleted are back, or a row is deleted that the file does not have.
        """
        if deleted_rows is None:
            return list(range(self.live_rows))
        before = set(self.deleted_rows)
        if not before.issubset(deleted_rows):
            raise CannotCarryError("rows that were deleted are back")
        if deleted_rows and deleted_rows[-1] >= self.num_rows:
            raise CannotCarryError("a deletion vector names rows that its file does not have")
        return [row - bisect.bisect_left(self.deleted_rows, row) for row in deleted_rows if row not in before]


def places_in_bin(
    files: Iterable[tuple[RowsRead, Sequence[int] | None]],
) -> tuple[list[int], int]:
    """Return the places of deleted rows among all rows of a bin that were written, and how many were written.

    Args:
        files: The bin's files in the order in which they were read, each with its soft-deleted rows now.

    Raises:
        CannotCarryError: As ``RowsRead.since_then``.
    """
    places: list[int] = []
    first = 0
    for read, deleted_rows in files:
        places += [first + place for place in read.since_then(deleted_rows)]
        first += read.live_rows
    return places, first


def places_in_files(places: Sequence[int], row_order: Sequence[np.ndarray] | None) -> list[list[int]]:
    """Return the places of rows of a bin within each of its new files, ascending.

    Args:
        places: The rows' places among all rows of the bin, as they were read.
        row_order: For each new file the places of its rows; None for one file with all rows as they were read.
    """
    if row_order is None:
        return [list(places)]
    import numpy as np

    wanted = np.array(places, dtype=np.int64)
    return [np.flatnonzero(np.isin(order, wanted)).tolist() for order in row_order]


MAX_HIDDEN_RATIO = 0.5
"""Of a bin's rows: with more of them deleted, the next plan makes better files than this rewrite would leave."""

HOW_MANY_COMMITS = 1000
"""Commits that are looked through for those whose deletes are carried over."""


@dataclass(frozen=True, slots=True)
class CarriedDeletes:
    """Deletes of others that were carried over to the new files.

    Attributes:
        batch: The batch as it was when its rows were read.
        source_of: Its files as they were live then.
        written: The new files as they were written.
        versions: Commits of others whose deletes were carried over.
        bins: Places of the bins that they concern.
        vectors: The ``deletionVector`` of new files, by path.
        vector_uris: Files with deletion vectors that were written for it; only the last one is in use.
    """

    batch: Batch
    source_of: Mapping[FileKey, AddAction]
    written: tuple[WrittenFile, ...]
    versions: tuple[int, ...] = ()
    bins: frozenset[int] = frozenset()
    vectors: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    vector_uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _BinNow:
    """A bin with what is live of its files, and the soft-deleted rows of its new files, by their place."""

    bin: Bin
    sources: tuple[AddAction, ...]
    written: tuple[tuple[WrittenFile, list[int]], ...]
    is_changed: bool


def carry_deletes(job: RewriteJob, live: LiveFiles) -> None:
    """Soft-delete in the job's new files the rows that others deleted, and move the job to the files that are live now.

    Args:
        job: Written and proven.
        live: The files of the table's newest version.

    Raises:
        CannotCarryError: The rewrite has to yield; the job is as it was.
    """
    _check_table(job, live)
    first = replace(job.carried_deletes or CarriedDeletes(job.batch, job.source_of, tuple(job.written)), vectors={})
    by_path = {str(add["path"]): add for add in live.adds.values()}
    bins = [_bin_now(job, number, first, live, by_path) for number in range(len(first.batch.bins))]
    rows = {file.path: (file, deleted) for now in bins for file, deleted in now.written}
    versions = _versions_of_others(job, first)
    changed = frozenset(number for number, now in enumerate(bins) if now.is_changed)
    carried = replace(_write(job, first, rows), versions=versions, bins=changed)
    job.carried_deletes = carried
    job.written = [
        replace(file, add=_carried_add(file.add, carried.vectors.get(path)))
        for path, (file, deleted) in rows.items()
        if not deleted or len(deleted) < _num_records(file)
    ]
    job.batch = Batch(tuple(now.bin for now in bins))
    job.source_of = {file.key: add for now in bins for file, add in zip(now.bin.files, now.sources, strict=True)}
    job.observed = {number: observed for number, observed in job.observed.items() if number not in changed}


def _check_table(job: RewriteJob, live: LiveFiles) -> None:
    if str(live.metadata["configuration"].get("delta.enableDeletionVectors", "false")).lower() != "true":
        raise CannotCarryError("the table has no deletion vectors")
    if job.place.here is None:
        raise CannotCarryError("the table's files cannot be opened here")
    if not live.complete:
        raise CannotCarryError("the table has too many files to look for them")


def _bin_now(
    job: RewriteJob, number: int, first: CarriedDeletes, live: LiveFiles, by_path: Mapping[str, AddAction]
) -> _BinNow:
    bin_ = first.batch.bins[number]
    files = tuple(file for file in first.written if file.bin_number == number)
    if all(file.key in live.adds for file in bin_.files):
        adds = tuple(live.adds[file.key] for file in bin_.files)
        return _BinNow(bin_, adds, tuple((file, []) for file in files), is_changed=False)
    old, now = [first.source_of[file.key] for file in bin_.files], [by_path.get(file.path) for file in bin_.files]
    for source, add in zip(old, now, strict=True):
        if add is not None and any(source.get(key) != add.get(key) for key in ("size", "partitionValues")):
            raise CannotCarryError("a file of the batch was replaced under the same name")
    deleted = _places_of_deleted(job, number, old, now, files)
    current = []
    for file, add in zip(bin_.files, now, strict=True):
        if add:
            vector = add.get("deletionVector")
            current.append((replace(file, deletion_vector=deletion_vector(vector) if vector else None), add))
    if not current:
        raise CannotCarryError("all files of a bin were removed")
    return _BinNow(
        replace(bin_, files=tuple(file for file, _ in current)),
        tuple(add for _, add in current),
        tuple(zip(files, deleted, strict=True)),
        is_changed=True,
    )


def _places_of_deleted(
    job: RewriteJob,
    number: int,
    old: Sequence[AddAction],
    now: Sequence[AddAction | None],
    files: Sequence[WrittenFile],
) -> list[list[int]]:
    """The rows of each new file of a bin that were deleted since they were read."""
    lane, row_order = job.lanes.get(number), job.row_orders.get(number)
    has_other_order = row_order is None and (len(files) != 1 or bool(job.step.order_columns))
    if lane is None or lane.lane is Lane.SPARK or has_other_order:
        raise CannotCarryError("its new files were written without keeping the place of each row")
    read = [(_rows_read(job, source), _deleted_rows(job, add)) for source, add in zip(old, now, strict=True)]
    places, num_rows = places_in_bin(read)
    if len(places) > num_rows * MAX_HIDDEN_RATIO:
        raise CannotCarryError(f"{len(places):,} of {num_rows:,} rows were deleted meanwhile")
    deleted = places_in_files(places, row_order)
    if sum(map(_num_records, files)) != num_rows or sum(map(len, deleted)) != len(places) or len(deleted) != len(files):
        raise CannotCarryError("the new files do not hold the rows that were read, each once")
    return deleted


def _rows_read(job: RewriteJob, source: AddAction) -> RowsRead:
    try:
        job.place.fetch(job.storage, [source])
        footer = read_footer(job.place.path(job.storage.uri(str(source["path"]))))
    except LaneUnfit as error:
        raise CannotCarryError(str(error)) from error
    return RowsRead(footer.num_rows, _deleted_rows(job, source) or ())


def _deleted_rows(job: RewriteJob, add: AddAction | None) -> list[int] | None:
    """The soft-deleted rows of a file, None for one that is no longer live."""
    if add is None:
        return None
    vector = add.get("deletionVector")
    if vector and int(vector["cardinality"]) > MAX_DELETED_ROWS:
        raise CannotCarryError(f"a file has more than {MAX_DELETED_ROWS:,} soft-deleted rows")
    try:
        return job.deleted_rows(add)
    except Exception as error:
        raise CannotCarryError("a deletion vector cannot be read") from error


def _num_records(file: WrittenFile) -> int:
    return int(json.loads(file.add.get("stats") or "{}").get("numRecords", -1))


def _write(job: RewriteJob, first: CarriedDeletes, rows: Mapping[str, tuple[WrittenFile, list[int]]]) -> CarriedDeletes:
    """Write the deletion vectors, and read them again as Delta does."""
    hidden = {path: deleted for path, (file, deleted) in rows.items() if 0 < len(deleted) < _num_records(file)}
    if not hidden:
        return first
    try:
        uri, vectors = write_vectors(job.storage, hidden)
    except OSError as error:
        raise CannotCarryError(f"a deletion vector cannot be written: {error.strerror}") from error
    try:
        is_as_written = all(job.deleted_rows({"deletionVector": vectors[path]}) == hidden[path] for path in hidden)
    except Exception:
        is_as_written = False
    if not is_as_written:
        with contextlib.suppress(OSError):
            job.storage.delete(uri)
        raise CannotCarryError("a deletion vector does not read as it was written")
    return replace(first, vectors=vectors, vector_uris=(*first.vector_uris, uri))


def _carried_add(add: dict[str, Any], vector: dict[str, Any] | None) -> dict[str, Any]:
    """An ``add`` action with a deletion vector: its statistics are those of all rows, so bounds may be too wide."""
    return add if vector is None else {**add, "deletionVector": vector, "stats": widened(add["stats"])}


def _versions_of_others(job: RewriteJob, first: CarriedDeletes) -> tuple[int, ...]:
    """The commits since the rows were read that removed one of the batch's files, or changed its deleted rows."""
    paths = {file.path for file in first.batch.files}
    versions = []
    entries = job.storage.commits(after_version=job.read_version)[:HOW_MANY_COMMITS]
    for entry, actions in job.storage.actions_of(entries):
        removed = (action["remove"]["path"] for action in actions if "remove" in action)
        if not paths.isdisjoint(removed):
            versions.append(entry.version)
    return tuple(versions)


_FORMAT_VERSION = b"\x01"
_MAGIC = struct.pack("<i", 1681511377)


def write_vectors(
    storage: TableStorage, deleted_rows: Mapping[str, Sequence[int]]
) -> tuple[str, dict[str, dict[str, Any]]]:
    """Write the deletion vectors of some files, durably.

    Args:
        storage: The table's.
        deleted_rows: Row numbers by path of the file.

    Returns:
        The URI of the new file, and the ``deletionVector`` of each ``add`` action by path.

    Raises:
        OSError: It cannot be written; nothing of it is left.
    """
    from pyroaring import BitMap64

    name = z85_encode(uuid.uuid4().bytes)
    content = bytearray(_FORMAT_VERSION)
    vectors: dict[str, dict[str, Any]] = {}
    for path, rows in deleted_rows.items():
        bitmap = _MAGIC + BitMap64(rows).serialize()
        vectors[path] = {
            "storageType": "u",
            "pathOrInlineDv": name,
            "offset": len(content),
            "sizeInBytes": len(bitmap),
            "cardinality": len(rows),
        }
        content += struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    uri = storage.vector_uri("u", name)
    storage.files.write(uri, bytes(content))
    return uri, vectors
