"""What is known of a place by the scheme of its address alone, without a connection: one table of all schemes.

What only an open store can say (conditional writes, checksums, deletion of many) is asked of its ``FileStore``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit


class CreatedOnce(Enum):
    """What keeps a commit from replacing another one."""

    BY_CONDITION = "a conditional write"
    BY_LINK = "a hard link"
    BY_CONNECTOR = "Delta's own log store, which creates; one that renames would write over a commit"
    BY_RENAME = "a rename, which is refused where there is something"


@dataclass(frozen=True, slots=True)
class StoreKind:
    """What a scheme says.

    Attributes:
        spelled: The scheme that stands for all that reach the same objects.
        connector: The kind of object store in ``storage:``, whose connector Spark needs; None where it needs none of
            ours.
        is_served: This process reads and writes it itself.
        renames_cheaply: Moving a file copies nothing.
        created_once: What keeps a commit from replacing another one.
        names_versions: Asked for an object it names the version, and none where it never kept versions.
        is_counted: Hadoop's client counts what it asks.
        has_endpoint: The address of a server stands in the settings, if it is not the provider's.
        asks_by_request: Each file is asked for over the network.
        hadoop_scheme: How Hadoop's address begins.
        state_place: How a place for a state is written there; None where it cannot hold one.
    """

    spelled: str
    connector: str | None = None
    is_served: bool = False
    renames_cheaply: bool = False
    created_once: CreatedOnce = CreatedOnce.BY_RENAME
    names_versions: bool = False
    is_counted: bool = False
    has_endpoint: bool = False
    asks_by_request: bool = True
    hadoop_scheme: str | None = None
    state_place: str | None = None


_S3 = StoreKind(
    "s3", "s3", is_served=True, created_once=CreatedOnce.BY_CONDITION, names_versions=True, is_counted=True,
    has_endpoint=True, hadoop_scheme="s3a", state_place="s3://BUCKET/FOLDER",
)  # fmt: skip
# hadoop-azure speaks TLS for `abfs`, too, unless `fs.azure.always.use.https` is false.
_AZURE = StoreKind("abfs", "azure", is_served=True, state_place="abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER")
_GOOGLE = StoreKind(
    "gs", "gcs", is_served=True, created_once=CreatedOnce.BY_CONNECTOR, state_place="gs://BUCKET/FOLDER"
)
DISK = StoreKind("file", renames_cheaply=True, created_once=CreatedOnce.BY_LINK, asks_by_request=False)

STORE_KINDS: Mapping[str, StoreKind] = {
    "file": DISK,
    "hdfs": StoreKind("hdfs", renames_cheaply=True),
    "viewfs": StoreKind("viewfs", renames_cheaply=True),
    "s3": _S3,
    "s3a": _S3,
    "s3n": StoreKind("s3", created_once=CreatedOnce.BY_CONDITION),
    "abfss": _AZURE,
    "abfs": _AZURE,
    "wasb": StoreKind("wasb"),
    "wasbs": StoreKind("wasb"),
    "gs": _GOOGLE,
}

SERVED_SCHEMES = frozenset(scheme for scheme, kind in STORE_KINDS.items() if kind.is_served)
CHEAP_RENAMES = tuple(scheme for scheme, kind in STORE_KINDS.items() if kind.renames_cheaply)
STATE_PLACES = {scheme: kind.state_place for scheme, kind in STORE_KINDS.items() if kind.state_place}


def store_kind(address: str) -> StoreKind:
    """Return what the scheme of a path or URI says; one that is not in the table is a store that only Hadoop knows."""
    scheme = urlsplit(address).scheme.lower()
    return STORE_KINDS.get(scheme, StoreKind(scheme)) if scheme else DISK
