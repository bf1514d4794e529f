"""Find policies that reach the same physical table, and tables that no policy names.

Nothing may be done to a table with two policies. Two spellings of one name are found without reading anything
(``name_key``). Otherwise the storage is asked: a path on this machine's disks for every policy, a catalog's name and a
URI only where files are to be deleted, because each of them costs a request.

``status`` shows tables without a policy, and they are read before files are deleted: a shallow clone is often made
beside its source, and its source's log does not name it. Tables of a catalog and on other storage are not searched.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.engine.protocols import TablePlaces, TableReader
from maintainer.errors import MaintainerError
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.resolve import TableSource
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import name_key, table_ref
from maintainer.units import grouped


def paths_to_one_table(tables: Iterable[TableSource]) -> Iterator[Diagnostic]:
    """Report files whose paths, spelled differently, reach one table on this machine (P350). Needs no Spark."""
    by_path = [table for table in sorted(tables, key=lambda table: table.document.file) if table.ref.is_path]
    if len(by_path) < 2:
        return
    from maintainer.delta.log.table_place import StoragePlaces  # not needed for a project of names

    places = StoragePlaces()
    first: dict[str, TableSource] = {}
    for table in by_path:
        place = places.place_at(table.ref.location)
        other = table if place is None else first.setdefault(place, table)
        if other is table or other.key == table.key:
            continue
        message = f"`{table.written}` has a policy already: `{other.written}` is the same table on this machine"
        yield table.document.error_at(("table",), "P350", message, f"one table, one file: the other is {other.place}")


class PolicyPlaces:
    """Where the tables of all policies physically are, as far as it was asked for. Used from several threads.

    Args:
        policies: All policies of the project, whether they are selected or not.
        places: Tells which locations are one table.
    """

    def __init__(self, policies: Iterable[ResolvedPolicy], places: TablePlaces) -> None:
        from maintainer.delta.log.table_place import location_of

        self._places = places
        self._policies = {policy.table.identifier: policy for policy in policies}
        self._place_of: dict[str, str] = {}
        self._unasked = dict(self._policies)
        self._lock = threading.Lock()
        for name, policy in self._policies.items():
            if policy.table.is_path:
                self._keep(name, location_of(policy.table))
                if ":" not in policy.table.location and name in self._place_of:
                    del self._unasked[name]  # a folder of this machine; a URI is spelled as people write it

    def opened(self, plan: TablePlan, reader: TableReader) -> None:
        """Take in where a table was found; ask for all others where files of it are to be deleted.

        Threads that do so at once share the work. None waits for another: what a catalog does not tell holds up one.
        """
        if plan.observed is not None:
            self._keep(plan.ref.identifier, plan.observed.location)
            with self._lock:
                self._unasked.pop(plan.ref.identifier, None)
        if any(isinstance(step, VacuumStep) for step in plan.steps):
            while (policy := self._next_unasked()) is not None:
                with suppress(MaintainerError):  # it reaches no table now; whoever selects it is told
                    self._keep(policy.table.identifier, reader.location_of(policy.table))

    def each_once(self, plans: Iterable[TablePlan]) -> tuple[TablePlan, ...]:
        """Turn the plan of every table that another policy reaches, too, into a problem (T409)."""
        with self._lock:
            place_of = dict(self._place_of)
        names_at = grouped(sorted(place_of), place_of.__getitem__)
        return tuple(self._checked(plan, place_of, names_at) for plan in plans)

    def _checked(self, plan: TablePlan, place_of: Mapping[str, str], names_at: Mapping[str, list[str]]) -> TablePlan:
        own = plan.ref.identifier
        others = [name for name in names_at.get(place_of.get(own, ""), ()) if name != own]
        if plan.observed is None or not others:
            return plan
        listed = ", ".join(f"{name} ({self._policies[name].file})" for name in others)
        problem = Problem(
            "T409",
            f"two policies reach the same table: this one and {listed}",
            plan.policy_file,
            "keep one of the policies; until then nothing is done to the table",
        )
        return TablePlan(
            plan.ref, plan.policy_file, plan.policy_digest,
            problem=problem, owner=plan.owner, rule_line=plan.rule_line, is_new=plan.is_new,
        )  # fmt: skip

    def _next_unasked(self) -> ResolvedPolicy | None:
        with self._lock:
            return self._unasked.popitem()[1] if self._unasked else None

    def _keep(self, name: str, location: str) -> None:
        place = self._places.place_at(location)
        if place is not None:
            with self._lock:
                self._place_of[name] = place


MAX_FOLDERS, MAX_ENTRIES, MAX_UNMANAGED = 100, 2_000, 1_000
"""Folders that neighbours are looked for in, entries looked at in each, and neighbours named."""


def neighbours(project: Project) -> list[TableRef]:
    """Find Delta tables in folders that hold a managed table, and that no policy file names.

    A folder that may not be entered may be one: whoever asks for what it refers to is told that nobody knows.
    A table that is reached through a link lies in two folders. Links beside a table are not followed.
    """
    tables = [policy.table for policy in project.policies]
    names, places = {name_key(table) for table in tables}, {os.path.realpath(place) for place in _places(tables)}
    beside = (
        table_ref(str(place), project.root)
        for folder in _folders(tables)
        for place in _tables_in(folder)
        if os.path.realpath(place) not in places
    )
    return [ref for ref in dict.fromkeys(beside) if name_key(ref) not in names][:MAX_UNMANAGED]


def unmanaged_tables(project: Project) -> list[TableRef]:
    """Find those neighbours that are tables for sure and that no rule of the project reaches, either."""
    without_rule = (ref for ref in neighbours(project) if not project.loaded.match_rules_for(ref))
    return [ref for ref in without_rule if _holds_table(Path(ref.location))]


def _folders(tables: Iterable[TableRef]) -> list[Path]:
    """Folders that hold a managed table each, sorted; the ledger's own holds nothing of the user's."""
    parents = {folder.parent for place in _places(tables) for folder in (place, Path(os.path.realpath(place)))}
    return sorted(parent for parent in parents if parent.name != ".maintainer")[:MAX_FOLDERS]


def _places(tables: Iterable[TableRef]) -> Iterator[Path]:
    return (Path(ref.location) for ref in tables if ref.is_path and os.path.isabs(ref.location))


def _tables_in(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for _, entry in zip(range(MAX_ENTRIES), entries, strict=False)
                if entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return  # who may not list the folder does not see what is beside a table
    for name in names:
        if name != "lost+found" and _holds_table(folder / name) is not False:
            yield folder / name


def _holds_table(folder: Path) -> bool | None:
    """Whether a Delta log lies in a folder; None where that cannot be looked at, as in one of another user."""
    try:
        return stat.S_ISDIR((folder / LOG_FOLDER).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
