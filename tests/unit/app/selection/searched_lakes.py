"""Projects with a rule that manages tables, their folders, and a catalog and a store that answer as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.project_folders import Project

RULE = 'version: 1\nmatch: {tables: ["lake/*", "s3://b/*", "sales.*"]}\nmanage: true\n'


def project(folder: Path, settings: str = "roots: [lake]", **files: str) -> Project:
    (folder / "policies").mkdir()
    (folder / "maintainer.yml").write_text(f"version: 1\n{settings}\n")
    (folder / "policies" / "rule.yml").write_text(RULE)
    for name, text in files.items():
        (folder / "policies" / f"{name}.yml").write_text(f"version: 1\n{text}\n")
    return Project.load(folder)


def lake(folder: Path, *tables: str) -> None:
    for table in tables:
        (folder / table / "_delta_log").mkdir(parents=True)


class Finder:
    """A catalog and a store; what is an exception is raised after what came before it."""

    def __init__(
        self,
        catalog: Sequence[tuple[str, str] | Exception] = (),
        stored: Sequence[str | Exception] = (),
    ) -> None:
        self.catalog, self.stored = catalog, stored

    def in_catalog(
        self,
        wanted: Callable[[str], bool] = lambda database: True,
        meant: Callable[[str], bool] = lambda catalog: True,
    ) -> Iterator[tuple[str, str]]:
        self.meant = meant
        for entry in self.catalog:
            if isinstance(entry, Exception):
                raise entry
            if wanted(entry[0].partition(".")[0]):
                yield entry

    def below(self, root: str) -> Iterator[str]:
        for location in self.stored:
            if isinstance(location, Exception):
                raise location
            yield location


def opened(finder: Finder | Exception) -> OpenedEngine:
    @contextmanager
    def open_finder() -> Iterator[Finder]:
        if isinstance(finder, Exception):
            raise finder
        yield finder

    return OpenedEngine(
        None, lambda location: None, None, None, open_finder,  # type: ignore[arg-type] # only the finder is asked
    )  # fmt: skip
