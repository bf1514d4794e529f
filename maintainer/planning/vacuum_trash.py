"""Where files may be moved into a trash instead of being deleted."""

from __future__ import annotations

from maintainer.errors import TableError

CHEAP_RENAMES = ("file", "hdfs", "viewfs")
"""Schemes on which moving a file costs no copy. On object stores a rename copies every byte."""


def rename_is_cheap(location: str) -> bool:
    """Whether moving a file costs no copy where a table lies, by the scheme of its URI."""
    return location.partition(":")[0].lower() in CHEAP_RENAMES


def refuse_trash(location: str, where: str) -> None:
    """Refuse a trash where every file would have to be copied.

    Raises:
        TableError: T431.
    """
    if not rename_is_cheap(location):
        raise TableError(
            "there is no trash on an object store: moving a file there copies all its bytes",
            code="T431",
            where=where,
            found=location.partition(":")[0] + ":",
            allowed=", ".join(f"{scheme}:" for scheme in CHEAP_RENAMES),
            help="remove `vacuum.trash`, and switch on versioning of the bucket",
        )
