"""Match rules with tables: globs on names and paths, exclusions, and tags."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from pathlib import Path

from maintainer.policy.select.table_names import absolute_path

_GLOB_CHARACTERS = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class TableMatch:
    """The ``match`` of a rule: every criterion that is set must hold, of each list one item is enough.

    Globs are case-sensitive; ``*`` matches any characters, dots and slashes too. ``tags`` compares with the
    tags of the table's own file or its profiles, never with those that a rule gives:
    otherwise a rule could decide about itself.
    """

    tables: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None

    def applies_to(self, name: str, tags: Iterable[str]) -> bool:
        """Tell whether the rule reaches a table with this `plain_name` that carries these tags."""
        if self.tables is not None and not name_matches(name, self.tables):
            return False
        if name_matches(name, self.exclude):
            return False
        return self.tags is None or not set(self.tags).isdisjoint(tags)


def table_match(match: Mapping[str, object], root: Path) -> TableMatch:
    """Build the criteria from a rule's ``match`` map; relative path globs start at the project's root."""
    tables, tags = match.get("tables"), match.get("tags")
    return TableMatch(
        tables=None if tables is None else tuple(absolute_glob(glob, root) for glob in _texts(tables)),
        exclude=tuple(absolute_glob(glob, root) for glob in _texts(match.get("exclude"))),
        tags=None if tags is None else _texts(tags),
    )


def absolute_glob(glob: str, root: Path) -> str:
    """Return a glob that can be compared with `plain_name`: paths absolute, names without session catalog."""
    if "/" in glob:
        # The folder of the project is text, whatever characters its name has.
        return glob if glob.startswith("*") else absolute_path(glob, Path(escape(os.fspath(root))))
    return glob.removeprefix("spark_catalog.").replace("`", "")


def is_glob(text: str) -> bool:
    """Tell whether a text has characters that match more than themselves."""
    return _GLOB_CHARACTERS.search(text) is not None


def name_matches(name: str, globs: Sequence[str]) -> bool:
    """Tell whether one of the globs matches a `plain_name`."""
    return any(_compiled(glob).match(name) is not None for glob in globs)


@lru_cache(maxsize=4096)
def _compiled(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
