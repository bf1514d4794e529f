"""Refuse to commit where two writers could overwrite each other's commits.

On S3 Delta's default log store has no put-if-absent: two Spark drivers may overwrite each other's commits, and beside
a customer's writer we are the second driver (Delta's documentation, "Storage configuration"). On a disk our commits
are hard links, which fail when the version exists. Without hard links Delta's own store checks and then renames.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from maintainer.delta.jvm.commit_store import NO_HARD_LINKS, RENAMING_STORES
from maintainer.errors import Refused

SINGLE_WRITER = "spark.maintainer.singleWriter"
"""Our own setting of a worker's session: ``singleWriter: true`` of maintainer.yml."""

S3_SCHEMES = ("s3", "s3a", "s3n")


def refuse_unsafe_log_store(
    location: str,
    setting: Callable[[str], str | None],
    where: str,
    disk_commits: Callable[[], str | None] = lambda: None,
) -> None:
    """Refuse to write where a commit may overwrite another's, unless nobody else writes meanwhile.

    Args:
        location: The table's root, a URI.
        setting: Returns a Spark setting, None where it is not set.
        where: The table, for the message.
        disk_commits: Makes commits to a table on a disk exclusive and says what writes them (``commit_store``). None
            where the JVM that commits is not ours to reach.

    Raises:
        Refused: A432, S3 with Delta's default log store; A433, a disk where a version cannot be created exclusively.
    """
    scheme = urlsplit(location).scheme
    if setting(SINGLE_WRITER) == "true":
        return
    if scheme in S3_SCHEMES:
        _refuse_default_on_s3(scheme, setting, where)
    elif scheme == "file":
        _refuse_renaming(disk_commits(), where)


def _refuse_renaming(store: str | None, where: str) -> None:
    what = "nothing is written here: a commit of ours could overwrite the commit of another writer"
    if store == NO_HARD_LINKS:
        raise Refused(
            what,
            code="A433",
            where=where,
            found="the file system has no hard links",
            help="keep the table on a file system with hard links; `singleWriter: true` in maintainer.yml says that "
            "nobody else writes during a run",
        )
    if store in RENAMING_STORES:
        raise Refused(
            what,
            code="A433",
            where=where,
            found=f"spark.delta.logStore.class is {store}",
            help="remove that setting from the session; `singleWriter: true` in maintainer.yml says that nobody else "
            "writes during a run",
        )


def _refuse_default_on_s3(scheme: str, setting: Callable[[str], str | None], where: str) -> None:
    key = f"spark.delta.logStore.{scheme}.impl"
    if setting(key) or setting("spark.delta.logStore.class"):
        return
    raise Refused(
        "nothing is written to S3 through Delta's default log store: two drivers may overwrite one another's commits",
        code="A432",
        where=where,
        found=f"{key} is not set",
        help=f"pass --conf {key}=io.delta.storage.S3DynamoDBLogStore with its JAR and table, or name the store that "
        "your writers use; `singleWriter: true` in maintainer.yml says that nobody else writes during a run",
    )
