"""The Spark lane: one Spark job reads the files of a bin and writes its new ones, as Delta's OptimizeExecutor does.

Exactly the planned AddFiles are read, and Delta applies deletion vectors and column mapping. Rows that Spark proves are
added up on their way by Spark's ``observe``, with the sums of ``row_comparison`` and without a second read of the
sources. It stands right behind the read, so the layout, the writer and storage are all on the other side of the
comparison. Retried tasks are counted twice: equal sums prove, unequal sums disprove nothing. Where they differ or are
missing, both sides are read again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.schema_names import fresh_prefix, quote
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.delta.rewrite.commit.batch_transaction import begin, begin_writing
from maintainer.delta.rewrite.curve_writer import along_curve, find_cuts, num_files_of, revision_of
from maintainer.delta.rewrite.proof_parts import is_for_second_engine
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.transaction.live_files import AddAction
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.steps import Bin, ClusterStep, CompactStep, RewriteStep, ZOrderStep
from maintainer.model.run.receipts import Fingerprint
from maintainer.model.table.table_features import keeps_row_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAIT_SECONDS = 2.0
"""How long the sums may come after a write, until the sources are read again."""


@dataclass(frozen=True, slots=True)
class ObservedRows:
    """A frame whose rows are added up while they are written."""

    frame: DataFrame
    observation: JavaObject
    num_sums: int

    def fingerprint(self, jvm: DeltaJvm) -> Fingerprint | None:
        """Return the fingerprint of the written rows; None if Spark does not deliver it in two seconds."""
        values = jvm.observed(self.observation, WAIT_SECONDS)
        if values is None or len(values) != 1 + self.num_sums:
            return None
        return combine(values[0], values[1:])


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
    turn = step.planned_turn if isinstance(step, ZOrderStep) else None
    transaction = begin_writing(job)
    with job.tasks_polled():
        frame = job.jvm.read_files(job.log, transaction.snapshot, sources, "Optimize")
        frame = job.jvm.with_row_tracking(frame, transaction.snapshot)
        if isinstance(step, ZOrderStep) and turn is not None:
            revision = revision_of(turn, job.metadata, job.where)
            cuts = find_cuts(frame, revision, turn, bin_, num_files_of(step, bin_))
            laid_out = partial(along_curve, revision=revision, cuts=cuts)
        else:
            laid_out = partial(_lay_out, job.jvm, step=step, bin_=bin_)
        # Rows are observed for a proof by Spark; not with ids and versions of row tracking beside them, nor where all
        # are read before, for a sample of ranges.
        has_row_ids, is_sampled = keeps_row_ids(job.facts.property_map), turn is None and step.order_columns
        if has_row_ids or is_sampled or is_for_second_engine(job, number):
            files = _written_by(job, laid_out(frame), number, sources)
        else:
            rows = _observe(job.jvm, frame)
            files = _written_by(job, laid_out(rows.frame), number, sources)
            fingerprint = rows.fingerprint(job.jvm)
            if fingerprint is not None:
                job.observed[number] = fingerprint
    return [replace(file, tags=(*file.tags, *job.curve_tags(file.add.get("stats")).items())) for file in files]


def _lay_out(jvm: DeltaJvm, frame: DataFrame, step: RewriteStep, bin_: Bin) -> DataFrame:
    """Arrange the rows of a bin: each Spark partition of the result becomes one file.

    Files are of about equal size; sorted, each holds one range of the order.

    Args:
        jvm: The bridge, for Delta's own curve.
        frame: The bin's rows.
        step: What is done.
        bin_: The bin, for its size and its partition columns.
    """
    num_files = step.num_files_of(bin_)
    if step.on_curve:
        # Delta's curves: Hilbert needs two columns, for one it takes the Z-order curve.
        curve = "hilbert" if isinstance(step, ClusterStep) and len(step.columns) > 1 else "zorder"
        return jvm.clustered(frame, num_files, step.order_columns, curve=curve)
    shuffled = isinstance(step, CompactStep) and step.repartition
    if not step.order_columns:
        return frame.coalesce(1) if num_files == 1 and not shuffled else frame.repartition(num_files)
    ranged = frame.coalesce(1) if num_files == 1 else frame.repartitionByRange(num_files, *step.order_columns)
    # The partition columns stand first in the sort within a file, though a bin has one value of each: the writer asks
    # for rows by partition, and would sort them again by those columns alone if it were not told that they are.
    constant = [quote(column) for column, _ in bin_.partition_values]
    return ranged.sortWithinPartitions(*constant, *step.order_columns)


def _observe(jvm: DeltaJvm, frame: DataFrame) -> ObservedRows:
    """Add up the rows of a frame as they pass; the frame that comes back has the same columns."""
    schema = json.loads(frame.schema.json())
    prefix = fresh_prefix([field["name"] for field in schema["fields"]])
    hashed = hashed_columns(schema)
    names = tuple(f"{prefix}h{number}" for number in range(len(hashed.hashes)))
    added = [f"{text} AS {name}" for text, name in zip(hashed.hashes, names, strict=True)]
    sums = ["count(1) AS rows", *sum_expressions(names)]
    watched, observation = jvm.observe(frame.selectExpr("*", *added), sums)
    return ObservedRows(watched.drop(*names), observation, len(sums) - 1)


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
