"""Look for tables that only rules manage: below the roots and in the databases that maintainer.yml declares.

Folders of this machine are looked through without Spark; other storage and the catalog need a session. What was found
becomes part of the project, which then knows such tables like any other. A place that cannot be searched is a problem
of its own in the plan, and the others are searched all the same.

Which tables rules managed is remembered in ``found_tables.json`` beside the run folders, so that the next plan can name
those that are not there any more. Without it, as on a machine without lasting state, nothing is said: it decides about
nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from maintainer.app.engine_access import EngineOptions, OpenedEngine, open_engine, project_engine
from maintainer.app.project_folders import Project
from maintainer.engine.protocols import TableFinder
from maintainer.errors import FoldersTooDeep, MaintainerError
from maintainer.journal.folder.atomic_files import read_document, write_atomically
from maintainer.model.plan.plan import GoneTable, Plan, Problem
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.table_search import (
    FoundTable,
    TableProblem,
    TableSearch,
    catalog_meant,
    database_matches,
    database_of,
    managing_rule,
)
from maintainer.policy.table_names import is_uri, name_key, table_ref
from maintainer.policy.yaml.discovery import PROJECT_FILE

_Item = TypeVar("_Item")

CATALOG = TableRef("catalog")
"""What the catalog is called where it could not be searched."""


def needs_session(project: Project) -> bool:
    """Tell whether a search has to ask a catalog, or storage that is not this machine's.

    Files that name tables of a catalog need it, too: such a table may lie below a root.
    """
    places = project.loaded.project.places
    if not project.loaded.searches:
        return False
    return bool(places.databases or any(map(is_uri, places.roots)) or _named_databases(project))


def search_tables(project: Project, engine: EngineOptions | OpenedEngine) -> Project:
    """Return the project with the tables that its rules manage. A project that searched already stays as it is.

    Args:
        project: The project.
        engine: What is open, or how to open it where a session is needed.

    Raises:
        EnvironmentUnfit: A session is needed and cannot be started.
    """
    if project.loaded.search is not None or not project.loaded.searches:
        return project
    with ExitStack() as opened:
        finder: TableFinder | None = None
        unfit: MaintainerError | None = None
        if needs_session(project):
            if isinstance(engine, EngineOptions):
                engine = opened.enter_context(open_engine(project_engine(project.loaded.project, engine)))
            try:
                finder = opened.enter_context(engine.finder())
            except MaintainerError as error:  # over Spark Connect nothing can be listed
                unfit = error
        with engine.stages.lasting("looking for tables"):
            return _with_search(project, _Search(project, finder, unfit).result())


def searched_again(project: Project, engine: OpenedEngine) -> Project:
    """Return the project as a new search finds it; in a place that cannot be searched now, as the last one found it."""
    before = project.loaded.search
    project = search_tables(replace(project, loaded=replace(project.loaded, search=None)), engine)
    search = project.loaded.search
    if before is None or search is None or not search.problems:
        return project
    kept = tuple(table for table in before.tables if any(map(search.leaves_open, table.names)))
    keys = {key for table in kept for key in (*map(name_key, table.names), *table.aliases)}
    tables = (*kept, *(table for table in search.tables if not table.is_one_of(keys)))
    return _with_search(project, replace(search, tables=tuple(sorted(tables, key=lambda table: table.names))))


def declared_places(project: Project) -> tuple[TableRef, ...]:
    """Return what problems and records call the places that are searched: the roots, and the catalog."""
    places = project.loaded.project.places
    roots = tuple(table_ref(root, project.root) for root in places.roots)
    return (*roots, CATALOG) if places.databases or _named_databases(project) else roots


def with_recorded_tables(project: Project, refs: Iterable[TableRef]) -> Project:
    """Return the project as if a search had come to these tables, which records name, beside those that it found.

    A place that could not be searched stands in records like a table, and is none.
    """
    if not project.loaded.searches:
        return project
    search = project.loaded.search or TableSearch(is_recorded=True)
    known = {name_key(name) for table in search.tables for name in table.names}
    known |= set(map(name_key, declared_places(project)))
    more = (FoundTable((ref,)) for ref in dict.fromkeys(refs) if name_key(ref) not in known)
    return _with_search(project, replace(search, tables=(*search.tables, *more)))


def _with_search(project: Project, search: TableSearch) -> Project:
    return replace(project, loaded=replace(project.loaded, search=search))


def _named_databases(project: Project) -> frozenset[str]:
    """The databases of tables that files name, where such a table may lie below a root, too."""
    if not project.loaded.project.places.roots:
        return frozenset()
    return frozenset(database_of(table.ref).lower() for table in project.loaded.tables if not table.ref.is_path)


@dataclass(slots=True)
class _Search:
    project: Project
    finder: TableFinder | None
    unfit: MaintainerError | None
    refs_by_place: dict[str, list[TableRef]] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    problems: list[TableProblem] = field(default_factory=list)
    notes: list[MaintainerError] = field(default_factory=list)

    def result(self) -> TableSearch:
        from maintainer.delta.log.table_place import location_of

        places = self.project.loaded.project.places
        files = {table.key for table in self.project.loaded.tables}
        named = _named_databases(self.project)
        if places.databases or named:
            for name, location in self._collected(partial(self._in_catalog, named), CATALOG):
                ref = TableRef(name)
                declared = database_matches(database_of(ref), places.databases)
                if declared and name_key(ref) not in files:
                    self.refs_by_place.setdefault(self._place(location), []).append(ref)
                else:
                    self.aliases.setdefault(self._place(location), []).append(name_key(ref))
        for root in places.roots:
            place = table_ref(root, self.project.root)
            for location in self._collected(partial(self._below, root), place):
                self.refs_by_place.setdefault(self._place(location), []).append(self._ref_below(root, location))
        for table in self.project.loaded.tables:
            if table.ref.is_path:
                self.aliases.setdefault(self._place(location_of(table.ref)), []).append(table.key)
        tables = (
            FoundTable(tuple(dict.fromkeys(names)), tuple(self.aliases.get(place, ())))
            for place, names in self.refs_by_place.items()
        )
        return TableSearch(
            tuple(sorted(tables, key=lambda table: table.names)), tuple(self.problems), tuple(self.notes)
        )

    def _finder(self) -> TableFinder:
        if self.finder is None:
            assert self.unfit is not None
            raise self.unfit
        return self.finder

    def _in_catalog(self, named: frozenset[str]) -> Iterator[tuple[str, str]]:
        declared = self.project.loaded.project.places.databases
        return self._finder().in_catalog(
            lambda database: database.lower() in named or database_matches(database, declared),
            lambda catalog: catalog_meant(catalog, declared),
        )

    def _below(self, root: str) -> Iterator[str]:
        if is_uri(root):
            return self._finder().below(root)
        from maintainer.delta.snapshot.find_tables import local_tables_below

        return local_tables_below(Path(root))

    def _collected(self, search: Callable[[], Iterator[_Item]], place: TableRef) -> list[_Item]:
        """Collect what a search finds until it ends or fails."""
        items: list[_Item] = []
        try:
            for item in search():
                items.append(item)  # what came before a failure counts
        except FoldersTooDeep as error:
            self.notes.append(error)  # no failure: nobody says that there are tables in them
        except MaintainerError as error:
            self.problems.append(TableProblem(place, PROJECT_FILE, error))
        return items

    def _ref_below(self, root: str, location: str) -> TableRef:
        """Name a table by the root as it is declared: ``s3://`` stays what it is where Hadoop says ``s3a://``."""
        place = unquote(location, errors="surrogateescape")
        place_key, root_key = name_key(table_ref(place, self.project.root)), name_key(TableRef(root)).rstrip("/")
        if place_key.startswith(f"{root_key}/"):
            place = root.rstrip("/") + place_key[len(root_key) :]
        return table_ref(place, self.project.root)

    @staticmethod
    def _place(location: str) -> str:
        from maintainer.delta.log.table_place import StoragePlaces, place_key

        return place_key(StoragePlaces(), location)


FOUND_FILE = "found_tables.json"
FOUND_FORMAT = "1"


def gone_tables(project: Project) -> tuple[GoneTable, ...]:
    """Return the tables that rules managed in the newest run, still would, and that no search comes to now.

    Nothing is said of places that could not be searched to the end.
    """
    search = project.loaded.search
    if search is None:
        return ()
    return tuple(table for table in missed_tables(project) if not search.leaves_open(table.ref))


def unsearched_tables(project: Project) -> tuple[TableRef, ...]:
    """Return the tables that rules managed in the newest run, in places that could not be searched now."""
    search = project.loaded.search
    return tuple(table.ref for table in missed_tables(project) if search is not None and search.leaves_open(table.ref))


def missed_tables(project: Project) -> tuple[GoneTable, ...]:
    """Return the tables that rules managed in the newest run, still would, and that this search did not come to.

    They are gone, or lie where it could not look, as on a disk that is not mounted.
    """
    loaded, found = project.loaded, () if project.loaded.search is None else project.loaded.search.tables
    now = {name_key(name) for table in found for name in table.names} | {table.key for table in loaded.tables}
    before = ((table_ref(name, project.root), source) for name, source in sorted(_found_before(project).items()))
    return tuple(
        GoneTable(ref, source)
        for ref, source in before
        if name_key(ref) not in now and managing_rule(ref, loaded.managing_rules, loaded.project.places) is not None
    )


def _may_be_away(ref: TableRef) -> bool:
    """Whether the disk of a table may not be mounted: the folder in which its path ends is empty."""
    from maintainer.delta.storage.file_identity import empty_folder
    from maintainer.delta.storage.log_paths import path_uri

    return ref.is_path and empty_folder(path_uri(ref.location)) is not None


def remember_found(project: Project, plan: Plan, on_problem: Callable[[Problem], None]) -> None:
    """Write down which tables rules manage now, for the plan of the next run. Called where a run begins.

    A new table that the run leaves out, as one of another shard, stays new for the run that has it. One that may only
    be away stays: it may be a clone that needs files of others.

    Args:
        project: The project, after its search.
        plan: What the run is about.
        on_problem: Told where it cannot be written; the run goes on.
    """
    search = project.loaded.search
    if search is None:
        return
    before = _found_before(project)
    known = before.keys() | {table.ref.identifier for table in plan.tables}
    managed = {
        policy.table.identifier: policy.source
        for policy in project.policies
        # Without an earlier list no table was reported as new, and none is from now on.
        if policy.rule_line is not None and (not before or policy.table.identifier in known)
    }
    missed = (table for table in missed_tables(project) if search.leaves_open(table.ref) or _may_be_away(table.ref))
    unknown = {table.ref.identifier: table.source for table in missed}
    document = {"format_version": FOUND_FORMAT, "tables": {**unknown, **managed}}
    path = _found_path(project)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode("utf-8", "surrogatepass"))
    except OSError as error:
        what = f"the list of tables that were found could not be written: {error.strerror or error}"
        on_problem(Problem("E651", what, str(path), "the next plan cannot report tables that are gone by then"))


def tables_found_before(project: Project) -> tuple[TableRef, ...]:
    """Return the tables that rules managed in the newest run."""
    return tuple(table_ref(name, project.root) for name in sorted(_found_before(project)))


def _found_before(project: Project) -> dict[str, str]:
    try:
        document = json.loads(read_document(_found_path(project)))
        tables = document["tables"] if document["format_version"] == FOUND_FORMAT else {}
        return {str(name): str(source) for name, source in tables.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _found_path(project: Project) -> Path:
    return project.runs_dir.parent / FOUND_FILE
