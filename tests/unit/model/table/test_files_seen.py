"""A table as a run met it and left it: counted from the files that were read and from the run's own commits."""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.codec import decode, encode
from maintainer.model.run.outcome import TableOutcome
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import FilesSeen
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import make_facts, make_files


def commit(version: int, removed: tuple[int, ...], added: tuple[int, ...]) -> CommitReceipt:
    return CommitReceipt(version, version - 1, sizes_removed=file_sizes(removed), sizes_added=file_sizes(added))


def test_a_look_counts_the_files_that_were_read() -> None:
    facts = make_facts(files=make_files(10, 20, 3000))
    seen = FilesSeen.of(facts, 5)
    assert (seen.at_ms, seen.version, seen.num_files, seen.size_bytes) == (5, facts.version, 3, 3030)
    assert decode(FilesSeen, encode(seen)) == seen


def test_what_the_steps_met_is_what_they_left_without_their_own_commits() -> None:
    table = samples.good_run().tables[0]
    first = replace(samples.compact_done(), started_at_ms=7, commits=(commit(4, (10, 10), (20,)),))
    left = FilesSeen(9, 6, file_sizes((40, 1, 1)))
    last = replace(first, started_at_ms=8, commits=(commit(6, (20, 20), (40,)),), files_after=left)
    ended = replace(table, steps=(first, last))
    met = ended.files_before
    assert met is not None
    assert ended.files_after == left
    # Others appended two files of a byte: they are in both.
    assert met == FilesSeen(7, 3, file_sizes((10, 10, 20, 1, 1)))
    idle = replace(last, commits=())
    assert replace(table, steps=(idle,)).files_before == replace(left, at_ms=8)


def test_a_commit_that_a_later_run_found_leaves_the_state_unknown() -> None:
    """Its figures came after those of the step were written down."""
    table = samples.good_run().tables[0]
    step = replace(samples.compact_done(), commits=(), files_after=FilesSeen(9, 6, file_sizes((40, 1, 1))))
    for receipt in (CommitReceipt(7, 6), CommitReceipt(6, 5, num_files_removed=2)):
        assert replace(table, steps=(replace(step, commits=(receipt,)),)).files_after is None


def test_where_no_step_read_the_table_nothing_is_said() -> None:
    ended = TableOutcome(samples.good_run().tables[0].ref, samples.good_run().tables[0].status)
    assert (ended.files_after, ended.files_before) == (None, None)
