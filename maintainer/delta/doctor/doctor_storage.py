"""Check storage for ``doctor``: disks, the run folder, and tables on stores and in catalogs.

Of disks: free space, clock, and the storage of each table. A probe is one small file that is removed at once, and only
where we write anyway. Of tables elsewhere: whether Spark can read them, and whether commits to their buckets are
exclusive.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maintainer.delta.doctor.doctor_model import Check, Status, failed, guarded
from maintainer.delta.engine.catalog_names import entry_of
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.storage.failures.engine_failures import (
    as_table_error,
    is_store_silent,
    table_errors,
)
from maintainer.delta.storage.table_log import local_folder, look_into
from maintainer.delta.storage.table_storage import TableStorage, why_hadoop
from maintainer.delta.transaction.requirements import refuse_unsafe_log_store
from maintainer.engine.protocols import SignOfLife
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import CatalogAway, MaintainerError, Refused, StoreRefusal, StoreSilent
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.store_kinds import CreatedOnce, store_kind
from maintainer.model.table.table_facts import TableRef
from maintainer.units import by_cause, count_of, named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_FREE_BYTES = 512 << 20
ROOMY_FREE_BYTES = 5 << 30
MAX_CLOCK_SKEW_SECONDS = 60.0
MAX_NAMED_TABLES = 12
MIN_ALIKE = 3
"""As many tables with the same fault are said in one check."""

_FIRST_PLAUSIBLE_SECONDS = 1_750_000_000  # June 2025: before this version was written


def check_disk(root: Path) -> Iterator[Check]:
    """Check the free space where Spark sorts and where the run folder lies."""
    for name, folder in (("disk: temp", Path(tempfile.gettempdir())), ("disk: project", nearest_existing(root))):
        free = shutil.disk_usage(folder).free
        detail = f"{free / (1 << 30):.1f} GiB free at {folder}"
        fix = "free some space" + ("; or set TMPDIR to a larger disk" if name == "disk: temp" else "")
        if free < MIN_FREE_BYTES:
            yield Check(name, Status.FAIL, detail, fix)
        elif free < ROOMY_FREE_BYTES:
            yield Check(name, Status.WARN, f"{detail}; large tables need room to sort", fix)
        else:
            yield Check(name, Status.OK, detail)


def check_run_folder(runs_dir: Path) -> Iterator[Check]:
    """Whether a run can be recorded in the folder of all runs, and whether that disk's clock agrees with ours."""
    folder = nearest_existing(runs_dir)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".maintainer-probe-") as probe:
            probe.write(b"probe")
            probe.flush()
            os.fsync(probe.fileno())
            written_at = os.stat(probe.name).st_mtime
    except OSError as error:
        fix = f'chmod u+w "{folder}", or run in a project folder that is yours'
        yield Check("run folder", Status.FAIL, f"{folder} cannot be written: {error.strerror}", fix)
    else:
        yield Check("run folder", Status.OK, f"{runs_dir} can be written")
        yield _clock(written_at)


def _clock(written_at: float) -> Check:
    now = time.time()
    if now < _FIRST_PLAUSIBLE_SECONDS:
        text = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
        return Check("clock", Status.FAIL, f"this machine says it is {text}", "sudo timedatectl set-ntp true")
    skew = abs(now - written_at)
    if skew > MAX_CLOCK_SKEW_SECONDS:
        detail = f"the project's disk and this machine differ by {skew:.0f} s; retention counts on one time"
        return Check("clock", Status.WARN, detail, "sudo timedatectl set-ntp true, on both machines")
    return Check("clock", Status.OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def on_disk(root: Path, locations: Sequence[str], *, paths_are: bool) -> tuple[str, ...]:
    """Return the tables on disks of this machine; paths without a scheme are such where ``paths_are``, or if there."""
    local = ((location, local_path(root, location)) for location in locations)
    return tuple(
        location
        for location, path in local
        if path is not None and (paths_are or location.startswith("file:") or path.exists())
    )


def check_tables(root: Path, locations: Sequence[str]) -> Iterator[Check]:
    """Check the permissions of tables on local paths; names and other storage are left to Spark.

    Args:
        root: What relative paths are relative to.
        locations: Tables as policies name them: catalog names, paths or URIs.
    """
    local = [path for location in locations if (path := local_path(root, location)) is not None]
    found = [fault for path in local if (fault := _fault_of(path)) is not None]
    if local and len(found) < len(local):
        yield Check("tables", Status.OK, f"{len(local) - len(found)} of {len(local)} on local paths can be read")
    for faults in by_cause(found, lambda fault: (fault.status, fault.what), MIN_ALIKE):
        yield _said(faults)


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with the folder ``where``, in words that are equal for tables with the same fault."""

    status: Status
    where: str
    what: str
    fix: str


def _said(faults: Sequence[_Fault]) -> Check:
    """Return a check for a table, or one for three or more: a disk that is not there is one cause."""
    first, *others = faults
    if not others:
        return Check("table", first.status, f"{first.where} {first.what}", first.fix)
    names = named([fault.where for fault in others], MAX_NAMED_TABLES)
    detail = f"{first.where} {first.what}\nthe same of {len(others)} more tables: {names}"
    return Check("table", first.status, detail, f"{first.fix}; then alike for the others")


def _fault_of(path: Path) -> _Fault | None:
    """Return what is wrong with one table's folder, or None. Writing is asked of the system, not tried."""
    log = path / LOG_FOLDER
    try:
        os.stat(path)
    except PermissionError:
        return _Fault(Status.FAIL, str(path), "cannot be reached", f'chmod u+rx "{path.parent}"')
    except OSError:
        return _Fault(Status.FAIL, str(path), "does not exist", "correct `table:` in its policy, or remove it")
    try:
        look_into(str(path))
        if not stat.S_ISDIR(os.stat(log).st_mode):
            raise NotADirectoryError(log)
    except PermissionError as error:
        where = error.filename or str(path)
        return _Fault(Status.FAIL, where, "cannot be read: permission denied", f'chmod -R u+rX "{path}"')
    except OSError:
        return _Fault(Status.FAIL, str(path), f"is not a Delta table: it has no {LOG_FOLDER}", "correct `table:`")
    for folder in (path, log):
        if not os.access(folder, os.R_OK | os.X_OK):
            return _Fault(Status.FAIL, str(folder), "cannot be read", f'chmod -R u+rX "{folder}"')
    for folder in (path, log):
        if not os.access(folder, os.W_OK):
            what = "cannot be written: plan works, apply does not"
            return _Fault(Status.WARN, str(folder), what, f'chmod -R u+w "{folder}"')
    with contextlib.suppress(OSError):
        if not any(entry.name.endswith((".json", ".parquet")) for entry in os.scandir(log)):
            return _Fault(Status.FAIL, str(log), "holds no commit", "restore the log, or remove the policy")
    return None


def local_path(root: Path, location: str) -> Path | None:
    """Return where a table lies on this machine, or None for a catalog name or another kind of storage."""
    folder = local_folder(location) if "/" in location or os.sep in location else None
    return None if folder is None else root / folder


def nearest_existing(path: Path) -> Path:
    """Return the path itself or its nearest ancestor that exists."""
    for candidate in (path, *path.parents):
        with contextlib.suppress(OSError):
            if candidate.exists():
                return candidate
    return Path(path.anchor or ".")


MAX_REMOTE_TABLES = 10
_NO_TABLE = ("T401", "T402")
_OF_A_SERVICE = (StoreRefusal, StoreSilent, CatalogAway)
"""What each table of a bucket or a catalog meets alike."""

_BEHIND_ALL = "~"
"""A name that stands behind those of all files of a log."""


def check_remote_tables(
    spark: SparkSession, locations: Sequence[str], signs: Mapping[str, SignOfLife], ledger: str | None
) -> Iterator[Check]:
    """Ask Spark for tables in catalogs and on other storage.

    Args:
        spark: The session.
        locations: Where they are.
        signs: Signs of life that tables wait for: those without are not asked for.
        ledger: That of these which the first apply makes.
    """
    buckets: dict[str, str] = {}
    causes = _Causes(signs)
    listed = list[str]()
    num_asked = num_left = 0
    for location in locations:
        is_name = "/" not in location and os.sep not in location
        if causes.knows(location):
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
        if store_kind(location).created_once is CreatedOnce.BY_CONDITION:
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
        of_all = (error.found or "") if isinstance(error, (StoreSilent, CatalogAway)) else _service_of(location)
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
    """The bucket of a URI, or the catalog that a name begins with; nothing for the session's own, / for paths."""
    return urlsplit(location).netloc or "/" if "/" in location else ".".join(location.split(".")[:-2])


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
        if not isinstance(error, _OF_A_SERVICE):
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
        if not isinstance(error, _OF_A_SERVICE):
            raise
        causes.add(location, error)
        return
    if row["format"] == "delta":
        yield Check(name, Status.OK, f"can be read: {count_of(row['numFiles'], 'file')}")
    else:
        yield Check(name, Status.FAIL, f"is not a Delta table but {row['format']}", "correct `table:` in its policy")
