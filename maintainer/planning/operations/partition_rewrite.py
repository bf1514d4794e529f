"""Plan the rewrite of whole partitions into a number of files or files of a size, optionally sorted.

OPTIMIZE cannot split large files, even out sizes or sort; people do it by hand with ``dataChange=false``. Every file
written carries a digest of the settings, and a partition whose files all carry it is left alone, so a rewrite happens
once. Newer files make their partition due again. Where it is configured, compaction is not planned separately.

``optimize.rewrite.sortBy`` is checked against the table: the columns exist and are not partition columns.
"""

from __future__ import annotations

from maintainer.model.plan.layout_tags import REWRITE_TAG, RewriteRequest
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import PartitionRewriteStep
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.operations.compaction import sort_whole_partitions, weigh
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, Partition, files_of, leave_counted
from maintainer.planning.selection.file_selection import (
    deleted_rows_reason,
    pack_batches,
    select_partitions,
)
from maintainer.planning.selection.schema_columns import NamedColumns
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import count_of, format_size


def check_sort_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns to sort by as the schema spells them, safe for Spark to parse again.

    Raises:
        TableError: T411 no such column, T412 a partition column, T414 a type without order, T420 a column twice.
    """
    rewrite = policy.optimize.rewrite
    assert rewrite is not None
    key = "optimize.rewrite.sortBy"
    named = NamedColumns("sort column", key, policy.place_of(key), facts)
    columns = named.found(rewrite.sort_by)
    named.refuse_twice(columns, rewrite.sort_by)
    return tuple(column.quoted for column in columns)


def plan_rewrite(table: TableInput) -> Decision:
    """Decide which partitions are rewritten.

    Raises:
        TableError: T410 ``where``; T411, T412, T414, T420 ``sortBy``, see ``sort_columns``.
    """
    policy, facts = table.policy, table.facts
    optimize = policy.optimize
    request = read_request(policy, facts)
    selection = select_partitions(table)
    origin = policy.place_of("optimize.rewrite")

    def is_new(file: DataFile) -> bool:
        return file.tag(REWRITE_TAG) != request.digest

    bins, done, as_is = sort_whole_partitions(
        selection.partitions, optimize, is_new, lambda partition: _has_its_files(partition, request)
    )
    written, near_enough = (table.without_purged(files_of(partitions)) for partitions in (done, as_is))
    request_text = describe_request(request)
    enough = f"in partitions that have as many files as asked, {request_text}"
    left_alone = [
        *selection.left_alone,
        *leave_counted(ReasonCode.SAME_REWRITE, f"already written as asked, {request_text}", written, origin),
        *leave_counted(ReasonCode.AT_TARGET, enough, near_enough, origin),
    ]
    bins, not_worth_it = weigh(table, bins, is_new, "file not as asked", "files not as asked")
    left_alone += not_worth_it
    if not bins:
        return Decision(None, tuple(left_alone))
    taken = [file for bin_ in bins for file in bin_.files]
    new = sum(map(is_new, taken))
    text = f"{count_of(new, 'file')} not written as asked, {request_text}"
    step = PartitionRewriteStep(
        batches=pack_batches(bins, batch_size_bytes=optimize.batch_size_bytes),
        request=request,
        max_threads=optimize.max_threads,
        reasons=(
            *((Reason(ReasonCode.REWRITE_DUE, text, origin),) if new else ()),
            *deleted_rows_reason(policy, taken),
        ),
    )
    return Decision(step, tuple(left_alone))


def read_request(policy: ResolvedPolicy, facts: TableFacts) -> RewriteRequest:
    """Say what ``optimize.rewrite`` asks for on this table; without a number and a size, files of ``maxFileSize``.

    Raises:
        TableError: T411, T412, T414, T420, see ``sort_columns``.
    """
    rewrite = policy.optimize.rewrite
    assert rewrite is not None
    columns = check_sort_columns(policy, facts)
    if rewrite.num_files is not None:
        return RewriteRequest(rewrite.num_files, None, columns)
    return RewriteRequest(None, rewrite.file_size_bytes or policy.optimize.max_file_size_bytes, columns)


def describe_request(request: RewriteRequest) -> str:
    """Say what is asked for: ``4 files a partition, sorted by id``."""
    if request.num_files is not None:
        text = f"{count_of(request.num_files, 'file')} a partition"
    else:
        text = f"files of about {format_size(request.file_size_bytes or 0)}"
    return text + (f", sorted by {', '.join(request.sort_columns)}" if request.sort_columns else "")


def _has_its_files(partition: Partition, request: RewriteRequest) -> bool:
    """Whether the partition is as asked though somebody else wrote it: without an order, by the number of files.

    By size only where one file is asked for: more files of very different sizes are just what is put right.
    """
    num_files = request.num_files_of(partition.size_bytes)
    if request.sort_columns or len(partition.files) != num_files:
        return False
    return request.num_files is not None or num_files == 1
