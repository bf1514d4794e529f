"""May we commit here at all? On S3 only with a log store that lets two drivers write.

Delta's default log store on S3 has no put-if-absent: two Spark drivers may overwrite one another's commits, and beside
a customer's writer we are the second driver (Delta's documentation, "Storage configuration").
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from maintainer.errors import Refused

SINGLE_WRITER = "spark.maintainer.singleWriter"
"""Our own setting of a worker's session: ``singleWriter: true`` of maintainer.yml."""

S3_SCHEMES = ("s3", "s3a", "s3n")


def refuse_unsafe_log_store(location: str, setting: Callable[[str], str | None], where: str) -> None:
    """Refuse to write to S3 unless somebody chose the log store, or said that nobody else writes meanwhile.

    Args:
        location: The table's root, a URI.
        setting: Returns a Spark setting, None where it is not set.
        where: The table, for the message.

    Raises:
        Refused: A432, the log store is Delta's default.
    """
    scheme = urlsplit(location).scheme
    if scheme not in S3_SCHEMES:
        return
    key = f"spark.delta.logStore.{scheme}.impl"
    if setting(key) or setting("spark.delta.logStore.class") or setting(SINGLE_WRITER) == "true":
        return
    raise Refused(
        "nothing is written to S3 through Delta's default log store: two drivers may overwrite one another's commits",
        code="A432",
        where=where,
        found=f"{key} is not set",
        help=f"pass --conf {key}=io.delta.storage.S3DynamoDBLogStore with its JAR and table, or name the store that "
        "your writers use; `singleWriter: true` in maintainer.yml says that nobody else writes during a run",
    )
