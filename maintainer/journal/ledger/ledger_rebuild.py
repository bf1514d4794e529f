"""Make ledger rows from run folders and from the tables' own histories, when a run was killed or the ledger is lost.

A row from a run folder is the one that the run appended, or would have appended. A row from a history has only what
the commit says: run and step, versions, files and bytes, and the time. A log does not hold what was planned or how it
was proven, so those columns are empty. ``source`` tells the kinds apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Protocol

from maintainer.journal.folder.run_folder import is_run_id
from maintainer.journal.ledger.ledger_rows import LedgerRow, LedgerSink, rows_of, step_row, without_prediction
from maintainer.journal.memory.past_runs import RunRecord
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.auto_compaction import STEP_KIND
from maintainer.model.run.history_rows import BY_HOOK
from maintainer.model.run.outcome import RunOutcome, StepStatus
from maintainer.model.run.receipts import Amounts
from maintainer.model.run.run_events import LedgerRows, Settled
from maintainer.model.table.commit_records import CommitsRead, TableCommit, whole_vacuums
from maintainer.policy.resolve.resolved import ResolvedPolicy

FROM_RUN_FOLDER = "run folder"
"""What ``source`` says of a row that was made from the run's folder; null in a row that its run appended."""

SETTLED = "#settled"
"""Behind the id of a step whose row was known before a later run found out what came of it."""


def recorded_rows(record: RunRecord, num_events: int | None = None) -> tuple[LedgerRow, ...]:
    """Return the rows that a run's folder tells of, marked as such.

    What was found out after the rows were known for the first time is a row of its own, since the row before it is in
    the ledger and stays as it is; rows that only waited are made anew with it.

    Args:
        record: The run's folder.
        num_events: Only what the first so many events tell; None: all of them.
    """
    events = islice(record.events, num_events)
    known = {number: event for number, event in enumerate(events) if isinstance(event, LedgerRows)}
    first = max((number for number, event in known.items() if event.anew), default=min(known, default=None))
    outcome = record.outcome(num_events)
    rows = rows_of(record.plan, outcome)
    if first is not None:
        first_outcome = record.outcome(first)
        rows = (*rows_of(record.plan, first_outcome), *_settled_rows(record.plan, first_outcome, outcome))
    return tuple(replace(row, source=FROM_RUN_FOLDER) for row in rows)


def missing_rows(record: RunRecord) -> tuple[LedgerRow, ...]:
    """Return the rows of a run that are in no ledger and wait in no folder, as far as its record says."""
    last = max((number for number, event in enumerate(record.events) if isinstance(event, LedgerRows)), default=None)
    step_ids = frozenset[str]() if last is None else {row.step_id for row in recorded_rows(record, last + 1)}
    return tuple(row for row in recorded_rows(record) if row.step_id not in step_ids)


def anew(record: RunRecord, waiting: Sequence[LedgerRow]) -> tuple[LedgerRow, ...]:
    """Return the rows of a run none of which is in the ledger: what was found out later is part of a step's row.

    Args:
        record: The run's folder.
        waiting: The rows that wait in it; those of all other steps stay as they are.
    """
    settled = {event.stamp.step_id for event in record.events if isinstance(event, Settled)}
    lines_of = zip(record.read.lines, record.events, strict=True)
    read = replace(record.read, lines=tuple(line for line, event in lines_of if not isinstance(event, LedgerRows)))
    rows = {row.step_id: row for row in recorded_rows(replace(record, read=read))}
    for row in waiting:
        # A step with turns has further rows, with a number behind its id.
        if not any(row.step_id == step_id or row.step_id.startswith(f"{step_id}#") for step_id in settled):
            rows[row.step_id] = row
    return tuple(rows.values())


def _settled_rows(plan: Plan, first_outcome: RunOutcome, outcome: RunOutcome) -> Iterator[LedgerRow]:
    """Rows of commits and deletions that a later run found out about."""
    before = {step.step_id: step for table in first_outcome.tables for step in table.steps}
    for table in outcome.tables:
        for step in table.steps:
            old = before.get(step.step_id)
            versions = {receipt.version for receipt in old.commits} if old else set()
            commits = tuple(commit for commit in step.commits if commit.version not in versions)
            vacuum = None if old is not None and old.vacuum == step.vacuum else step.vacuum
            if old is None or commits or vacuum is not None:
                row = step_row(plan, outcome, table, replace(step, commits=commits, vacuum=vacuum, turns=()))
                if row is not None:
                    # The step's first row has its prediction and its time.
                    further = replace(without_prediction(row), step_id=f"{row.step_id}{SETTLED}", duration_seconds=0.0)
                    yield row if old is None else further


FROM_HISTORY = "history"
"""What ``source`` says of a row that only the table's log still knew of."""

MAX_ROUNDS = 4
"""Looks at the ledger before and after rows are appended: others may rebuild it, or append, at the same time."""

RowKey = tuple[str, str]
"""Run and step: what makes a row."""


@dataclass(frozen=True, slots=True)
class LedgerContents:
    """What is in the ledger: its version (-1 where there is none), and the run and step of each row."""

    version: int
    keys: frozenset[RowKey]


class LedgerStore(LedgerSink, Protocol):
    """A ledger whose rows can be told apart and filled up."""

    def contents(self) -> LedgerContents:
        """Return which rows it has.

        Raises:
            MaintainerError: It is there and cannot be read.
        """

    def rows(self, *, table: str | None = None, table_id: str | None = None, limit: int = ...) -> tuple[LedgerRow, ...]:
        """Return rows, the newest step first; none where there is no ledger yet.

        Raises:
            MaintainerError: It is there and cannot be read.
        """

    def append_missing(self, rows: Sequence[LedgerRow], *, after_version: int) -> None:
        """Append rows that a look at ``after_version`` missed; nothing where somebody rebuilt it since.

        Raises:
            MaintainerError: They could not be appended.
        """


def key_of(row: LedgerRow) -> RowKey:
    """Return what makes the row."""
    return (row.run_id, row.step_id)


def started_at_ms(run_id: str) -> int:
    """Return when a run began, as its id says (milliseconds since 1970 UTC)."""
    return int(datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1000)


def rows_from_history(policy: ResolvedPolicy, read: CommitsRead) -> tuple[LedgerRow, ...]:
    """Return a row for each step of ours that the table's log still knows, oldest first.

    Each commit of the hook in a writer is a row: nobody can tell whether more of them come.
    """
    steps: dict[RowKey, list[TableCommit]] = {}
    for commit in reversed(read.commits):
        stamp = commit.stamp
        if stamp is not None and (stamp.kind == STEP_KIND or _is_run(stamp.run_id)):
            number = f"#{stamp.batch + 1}" if stamp.kind == STEP_KIND and stamp.batch else ""
            steps.setdefault((stamp.run_id, f"{stamp.step_id}{number}"), []).append(commit)
    return tuple(_row(key, commits, policy, read) for key, commits in steps.items())


def _is_run(run_id: str) -> bool:
    """Whether it is a run's id; the hook after a write commits under a name of its own, and appends no rows."""
    if not is_run_id(run_id):
        return False
    try:
        return started_at_ms(run_id) >= 0
    except ValueError:
        return False


def _row(key: RowKey, commits: Sequence[TableCommit], policy: ResolvedPolicy, read: CommitsRead) -> LedgerRow:
    stamp = commits[0].stamp
    assert stamp is not None
    seconds = sum(commit.duration_seconds or 0.0 for commit in commits)
    return LedgerRow(
        run_id=key[0],
        table=policy.table.identifier,
        table_id=read.table_id,
        location=read.location,
        step_id=key[1],
        kind=stamp.kind,
        status=end_in_log(commits[-1]).value,
        reason=BY_HOOK if stamp.kind == STEP_KIND else "",
        version_before=commits[0].version - 1,
        version_after=commits[-1].version,
        **asdict(Amounts.of(whole_vacuums(commits[::-1]))),
        started_at_ms=commits[0].at_ms - int(1000 * (commits[0].duration_seconds or 0.0)),
        duration_seconds=seconds,
        policy_file=policy.file,
        policy_digest=stamp.policy_digest,
        owner=policy.owner,
        source=FROM_HISTORY,
    )


def is_half_known(row: LedgerRow) -> bool:
    """Return whether a row tells of commits that landed, and of no failure: how the step ended is in no log."""
    return row.source == FROM_HISTORY and row.status == StepStatus.UNKNOWN.value and row.kind != StepKind.VACUUM


def end_in_log(last: TableCommit) -> StepStatus:
    """Return how a step ended of which only a table's log tells; ``last`` is its last commit there.

    A log does not say whether all of a rewrite landed, nor what the check after it found: that is unknown. The hook in
    a writer makes one commit, and a vacuum says how it ended.
    """
    if last.operation.startswith("VACUUM") and last.operation != "VACUUM START":
        return StepStatus.FAILED if "FAILED" in last.detail else StepStatus.SUCCEEDED
    is_of_hook = last.stamp is not None and last.stamp.kind == STEP_KIND
    return StepStatus.SUCCEEDED if is_of_hook else StepStatus.UNKNOWN


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild found and did. ``already`` rows were in the ledger; ``later`` are runs too young to be over.

    ``unread`` are runs and tables that could not be read, ``waiting`` runs whose rows wait in their folders.
    """

    from_folders: int
    from_history: int
    already: int
    later: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def fill_up(
    store: LedgerStore, rows: Iterable[LedgerRow], *, young_since_ms: int, is_over: Callable[[str], bool], dry_run: bool
) -> Rebuilt:
    """Append the rows that the ledger has not. Doing it again appends nothing.

    Args:
        store: The ledger.
        rows: All rows that are known, the better source first: of two with one key the first counts.
        young_since_ms: A run that began then or later is left for another time, unless it is over: it appends its
            rows itself, and they would be there twice.
        is_over: Tells of a run id whether the run is known to be over, its rows not waiting anywhere.
        dry_run: Only count.

    Raises:
        MaintainerError: The ledger cannot be read or written.
    """
    rows_by_key: dict[RowKey, LedgerRow] = {}
    for row in rows:
        rows_by_key.setdefault(key_of(row), row)
    later = {
        run for run, _ in rows_by_key if _is_run(run) and started_at_ms(run) >= young_since_ms and not is_over(run)
    }
    ready = {key: row for key, row in rows_by_key.items() if key[0] not in later}
    contents = store.contents()
    missing = _missing(ready, contents)
    rebuilt = Rebuilt(
        from_folders=sum(row.source == FROM_RUN_FOLDER for row in missing),
        from_history=sum(row.source == FROM_HISTORY for row in missing),
        already=len(ready) - len(missing),
        later=tuple(sorted(later)),
    )
    for _ in range(MAX_ROUNDS):
        if dry_run or not missing:
            break
        store.append_missing(missing, after_version=contents.version)
        contents = store.contents()
        missing = _missing(ready, contents)
    return rebuilt


def _missing(ready: dict[RowKey, LedgerRow], contents: LedgerContents) -> list[LedgerRow]:
    return sorted(
        (row for key, row in ready.items() if key not in contents.keys),
        key=lambda row: (row.started_at_ms, row.run_id, row.step_id),
    )
