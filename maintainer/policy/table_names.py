"""Bring the spellings of a table into one form, tell when two of them name one table, and match globs with it.

Without a catalog only spellings can be compared: back-ticks, case, the default catalog, ``file:`` and ``s3a:``,
relative paths, ``..`` and trailing slashes. That two of them reach one table all the same (a *name* and a *path*, a
symlink) only the storage can tell: ``policy_places`` asks it.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.model.table.store_kinds import STORE_KINDS
from maintainer.model.table.table_facts import TableRef
from maintainer.units import parse_size

_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)\Z", re.DOTALL)
_BY_PATH = re.compile(r"delta\.`((?:[^`]|``)+)`\Z", re.IGNORECASE)
_SESSION_CATALOG = "spark_catalog"


def table_ref(written: str, root: Path) -> TableRef:
    """Return the table that ``written`` names in a project at ``root``.

    A catalog name stays as it is. A relative path becomes an absolute one; ``delta.`/path` `` is that path;
    ``file:`` URIs become paths. Any other URI keeps its scheme.
    """
    by_path = _BY_PATH.match(written)
    if by_path and "/" in by_path[1]:
        written = by_path[1].replace("``", "`")
    if not TableRef(written).is_path:
        return TableRef(written)
    path = absolute_path(written, root)
    below = path.removeprefix(f"{os.fspath(root)}/")
    if below == path:
        return TableRef(path)
    # One part alone would read like a catalog name.
    return TableRef(below if TableRef(below).is_path else f"./{below}", path)


def absolute_path(written: str, root: Path) -> str:
    """Return a path or URI without ``.``, ``..``, doubled or trailing slashes; relative ones start at ``root``."""
    scheme = _SCHEME.match(written)
    if scheme is None:
        return os.path.normpath(os.path.join(os.fspath(root), written))
    name, rest = scheme[1].lower(), scheme[2]
    if name == "file":
        return posixpath.normpath("/" + rest.lstrip("/"))
    authority, path = "", rest
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
        authority = "//" + authority
    path = posixpath.normpath("/" + path.lstrip("/"))
    return f"{name}:{authority}{path}" if path != "/" or not authority else f"{name}:{authority}"


def is_uri(written: str) -> bool:
    """Return whether a place is on other storage than this machine's folders: any scheme but ``file:``."""
    scheme = _SCHEME.match(written)
    return scheme is not None and scheme[1].lower() != "file"


def name_parts(identifier: str) -> tuple[str, ...]:
    """Split a catalog name at its dots, without back-ticks."""
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part.strip() for part in _PART.findall(identifier)
    )


def plain_name(ref: TableRef) -> str:
    """Return what globs are matched against: a path, or a name without back-ticks and session catalog."""
    return _in_one_scheme(ref.location) if ref.is_path else ".".join(plain_parts(ref))


def _in_one_scheme(location: str) -> str:
    """Spell the scheme as all that reach the same objects are: ``s3a:`` is ``s3:``."""
    scheme, colon, rest = location.partition(":")
    known = STORE_KINDS.get(scheme)
    return f"{known.spelled if known else scheme}{colon}{rest}"


def plain_parts(ref: TableRef) -> tuple[str, ...]:
    """Return the parts of a name without back-ticks and session catalog."""
    parts = name_parts(ref.identifier)
    is_session = len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG
    return parts[1:] if is_session else parts


def name_key(ref: TableRef) -> str:
    """Return a key that is equal for two spellings of one table.

    Spark's names do not depend on case; a name of one part is in the schema ``default``.
    """
    if ref.is_path:
        return f"path:{plain_name(ref)}"
    name = plain_name(ref).lower()
    return f"name:{name}" if "." in name else f"name:default.{name}"


def is_called(ref: TableRef, written: str) -> bool:
    """Tell whether the name of a table ends like this, as people call it: ``orders`` for ``lake.sales.orders``.

    Case counts in paths, and not in names. The whole name is no end of itself: see `name_key`.
    """
    if ref.is_path:
        return ref.location.endswith(f"/{written.strip('/')}") and bool(written.strip("/"))
    parts = name_parts(written.lower())
    whole = name_parts(ref.identifier.lower())
    return 0 < len(parts) < len(whole) and whole[-len(parts) :] == parts


def may_be_an_end(written: str) -> bool:
    """Tell whether people may mean the end of a path by this: no path from its beginning, and no name with a dot."""
    return not written.startswith("/") and not is_uri(written) and ("/" in written or "." not in written)


MAX_NAMED = 10
"""Tables that a message names."""


def table_called(written: str, tables: Iterable[Sequence[TableRef]]) -> TableRef | None:
    """Return the one table whose name ends like this; None if none. Each has its names, the one to call it by first.

    Raises:
        ProjectError: E613, several do.
    """
    refs = {name_key(names[0]): names[0] for names in tables if any(is_called(name, written) for name in names)}
    if len(refs) <= 1:
        return next(iter(refs.values()), None)
    names = sorted(ref.identifier for ref in refs.values())
    more = f", and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    help = "write more of the name"
    message = f"the names of {len(names):,} tables end with `{written}`"
    raise ProjectError(message, code="E613", found=", ".join(names[:MAX_NAMED]) + more, help=help)


def whole_name_needed(written: str, ref: TableRef) -> ProjectError:
    """Return the error of a command that changes something, where a table is called by the end of its name."""
    what = f"`{written}` is the end of a name, and a whole name is needed here"
    return ProjectError(what, code="E613", found=written, help=f"write `{ref.identifier}`")


_GLOB_CHARACTERS = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class TableMatch:
    """The ``match`` of a rule: every criterion that is set must hold, of each list one item is enough.

    Globs are case-sensitive; ``*`` matches any characters, dots and slashes too.
    """

    tables: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    min_size_bytes: int = 0

    def fits_name(self, name: str, others: Iterable[str] = ()) -> bool:
        """Tell whether the rule may reach a table with this `plain_name`, whatever its tags are.

        Args:
            name: The table's.
            others: Further names of it: what is excluded by one of them is excluded.
        """
        if self.tables is not None and not name_matches(name, self.tables):
            return False
        return not any(name_matches(each, self.exclude) for each in (name, *others))

    def fits_tags(self, tags: Iterable[str]) -> bool:
        """Tell whether the rule asks for no tag, or for one of these."""
        return self.tags is None or not set(self.tags).isdisjoint(tags)


def table_match(match: Mapping[str, object], root: Path) -> TableMatch:
    """Build the criteria from a rule's ``match`` map; relative path globs start at the project's root."""
    tables, tags, size = match.get("tables"), match.get("tags"), match.get("minSize")
    return TableMatch(
        tables=None if tables is None else tuple(absolute_glob(glob, root) for glob in _texts(tables)),
        exclude=tuple(absolute_glob(glob, root) for glob in _texts(match.get("exclude"))),
        tags=None if tags is None else _texts(tags),
        min_size_bytes=parse_size(size) if isinstance(size, int | str) else 0,
    )


def absolute_glob(glob: str, root: Path) -> str:
    """Return a glob that can be compared with `plain_name`: paths absolute, names without session catalog."""
    if "/" in glob:
        # The folder of the project is text, whatever characters its name has.
        return glob if glob.startswith("*") else _in_one_scheme(absolute_path(glob, Path(escape(os.fspath(root)))))
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
