"""Compare the tables found with the policies: named or managed by one, reached only by rules, or not managed."""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from maintainer.errors import ProjectError
from maintainer.journal.folder.atomic_files import write_atomically, writing
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.project_settings import LEDGER_POLICY
from maintainer.policy.project.table_search import FoundTable, TableSearch
from maintainer.policy.table_names import absolute_path, name_key, table_ref

if TYPE_CHECKING:
    from maintainer.policy.project.policy_project import LoadedProject

STUB_FOLDER = "policies/inventory"
MAX_STUBS = 5_000


class Care(enum.StrEnum):
    """Who looks after a table.

    ``by size``: a rule manages it if it is large enough, which only reading the table can tell. ``ruled``: rules reach
    it, but none of them manages it, and nothing is done to it.
    """

    MANAGED = "managed"
    BY_SIZE = "by size"
    RULED = "ruled"
    UNMANAGED = "unmanaged"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """A table as it was found: its name as a policy would write it, and its location as a URI or path."""

    table: TableRef
    location: str


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """A table of the inventory; ``policy_file`` is the file that names it, or the strongest rule that reaches it."""

    table: TableRef
    care: Care
    location: str | None
    policy_file: str | None


def inventory(
    project: LoadedProject, located_tables: Iterable[LocatedTable], *, whole_catalog: bool
) -> tuple[InventoryEntry, ...]:
    """Set what was found against the project's policies, in the order of the tables.

    Args:
        project: The project.
        located_tables: One that was found by name and by folder counts once, by the name that a policy uses.
        whole_catalog: The whole catalog was looked through: a policy's name that is not in it is missing.
    """
    from maintainer.delta.log.table_place import StoragePlaces  # loaded only by commands that look at tables

    storage = StoragePlaces()
    named = {table.key: table for table in project.tables}
    reached = {storage.place_at(table.ref.location): table.key for table in project.tables if table.ref.is_path}
    entries: dict[str, InventoryEntry] = {}
    met: set[str] = set()
    places: dict[str, list[LocatedTable]] = {}
    for table in located_tables:
        places.setdefault(storage.place_at(table.location) or _place(table.location), []).append(table)
    # A rule may exclude a table by any of its names.
    search = TableSearch(tuple(FoundTable(tuple(table.table for table in tables)) for tables in places.values()))
    project = replace(project, search=search)
    for place, tables in places.items():
        keys = [*(name_key(table.table) for table in tables), _place(tables[0].location)]
        key = next((key for key in keys if key in named), reached.get(place))
        if key is not None:
            met.add(key)
            entries[place] = InventoryEntry(named[key].ref, Care.MANAGED, tables[0].location, named[key].document.file)
        elif project.ledger is not None and name_key(project.ledger) in keys:
            # It has a policy of its own, which a file of two lines would only take the place of.
            entries[place] = InventoryEntry(project.ledger, Care.MANAGED, tables[0].location, LEDGER_POLICY)
        else:
            entries[place] = _by_rules(project, tables)
    for key, own in named.items():
        if key not in met and not own.ref.is_path and whole_catalog:
            entries[key] = InventoryEntry(own.ref, Care.MISSING, None, own.document.file)
    return tuple(sorted(entries.values(), key=lambda entry: entry.table))


def _by_rules(project: LoadedProject, tables: Sequence[LocatedTable]) -> InventoryEntry:
    """Return the entry of a table that no file names, by the names under which it was found."""
    by_name = min(tables, key=lambda table: table.table.is_path)
    rules = project.match_rules_for(by_name.table)
    manager = next((rule for rule in map(project.manager_of, (table.table for table in tables)) if rule), None)
    if manager is None:
        care, source = (Care.RULED, rules[-1].document.file) if rules else (Care.UNMANAGED, None)
    else:
        by_size = all(rule.match.min_size_bytes for rule in rules if rule.manages)
        care, source = Care.BY_SIZE if by_size else Care.MANAGED, f"{manager.document.file}:{manager.line}"
    return InventoryEntry(by_name.table, care, by_name.location, source)


def located_at(location: str, root: Path) -> LocatedTable:
    """Return a table found in a folder, named as a policy would name it: nothing percent-encoded."""
    return LocatedTable(table_ref(unquote(location, errors="surrogateescape"), root), location)


def write_stubs(root: Path, entries: Iterable[InventoryEntry]) -> tuple[Path, ...]:
    """Write the smallest policy for each table that no file names; existing files are left alone.

    Returns:
        The files that were written.

    Raises:
        ProjectError: E640, one cannot be written; E644, there are too many.
    """
    unmanaged = [entry for entry in entries if entry.care in (Care.UNMANAGED, Care.RULED)]
    if len(unmanaged) > MAX_STUBS:
        raise ProjectError(
            "there are too many tables to write a policy for each",
            code="E644",
            found=f"{len(unmanaged):,}",
            allowed=f"{MAX_STUBS:,} at once",
            help="name a root with fewer tables",
        )
    written: list[Path] = []
    for entry in unmanaged:
        text = stub(entry.table).encode("utf-8")
        slug = re.sub(r"[^A-Za-z0-9_-]+", "_", entry.table.identifier).strip("_.")[-100:].lower() or "table"
        path = root / STUB_FOLDER / f"{slug}.yml"
        others = (path.with_name(f"{slug}_{number}.yml") for number in itertools.count(2))
        with writing(path, "a policy"):
            while path.exists() and not path.read_bytes().startswith(text):  # of another table
                path = next(others)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, text)
                written.append(path)
    return tuple(written)


def stub(table: TableRef) -> str:
    """Return the smallest policy of a table."""
    name, quoted = table.identifier, "'" + table.identifier.replace("'", "''") + "'"
    return f"version: 1\ntable: {name if re.fullmatch(r'[A-Za-z_./][A-Za-z0-9_./-]*', name) else quoted}\n"


def _place(location: str) -> str:
    return name_key(TableRef(absolute_path(unquote(location, errors="surrogateescape"), Path("/"))))
