"""Estimate what a run will ask of object stores from its plan alone: it is counted, and ``RequestTerm`` prices it.

What a term asks was counted by a relay before a server of S3's protocol; the page on costs has the same table. Not in
the estimate: repeats, what other writers cause, executors, and what follows once the record of the run is closed.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import assert_never

from maintainer.model.plan.lanes import Lane
from maintainer.model.plan.plan import Observed, Plan, TablePlan
from maintainer.model.plan.steps import BatchedStep, Bin, SetPropertiesStep, VacuumStep, ZOrderStep
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.store_requests import LISTED_AT_ONCE, MOST_LISTED, StoreRequests
from maintainer.planning.curve.revision import MAX_SAMPLED_FILES, PROPERTY_PREFIX


class RequestTerm(Enum):
    """What asks a store for something, in the words of the page on costs, and what it asks each time."""

    RUN = "a run that does something", StoreRequests(reads=1, looks=2, lists=1, writes=2, deletions=1)
    STATE = "its state and ledger on a store", StoreRequests(reads=9, looks=8, lists=21, writes=11, deletions=1)
    STATE_STEP = "the same for each step", StoreRequests(reads=4, writes=8)
    LOOK = "a look at a table", StoreRequests(lists=1)
    CHECKPOINT_READ = "its last checkpoint", StoreRequests(reads=1)
    COMMIT_READ = "each commit since", StoreRequests(reads=1)
    EARLIER_COMMIT = "each earlier commit of a week, up to 100, before a rewrite", StoreRequests(reads=1)
    STEPS = "a table with steps, beside the look", StoreRequests(lists=1)
    REWRITE = "a commit of new files", StoreRequests(reads=2, looks=9, lists=6, writes=3)
    PROPERTIES = "a commit of properties", StoreRequests(reads=2, looks=5, lists=8, writes=3)
    CHECKPOINT = "a checkpoint that falls due", StoreRequests(lists=1, writes=2)
    CHECKPOINT_AGAIN = "the one before it, to make it", StoreRequests(reads=7, looks=8, lists=4)
    COMMIT_AGAIN = "each commit since a checkpoint, for Delta", StoreRequests(reads=1, looks=1)
    READ = "a file read in lane `copy` or `local`", StoreRequests(reads=1)
    WRITTEN = "a file written by them", StoreRequests(reads=1, looks=2, lists=1, writes=1)
    READ_BY_SPARK = "a file read in lane `spark`", StoreRequests(reads=4, looks=1)
    READ_IN_ORDER = "a file put in order in lane `spark`, but by turns", StoreRequests(reads=12, looks=3)
    WRITTEN_BY_SPARK = "a file written by it", StoreRequests(reads=6, looks=7, lists=4, writes=1)
    SAMPLED = "a file sampled for the boundaries of a Z-order", StoreRequests(reads=3, looks=1)
    PART = "a part of a file that is too large for one request", StoreRequests(writes=1)
    VACUUM = "a vacuum", StoreRequests(reads=3, looks=6, lists=10, writes=5)
    COMMIT_KEPT = "each commit in the log, for a vacuum", StoreRequests(reads=1)
    LISTED = "each 1,000 objects listed, thrice before and twice after a vacuum", StoreRequests(lists=1)
    FOLDER = "each folder of a vacuum of more than 200,000 files", StoreRequests(looks=6, lists=9)
    DELETED = "each 1,000 files that it deletes", StoreRequests(lists=1, deletions=1)

    def __init__(self, words: str, asked: StoreRequests) -> None:
        self.words, self.asked = words, asked


_SPARKS_PARTS, _OUR_PARTS = (64 << 20, 64 << 20), (512 << 20, 16 << 20)
"""Above how many bytes a new file is sent in parts, and how large they are: by Hadoop's client, and by ours."""


def requests_of(terms: Counter[RequestTerm]) -> StoreRequests:
    """Return what terms ask together."""
    return sum((term.asked * number for term, number in terms.items()), StoreRequests())


def run_requests(plan: Plan, ledger: str) -> StoreRequests:
    """Return about what a run of a plan asks of object stores, until its record is closed; ``ledger`` is its place."""
    terms: Counter[RequestTerm] = Counter()
    for table in plan.tables:
        if table.observed is not None and store_kind(table.observed.location).is_served:
            terms.update(_look_terms(table, table.observed))
            for step in step_terms(table):
                terms.update(step)
    is_counted = store_kind(ledger).is_served
    if plan.has_changes and (terms or is_counted):
        terms[RequestTerm.RUN] += 1
    if plan.has_changes and is_counted:
        terms.update({RequestTerm.STATE: 1, RequestTerm.STATE_STEP: sum(len(table.steps) for table in plan.tables)})
    return requests_of(terms)


def _look_terms(table: TablePlan, observed: Observed) -> Counter[RequestTerm]:
    num_read = _num_commits_read(observed)
    terms = Counter({RequestTerm.LOOK: 1, RequestTerm.COMMIT_READ: num_read})
    if observed.first_commit_read != 0:
        terms[RequestTerm.CHECKPOINT_READ] = 1
    if table.steps:
        terms[RequestTerm.STEPS] = 1
    if table.rewrites and table.writers is not None:
        terms[RequestTerm.EARLIER_COMMIT] = max(0, table.writers.num_commits - num_read)
    return terms


def step_terms(table: TablePlan) -> list[Counter[RequestTerm]]:
    """Return what each step of a table is made of, in their order; nothing where the table is on no store."""
    observed = table.observed
    if observed is None or not store_kind(observed.location).is_served:
        return [Counter() for _ in table.steps]
    version, since_checkpoint = observed.version, _num_commits_read(observed)
    each: list[Counter[RequestTerm]] = []
    for step in table.steps:
        match step:
            case BatchedStep():
                terms, num_commits = Counter({RequestTerm.REWRITE: len(step.batches)}), len(step.batches)
                for bin_ in step.bins:
                    terms.update(_bin_terms(step, bin_))
            case SetPropertiesStep():
                terms, num_commits = Counter({RequestTerm.PROPERTIES: 1, RequestTerm.COMMIT_AGAIN: since_checkpoint}), 1
                if any(name.startswith(PROPERTY_PREFIX) for name, _ in step.after):
                    num_sampled = min(observed.num_files, MAX_SAMPLED_FILES)
                    terms.update({RequestTerm.SAMPLED: num_sampled, RequestTerm.COMMIT_AGAIN: since_checkpoint})
            case VacuumStep():
                terms, num_commits = _vacuum_terms(observed, step), 2  # one before the deletion and one after it
            case _:
                assert_never(step)
        for _ in range(num_commits):
            version, since_checkpoint = version + 1, since_checkpoint + 1
            if observed.checkpoint_interval and version % observed.checkpoint_interval == 0:
                terms[RequestTerm.CHECKPOINT] += 1
                terms[RequestTerm.CHECKPOINT_AGAIN] += observed.first_commit_read != 0
                if isinstance(step, SetPropertiesStep):  # by a command of Delta's, which writes the checkpoint, too
                    terms[RequestTerm.COMMIT_AGAIN] += since_checkpoint
                since_checkpoint = 0
        each.append(terms)
    return each


def _num_commits_read(observed: Observed) -> int:
    return 0 if observed.first_commit_read is None else observed.version + 1 - observed.first_commit_read


def _bin_terms(step: BatchedStep, bin_: Bin) -> Counter[RequestTerm]:
    num_written, is_by_spark = step.num_files_of(bin_), bin_.lane.lane is Lane.SPARK
    read, written = (
        (RequestTerm.READ_BY_SPARK, RequestTerm.WRITTEN_BY_SPARK)
        if is_by_spark
        else (RequestTerm.READ, RequestTerm.WRITTEN)
    )
    if is_by_spark and step.order_columns and not (isinstance(step, ZOrderStep) and step.planned_turn is not None):
        read = RequestTerm.READ_IN_ORDER  # once for the ranges and once for the rows
    terms = Counter({read: len(bin_.files)})
    terms[written] = num_written
    most_bytes, part_bytes = _SPARKS_PARTS if is_by_spark else _OUR_PARTS
    size_bytes = bin_.size_bytes // num_written
    if size_bytes > most_bytes:
        terms[RequestTerm.PART] = num_written * (-(-size_bytes // part_bytes) + 1)  # one begins them and one ends them
    return terms


def _pages_of(num_names: int) -> int:
    return -(-num_names // LISTED_AT_ONCE)


def _vacuum_terms(observed: Observed, step: VacuumStep) -> Counter[RequestTerm]:
    oldest, num_files = observed.oldest_commit, len(step.files)
    terms = Counter(
        {
            RequestTerm.VACUUM: 1,
            RequestTerm.COMMIT_KEPT: 0 if oldest is None else observed.version + 1 - oldest,
            RequestTerm.LISTED: 3 * _pages_of(observed.num_files + num_files) + 2 * _pages_of(observed.num_files),
            RequestTerm.DELETED: _pages_of(num_files),
        }
    )
    if num_files > MOST_LISTED:  # folders are listed one by one, after a try of a page for each to list all at once
        folders = len({file.path.rpartition("/")[0] for file in step.files})
        tried = 0 if folders == 1 else min(folders, _pages_of(MOST_LISTED))
        terms.update({RequestTerm.FOLDER: folders, RequestTerm.LISTED: 3 * tried})
    return terms
