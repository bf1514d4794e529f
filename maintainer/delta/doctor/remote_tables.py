"""Whether Spark can read tables that are not on a local path, and whether commits to their buckets are exclusive."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maintainer.delta.doctor.doctor_model import Check, Status, failed, guarded
from maintainer.delta.engine.catalog_names import entry_of
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.s3_write_safety import refuse_unsafe_log_store
from maintainer.delta.storage.failures.engine_failures import (
    SILENT_STORE,
    as_table_error,
    is_store_silent,
    table_errors,
)
from maintainer.delta.storage.open_files import why_hadoop
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.engine.protocols import SignOfLife
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import MaintainerError, Refused, StoreRefusal
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.store_kinds import S3_SCHEMES
from maintainer.model.table.table_facts import TableRef
from maintainer.units import count_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_REMOTE_TABLES = 10
_NO_TABLE = ("T401", "T402")
_SILENT = SILENT_STORE | {"E647"}
_BEHIND_ALL = "~"
"""A name that stands behind those of all files of a log."""


def check_remote_tables(
    spark: SparkSession, locations: Sequence[str], signs: Mapping[str, SignOfLife], ledger: str | None
) -> Iterator[Check]:
    """Ask Spark for tables that are not on a local path: catalog names and other storage.

    Args:
        spark: The session.
        locations: All tables.
        signs: Signs of life that tables wait for: those without are not asked for.
        ledger: That of these which the first apply makes.
    """
    buckets: dict[str, str] = {}
    causes = _Causes(signs)
    listed = list[str]()
    num_asked = num_left = 0
    for location in locations:
        is_name = "/" not in location and os.sep not in location
        if (not is_name and urlsplit(location).scheme in ("", "file")) or causes.knows(location):
            continue
        name = f"table {location}"
        if num_asked == MAX_REMOTE_TABLES:
            num_left += is_name
            yield from [] if is_name else guarded(name, partial(_list, spark, name, location, causes, listed))
            continue
        num_asked += 1
        checks = guarded(name, partial(_described, spark, name, location, causes))
        is_read = any(check.status is Status.OK for check in checks)
        if location == ledger and any(check.code in _NO_TABLE for check in checks):
            checks = [Check(name, Status.OK, "the ledger is not there yet; the first apply makes it")]
        yield from checks
        if "/" in location and is_read:
            buckets.setdefault(_service_of(location), location)
    yield from causes.checks()
    for bucket, location in buckets.items():
        yield from guarded(f"reads {bucket}", partial(_reads, spark, f"reads {bucket}", location))
        if urlsplit(location).scheme in S3_SCHEMES:
            yield from guarded(f"commits {bucket}", partial(_commits, spark, f"commits {bucket}", location))
    opened = f"Spark opened the first {MAX_REMOTE_TABLES}, each takes it seconds"
    if listed:
        yield Check("tables", Status.OK, f"the logs of {len(listed):,} more can be listed; {opened}")
    if num_left:
        yield Check("tables", Status.OK, f"{num_left:,} more of a catalog not checked; {opened}")


class _Causes:
    """What holds for each table of a store or a catalog: no answer, or a refusal. Said once, with how many tables."""

    def __init__(self, signs: Mapping[str, SignOfLife]) -> None:
        self._buckets = RefusingBuckets(signs)
        self._silent: dict[str, MaintainerError] = {}
        self._tables: dict[tuple[str, ...], tuple[MaintainerError, list[str]]] = {}

    def knows(self, location: str) -> bool:
        """Whether a table need not be asked for: its service is away, gave another no answer, or refused two alike."""
        error = self._silent.get(_service_of(location))
        try:
            self._buckets.raise_known(TableRef(location))
        except MaintainerError as known:
            error = known
        if error is not None:
            self._count(location, error)
        return error is not None

    def add(self, location: str, error: MaintainerError) -> None:
        """Keep what a table was not read for."""
        if isinstance(error, StoreRefusal):
            self._buckets.refused(TableRef(location), error)
        else:
            self._silent[_service_of(location)] = error
        self._count(location, error)

    def _count(self, location: str, error: MaintainerError) -> None:
        of_all = (error.found or "") if error.code in _SILENT else _service_of(location)
        self._tables.setdefault((of_all, error.code, error.what), (error, []))[1].append(location)

    def checks(self) -> Iterator[Check]:
        """Return a failed check for each cause."""
        for error, tables in self._tables.values():
            error.where = tables[0] + (f" and {count_of(len(tables) - 1, 'more table')}" if tables[1:] else "")
            yield failed("store" if "/" in tables[0] else "catalog", error)


def _reads(spark: SparkSession, name: str, location: str) -> Iterator[Check]:
    """Say what keeps a store from being read in this process, where something does."""
    jvm = DeltaJvm(spark)
    reason = why_hadoop(jvm, jvm.hadoop_path(location))
    if reason is not None:
        yield Check(name, Status.OK, f"go through Hadoop, which is slower, because of {reason}")


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


def _service_of(location: str) -> str:
    """The bucket of a URI, or the catalog that a name begins with; nothing for the session's own."""
    return urlsplit(location).netloc if "/" in location else ".".join(location.split(".")[:-2])


def _ask_once(spark: SparkSession, location: str) -> None:
    """List the end of a table's log, and raise if the store gives no answer, or refuses the bucket.

    Spark would ask ten times. A look at one object has an answer without a body, which does not say why. Any other
    failure is Spark's to name.
    """
    try:
        jvm = DeltaJvm(spark)
        storage = TableStorage(jvm, jvm.folder_at(jvm.hadoop_path(location)))
        storage.files.children(storage.uri(LOG_FOLDER), after=_BEHIND_ALL)
    except Exception as error:
        if is_store_silent(error) or isinstance(as_table_error(error, location), StoreRefusal):
            raise


def _list(spark: SparkSession, name: str, location: str, causes: _Causes, listed: list[str]) -> Iterator[Check]:
    """Say what is wrong where the log of a table cannot be listed; else add the table to those that can."""
    jvm = DeltaJvm(spark)
    try:
        with table_errors(location):
            storage = TableStorage(jvm, jvm.folder_at(jvm.hadoop_path(location)))
            is_there = storage.status(storage.uri(LOG_FOLDER)) is not None
    except MaintainerError as error:
        if error.code not in _SILENT and not isinstance(error, StoreRefusal):
            raise
        causes.add(location, error)
        return
    if is_there:
        listed.append(location)
    else:
        yield Check(name, Status.FAIL, "there is no Delta table", "correct `table:` in its policy", "T401")


def _described(spark: SparkSession, name: str, location: str, causes: _Causes) -> Iterator[Check]:
    is_path = "/" in location
    quoted = f"delta.`{location.replace('`', '``')}`" if is_path else location
    try:
        with table_errors(location):
            if is_path:
                _ask_once(spark, location)
            else:
                entry_of(DeltaJvm(spark), location)
            [row] = spark.sql(f"DESCRIBE DETAIL {quoted}").select("format", "numFiles").collect()
    except MaintainerError as error:
        if error.code not in _SILENT and not isinstance(error, StoreRefusal):
            raise
        causes.add(location, error)
        return
    if row["format"] == "delta":
        yield Check(name, Status.OK, f"can be read: {count_of(row['numFiles'], 'file')}")
    else:
        yield Check(name, Status.FAIL, f"is not a Delta table but {row['format']}", "correct `table:` in its policy")
