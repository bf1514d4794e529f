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
from maintainer.delta.jvm.commit_store import S3_SCHEMES
from maintainer.delta.log.s3_write_safety import refuse_unsafe_log_store
from maintainer.delta.storage.failures.engine_failures import (
    SILENT_STORE,
    as_table_error,
    is_store_silent,
    table_errors,
)
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import MaintainerError, Refused, StoreRefusal
from maintainer.model.table.table_facts import TableRef
from maintainer.units import count_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_REMOTE_TABLES = 10
_NO_TABLE = ("T401", "T402")
_SILENT = SILENT_STORE | {"E647"}


def check_remote_tables(
    spark: SparkSession, locations: Sequence[str], away: Mapping[str, MaintainerError], ledger: str | None
) -> Iterator[Check]:
    """Ask Spark for tables that are not on a local path: catalog names and other storage.

    Args:
        spark: The session.
        locations: All tables.
        away: Tables whose store or metastore gives no sign of life, with what was tried: they are not asked for.
        ledger: That of these which the first apply makes.
    """
    causes: dict[tuple[str, str | None], list[str]] = {}
    for location in sorted(away):
        causes.setdefault((away[location].code, away[location].found), []).append(location)
    for tables in causes.values():
        error = away[tables[0]]
        error.where = _first_of(tables)
        yield failed("store" if "/" in tables[0] else "catalog", error)
    remote = [
        location
        for location in locations
        if location not in away
        and (("/" not in location and os.sep not in location) or urlsplit(location).scheme not in ("", "file"))
    ]
    buckets: dict[str, str] = {}
    silent: dict[str, list[str]] = {}
    refusals = _Refusals()
    num_asked = num_left = 0
    for location in remote:
        name = f"table {location}"
        store = _store_of(location) if "/" in location else _catalog_of(location)
        if store in silent:
            silent[store].append(location)
            continue
        if refusals.knows(location):
            continue
        if num_asked == MAX_REMOTE_TABLES:
            num_left += 1
            continue
        num_asked += 1
        checks = guarded(name, partial(_described, spark, name, location, refusals))
        if any(check.code in _SILENT for check in checks):
            silent[store] = []
        is_read = any(check.status is Status.OK for check in checks)
        if location == ledger and any(check.code in _NO_TABLE for check in checks):
            checks = [Check(name, Status.OK, "the ledger is not there yet; the first apply makes it")]
        yield from checks
        if urlsplit(location).scheme in S3_SCHEMES and store and is_read:
            buckets.setdefault(store, location)
    yield from refusals.checks()
    for tables in filter(None, silent.values()):
        what = "store" if "/" in tables[0] else "catalog"
        yield Check(what, Status.WARN, f"not read, for the {what} gave no answer just now: {_first_of(tables)}")
    for bucket, location in buckets.items():
        yield from guarded(f"commits {bucket}", partial(_commits, spark, f"commits {bucket}", location))
    if num_left:
        yield Check("tables", Status.OK, f"{num_left} more were not checked; plan reports those that cannot be read")


class _Refusals:
    """What buckets refused: said once for each cause, with how many tables."""

    def __init__(self) -> None:
        self._buckets = RefusingBuckets()
        self._tables: dict[tuple[str, str, str], list[str]] = {}
        self._errors: dict[tuple[str, str, str], StoreRefusal] = {}

    def knows(self, location: str) -> bool:
        """Whether a table need not be asked for: its bucket refused two others alike."""
        try:
            self._buckets.raise_known(TableRef(location))
        except StoreRefusal as error:
            self._add(location, error)
            return True
        return False

    def add(self, location: str, error: StoreRefusal) -> None:
        """Keep what a table was refused for."""
        self._buckets.refused(TableRef(location), error)
        self._add(location, error)

    def _add(self, location: str, error: StoreRefusal) -> None:
        cause = (_store_of(location), error.code, error.what)
        self._errors.setdefault(cause, error)
        self._tables.setdefault(cause, []).append(location)

    def checks(self) -> Iterator[Check]:
        """Return a failed check for each cause."""
        for cause, error in self._errors.items():
            error.where = _first_of(self._tables[cause])
            yield failed("store", error)


def _first_of(locations: Sequence[str]) -> str:
    """Name the first of some tables, and count the others."""
    more = len(locations) - 1
    return locations[0] + (f" and {count_of(more, 'more table')}" if more else "")


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


def _catalog_of(name: str) -> str:
    """The catalog that a name begins with, nothing for the session's own."""
    return ".".join(name.split(".")[:-2])


def _ask_once(spark: SparkSession, location: str) -> None:
    """Look at one file of a table's log, and raise if the store gives no answer, or refuses the bucket.

    Spark would ask ten times, and its look has an answer without a body, so that it does not say why. Any other failure
    is Spark's to name.
    """
    try:
        jvm = DeltaJvm(spark)
        storage = TableStorage(jvm, jvm.folder_at(jvm.hadoop_path(location)))
        storage.status(storage.commit_uri(0))
    except Exception as error:
        if is_store_silent(error) or isinstance(as_table_error(error, location), StoreRefusal):
            raise


def _described(spark: SparkSession, name: str, location: str, refusals: _Refusals) -> Iterator[Check]:
    is_path = "/" in location
    quoted = f"delta.`{location.replace('`', '``')}`" if is_path else location
    try:
        with table_errors(location):
            if is_path:
                _ask_once(spark, location)
            else:
                entry_of(DeltaJvm(spark), location)
            [row] = spark.sql(f"DESCRIBE DETAIL {quoted}").select("format", "numFiles").collect()
    except StoreRefusal as error:
        refusals.add(location, error)
        return
    if row["format"] == "delta":
        yield Check(name, Status.OK, f"can be read: {row['numFiles']} files")
    else:
        yield Check(name, Status.FAIL, f"is not a Delta table but {row['format']}", "correct `table:` in its policy")
