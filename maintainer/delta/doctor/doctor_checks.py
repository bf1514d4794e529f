"""Run the checks of ``doctor``: Python, packages, Java, JARs, a session, a table written and read, storage.

The checks are independent, and none can end in a traceback. The session is started the way a run starts it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from maintainer.delta.doctor import doctor_storage
from maintainer.delta.doctor.doctor_model import Check, Status, check_connect, guarded
from maintainer.delta.doctor.doctor_storage import check_remote_tables
from maintainer.delta.engine.endpoint_probe import signs_of_life
from maintainer.delta.jvm import DeltaJvm, tested_pairs
from maintainer.delta.spark.connectors import connectors_to_bring
from maintainer.delta.spark.installed_versions import (
    DELTA_VERSION,
    INSTALL_COMMAND,
    SPARK_LINE,
    Versions,
    check_versions,
    installed,
)
from maintainer.delta.spark.jars import JARS_VARIABLE, ensure_jars, jar_folder, needed_jars, unfit_jars
from maintainer.delta.spark.java_home import Java, inspect_java
from maintainer.delta.spark.jvm_launch import ClassArchive
from maintainer.delta.spark.session_settings import SLOW_DEFAULTS, slow_settings, unsafe_settings
from maintainer.delta.spark.spark_session import SessionLease, open_session, worker_session
from maintainer.delta.spark.start_conf import JAVA_OPTIONS, direct_schemes, read_spark_defaults, remote_of
from maintainer.engine.session_options import SessionOptions
from maintainer.journal.folder.cache_home import HOME_VARIABLE
from maintainer.model.table.table_facts import TableRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
_GREAT_EXPECTATIONS = (1, 24)
_PROBE_ROWS = 10
_SLOW_START_SECONDS = 30.0
_NEEDED = frozenset({"java", "spark and delta", "jars"})
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DoctorInput:
    """What the checks look at.

    Args:
        root: The project's folder.
        locations: Tables as policies name them.
        try_spark: Whether to fetch JARs and start a session; False looks only.
        options: How a run would start its session.
        env: The environment; the process's own if None.
        runs_dir: The folder of all runs; ``.maintainer/runs`` below ``root`` if None.
        ledger: That of the tables which the first apply makes.
    """

    root: Path
    locations: tuple[str, ...] = ()
    try_spark: bool = True
    options: SessionOptions = field(default_factory=SessionOptions)
    env: Mapping[str, str] | None = None
    runs_dir: Path | None = None
    ledger: str | None = None


def run_checks(subject: DoctorInput, progress: Callable[[str], None] | None = None) -> list[Check]:
    """Run every check and return what was found, in the order in which things depend on one another.

    Where a Spark Connect server does the work, Java, JARs and the tables' folders are the server's, and not looked at.
    Where an archive of classes is asked for, an image may be in the making: only what that needs is looked at.

    Args:
        subject: What to look at.
        progress: Called with the name of a check that takes seconds, before it starts.
    """
    say = progress or (lambda _: None)
    checks = guarded("python", _python) + guarded("packages", _packages)
    env = os.environ if subject.env is None else subject.env
    runs_dir = subject.runs_dir or subject.root / ".maintainer" / "runs"
    if remote_of(subject.options, env) is not None:
        checks += guarded("disk", lambda: doctor_storage.check_disk(subject.root))
        checks += guarded("run folder", lambda: doctor_storage.check_run_folder(runs_dir))
        if subject.try_spark:
            say("spark connect")
            checks += guarded("spark connect", lambda: check_connect(subject.options, env))
        return checks + ([_archive(None)] if subject.options.record_classes else [])
    java = _attempt("java", checks, lambda: inspect_java(subject.env), Java.describe)
    versions = _attempt(
        "spark and delta", checks, lambda: check_versions(subject.env),
        lambda found: f"pyspark {found.pyspark}, delta-spark {found.delta}",
    )  # fmt: skip
    checks += guarded("jars", lambda: _jars(subject, java, versions, say))
    checks += guarded("disk", lambda: doctor_storage.check_disk(subject.root))
    if not subject.options.record_classes:
        checks += guarded("run folder", lambda: doctor_storage.check_run_folder(runs_dir))
    home = versions.spark_home if versions is not None else Path(sys.prefix)
    schemes = direct_schemes(subject.options, home, read_spark_defaults(home, env), env)
    local = doctor_storage.on_disk(subject.root, subject.locations, paths_are=schemes is not None)
    checks += guarded("tables", lambda: doctor_storage.check_tables(subject.root, local))
    if subject.try_spark:
        blockers = [check.name for check in checks if check.status is Status.FAIL and check.name in _NEEDED]
        if blockers:
            checks.append(Check("session", Status.WARN, f"not tried, because of: {', '.join(blockers)}"))
        else:
            say("session")
            others = tuple(location for location in subject.locations if location not in local)
            checks += guarded("session", lambda: _session(replace(subject, locations=others), say))
    elif len(local) < len(doctor_storage.on_disk(subject.root, subject.locations, paths_are=True)):
        detail = "paths that are not on this disk were not looked for: Hadoop's configuration says where they lead"
        checks.append(Check("tables", Status.WARN, detail, "run it without --no-spark"))
    return checks


def _attempt(name: str, checks: list[Check], get: Callable[[], _T], say: Callable[[_T], str]) -> _T | None:
    """Add the check of one component, and return the component; None if the check failed."""
    results: list[_T] = []

    def component_check() -> Iterator[Check]:
        results.append(get())
        yield Check(name, Status.OK, say(results[0]))

    checks += guarded(name, component_check)
    return results[0] if results else None


def _python() -> Iterator[Check]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    detail = f"Python {version} at {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield Check("python", Status.FAIL, detail, "create the environment again: python3.12 -m venv .venv")
    elif sys.version_info[:2] > NEWEST_PYTHON:
        yield Check("python", Status.WARN, f"{detail}; not tested above 3.13", "use Python 3.11 to 3.13")
    else:
        yield Check("python", Status.OK, detail)


def _packages() -> Iterator[Check]:
    """Great Expectations by its metadata only: importing it takes seconds."""
    version = installed("great-expectations")
    fix = INSTALL_COMMAND
    if version is None:
        yield Check("great expectations", Status.FAIL, "not installed", fix)
        return
    parts = version.split(".")
    numbers = tuple(int(part) if part.isdigit() else 0 for part in parts[:2])
    fits = _GREAT_EXPECTATIONS <= numbers < (2, 0)
    yield Check("great expectations", Status.OK if fits else Status.FAIL, version, None if fits else fix)


def _jars(
    subject: DoctorInput, java: Java | None, versions: Versions | None, say: Callable[[str], None]
) -> Iterator[Check]:
    folder = jar_folder(subject.env)
    connectors, env = subject.options.storage, os.environ if subject.env is None else subject.env
    if versions is not None:
        defaults = read_spark_defaults(versions.spark_home, env)
        connectors = connectors_to_bring(subject.options, versions.spark_home, defaults)
    pair = versions or Versions(SPARK_LINE, DELTA_VERSION, Path())
    needed = needed_jars(pair, connectors)
    missing, what = unfit_jars(folder, needed), "Delta's four JARs"
    if connectors:
        what = f"Delta's four JARs and the {len(needed) - len(needed_jars(pair))} for {', '.join(connectors)}"
    if not missing:
        yield Check("jars", Status.OK, f"{what} are in {folder}")
    elif subject.try_spark and java is not None and versions is not None:
        say("jars")
        ensure_jars(java, versions, subject.env, connectors)
        yield Check("jars", Status.OK, f"{what} were fetched into {folder}")
    else:
        detail = f"{len(missing)} of {what} are not in {folder}"
        if JARS_VARIABLE in env:
            fix = f"copy {', '.join(missing)} there, or unset {JARS_VARIABLE}"
            yield Check("jars", Status.FAIL, detail, fix, "E605")
        else:
            yield Check("jars", Status.WARN, f"{detail}; they are fetched at the first use", "maintainer doctor")


def _session(subject: DoctorInput, say: Callable[[str], None]) -> Iterator[Check]:
    warm, archive = subject.options.record_classes, None
    with open_session(subject.options, subject.env) as lease:
        master = lease.spark.sparkContext.master
        if lease.borrowed:
            yield Check("session", Status.OK, f"the active session is used: {master}, {lease.cores} cores")
            yield from _slow(lease.spark)
        else:
            detail = f"started in {lease.start_seconds:.1f} s: {master}, {lease.cores} cores"
            slow = lease.start_seconds > _SLOW_START_SECONDS
            yield Check("session", Status.WARN if slow else Status.OK, detail)
        for text in unsafe_settings(lambda key: lease.spark.conf.get(key, None)):
            fix = "set it back to Spark's default where that session starts"
            yield Check("session settings", Status.WARN, text, fix)
        env = os.environ if subject.env is None else subject.env
        signs = signs_of_life([TableRef(location) for location in subject.locations], lease.setting, env)
        say("delta")
        worker = worker_session(lease)
        yield from guarded("engine", lambda: check_engine(DeltaJvm(worker)))
        yield from guarded("delta", lambda: _write_and_read(worker, lease))
        yield from check_remote_tables(worker, subject.locations, signs, subject.ledger)
        archive = lease.archive
        if warm and archive is not None:
            say("class archive")
            archive.path.unlink(missing_ok=True)  # else an old one would pass for the new one
    if warm:
        yield _archive(archive)


def check_engine(jvm: DeltaJvm) -> Iterator[Check]:
    """Look for every private member that the transaction engine uses, and say whether the pair was ever run."""
    jvm.self_test()
    lacking = jvm.lacks_of_kernel()
    if lacking:
        what = (
            f"without Delta Kernel, or with another ({lacking[0]}): Delta itself reads the log again before a deletion"
        )
        fix = (
            "start the session with the JARs delta-kernel-api and delta-kernel-defaults of its Delta, 4.4.0 before 4.2"
        )
        yield Check("engine", Status.WARN, f"{jvm.versions()}, {what}", fix)
    detail = f"{jvm.versions()} has every private member that the transaction engine uses"
    if jvm.is_tested:
        yield Check("engine", Status.OK, detail)
    else:
        fix = f"use a pair that was run: {tested_pairs()}"
        yield Check("engine", Status.WARN, f"{detail}; nobody ran this pair, so the first failed proof ends a run", fix)


def _archive(archive: ClassArchive | None) -> Check:
    """Say whether the JVM that has just ended left an archive; None where the JVM is not ours."""
    name = "class archive"
    if archive is None:
        why, fix = "the JVM is not one that maintainer started", "run it in a process of its own, without --remote"
    elif archive.path.is_file():
        megabytes = archive.path.stat().st_size / 1e6
        return Check(name, Status.OK, f"{megabytes:.0f} MB in {archive.path}; later starts read it")
    elif archive.recording is not None:
        why, fix = f"Java ended without leaving it in {archive.path.parent}", "free some space: it has about 200 MB"
    elif os.access(archive.path.parent, os.W_OK):
        why, fix = f"{JAVA_OPTIONS} says what Java does about archives", "take what it says about archives out of it"
    else:
        fix = f"make the folder writable, or name another one in {HOME_VARIABLE}"
        why = f"{archive.path.parent} cannot be written"
    return Check(name, Status.FAIL, f"not written: {why}", fix)


def _slow(spark: SparkSession) -> Iterator[Check]:
    """Warn about slow settings of a borrowed session; our own work is not affected by them."""
    slow = slow_settings({key: spark.conf.get(key, None) for key in SLOW_DEFAULTS})
    if slow:
        listed = ", ".join(f"{key}={value}" for key, value in slow.items())
        fix = "set them near the number of cores where small tables are worked on; maintainer's own work does"
        yield Check("session settings", Status.WARN, f"slow for small tables in the active session: {listed}", fix)


def _write_and_read(spark: SparkSession, lease: SessionLease) -> Iterator[Check]:
    """Write a Delta table, read it back, remove it. Local masters only: a cluster cannot see our temporary folder."""
    if not (lease.spark.sparkContext.master or "").startswith("local"):
        yield Check("delta", Status.WARN, "not tried: a cluster does not see this machine's temporary folder")
        return
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="maintainer-doctor-"))
    try:
        table = str(folder / "probe")
        spark.range(_PROBE_ROWS).write.format("delta").save(table)
        rows = spark.read.format("delta").load(table).count()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - started
    fits = rows == _PROBE_ROWS and not folder.exists()
    detail = f"a table was written, read and removed in {seconds:.1f} s" if fits else f"{rows} rows of {_PROBE_ROWS}"
    yield Check("delta", Status.OK if fits else Status.FAIL, detail)
