"""The Spark lane: one Spark job reads the files of a bin and writes its new ones, as Delta's OptimizeExecutor does.

Exactly the planned AddFiles are read, and Delta applies deletion vectors and column mapping.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.rewrite.commit.batch_transaction import begin, begin_writing
from maintainer.delta.rewrite.curve_writer import along_curve, find_cuts, num_files_of, revision_of
from maintainer.delta.rewrite.observed_rows import observe
from maintainer.delta.rewrite.proof_parts import is_for_second_engine
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.rewrite.row_layout import lay_out
from maintainer.delta.transaction.live_files import AddAction
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.steps import Bin, ZOrderStep
from maintainer.model.table.table_features import keeps_row_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_by_spark(job: RewriteJob, number: int, bin_: Bin, sources: list[AddAction]) -> list[WrittenFile]:
    """Write the files of one bin by a Spark job.

    Args:
        job: The batch; the rows of the bin are observed in it, where they can be.
        number: The bin's place in the batch.
        bin_: The bin.
        sources: Its files as they are live.
    """
    job.jvm.enter_thread(job.group, f"{job.where}: bin {number + 1} of {len(job.batch.bins)}")
    step = job.step
    turn = step.turn if isinstance(step, ZOrderStep) else None
    transaction = begin_writing(job)
    with job.tasks_polled():
        frame = job.jvm.read_files(job.log, transaction.snapshot, sources, "Optimize")
        frame = job.jvm.with_row_tracking(frame, transaction.snapshot)
        if isinstance(step, ZOrderStep) and turn is not None:
            revision = revision_of(turn, job.metadata, job.where)
            cuts = find_cuts(frame, revision, turn, bin_, num_files_of(step, turn, bin_))
            laid_out = partial(along_curve, revision=revision, cuts=cuts)
        else:
            laid_out = partial(lay_out, job.jvm, step=step, bin_=bin_)
        # Rows are observed for a proof by Spark; not with ids and versions of row tracking beside them, nor where all
        # are read before, for a sample of ranges.
        has_row_ids, is_sampled = keeps_row_ids(job.facts.property_map), turn is None and step.order_columns
        if has_row_ids or is_sampled or is_for_second_engine(job, number):
            files = _written_by(job, laid_out(frame), number, sources)
        else:
            rows = observe(job.jvm, frame)
            files = _written_by(job, laid_out(rows.frame), number, sources)
            fingerprint = rows.fingerprint(job.jvm)
            if fingerprint is not None:
                job.observed[number] = fingerprint
    return [replace(file, tags=(*file.tags, *job.curve_tags(file.add.get("stats")).items())) for file in files]


def _written_by(job: RewriteJob, frame: DataFrame, number: int, sources: list[AddAction]) -> list[WrittenFile]:
    # Delta's writer has its own spelling: it fixes to UTC a time without a zone, which readers take to be in theirs.
    values = sources[0].get("partitionValues") or {}
    files = []
    marks = job.marks[number]
    for line in job.jvm.write_files(begin(job).txn, frame):
        action = json.loads(line)
        if set(action) != {"add"}:
            raise CommitNotLanded(
                "Delta's writer returned something other than added files",
                where=job.where,
                found=line[:200],
                help="nothing was committed; `maintainer doctor` checks for an unknown build of Delta",
            )
        add = {**action["add"], "partitionValues": values}
        files.append(WrittenFile(add, marks.tags, number, marks.clustering_provider))
    return files
