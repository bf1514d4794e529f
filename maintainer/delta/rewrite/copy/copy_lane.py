"""Join the files of one bin by copying their row groups, and make the ``add`` action of the new file."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.copy.copied_statistics import CopiedFile, compute_statistics
from maintainer.delta.rewrite.copy.footers import dropped_columns, is_recompressed, read_footer, why_not_copied
from maintainer.delta.rewrite.local.arrow_schema import file_schema
from maintainer.delta.storage.failures.engine_failures import as_write_error, message_of
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import path_uri
from maintainer.errors import CommitNotLanded


def write_by_copy(work: BinWork, place: Workplace) -> WrittenBin:
    """Write one bin as one file with the row groups of its files, which have no soft-deleted rows.

    Raises:
        LaneUnfit: Its files do not agree, their row groups are too small, or a footer hides rows; nothing is left.
    """
    check_stop = partial(place.check_stop, work.where)
    schema = file_schema(*work.schema)
    paths = [place.path(uri) for uri in work.source_uris]
    footers = [read_footer(path) for path in paths]
    reason = why_not_copied(footers, schema)
    if reason is not None:
        raise LaneUnfit(reason)
    statistics, found = compute_statistics(
        [
            CopiedFile(str(add["path"]), path, add.get("stats"), footer.bounded_floats)
            for add, path, footer in zip(work.sources, paths, footers, strict=True)
        ],
        schema,
        work.indexed,
        check_stop,
    )
    target = place.path(work.table.uri(work.path()))
    check_stop()
    try:
        dropped = dropped_columns(footers[0], schema)
        new_codec = work.codec if is_recompressed(footers, work.codec) else None
        with place.size_polled(work, target):
            place.copy_row_groups(map(path_uri, paths), path_uri(target), dropped, new_codec)
        with open(target, "rb") as stored:
            os.fsync(stored.fileno())
    except BaseException as error:
        with contextlib.suppress(OSError):
            LocalFiles().delete(path_uri(target))
        if isinstance(error, Exception) and isinstance(as_write_error(error, work.where, "copying"), CommitNotLanded):
            raise LaneUnfit(f"its row groups cannot be copied: {message_of(error)[:200]}") from error
        raise
    file, in_place = place.published(work, 0, statistics.to_json(tight_bounds=work.tight_bounds))
    return WrittenBin((file,), (in_place,), source_findings=found, recompressed=new_codec is not None)
