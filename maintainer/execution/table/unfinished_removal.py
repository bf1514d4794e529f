"""Remove files that a killed run was writing. They were recorded before, and the table's next run removes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from maintainer.engine.process_loss import ENGINE_GONE
from maintainer.engine.protocols import is_one_place
from maintainer.errors import MaintainerError
from maintainer.execution.table.commit_attempt import StepWork, Worker
from maintainer.journal.events.unfinished_writes import Writing
from maintainer.model.table.table_facts import PartitionValues, TableFacts


@contextmanager
def recorded_writing(
    worker: Worker, work: StepWork, facts: TableFacts, number: int, partitions: Iterable[PartitionValues]
) -> Iterator[None]:
    """Record that a batch's files are written within the block; and, where it fails, that they were removed.

    Raises:
        FolderUnwritable: E651, before anything was written, or after all of it was removed.
    """
    journal = worker.context.journal
    writing = Writing(
        journal.run_id,
        work.step_id,
        number,
        worker.plan.ref.identifier,
        facts.table_id,
        facts.location,
        tuple(sorted(partitions, key=repr)),
    )
    journal.writing(writing)
    try:
        yield
    except MaintainerError as error:
        # Where the engine is gone, nobody could remove anything.
        if not error.left_over and error.code != ENGINE_GONE:
            journal.written_off(writing)
        raise


def remove_unfinished(worker: Worker, facts: TableFacts) -> list[str]:
    """Remove what runs that were killed wrote into this table and never tried to commit; return notes about it.

    Raises:
        MaintainerError: The folders could not be read, or the answer not be recorded.
    """
    notes = []
    for writing in worker.context.writings:
        if writing.table_id != facts.table_id:
            continue
        places = worker.context.places
        in_place = is_one_place(places, writing.location, facts.location)
        # Where the old place may still hold the table, this is a copy of it, or the other way round.
        if not in_place and places.may_hold(writing.location, writing.table_id):
            continue
        remaining = worker.engine.writer.remove_unfinished(facts, writing.run_id, writing.partitions)
        if remaining:
            notes.append(
                f"run {writing.run_id} left {len(remaining)} files that cannot be removed, such as {remaining[0]}"
            )
            continue
        worker.context.journal.written_off(writing)
        notes.append(f"what run {writing.run_id} wrote and never tried to commit is gone")
    return notes
