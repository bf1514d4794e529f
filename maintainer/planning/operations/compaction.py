"""Plan compaction: small files and files with many deleted rows are written as fewer and larger ones.

Selection and packing are those of OPTIMIZE, with two differences. A lone file with many deleted rows is rewritten;
OPTIMIZE drops every bin of one file, so it never purges such a file. And what our rewrite wrote, to the same or a
larger size, is packed again only together with newer files: a result may be smaller than its input suggested, and a
second run with nothing new must commit nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress

from maintainer.model.plan.layout_tags import PACKED_TAG
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Bin, CompactStep
from maintainer.model.table.table_facts import DataFile
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, Partition, leave_counted, leave_files, leave_partitions
from maintainer.planning.selection.file_selection import (
    any_has_many_deleted_rows,
    deleted_rows_reason,
    has_many_deleted_rows,
    is_small,
    pack_batches,
    pack_bins,
    select_partitions,
)
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy
from maintainer.units import count_of, format_size, read_digits


@dataclass(frozen=True, slots=True)
class _Sorted:
    bins: tuple[Bin, ...]
    at_target: tuple[DataFile, ...]
    alone: tuple[DataFile, ...]
    packed: tuple[DataFile, ...]


def plan_compaction(table: TableInput) -> Decision:
    """Decide which files are compacted.

    Raises:
        TableError: T410, ``where`` does not fit the table.
    """
    policy, optimize = table.policy, table.policy.optimize
    selection = select_partitions(table)
    parts = [(partition, _sort_files(partition, optimize)) for partition in selection.partitions]
    left_alone = [*selection.left_alone, *_left_by_files(table, parts)]
    bins = [bin_ for _, part in parts for bin_ in part.bins]
    bins, not_worth_it = weigh(table, bins, lambda file: is_small(file, optimize), "small file", "small files")
    left_alone += not_worth_it
    if not bins:
        return Decision(None, tuple(left_alone))
    step = CompactStep(
        batches=pack_batches(bins, batch_size_bytes=optimize.batch_size_bytes),
        max_file_size_bytes=optimize.max_file_size_bytes,
        max_threads=optimize.max_threads,
        reasons=_reasons(policy, bins),
        repartition=optimize.repartition,
    )
    return Decision(step, tuple(left_alone))


def is_packed(file: DataFile, max_file_size_bytes: int) -> bool:
    """Return whether a rewrite of ours wrote the file, to the same size or a larger one."""
    size = read_digits(file.tag(PACKED_TAG))
    return size is not None and size >= max_file_size_bytes


def _sort_files(partition: Partition, optimize: OptimizePolicy) -> _Sorted:
    deleted = {file.key for file in partition.files if has_many_deleted_rows(file, optimize.max_deleted_rows_ratio)}
    candidates = [file for file in partition.files if is_small(file, optimize) or file.key in deleted]
    at_target = tuple(file for file in partition.files if not is_small(file, optimize) and file.key not in deleted)
    done = {
        file.key for file in candidates if is_packed(file, optimize.max_file_size_bytes) and file.key not in deleted
    }
    packed: list[DataFile] = []
    if not _has_fresh_files(partition, candidates, done, optimize):
        packed = [file for file in candidates if file.key in done]
        candidates = [file for file in candidates if file.key not in done]
    bins: list[Bin] = []
    alone: list[DataFile] = []
    # Beside the smallest of those a lone file may fit: then it is not alone, but as the last rewrite left it.
    room = optimize.max_file_size_bytes - min((file.size_bytes for file in packed), default=1 << 62)
    for bin_ in pack_bins(candidates, max_bin_bytes=optimize.max_file_size_bytes):
        if any(file.key in deleted for file in bin_.files):
            bins.append(bin_)
        elif len(bin_.files) == 1:
            (packed if bin_.size_bytes <= room else alone).extend(bin_.files)
        elif all(file.key in done for file in bin_.files):
            packed += bin_.files
        else:
            bins.append(bin_)
    return _Sorted(tuple(bins), at_target, tuple(alone), tuple(packed))


def _has_fresh_files(
    partition: Partition, candidates: list[DataFile], done: set[tuple[str, str]], optimize: OptimizePolicy
) -> bool:
    """Whether files came after the last rewrite of the partition, so that its small results may be joined again.

    Example: bins of 100, files of 31, 32 and 38. The first two become one file of 63 by the log, but of 56 as
    written, and beside that the third would fit. It was there when the 56 was written; joining them would make
    every second run commit something, and the same bytes be written again and again.
    """
    written = [file.modification_time_ms for file in partition.files if is_packed(file, optimize.max_file_size_bytes)]
    last_ms = max(written, default=0)
    return any(file.modification_time_ms > last_ms for file in candidates if file.key not in done)


def _left_by_files(table: TableInput, parts: list[tuple[Partition, _Sorted]]) -> list[LeftAlone]:
    policy, optimize = table.policy, table.policy.optimize
    left_alone: list[LeftAlone] = []
    least = policy.place_of("optimize.minFileSize")
    at_target = table.without_purged(file for _, part in parts for file in part.at_target)
    large = f"of {format_size(optimize.min_file_size_bytes)} or more"
    left_alone += leave_counted(ReasonCode.AT_TARGET, large, at_target, least)
    packed = table.without_purged(file for _, part in parts for file in part.packed)
    as_left = "as the last compaction left them, nothing new beside them"
    left_alone += leave_counted(ReasonCode.AT_TARGET, as_left, packed, least)
    size = format_size(optimize.max_file_size_bytes)
    left_alone += leave_partitions(
        ReasonCode.NO_PARTNER,
        lambda files, _: f"{count_of(files, 'small file')} with no other left that fits beside it within {size}",
        [Partition(each.values, tuple(alone)) for each, part in parts if (alone := table.without_purged(part.alone))],
        policy.place_of("optimize.maxFileSize"),
    )
    return left_alone


def sort_whole_partitions(
    partitions: Iterable[Partition],
    optimize: OptimizePolicy,
    is_new: Callable[[DataFile], bool],
    is_near_enough: Callable[[Partition], bool],
) -> tuple[list[Bin], list[Partition], list[Partition]]:
    """Sort partitions that are rewritten as a whole: a bin each, those that are done, and those that are near enough.

    Many deleted rows have any of them rewritten.

    Args:
        partitions: Those that may be rewritten.
        optimize: What the policy says of deleted rows.
        is_new: Whether a file is not as the rewrite leaves files.
        is_near_enough: Whether a partition that is not done would gain nothing.
    """
    bins: list[Bin] = []
    done: list[Partition] = []
    near_enough: list[Partition] = []
    for partition in partitions:
        purges = any_has_many_deleted_rows(partition.files, optimize)
        if not purges and not any(map(is_new, partition.files)):
            done.append(partition)
        elif not purges and is_near_enough(partition):
            near_enough.append(partition)
        else:
            bins.append(Bin(partition.files))
    return bins, done, near_enough


def weigh(
    table: TableInput, bins: list[Bin], counts: Callable[[DataFile], bool], one_of: str, many_of: str
) -> tuple[list[Bin], list[LeftAlone]]:
    """Apply ``optimize.when``: are the files that would really be rewritten enough to be worth it?

    Bins that purge deleted rows do not depend on it: ``when`` weighs the layout, and those rows would stay.

    Args:
        table: With the effective policy.
        bins: What would be rewritten.
        counts: Which of the files count: small ones for compaction, ones not in order for Z-order.
        one_of: What such a file is called.
        many_of: What several are called.

    Returns:
        The bins that remain, and what is left alone because it is not worth it.
    """
    policy, when = table.policy, table.policy.optimize.when
    counted = [file for bin_ in bins for file in bin_.files if counts(file)]
    size_bytes = sum(file.size_bytes for file in counted)
    unmet: list[tuple[str, str]] = []
    if when.min_small_files is not None and (missing := when.min_small_files - len(counted)) > 0:
        more = f"{missing:,} more {'is' if missing == 1 else 'are'} needed"
        text = f"{count_of(len(counted), one_of, many_of)}, less than {when.min_small_files:,} ({more})"
        unmet.append((text, "optimize.when.minSmallFiles"))
    if when.min_small_bytes is not None and size_bytes < when.min_small_bytes:
        text = f"{format_size(size_bytes)} in them, less than {format_size(when.min_small_bytes)}"
        unmet.append((text, "optimize.when.minSmallBytes"))
    purging = [any_has_many_deleted_rows(bin_.files, policy.optimize) for bin_ in bins]
    if not unmet or all(purging):
        return bins, []
    purged = list(compress(bins, purging))
    dropped = (file for bin_, purges in zip(bins, purging, strict=True) if not purges for file in bin_.files)
    text, left = f"not worth it yet: {' and '.join(text for text, _ in unmet)}", table.without_purged(dropped)
    return purged, [leave_files(ReasonCode.NOT_WORTH_IT, text, left, policy.place_of(unmet[0][1]))] if left else []


def _reasons(policy: ResolvedPolicy, bins: list[Bin]) -> tuple[Reason, ...]:
    files = [file for bin_ in bins for file in bin_.files]
    small = sum(is_small(file, policy.optimize) for file in files)
    text = f"{count_of(small, 'file')} under {format_size(policy.optimize.min_file_size_bytes)}"
    reasons = [Reason(ReasonCode.SMALL_FILES, text, policy.place_of("optimize.minFileSize"))] if small else []
    return (*reasons, *deleted_rows_reason(policy, files))
