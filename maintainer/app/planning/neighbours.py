"""Find Delta tables that no policy names, in the folders beside the project's local tables.

``status`` shows them, and they are read before files are deleted: a shallow clone is often made beside its source, and
its source's log does not name it. Tables of a catalog and on other storage are not searched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.select.table_names import identity, table_ref

MAX_FOLDERS, MAX_ENTRIES, MAX_UNMANAGED = 100, 2_000, 1_000
"""Folders that neighbours are looked for in, entries looked at in each, and neighbours named."""


def neighbours(project: Project) -> list[TableRef]:
    """Find Delta tables in folders that hold a managed table, and that no policy file names.

    A table that is reached through a link lies in two folders. Links beside a table are not followed.
    """
    tables = [policy.table for policy in project.policies]
    names, places = {identity(table) for table in tables}, {os.path.realpath(place) for place in _places(tables)}
    beside = (
        table_ref(str(place), project.root)
        for folder in _folders(tables)
        for place in _tables_in(folder)
        if os.path.realpath(place) not in places
    )
    return [ref for ref in dict.fromkeys(beside) if identity(ref) not in names][:MAX_UNMANAGED]


def unmanaged_tables(project: Project) -> list[TableRef]:
    """Find those neighbours that no rule of the project reaches, either."""
    return [ref for ref in neighbours(project) if not project.loaded.match_rules_for(ref)]


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
        return  # the table in it cannot be read either, and says so
    for name in names:
        if (folder / name / "_delta_log").is_dir():
            yield folder / name
