"""Whether Spark can read tables that are not on a local path, and whether commits to their buckets are exclusive."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maintainer.delta.doctor.doctor_model import Check, Status, failed, guarded
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.jvm.commit_store import S3_SCHEMES
from maintainer.delta.log.s3_write_safety import refuse_unsafe_log_store
from maintainer.delta.storage.failures.engine_failures import SILENT_STORE, is_store_silent, table_errors
from maintainer.delta.storage.failures.machine_failures import unreachable
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import Refused
from maintainer.units import count_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_REMOTE_TABLES = 10
_NO_TABLE = ("T401", "T402")


def check_remote_tables(
    spark: SparkSession, locations: Sequence[str], away: Mapping[str, str], ledger: str | None
) -> Iterator[Check]:
    """Ask Spark for tables that are not on a local path: catalog names and other storage.

    Args:
        spark: The session.
        locations: All tables.
        away: Tables whose store gives no sign of life, and what was tried: they are not asked for.
        ledger: That of these which the first apply makes.
    """
    for tried in sorted(set(away.values())):
        tables = sorted(location for location in away if away[location] == tried)
        more = f" and {count_of(len(tables) - 1, 'more table')}" if len(tables) > 1 else ""
        yield failed("store", unreachable(tables[0] + more, tried, is_s3=True))
    remote = [
        location
        for location in locations
        if location not in away
        and (("/" not in location and os.sep not in location) or urlsplit(location).scheme not in ("", "file"))
    ]
    buckets: dict[str, str] = {}
    silent: set[str] = set()
    for location in remote[:MAX_REMOTE_TABLES]:
        name = f"table {location}"
        is_path = "/" in location
        if is_path and _store_of(location) in silent:
            yield Check(name, Status.WARN, "not read: its store gave no answer just now")
            continue
        checks = guarded(name, partial(_described, spark, name, location))
        if is_path and any(check.code in SILENT_STORE for check in checks):
            silent.add(_store_of(location))
        is_read = all(check.status is Status.OK for check in checks)
        if location == ledger and any(check.code in _NO_TABLE for check in checks):
            checks = [Check(name, Status.OK, "the ledger is not there yet; the first apply makes it")]
        yield from checks
        if urlsplit(location).scheme in S3_SCHEMES and is_path and is_read:
            buckets.setdefault(urlsplit(location).netloc, location)
    for bucket, location in buckets.items():
        yield from guarded(f"commits {bucket}", partial(_commits, spark, f"commits {bucket}", location))
    if len(remote) > MAX_REMOTE_TABLES:
        rest = len(remote) - MAX_REMOTE_TABLES
        yield Check("tables", Status.OK, f"{rest} more were not checked; plan reports those that cannot be read")


def _commits(spark: SparkSession, name: str, location: str) -> Iterator[Check]:
    """Try once for each bucket whether a commit can be created without replacing another: an object, removed again."""
    jvm = DeltaJvm(spark)
    jvm.activate()
    with table_errors(location):
        log = jvm.log_of_root(jvm.hadoop_path(location))
        try:
            refuse_unsafe_log_store(
                location, lambda key: spark.conf.get(key, None), location, lambda: jvm.make_commits_exclusive(log)
            )
        except Refused as refused:
            yield Check(name, Status.WARN, f"{refused.what}; found: {refused.found}", refused.help, refused.code)
            return
    yield Check(name, Status.OK, "a commit never replaces another one")


def _store_of(location: str) -> str:
    return urlsplit(location).netloc


def _ask_once(spark: SparkSession, location: str) -> None:
    """Look at one file of a table's log, and raise if the store gives no answer: Spark would ask ten times.

    Any other failure is Spark's to name: an answer to this look has no body, so that it does not say why.
    """
    try:
        jvm = DeltaJvm(spark)
        storage = TableStorage(jvm, jvm.folder_at(jvm.hadoop_path(location)))
        storage.status(storage.commit_uri(0))
    except Exception as error:
        if is_store_silent(error):
            raise


def _described(spark: SparkSession, name: str, location: str) -> Iterator[Check]:
    is_path = "/" in location
    quoted = f"delta.`{location.replace('`', '``')}`" if is_path else location
    with table_errors(location):
        if is_path:
            _ask_once(spark, location)
        [row] = spark.sql(f"DESCRIBE DETAIL {quoted}").select("format", "numFiles").collect()
    if row["format"] == "delta":
        yield Check(name, Status.OK, f"can be read: {row['numFiles']} files")
    else:
        yield Check(name, Status.FAIL, f"is not a Delta table but {row['format']}", "correct `table:` in its policy")
