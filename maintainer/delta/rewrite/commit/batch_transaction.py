"""Begin the Delta transaction of a batch: when Spark first reads or writes for it, at the latest for its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maintainer.delta.jvm import JavaObject
from maintainer.delta.log.actions import PartitionNames
from maintainer.delta.log.commit_history import files_gone
from maintainer.delta.rewrite.bin_work import CODEC
from maintainer.delta.spark.session_settings import PADS_CHAR
from maintainer.delta.transaction.live_files import AddAction, LiveFiles
from maintainer.delta.transaction.requirements import check_as_planned, refuse_unsafe_store, table_dropped
from maintainer.model.table.table_facts import FileKey

if TYPE_CHECKING:
    from maintainer.delta.rewrite.rewrite_job import RewriteJob


@dataclass(frozen=True, slots=True)
class Transaction:
    """Delta's transaction, and the snapshot on which it was started."""

    snapshot: JavaObject
    txn: JavaObject


def begin(job: RewriteJob) -> Transaction:
    """Start a batch's transaction on the newest snapshot, once; a session that does not run starts.

    Raises:
        EnvironmentUnfit: E607, Spark does not start.
        CommitConflict: C701, the table was replaced, its schema or protocol changed, or a file of the batch is no
            longer live.
        Refused: A432, A433, a commit could overwrite another's.
    """
    with job.beginning, job.reading():
        if job.transaction is None:
            snapshot, files = newest(job)
            check_all_live(job, files.adds)
            return begin_on(job, snapshot)
        return job.transaction


def begin_writing(job: RewriteJob) -> Transaction:
    """Begin the transaction, and have Delta's writer name and compress the batch's files; raises as ``begin``."""
    with job.beginning:
        transaction = begin(job)
        if not job.has_writer_settings:
            if job.step.codec is not None:
                job.writer_settings.enter_context(job.jvm.setting(CODEC, job.step.codec.value))
            job.writer_settings.enter_context(job.jvm.file_names_begin_with(job.file_prefix))
            job.has_writer_settings = True
        return transaction


def newest(job: RewriteJob) -> tuple[JavaObject, LiveFiles]:
    """The newest snapshot and its live files, after checking that what the proof rests on is unchanged.

    Raises:
        CommitConflict: C701.
        Refused: A432, A433, a commit could overwrite another's.
    """
    job.jvm.start()
    if job.transaction is None:
        job.settings.enter_context(job.jvm.setting(PADS_CHAR, "false"))
        refuse_unsafe_store(job.jvm, job.facts)
    snapshot = check_head(job)
    return snapshot, job.live_files.of_snapshot(job.facts, snapshot, [file.key for file in job.batch.files])


def check_head(job: RewriteJob) -> JavaObject:
    """Return the newest snapshot, after checking that what the proof rests on is unchanged.

    Raises:
        CommitConflict: C701.
    """
    snapshot = job.jvm.update(job.log)
    if snapshot.version() < 0:
        raise table_dropped(job.facts)
    check_as_planned(job.storage, job.facts, job.jvm.metadata(snapshot), job.jvm.protocol(snapshot))
    return snapshot


def begin_on(job: RewriteJob, snapshot: JavaObject) -> Transaction:
    """Start the transaction on a snapshot in which the batch's files are live."""
    txn = job.jvm.start_transaction(job.log, snapshot)
    job.jvm.track_read(txn, job.sources)
    job.transaction = Transaction(snapshot, txn)
    return job.transaction


def check_all_live(job: RewriteJob, live: Mapping[FileKey, AddAction]) -> None:
    """Refuse if a file of the batch is not among the live files, or has another text of its partition there.

    Raises:
        CommitConflict: C701.
    """
    names = PartitionNames.of(job.metadata)
    missing = [
        file
        for file in job.batch.files
        if (now := live.get(file.key)) is None or names.texts_of(now.get("partitionValues")) != file.partition_texts
    ]
    if missing:
        raise files_gone(missing, len(job.batch.files), job.storage, job.facts)
