"""The commits of a table's log: who made each, whether it was ours, and which make a rewrite lose."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

MAINTENANCE = frozenset(
    {
        "CLUSTER BY",
        "FSCK REPAIR TABLE",
        "OPTIMIZE",
        "REORG",
        "VACUUM",
        "VACUUM END",
        "VACUUM START",
        "ZORDER BY",
    }
)
"""Operations that take care of a table, as Delta and its other writers name them, in capitals."""

REWRITING = ("OPTIMIZE", "REORG")
DELETING = ("VACUUM END", "VACUUM")
"""Those that end what ``optimize.every`` and ``vacuum.every`` count from."""


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One commit of a table's log.

    ``at_ms`` is milliseconds since 1970 UTC: what the commit says, but not later than its file. ``operation`` is
    Delta's name (``WRITE``, ``OPTIMIZE``); empty where the commit does not say. ``by`` is the user or the engine.
    Sizes are bytes; figures are 0 and ``duration_seconds`` is None where the commit does not say. ``stamp`` is set for
    a commit of ours. ``detail`` are parameters worth a word, such as ``zOrderBy a, b``. ``takes_files`` says that it
    removed files that were live or hid rows of them, which a rewrite of the same files cannot survive; ``is_auto``,
    that it followed a write by itself; ``has_failed``, that it says so.
    """

    version: int
    at_ms: int
    operation: str
    by: str | None = None
    stamp: CommitStamp | None = None
    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    duration_seconds: float | None = None
    detail: str = ""
    takes_files: bool = False
    is_auto: bool = False
    has_failed: bool = False

    @property
    def activity(self) -> str:
        """What was done, and by whom: an OPTIMIZE that followed a write by itself is called auto compaction."""
        return f"{'auto compaction' if self.is_auto else self.operation} by {self.by or 'another writer'}"

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.at_ms / 1000, tz=UTC)
        return f"version {self.version}, {self.operation or 'unknown operation'}, {moment:%Y-%m-%d %H:%M:%S} UTC"


def newest_maintenance(commits: Iterable[TableCommit]) -> tuple[TableCommit, ...]:
    """Return the newest commit of each kind of maintenance that no run of ours made, in any order.

    Runs have records of their own, where what is left of an unfinished step is still due. An auto compaction has none,
    whoever made it.
    """
    newest: dict[tuple[str, bool], TableCommit] = {}
    for commit in commits:
        kind = (commit.operation.upper(), commit.is_auto)
        if kind[0] in MAINTENANCE and not commit.has_failed and (commit.stamp is None or commit.is_auto):
            newest[kind] = max(commit, newest.get(kind, commit), key=lambda one: one.version)
    return tuple(newest.values())


MAX_COMMITS_READ = 10_000
"""Only the newest so many commits are read; a log keeps 30 days by default."""


MAX_COMMITS_BEYOND = 1_000
"""On object storage each is a request: a second's worth."""


@dataclass(frozen=True, slots=True)
class CommitsWanted:
    """Which commits of a table are asked for: the newest, at most ``limit`` and none older than ``since_ms``.

    ``also_since_ms``: beyond those, all that are not older than this, ``MAX_COMMITS_BEYOND`` in all at most.
    ``counted``: the figures of our own commits are counted from their actions, which costs reading them whole.
    ``doubtful_types``: files of writers whose bounds of these types cannot be trusted are named, at the same cost.
    ``until_version``: the log will do as it was listed when this version was read; None lists it.
    """

    limit: int = MAX_COMMITS_READ
    since_ms: int | None = None
    also_since_ms: int | None = None
    counted: bool = False
    doubtful_types: frozenset[str] = frozenset()
    until_version: int | None = None


@dataclass(frozen=True, slots=True)
class CommitsRead:
    """Commits of a table, newest first. ``oldest_version`` is the first that the log still has, None for none.

    ``table_id`` is the table's own id where a look was taken at it. ``doubtful_files`` are paths of added files by the
    writer's ``engineInfo``, where its bounds cannot be trusted; only where they were asked for.
    """

    location: str
    commits: tuple[TableCommit, ...]
    oldest_version: int | None = None
    table_id: str | None = None
    doubtful_files: tuple[tuple[str, frozenset[str]], ...] = ()


HOURS = 24


@dataclass(frozen=True, slots=True)
class WriterRhythm:
    """What the newest commits of a table's log say about its other writers.

    Times are milliseconds since 1970 UTC. A commit *takes files* when it removes live files or hides rows of them:
    DELETE, UPDATE, MERGE, overwriting. Blind appends take none and make no rewrite lose.

    Args:
        since_ms: From when on commits were looked at.
        until_ms: Up to when: the time of planning.
        num_commits: Commits of others in that time, appends included.
        taking_by_hour: How many of them took files, in each hour of the day in UTC; empty where none did.
    """

    since_ms: int
    until_ms: int
    num_commits: int
    taking_by_hour: tuple[int, ...] = ()

    @property
    def num_taking(self) -> int:
        """Commits of others that took files."""
        return sum(self.taking_by_hour)

    @property
    def seconds(self) -> float:
        """How long was looked at."""
        return max(0, self.until_ms - self.since_ms) / 1000


@dataclass(frozen=True, slots=True)
class OwnRewrites:
    """Rewrites of ours that are newer than the last update by others, as the newest commits of a table tell.

    Args:
        num_runs: How many runs made them; each auto compaction is one.
        last_at_ms: When the newest one landed, milliseconds since 1970 UTC.
        others_only_append: Whether what was read goes back a week, or to the table's first commit, and shows no update
            by others. A writer who lost each time is in no log.
    """

    num_runs: int
    last_at_ms: int
    others_only_append: bool


@dataclass(frozen=True, slots=True)
class CommitStamp:
    """Goes into the commit's ``userMetadata``, so that a commit can be traced and a lost answer settled.

    ``batch`` counts from 0 within the step; (run_id, step_id, batch) is unique.
    """

    run_id: str
    step_id: str
    batch: int
    policy_digest: str

    @property
    def kind(self) -> str:
        """The kind of step: the last part of its id, without the number of a turn."""
        return self.step_id.rpartition("/")[2].partition("#")[0]

    def to_json(self) -> str:
        """Return the exact string stored in ``userMetadata``: canonical JSON with sorted keys."""
        stamp = {"batch": self.batch, "policy": self.policy_digest, "run": self.run_id, "step": self.step_id}
        return json.dumps({"maintainer": stamp}, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | None) -> CommitStamp | None:
        """Read a stamp back; None for anything that is not ours."""
        try:
            inner = json.loads(text or "")["maintainer"]
            return CommitStamp(inner["run"], inner["step"], int(inner["batch"]), inner["policy"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


NO_VACUUM_END = "VACUUM START without VACUUM END: the log does not say what was deleted"


def whole_vacuums(commits: Sequence[TableCommit]) -> Iterator[TableCommit]:
    """Join the two commits of each vacuum, newest first: the first has what it found, the second what it deleted."""
    skipped: set[int] = set()
    for number, commit in enumerate(commits):
        if commit.version in skipped:
            continue
        start = next((commit for commit in commits[number + 1 :] if commit.operation == "VACUUM START"), None)
        if commit.operation == "VACUUM END" and start is not None and start.stamp == commit.stamp:
            skipped.add(start.version)
            # The first says how many bytes were planned: true of those deleted only where every file went.
            whole = commit.num_files_removed == start.num_files_removed
            yield replace(commit, operation="VACUUM", bytes_removed=start.bytes_removed if whole else 0)
        elif commit.operation == "VACUUM START":
            yield replace(commit, num_files_removed=0, bytes_removed=0, detail=NO_VACUUM_END)
        else:
            yield commit
