"""Run tests of tables on a disk over an S3 server instead: their lake is a folder of the server, and its paths have two
spellings. What opens files gets the disk's, and what names a table, as text, its address on the store.

``TESTS_LAKE=s3`` switches it on for a whole run, since the session must reach the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PosixPath

from tests.support.stores.s3_server import s3_server, spark_keys

SWITCH = "TESTS_LAKE"
ADDRESS = "s3a://lake"

_folder: list[Path] = []


class AddressedPath(PosixPath):
    """A path below the server's bucket; as text it is the object's address."""

    def __fspath__(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return ADDRESS + super().__str__().removeprefix(os.fspath(_folder[0]))


def is_on_store() -> bool:
    """Whether this run has its lakes on the server."""
    return os.environ.get(SWITCH) == "s3"


@contextmanager
def served_lake() -> Iterator[dict[str, str]]:
    """Serve the bucket for the time of a block, and give what a session needs to reach it; delta-rs finds it, too."""
    with s3_server("lake") as server:
        _folder[:] = [server.folder]
        os.environ |= server.options
        # What a test writes beneath the server has no tag.
        untagged = {"spark.hadoop.fs.s3a.change.detection.version.required": "false"}
        yield {"spark.hadoop.fs.s3a.path.style.access": "true", **untagged, **spark_keys(server)}


def lake_of(name: str) -> Path:
    """An empty folder of the server."""
    lake = AddressedPath(_folder[0] / name)
    lake.mkdir()
    return lake
