"""One process of ours, step by step: what it knows is gone when it is killed, what it did is in the lake.

What is decided is decided by the product: the plan, the look whether it still holds, and where deleted rows lie in the
new file. What is modelled is the order of the steps, and that anything may happen between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache

from tests.model.lake_state import Commit, Contents, Event, Key, Lake
from tests.support.product import (
    CannotCarryError,
    CompactStep,
    DataFile,
    DeletionVector,
    RemovedFile,
    RowsRead,
    StaleReasons,
    TableFacts,
    TableInput,
    TablePlan,
    TableRecord,
    VacuumStep,
    places_in_bin,
    plan_table,
    recheck,
)
from tests.support.tables.builders import (
    DAY_MS,
    DAY_SECONDS,
    NOW_MS,
    make_facts,
    make_optimize,
    make_policy,
    make_vacuum,
)

ROW_BYTES = 10
RETENTION_DAYS = 7
POLICY = make_policy(optimize=make_optimize(), vacuum=make_vacuum(retention_seconds=RETENTION_DAYS * DAY_SECONDS))
TODAY = date(2026, 11, 21)
MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class Process:
    """What a process knows: where it stands, and of the batch that it works on.

    Attributes:
        run: Its number, from 0; each has a stamp of its own.
        at: The step that comes next.
        plan: What was planned.
        sources: The batch's files as they were read, in the order of their rows in the new file.
        now: The same files as they are live at ``head``, None for those that are not.
        new: The new file, with the rows that are soft-deleted in it.
        head: The version that the next try of the commit follows.
        proven: Whether the rows of ``new`` were compared with those of ``now``.
        doomed: Files that a deletion is still to delete.
    """

    run: int = 0
    at: str = "recover"
    plan: TablePlan | None = field(default=None, hash=False)
    sources: tuple[Key, ...] = ()
    now: tuple[Key | None, ...] = ()
    new: Key | None = None
    head: int = -1
    proven: bool = False
    tries: int = 0
    doomed: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """What the commit of its rewrite carries."""
        return f"run{self.run}/compact"


State = tuple[Lake, Process]


def day_ms(clock: int) -> int:
    """The time of a tick: two ticks are more than the retention, one is less."""
    return NOW_MS + clock * (RETENTION_DAYS - 2) * DAY_MS


def removed_at_ms(at: int) -> int:
    """When a file was removed that was removed at a tick."""
    return day_ms(at)


@lru_cache(maxsize=100_000)
def facts_of(log: tuple[Commit, ...], storage: frozenset[str], contents: Contents) -> TableFacts:
    """What the product would read of the table."""
    rows = dict(contents)
    lake = Lake(log, contents, storage)

    def data_file(key: Key) -> DataFile:
        name, gone = key
        vector = DeletionVector(f"u{name}{gone}", len(gone), 1) if gone else None
        size_bytes = max(1, len(rows[name]) * ROW_BYTES)
        return DataFile(name, size_bytes, NOW_MS, physical_records=len(rows[name]), deletion_vector=vector)

    live = lake.live()
    gone = {}
    for version, commit in enumerate(log):
        for name, _ in commit.removes:
            gone[name] = (commit.at, version)
    names = {name for name, _ in live}
    removed = [
        RemovedFile(name, len(rows[name]) * ROW_BYTES, removed_at_ms(at), removed_in_version=version)
        for name, (at, version) in gone.items()
        if name in storage and name not in names
    ]
    return make_facts(
        files=[data_file(key) for key in sorted(live)],
        properties={"delta.enableDeletionVectors": "true"},
        removed_files=tuple(removed),
        version=lake.head,
    )


def steps(state: State) -> Iterator[State]:
    """Where the process may be after its next step; nothing once it has ended."""
    lake, process = state
    match process.at:
        case "recover":
            for proves in (True, False):
                yield _recover(lake, proves=proves), replace(process, at="plan")
        case "plan":
            yield lake, _planned(lake, process)
        case "read":
            yield lake, _read(lake, process)
        case "write":
            yield from _written(lake, process)
        case "prove":
            yield lake, _proof(lake, process)
        case "intent":
            yield lake.noted(Event("intent", process.stamp, process.head)), replace(process, at="try")
        case "try":
            yield _tried(lake, process)
        case "carry":
            yield lake, _carried(lake, process)
        case "result":
            version = lake.version_of(process.stamp)
            yield (
                lake.noted(Event("result", process.stamp, version, proven=version is not None)),
                replace(process, at="vacuum"),
            )
        case "vacuum":
            yield lake, _deletion(lake, process)
        case "delete":
            yield _deleted(lake, process)


def _recover(lake: Lake, *, proves: bool) -> Lake:
    """Settle what earlier runs left open: ask the log, and compare versions with those before, if that can be done."""
    ended = {event.stamp for event in lake.journal if event.kind != "intent"}
    for stamp in dict.fromkeys(event.stamp for event in lake.journal if event.kind == "intent"):
        if stamp in ended:
            continue
        version = lake.version_of(stamp)
        lake = lake.noted(Event("settled", stamp, version))
    for version in lake.unproven_versions() if proves else ():
        if lake.visible(lake.live(version)) == lake.visible(lake.live(version - 1)):
            lake = lake.noted(Event("settled", str(lake.log[version].stamp), version, proven=True))
    return lake


def unproven_versions(lake: Lake) -> tuple[int, ...]:
    """What the next plan remembers as not proven."""
    return lake.unproven_versions()


@lru_cache(maxsize=100_000)
def plan_of(
    log: tuple[Commit, ...], storage: frozenset[str], contents: Contents, unproven: tuple[int, ...], clock: int
) -> TablePlan:
    """What the product would plan for the table."""
    record = TableRecord(unproven_versions=unproven)
    return plan_table(TableInput(POLICY, facts_of(log, storage, contents), record, day_ms(clock), TODAY))


def _planned(lake: Lake, process: Process) -> Process:
    plan = plan_of(lake.log, lake.storage, lake.contents, unproven_versions(lake), lake.clock)
    has_rewrite = any(isinstance(step, CompactStep) for step in plan.steps)
    return replace(process, plan=plan, at="read" if has_rewrite else "vacuum")


def _read(lake: Lake, process: Process) -> Process:
    """Look whether the plan still holds, and read the rows of what is left of its first bin."""
    assert process.plan is not None
    now = recheck(process.plan, facts_of(lake.log, lake.storage, lake.contents), POLICY.digest)
    step = None if isinstance(now, StaleReasons) else next((s for s in now.steps if isinstance(s, CompactStep)), None)
    if step is None:
        return replace(process, at="vacuum")
    live = dict(lake.live())
    sources = tuple((file.path, live[file.path]) for file in step.bins[0].files)
    return replace(process, sources=sources, now=sources, head=lake.head, at="write")


def _written(lake: Lake, process: Process) -> Iterator[State]:
    """Write the rows that were read; or, where something is broken, one row less."""
    rows = [row for name, gone in process.sources for place, row in enumerate(lake.rows_of(name)) if place not in gone]
    name = f"new{process.run}"
    wrote = replace(process, new=(name, ()), at="prove")
    yield lake.with_file(name, rows), wrote
    if len(rows) > 1:
        yield lake.with_file(name, rows[1:]), wrote


def _proof(lake: Lake, process: Process) -> Process:
    """Compare the rows of the new file with those of its sources as they are live; end where they differ."""
    assert process.new is not None
    read = lake.visible(key for key in process.now if key is not None)
    if lake.visible([process.new]) != read:
        return replace(process, at="end")
    return replace(process, proven=True, at="intent")


def _tried(lake: Lake, process: Process) -> State:
    """Put the commit after the version that was looked at; if that is taken, look at the newest."""
    assert process.new is not None
    assert process.proven
    removes = [key for key in process.now if key is not None]
    if lake.head != process.head:
        if process.tries >= MAX_TRIES:
            return lake, replace(process, at="vacuum")
        live = lake.live()
        at = "try" if all(key in live for key in removes) else "carry"
        head = lake.head if at == "try" else process.head
        return lake, replace(process, head=head, at=at, tries=process.tries + 1)
    adds = [process.new] if lake.visible([process.new]) else []
    return lake.committed(adds, removes, process.stamp), replace(process, at="result")


def _carried(lake: Lake, process: Process) -> Process:
    """Soft-delete in the new file what others deleted from its sources, by the product's arithmetic."""
    assert process.new is not None
    live = dict(lake.live())
    now = tuple((name, live[name]) if name in live else None for name, _ in process.sources)
    read = [
        (RowsRead(len(lake.rows_of(name)), gone), current[1] if current is not None else None)
        for (name, gone), current in zip(process.sources, now, strict=True)
    ]
    try:
        places, _ = places_in_bin(read)
    except CannotCarryError:
        return replace(process, at="vacuum")
    if not any(now):
        return replace(process, at="vacuum")
    new = (process.new[0], tuple(places))
    return replace(process, now=now, new=new, head=lake.head, proven=False, at="prove")


def _deletion(lake: Lake, process: Process) -> Process:
    """Take the planned deletion, less what is live again or unproven by now."""
    if process.plan is None:
        return replace(process, at="end")
    planned = next((step for step in process.plan.steps if isinstance(step, VacuumStep)), None)
    now = recheck(process.plan, facts_of(lake.log, lake.storage, lake.contents), POLICY.digest)
    step = None if isinstance(now, StaleReasons) else next((s for s in now.steps if isinstance(s, VacuumStep)), None)
    if planned is None or step is None:
        return replace(process, at="end")
    return replace(process, doomed=tuple(file.path for file in step.files), at="delete")


def _deleted(lake: Lake, process: Process) -> State:
    if not process.doomed:
        return lake, replace(process, at="end")
    name, *rest = process.doomed
    return lake.without_file(name), replace(process, doomed=tuple(rest))
