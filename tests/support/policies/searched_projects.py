"""Projects with a rule that manages, and what a search of their places came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.project.table_search import FoundTable, TableSearch
from maintainer.policy.table_names import table_ref

MANAGE = 'version: 1\nmatch: {tables: ["lake/*"]}\nmanage: true\n'
ROOTS = "version: 1\nroots: [lake]\n"


def project(folder: Path, *policies: str, settings: str = ROOTS, env: str | None = None) -> LoadedProject:
    (folder / "policies").mkdir()
    (folder / "maintainer.yml").write_text(settings, encoding="utf-8")
    for number, text in enumerate(policies):
        (folder / "policies" / f"p{number}.yml").write_text(text, encoding="utf-8")
    return load_project(folder, env, {"LAKE": "/data"})


def searched(loaded: LoadedProject, *names: str | Sequence[str]) -> LoadedProject:
    tables = []
    for name in names:
        spellings = (name,) if isinstance(name, str) else name
        tables.append(FoundTable(tuple(table_ref(spelling, loaded.root) for spelling in spellings)))
    return replace(loaded, search=TableSearch(tuple(tables)))


def sources(loaded: LoadedProject) -> dict[str, str]:
    return {policy.table.identifier: policy.source for policy in loaded.resolved()}
