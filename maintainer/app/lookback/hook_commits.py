"""Bring the commits of the writers' hook into the ledger, from the logs of the tables that a run has looked at.

The hook runs in a writer's process and knows of no ledger. What is remembered is the version up to which each table's
log was read; it is written last, so that a run that dies before leaves the work to the next one. A row comes once.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from maintainer.app.lookback.ledger_access import own_rows
from maintainer.app.planning.reader_pool import ReaderPool
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import tables_read_at_once
from maintainer.engine.process_loss import engine_gone, is_engine_lost
from maintainer.engine.protocols import Engine, TableReader
from maintainer.errors import MaintainerError
from maintainer.execution.run_context import Clock
from maintainer.journal.folder.atomic_files import write_atomically
from maintainer.journal.ledger.ledger_pending import write_mark
from maintainer.journal.ledger.ledger_rebuild import LedgerStore, fill_up
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.model.plan.plan import Observed, Plan, Problem, TablePlan
from maintainer.model.run.auto_compaction import STEP_KIND
from maintainer.model.table.commit_records import MAX_COMMITS_READ, CommitsRead, CommitsWanted
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.resolved import ResolvedPolicy

LOOKED_FILE = "hook_commits.json"
FIRST_LOOK_MS = 7 * 86_400_000
"""How far back the first look at a table goes; `ledger rebuild` reads the whole log."""


MAX_SECONDS = 300.0
"""How long one run looks; the tables that are left are for the next one."""

MAX_AT_ONCE = 4
"""Tables that one run looks at side by side; most of a look is waiting for a store."""

MAX_LOGS_REMEMBERED = 20_000
"""Those that were searched last; a further one is searched seven days back again."""

COMMITS_SINCE_PLAN = 200
"""Commits that may have followed while the run worked; with more of them, the next run looks at the same ones again."""


def append_hook_commits(project: Project, engine: Engine, plan: Plan, ledger: LedgerStore) -> Problem | None:
    """Append a row for each commit of the hook that the ledger has not, for the tables of a plan that was carried out.

    Returns:
        What went wrong, for the report; no table fails by it, and the next run looks again.
    """
    path = project.runs_dir.parent / LOOKED_FILE
    looked = _looked(path)
    policies = {policy.table: policy for policy in project.policies}
    rows: dict[TableRef, list[LedgerRow]] = {}
    heads: dict[str, int] = {}
    problems: dict[TableRef, Problem] = {}
    tables = {
        table.ref: table
        for table in plan.user_tables
        if table.ref in policies and table.observed is not None and _seen(looked, table) != table.observed.version
    }
    started = time.monotonic()

    def read_commits(reader: TableReader, policy: ResolvedPolicy, counts: Callable[[], bool]) -> None:
        if time.monotonic() - started > MAX_SECONDS:
            return
        table = tables[policy.table]
        try:
            read, head = _commits_of_hook(reader, table, _seen(looked, table), plan.created_at_ms)
            found = list(own_rows([(policy, read)], project.root))
        except MaintainerError as error:
            if counts():
                problems[table.ref] = _problem(error)
            return
        if counts():
            rows[table.ref] = found
            heads.update(head)

    def give_up(policy: ResolvedPolicy, why: str) -> None:
        problems[policy.table] = Problem("E652", f"{_MISSING}: {why}", policy.table.identifier, _AGAIN)

    try:
        if tables:
            jobs = min(MAX_AT_ONCE, tables_read_at_once(tables))
            ReaderPool(engine, read_commits, give_up, Clock(), MAX_SECONDS).run([policies[ref] for ref in tables], jobs)
        if found := [row for ref in tables for row in rows.get(ref, ())]:
            fill_up(ledger, found, young_since_ms=0, is_over=lambda run_id: True, dry_run=False)
            write_mark(project.runs_dir, ledger.mark())
        if heads:
            earlier = {key: version for key, version in looked.items() if key not in heads}
            newest = dict([*earlier.items(), *heads.items()][-MAX_LOGS_REMEMBERED:])
            write_atomically(path, json.dumps(newest, indent=1).encode())
    except MaintainerError as error:
        return _problem(error)
    except OSError as error:
        return Problem("E652", f"what was read for the ledger could not be remembered: {error}", str(path), _AGAIN)
    except Exception as error:
        if not is_engine_lost(error):
            raise
        return _problem(engine_gone(None))  # the run is over and recorded: it does not fail by this
    return next((problems[ref] for ref in reversed(tables) if ref in problems), None)


_MISSING = "commits of the writers' hook could not be brought into the ledger"
_AGAIN = "commits of the writers' hook are missing in the ledger until the next apply"


def _problem(error: MaintainerError) -> Problem:
    return Problem("E652", f"{_MISSING}: {error.what}", error.where, _AGAIN)


def _seen(looked: Mapping[str, int], table: TablePlan) -> int | None:
    """Return the version up to which a table's log was read; None where nothing of it counts."""
    assert table.observed is not None
    seen = looked.get(_looked_key(table.observed))
    # An older state may have been put back: its new commits have numbers that were read before.
    return None if seen is not None and seen > table.observed.version else seen


def _commits_of_hook(
    reader: TableReader, table: TablePlan, seen: int | None, now_ms: int
) -> tuple[CommitsRead, Mapping[str, int]]:
    """Return the hook's commits above a version, and the newest version that was read, by the table's key."""
    assert table.observed is not None
    new = MAX_COMMITS_READ if seen is None else table.observed.version - seen + COMMITS_SINCE_PLAN
    since_ms = now_ms - FIRST_LOOK_MS if seen is None else None
    read = reader.commits(table.ref, CommitsWanted(min(new, MAX_COMMITS_READ), since_ms, counted=True))
    fresh = [commit for commit in read.commits if seen is None or commit.version > seen]
    reaches_back = seen is None or len(fresh) < len(read.commits) or len(fresh) == MAX_COMMITS_READ
    is_whole = fresh and (reaches_back or fresh[-1].version in ((seen or 0) + 1, read.oldest_version))
    hooks = tuple(commit for commit in fresh if commit.stamp is not None and commit.stamp.kind == STEP_KIND)
    table_id = read.table_id or table.observed.table_id
    read = replace(read, commits=hooks, location=table.observed.location, table_id=table_id)
    return read, {_looked_key(table.observed): fresh[0].version} if is_whole else {}


def _looked_key(observed: Observed) -> str:
    """Return what a look is remembered by: the table's id and its place, for a copy has the id of its original."""
    return f"{observed.table_id} {observed.location}"


def _looked(path: Path) -> Mapping[str, int]:
    """The version up to which each table's log was read; nothing where the file is gone or damaged."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        return {str(table_id): int(version) for table_id, version in json.loads(path.read_bytes()).items()}
    return {}
