"""Remember which tables rules managed, so that the next plan can name those that are not there any more.

``found_tables.json`` beside the run folders holds what the newest run found. Without it, as on a machine without
lasting state, nothing is said: it decides about nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.journal.folder.atomic_files import read_document, write_atomically
from maintainer.model.plan.plan import GoneTable, Plan, Problem
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.table_search import managing_rule
from maintainer.policy.table_names import identity, table_ref

FOUND_FILE = "found_tables.json"


FORMAT_VERSION = "1"


def gone_tables(project: Project) -> tuple[GoneTable, ...]:
    """Return the tables that rules managed in the newest run, still would, and that no search comes to now.

    Nothing is said of places that could not be searched to the end.
    """
    loaded, search = project.loaded, project.loaded.search
    if search is None:
        return ()
    now = {identity(name) for table in search.tables for name in table.names}
    now |= {table.key for table in loaded.tables}
    remembered = _remembered(project)
    gone = []
    for name, source in sorted(remembered.items()):
        ref = table_ref(name, project.root)
        manager = managing_rule(ref, loaded.managing_rules, loaded.project.places)
        if manager is not None and identity(ref) not in now and not search.leaves_open(ref):
            gone.append(GoneTable(ref, source))
    return tuple(gone)


def remember_found(project: Project, plan: Plan, on_problem: Callable[[Problem], None]) -> None:
    """Write down which tables rules manage now, for the plan of the next run. Called where a run begins.

    A new table that the run leaves out, as one of another shard, stays new for the run that has it.

    Args:
        project: The project, after its search.
        plan: What the run is about.
        on_problem: Told where it cannot be written; the run goes on.
    """
    search = project.loaded.search
    if search is None:
        return
    before = _remembered(project)
    known = before.keys() | {table.ref.identifier for table in plan.tables}
    managed = {
        policy.table.identifier: policy.source
        for policy in project.policies
        # Without an earlier list no table was reported as new, and none is from now on.
        if policy.rule_line is not None and (not before or policy.table.identifier in known)
    }
    unknown = {name: source for name, source in before.items() if search.leaves_open(table_ref(name, project.root))}
    document = {"format_version": FORMAT_VERSION, "tables": {**unknown, **managed}}
    path = _path(project)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode("utf-8", "surrogatepass"))
    except OSError as error:
        what = f"the list of tables that were found could not be written: {error.strerror or error}"
        on_problem(Problem("E651", what, str(path), "the next plan cannot report tables that are gone by then"))


def tables_found_before(project: Project) -> tuple[TableRef, ...]:
    """Return the tables that rules managed in the newest run."""
    return tuple(table_ref(name, project.root) for name in sorted(_remembered(project)))


def _remembered(project: Project) -> dict[str, str]:
    try:
        document = json.loads(read_document(_path(project)))
        tables = document["tables"] if document["format_version"] == FORMAT_VERSION else {}
        return {str(name): str(source) for name, source in tables.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _path(project: Project) -> Path:
    return project.runs_dir.parent / FOUND_FILE
