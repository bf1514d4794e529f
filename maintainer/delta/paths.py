"""Paths as Delta's log, Hadoop and Spark write them. Pure text work, the same for every engine."""

from __future__ import annotations

import re
from urllib.parse import unquote

from maintainer.delta.file_store import java_quote, one_spelling

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_absolute(path: str) -> bool:
    """Whether a path in the log is absolute: a file outside the table's folder, as of a shallow clone."""
    # Asked for every path of a log: nearly all have neither at their beginning.
    return path[:1] == "/" or (":" in path and _SCHEME.match(path) is not None)


def text_uri(path: str) -> str:
    """The percent-encoded URI of a qualified path as Spark writes it (``file:/a b``)."""
    return one_spelling(java_quote(path))


def file_uri(location: str, path: str) -> str:
    """The URI of a file as Spark shows it in ``_metadata.file_path``.

    Args:
        location: The table's root as a percent-encoded URI.
        path: As in the log: percent-encoded, relative to the root or absolute.
    """
    quoted = java_quote(unquote(path))
    if is_absolute(path):
        return one_spelling(quoted if ":" in path else f"file:{quoted}")
    return f"{one_spelling(location).rstrip('/')}/{quoted}"
