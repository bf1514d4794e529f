"""Records of one table at one place, and how the records of several places make up a table's own.

The same id at two places is one table that was moved, or a table and its copy. What protects rows (quarantine,
unproven versions) counts wherever the id occurs, until it is settled for the place. Times of past steps count for the
place itself, and move with a table whose old place no longer holds it. Counted besides are the runs in a row in which
a table failed, lost to another writer, or was left to its writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from maintainer.engine.protocols import TablePlaces, is_one_place
from maintainer.model.plan.steps import REWRITE_KINDS, StepKind
from maintainer.model.run.outcome import StepOutcome, StepStatus, TableStatus
from maintainer.model.run.progress import StepFinished, TableFinished, Verified
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import DELETED, Accepted, CommitEnd, Listed, Quarantined, Result, RunEvent
from maintainer.model.table.table_facts import TableRecord

MAX_PROVEN_VERSIONS = 20
"""The last ones; what is older and named as not proven is checked again."""

MAX_VACUUMS_REMEMBERED = 10
"""Whose sizes a new one is compared with."""

MAX_PLACES = 100
"""Places remembered of one table; of further ones those are forgotten first that hold nothing back."""


MAX_QUARANTINES = 100
"""Remembered of one table at one place, those first that nobody has lifted."""

MAX_LIFTED = MAX_PLACES * MAX_QUARANTINES
"""One acceptance may lift all that are remembered at all places."""


DAY_MS = 86_400_000
REPLACED_AFTER_DAYS, IDLE_AFTER_DAYS = 30, 365
"""A table that holds nothing back is forgotten where nothing was done to it for so long: where another one was since at
each of its places, and where none was. Two machines may have tables of their own at one path of their disks."""

FAR_FUTURE_MS = 2**62
"""A time after which nothing is."""


def later(before_ms: int | None, at_ms: int, latest_ms: int) -> int:
    """Return the later of two times; one after ``latest_ms`` is by a wrong clock and gives way to the new one."""
    return at_ms if before_ms is None or before_ms > latest_ms else max(before_ms, at_ms)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a table must be left alone, when a run said so by the clock of its machine, and which version is wrong."""

    reason: str
    at_ms: int
    version: int | None = None


@dataclass(slots=True)
class PlaceRecord:
    """The fold of the events of one table at one location. Times are milliseconds since 1970 UTC.

    ``proven`` are the versions last proven or accepted here, for another place may tell of the same one as not proven.
    ``quarantines`` are all that were recorded here, by id, and ``lifted`` the ids that a person lifted here, with
    whether the table was known at no other place then. A lift names what it ends: the clocks of two machines differ,
    and a quarantine that nobody had seen yet is none that somebody lifted.
    """

    last_optimize_at_ms: int | None = None
    last_vacuum_at_ms: int | None = None
    last_rewrite_at_ms: int | None = None
    last_delete_at_ms: int | None = None
    unproven: set[int] = field(default_factory=set)
    proven: list[int] = field(default_factory=list)
    quarantines: dict[str, Quarantine] = field(default_factory=dict)
    lifted: dict[str, bool] = field(default_factory=dict)
    last_listing_at_ms: int | None = None
    vacuumed_bytes: list[int] = field(default_factory=list)

    def fold(
        self, event: RunEvent, done_at_ms: int = 0, latest_ms: int = FAR_FUTURE_MS, *, began_at_ms: int = 0
    ) -> None:
        """Take in an event of this table at this place; ``done_at_ms`` is when what it tells of was done.

        Nothing can have been done after ``latest_ms``: a later time is by a wrong clock and gives way to any other.
        A step that succeeded counts from ``began_at_ms``, the beginning of its run, if that is known; one that goes on
        in the next run does not count.
        """
        match event:
            case Result():
                self._take_result(event, done_at_ms, latest_ms)
            case Listed(listed_at_ms=listed_at_ms):
                self.last_listing_at_ms = later(self.last_listing_at_ms, listed_at_ms, latest_ms)
            case Verified(result="pass", version=int() as version):
                self._prove(version)
            case StepFinished(at_ms=at_ms, outcome=StepOutcome(status=StepStatus.SUCCEEDED, kind=kind, goes_on=False)):
                # A night comes to a table now early, now hours later, and begins at the same time.
                at_ms = min(at_ms, began_at_ms or at_ms)
                if kind in REWRITE_KINDS:
                    self.last_optimize_at_ms = later(self.last_optimize_at_ms, at_ms, latest_ms)
                elif kind is StepKind.VACUUM:
                    self.last_vacuum_at_ms = later(self.last_vacuum_at_ms, at_ms, latest_ms)
            case Quarantined():
                self.quarantines[event.quarantine_id] = Quarantine(event.reason, event.at_ms, event.version)
                while len(self.quarantines) > MAX_QUARANTINES:
                    over = next((each for each in self.quarantines if each in self.lifted), None)
                    del self.quarantines[over or next(iter(self.quarantines))]
            case Accepted():
                for version in event.versions:
                    self._prove(version)
                named = dict.fromkeys(event.quarantines, event.alone)
                self.lifted = dict([*{**self.lifted, **named}.items()][-MAX_LIFTED:])

    def _take_result(self, event: Result, done_at_ms: int, latest_ms: int) -> None:
        """Take in how a commit or a deletion ended; a rewrite counts as unproven until a check passed."""
        match event.receipt:
            case CommitReceipt() as commit if event.kind in REWRITE_KINDS and event.end is CommitEnd.LANDED:
                self.add_unproven(commit.version)
                if commit.num_files_removed or commit.num_files_added:
                    self.last_rewrite_at_ms = later(self.last_rewrite_at_ms, done_at_ms, latest_ms)
            case CommitReceipt() as lost if event.kind in REWRITE_KINDS and event.end is CommitEnd.UNKNOWN:
                self.add_unproven(lost.version)
            case VacuumReceipt() as vacuum if event.end in DELETED:
                if vacuum.num_files_deleted:
                    self.vacuumed_bytes = [*self.vacuumed_bytes, vacuum.bytes_deleted][-MAX_VACUUMS_REMEMBERED:]
                if vacuum.num_files_deleted or vacuum.num_files_emptied:
                    self.last_delete_at_ms = later(self.last_delete_at_ms, done_at_ms, latest_ms)

    def add_unproven(self, version: int) -> None:
        """Count a version as ours and not proven."""
        self.unproven.add(version)
        self.proven = [proven for proven in self.proven if proven != version]

    def _prove(self, version: int) -> None:
        self.unproven.discard(version)
        self.proven = [*(proven for proven in self.proven if proven != version), version][-MAX_PROVEN_VERSIONS:]

    @property
    def holds_back(self) -> bool:
        """Whether anything in it keeps files from being deleted, or says that it no longer does."""
        return bool(self.unproven or self.quarantines or self.lifted)

    @property
    def last_at_ms(self) -> int | None:
        """When anything was last done to the table here."""
        done = (self.last_optimize_at_ms, self.last_vacuum_at_ms, self.last_rewrite_at_ms, self.last_delete_at_ms)
        return max((at_ms for at_ms in (*done, self.last_listing_at_ms) if at_ms is not None), default=None)


def table_record(
    records: Mapping[str, PlaceRecord],
    table_id: str,
    location: str,
    places: TablePlaces,
    latest_ms: int = FAR_FUTURE_MS,
) -> TableRecord:
    """Put together what is remembered of the table at a location.

    A quarantine or a version not proven counts from every place. What lifts or proves counts from this place only, and
    in a moved table for what its own old place recorded. Where runs saw another place before a quarantine was lifted,
    there may have been two tables, and the lift was for one of them.

    Args:
        records: All that is remembered of the id, by location.
        table_id: The id.
        location: Where the table is now.
        places: Tells which locations are one place, and which still hold a table.
        latest_ms: Nothing can have been done after it: a time behind it is unknown.
    """
    here: dict[str, PlaceRecord] = {}
    moved: dict[str, PlaceRecord] = {}
    copies: dict[str, PlaceRecord] = {}
    for recorded, record in records.items():
        if is_one_place(places, recorded, location):
            here[recorded] = record
        elif places.may_hold(recorded, table_id):
            copies[recorded] = record
        else:
            moved[recorded] = record
    scheduled = tuple((here or moved).values())
    proven = {version for record in here.values() for version in record.proven}
    unproven = {version for record in records.values() for version in record.unproven} - proven
    sizes = [size for record in scheduled for size in record.vacuumed_bytes]
    why, quarantines = _quarantine(here, moved, copies)
    return TableRecord(
        last_optimize_at_ms=_newest((record.last_optimize_at_ms for record in scheduled), latest_ms),
        last_vacuum_at_ms=_newest((record.last_vacuum_at_ms for record in scheduled), latest_ms),
        last_rewrite_at_ms=_newest((record.last_rewrite_at_ms for record in scheduled), latest_ms),
        last_delete_at_ms=_newest((record.last_delete_at_ms for record in scheduled), latest_ms),
        # All of them: each holds back what it replaced, so forgetting one would let a vacuum delete that.
        unproven_versions=tuple(sorted(unproven)),
        quarantined=why,
        last_listing_at_ms=_newest((record.last_listing_at_ms for record in scheduled), latest_ms),
        vacuumed_bytes=tuple(sizes[-MAX_VACUUMS_REMEMBERED:]),
        copies=tuple(sorted(copies)),
        quarantines=quarantines,
        seen_elsewhere=bool(moved or copies),
    )


def _quarantine(
    here: Mapping[str, PlaceRecord], moved: Mapping[str, PlaceRecord], copies: Mapping[str, PlaceRecord]
) -> tuple[str | None, tuple[tuple[str, int | None], ...]]:
    """Why the table must be left alone (by its own records, else of old places, else of copies), and all in force."""
    lifted_here = {quarantine_id for record in here.values() for quarantine_id in record.lifted}
    why: str | None = None
    in_force: dict[str, int | None] = {}
    for records in (here, moved, copies):
        held: list[tuple[int, str, str]] = []
        moved_from = records is moved
        for location, record in records.items():
            for quarantine_id, quarantine in record.quarantines.items():
                # The lift moved along with the table, unless there were two tables and it was for one of them.
                moved_along = moved_from and record.lifted.get(quarantine_id, False)
                if quarantine_id not in lifted_here and not moved_along:
                    held.append((quarantine.at_ms, location, quarantine.reason))
                    in_force[quarantine_id] = quarantine.version
        if held and why is None:
            _, location, why = max(held)
            if records is not here:
                about = (
                    "where the table was before" if records is moved else "which has the same table id: one is a copy"
                )
                why = f"{why} (recorded for {location}, {about})"
    return why, tuple(in_force.items())


def _newest(times_ms: Iterable[int | None], latest_ms: int) -> int | None:
    return max((time_ms for time_ms in times_ms if time_ms is not None and time_ms <= latest_ms), default=None)


def bounded(records: Mapping[str, PlaceRecord]) -> Mapping[str, PlaceRecord]:
    """Return the records of one table without those of too many old places; what holds back or held back stays."""
    surplus = len(records) - MAX_PLACES
    if surplus <= 0:
        return records
    idle = sorted(
        (location for location, record in records.items() if not record.holds_back),
        key=lambda location: (records[location].last_optimize_at_ms or 0, records[location].last_vacuum_at_ms or 0),
    )
    forgotten = frozenset(idle[:surplus])
    return {location: record for location, record in records.items() if location not in forgotten}


@dataclass(frozen=True, slots=True)
class Streak:
    """Runs in a row. ``lost`` and ``hot`` end with a rewrite that lands, ``failed`` with a run in which it ended well.

    ``hot`` counts runs that left the table to its writers, and ends as well when nothing is left to rewrite. Runs in
    which nothing was tried change nothing else. ``last_at_ms`` is the last run that was counted. Times are milliseconds
    since 1970 UTC.
    """

    lost: int = 0
    last_lost_at_ms: int | None = None
    failed: int = 0
    failing_since_ms: int | None = None
    hot: int = 0
    hot_since_ms: int | None = None
    last_at_ms: int = 0

    @property
    def matters(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.lost or self.failed or self.hot)

    def after(self, event: TableFinished) -> Streak:
        """Return the streak after another end of the table."""
        at_ms, status = event.at_ms, event.outcome.status
        streak = replace(self, last_at_ms=at_ms)
        if event.lost:
            streak = replace(streak, lost=self.lost + 1, last_lost_at_ms=at_ms)
        elif event.rewritten:
            streak = replace(streak, lost=0, last_lost_at_ms=None)
        if event.rewritten or status is TableStatus.UP_TO_DATE:
            streak = replace(streak, hot=0, hot_since_ms=None)
        elif event.hot:
            since_ms = at_ms if self.hot_since_ms is None else self.hot_since_ms
            streak = replace(streak, hot=self.hot + 1, hot_since_ms=since_ms)
        if status in (TableStatus.FAILED, TableStatus.VERIFY_FAILED):
            since_ms = at_ms if self.failing_since_ms is None else self.failing_since_ms
            streak = replace(streak, failed=self.failed + 1, failing_since_ms=since_ms)
        elif status in (TableStatus.DONE, TableStatus.UP_TO_DATE):
            streak = replace(streak, failed=0, failing_since_ms=None)
        return streak


def gone_tables(
    tables: Mapping[str, Mapping[str, PlaceRecord]],
    streaks: Mapping[str, Streak],
    place_streaks: Mapping[str, Mapping[str, Streak]],
    now_ms: int,
) -> frozenset[str]:
    """Return the tables of which nothing need be remembered any more, by id, or by name where one was never read.

    Args:
        tables: All records, by id and location.
        streaks: The runs in a row, by id or name.
        place_streaks: The same by id and location.
        now_ms: Milliseconds since 1970 UTC.
    """
    replaced_before, idle_before = (now_ms - days * DAY_MS for days in (REPLACED_AFTER_DAYS, IDLE_AFTER_DAYS))
    newest: dict[str, int] = {}
    for records in tables.values():
        for location, record in records.items():
            newest[location] = max(newest.get(location, 0), record.last_at_ms or 0)

    def is_gone(location: str, record: PlaceRecord) -> bool:
        last = record.last_at_ms
        if last is None or record.holds_back:
            return False
        return last < idle_before or last < min(replaced_before, newest[location])

    counted = {key for key, streak in streaks.items() if streak.last_at_ms >= idle_before}
    for table_id, by_place in place_streaks.items():
        if any(streak.last_at_ms >= idle_before for streak in by_place.values()):
            counted.add(table_id)
    gone = {
        table_id
        for table_id, records in tables.items()
        if table_id not in counted and all(is_gone(*each) for each in records.items())
    }
    still = tables.keys() - gone
    return frozenset(gone | {key for key in (*streaks, *place_streaks) if key not in counted and key not in still})
