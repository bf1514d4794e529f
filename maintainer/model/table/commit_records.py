"""The commits of a table's log: who made each, whether it was ours, and which make a rewrite lose.

What ``commitInfo`` says of the writer tells whose statistics are exact, and whose bounds cannot be trusted for some
types. This is the one list of both: the rule for statistics, the plan and the pages go by it. What it says of others
was seen in tables that they wrote: delta-rs 0.15, 0.19, 0.25, 1.0, 1.3 and 1.6 (NaN is in no bound; from 0.19 on a
bound of a decimal is the double beside it), DuckDB 1.5 (NaN; 1.4 writes no bounds), Delta on Spark 3.0 and 3.1 (offsets
of the writer's zone in whole minutes, in the golden tables). That later ones do the same is read from Delta's source:
it hands time stamps to Spark's ``to_json`` in the session's zone from 2.4 to 4.4.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone

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

    ``at_ms`` is milliseconds since 1970 UTC: what the commit says, or when its file was written. ``operation`` is
    Delta's name (``WRITE``, ``OPTIMIZE``); empty where the commit does not say. ``by`` is the user or the engine.
    Sizes are bytes; figures are 0 and ``duration_seconds`` is None where the commit does not say. ``stamp`` is set for
    a commit of ours. ``detail`` are parameters worth a word, such as ``zOrderBy a, b``. ``takes_files`` says that it
    removed files that were live or hid rows of them, which a rewrite of the same files cannot survive.
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

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.at_ms / 1000, tz=timezone.utc)
        return f"version {self.version}, {self.operation or 'unknown operation'}, {moment:%Y-%m-%d %H:%M:%S} UTC"


MAX_COMMITS_READ = 10_000
"""Only the newest so many commits are read; a log keeps 30 days by default."""


@dataclass(frozen=True, slots=True)
class CommitsWanted:
    """Which commits of a table are asked for: the newest, at most ``limit`` and none older than ``since_ms``.

    ``counted``: the figures of our own commits are counted from their actions, which costs reading them whole.
    ``doubtful_types``: files of writers whose bounds of these types cannot be trusted are named, at the same cost.
    ``until_version``: the log will do as it was listed when this version was read; None lists it.
    """

    limit: int = MAX_COMMITS_READ
    since_ms: int | None = None
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
        except (ValueError, KeyError, TypeError):
            return None


EXACT_WRITERS = tuple(f"Delta-Lake/4.{minor}." for minor in range(5))
"""Writers whose bounds are known to be reached by a row. Our own commits say it, too."""


_DECIMAL = re.compile(r"decimal\((\d+),")


_EXACT_DIGITS = 15
"""Digits that every double holds."""


_OLD_OFFSET = re.compile(r'"(?:0\d|1[0-8]|19[0-6])\d+-\d\d-\d\dT[^"]*[+-]\d\d:\d\d"|"197[01]-[^"]*T[^"]*[+-]\d\d:\d\d"')
"""A time with an offset in whole minutes, of a year in which offsets of zones had seconds (Monrovia's until 1972)."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Bounds that rows may lie outside of: by marks of the writer, of which types, and why.

    With ``said`` only in files whose statistics have such a text.
    """

    marks: tuple[str, ...]
    kinds: tuple[str, ...]
    why: str
    said: re.Pattern[str] | None = None

    def is_about(self, type_name: str) -> bool:
        """Whether it is about a column's type."""
        if match := _DECIMAL.match(type_name):
            return "decimal" in self.kinds and int(match[1]) > _EXACT_DIGITS
        return type_name in self.kinds

    def may_be_in(self, stats: object) -> bool:
        """Whether it may be about a file with these statistics."""
        return self.said is None or (isinstance(stats, str) and self.said.search(stats) is not None)


DOUBTS = (
    Doubt(("delta-rs", "DuckDB"), ("float", "double"), "it leaves NaN out"),
    Doubt(("delta-rs",), ("decimal",), "it rounds decimals"),
    Doubt(("Delta-Lake/",), ("timestamp",), "it cuts the seconds of old zone offsets", _OLD_OFFSET),
)


def doubts_about(writer: str) -> tuple[Doubt, ...]:
    """Return what cannot be trusted in the bounds of a writer; nothing where nothing is known of it."""
    return tuple(doubt for doubt in DOUBTS if any(mark in writer for mark in doubt.marks))
