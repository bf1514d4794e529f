"""Refuse to commit where two writers could overwrite each other's commits.

On S3 Delta's default log store looks whether a version exists and then writes over it, and beside a customer's writer
we are the second driver (Delta's documentation, "Storage configuration"). Our commits there are conditional writes, on
a disk hard links: both fail when the version exists. Some servers have no conditional writes, or ignore the condition;
some file systems have no hard links. On Google Delta's own store creates; one that renames writes over a commit there.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from maintainer.delta.jvm.commit_store import IGNORES_CONDITION, NO_CONDITIONAL_WRITES, NO_HARD_LINKS, RENAMING_STORES
from maintainer.delta.spark.installed_versions import DELTA_VERSION, installed
from maintainer.errors import Refused
from maintainer.model.table.store_kinds import CreatedOnce, store_kind

SINGLE_WRITER = "spark.maintainer.singleWriter"
"""Our own setting of a worker's session: ``singleWriter: true`` of maintainer.yml."""

_TWO_DRIVERS = "nothing is written here: two drivers may overwrite one another's commits"
_OVERWRITES = "nothing is written here: a commit of ours could overwrite the commit of another writer"
_ALONE = "`singleWriter: true` in maintainer.yml says that nobody else writes during a run"
_CANNOT = {
    NO_CONDITIONAL_WRITES: "the connector has no conditional writes (Hadoop 3.4.1 of Spark 4.0 has none), or "
    "`fs.s3a.create.conditional.enabled` is off",
    IGNORES_CONDITION: "the server writes over an object although it is asked not to (`If-None-Match: *`)",
}

_RENAMING_ON_GOOGLE = RENAMING_STORES | {
    f"{package}.AzureLogStore" for package in ("io.delta.storage", "org.apache.spark.sql.delta.storage")
}


def refuse_unsafe_log_store(
    location: str,
    setting: Callable[[str], str | None],
    where: str,
    exclusive_commits: Callable[[], str | None] = lambda: None,
) -> None:
    """Refuse to write where a commit may overwrite another's, unless nobody else writes meanwhile.

    Args:
        location: The table's root, a URI.
        setting: Returns a Spark setting, None where it is not set.
        where: The table, for the message.
        exclusive_commits: Makes commits to the table exclusive and says what writes them (``commit_store``). None
            where the JVM that commits is not ours to reach.

    Raises:
        Refused: A432 on S3 or Google's storage, A433 on a disk, where a version cannot be created exclusively.
    """
    if setting(SINGLE_WRITER) == "true":
        return
    code, what, unsafe = "A432", _TWO_DRIVERS, None
    match store_kind(location).created_once:
        case CreatedOnce.BY_CONDITION:
            unsafe = _unsafe_on_s3(exclusive_commits(), urlsplit(location).scheme, setting)
        case CreatedOnce.BY_LINK:
            code, what, unsafe = "A433", _OVERWRITES, _unsafe_on_disk(exclusive_commits())
        case CreatedOnce.BY_CONNECTOR:
            unsafe = _unsafe_on_google(setting)
        case CreatedOnce.BY_RENAME:
            pass
    if unsafe is not None:
        raise Refused(what, code=code, where=where, found=unsafe[0], help=unsafe[1])


def _unsafe_on_disk(store: str | None) -> tuple[str, str] | None:
    """Return what lets a commit replace another, and what to do about it; None where nothing does."""
    if store == NO_HARD_LINKS:
        return "the file system has no hard links", f"keep the table on a file system with hard links; {_ALONE}"
    if store in RENAMING_STORES:
        return f"spark.delta.logStore.class is {store}", f"remove that setting from the session; {_ALONE}"
    return None


def _unsafe_on_google(setting: Callable[[str], str | None]) -> tuple[str, str] | None:
    """As on a disk. Google's connector writes over what is there where a store renames; Delta's own creates."""
    way_out = (
        "remove that setting: Delta's own store for `gs://` never replaces a commit; or write `singleWriter: true` in "
        "maintainer.yml if nobody else writes during a run"
    )
    keys = ("spark.delta.logStore.gs.impl", "spark.delta.logStore.class")
    return next(((f"{key} is {setting(key)}", way_out) for key in keys if setting(key) in _RENAMING_ON_GOOGLE), None)


def _unsafe_on_s3(store: str | None, scheme: str, setting: Callable[[str], str | None]) -> tuple[str, str] | None:
    key = f"spark.delta.logStore.{scheme}.impl"
    if store in _CANNOT:
        found = _CANNOT[store or ""]
    elif store in RENAMING_STORES:
        found = f"spark.delta.logStore.class is {store}"
    elif store is None and not setting(key) and not setting("spark.delta.logStore.class"):
        found = f"{key} is not set, and maintainer cannot set it in this session"
    else:
        return None
    delta = installed("delta-spark") or DELTA_VERSION
    newer = "use Spark 4.1 or later, whose Hadoop has them; or " if store == NO_CONDITIONAL_WRITES else ""
    return found, (
        f"{newer}maintainer.yml: `spark: {{packages: [io.delta:delta-storage-s3-dynamodb:{delta}], conf: {{{key}: "
        "io.delta.storage.S3DynamoDBLogStore}}`, and the same for every writer; or `singleWriter: true` if nobody else "
        "writes during a run"
    )
