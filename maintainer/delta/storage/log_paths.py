"""Paths and partition values as Delta's log, Hadoop and Spark spell them, for every engine.

``log_uri`` gives the one URI of a path in the log, ``log_readings`` every way in which engines read it, and
``partition_spelling`` the one spelling of a partition value: two spellings of one value are one partition.

An empty text is null, except for a text or binary column: there Spark reads it as it is. A timestamp may be written as
``2000-01-01 12:00:00`` (in the zone of our sessions, UTC) or as ``2000-01-01T12:00:00.000000Z``; OPTIMIZE groups files
by the typed value since Delta 4.3.
"""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import unquote

from maintainer.delta.storage.file_store import PLAIN, java_quote, local_path, one_spelling
from maintainer.model.table.store_kinds import store_kind
from maintainer.policy.predicate.predicate_grammar import read_timestamp, reads_as_null

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DOTS = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")
"""Segments that a path has without naming anything: ``.``, ``..`` and nothing between two slashes."""


def is_absolute(path: str) -> bool:
    """Whether a path in the log is absolute: a file outside the table's folder, as of a shallow clone."""
    # Asked for every path of a log: nearly all have neither at their beginning.
    return path[:1] == "/" or (":" in path and _SCHEME.match(path) is not None)


def log_uri(root_uri: str, path: str) -> str:
    """The one URI of a path as the log writes it, below a table's root or absolute.

    Where it names the root's store by another scheme (``s3:`` and ``s3a:``), it has the root's: storage lists by that.
    """
    uri = _as_logged(root_uri, path)
    if uri.startswith(root_uri):
        return uri
    store, root = store_of(uri), store_of(root_uri)
    one, other = (store_kind(named).spelled + named.partition(":")[2] for named in (store, root))
    return root + uri[len(store) :] if one == other else uri


def file_uri(location: str, path: str) -> str:
    """The URI of a file as Spark shows it in ``_metadata.file_path``: an absolute path keeps its scheme.

    Args:
        location: The table's root as a percent-encoded URI.
        path: As in the log: percent-encoded, relative to the root or absolute.
    """
    return _as_logged(one_spelling(location).rstrip("/"), path)


def _as_logged(root_uri: str, path: str) -> str:
    """Read a path as Hadoop reads it: decoded, dots and doubled slashes taken out of the text, encoded again."""
    if not is_absolute(path):
        if PLAIN.fullmatch(path) and _DOTS.search(path) is None:
            return f"{root_uri}/{path}"
        store, root = _store_and_path(root_uri)
        return store + _tidy(f"{root}/{path}")
    if path.startswith("/"):
        return store_of(root_uri) + _tidy(path)
    store, rest = _store_and_path(path)
    return store + _tidy(rest)


def log_readings(root_uri: str, path: str) -> tuple[str, ...]:
    """Return all URIs that a path of the log may mean to some reader.

    A raw ``?`` or ``#`` may end the path or belong to it; ``..`` behind a link leads elsewhere for an operating system.
    """
    readings = [log_uri(root_uri, path)]
    if "?" in path or "#" in path:
        readings.append(log_uri(root_uri, re.split(r"[?#]", path, maxsplit=1)[0]))
    if ".." in path and root_uri.startswith("file:") and not (":" in path and is_absolute(path)):
        real = os.path.realpath(os.path.join(local_path(root_uri), unquote(path)))
        readings.append("file:" + java_quote(real))
    return tuple(dict.fromkeys(readings))


def short_uri(root_uri: str, uri: str) -> str:
    """A URI without the table's root, if it lies below it: what is kept of a million of them, see ``whole_uri``."""
    below = uri[len(root_uri) + 1 :]
    return below if uri.startswith(f"{root_uri}/") and not is_absolute(below) else uri


def whole_uri(root_uri: str, short: str) -> str:
    """The URI that ``short_uri`` made shorter."""
    return short if is_absolute(short) else f"{root_uri}/{short}"


def store_of(uri: str) -> str:
    """The beginning of a URI that names its store: scheme and authority."""
    return _store_and_path(uri)[0]


def _store_and_path(uri: str) -> tuple[str, str]:
    """Scheme and authority, and the path after them as it is written. This machine's own name is no authority."""
    scheme, _, rest = uri.partition(":")
    authority, path = "", rest
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
        path = f"/{path}"
    if scheme.lower() == "file":
        return "file:" + ("" if authority in ("", "localhost") else f"//{authority}"), path
    return f"{scheme}:" + (f"//{authority}" if rest.startswith("//") else ""), path


def _tidy(path: str) -> str:
    """An absolute path encoded in the one way, without dots, doubled slashes and a slash at its end."""
    return java_quote("/" + posixpath.normpath(unquote(path, errors="surrogateescape")).lstrip("/"))


def text_uri(path: str) -> str:
    """The percent-encoded URI of a qualified path as Spark writes it (``file:/a b``)."""
    return one_spelling(java_quote(path))


def path_uri(text: str) -> str:
    """The percent-encoded URI of a table's path or URI as people write it; nothing in it is encoded yet."""
    return text_uri(text) if _SCHEME.match(text) else f"file:{java_quote(text)}"


_TIMES = ("timestamp", "timestamp_ntz")


def partition_spelling(value: str | None, type_name: object) -> str | None:
    """Return the one spelling of a partition value of a type; None for null.

    A value that cannot be read as its type stays as it is.
    """
    if value is None or reads_as_null(value, str(type_name)):
        return None
    moment = read_timestamp(value) if type_name in _TIMES else None
    return value if moment is None else moment.replace(tzinfo=None).isoformat(sep=" ")
