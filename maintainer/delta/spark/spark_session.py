"""Open a Spark session: borrow the active one, or start one and clean up after it.

All work happens in worker sessions (``newSession``), with every setting that matters set and read back. Settings are
per session, and a new session inherits none that were set at run time. So a borrowed session is neither trusted nor
changed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from maintainer.delta.jvm import (
    BORROWED,
    THREAD_PROPERTIES,
    ActiveSession,
    DeltaJvm,
    DirectAccess,
    UnstartedSession,
    tested_pairs,
)
from maintainer.delta.spark import engine_log
from maintainer.delta.spark import jvm_launch as launch
from maintainer.delta.spark.connectors import connectors_to_bring
from maintainer.delta.spark.installed_versions import Versions, check_versions, lacks_spark
from maintainer.delta.spark.jars import ensure_jars
from maintainer.delta.spark.java_home import inspect_java
from maintainer.delta.spark.jvm_launch import ClassArchive, class_archive
from maintainer.delta.spark.process_environment import refuse_nameless_user, refuse_other_names
from maintainer.delta.spark.session_settings import (
    MIN_CORES,
    is_runtime_key,
    refuse_unsafe,
    set_and_check,
    worker_settings,
)
from maintainer.delta.spark.start_conf import (
    DELTA_EXTENSION,
    EXTENSIONS,
    JAVA_OPTIONS,
    connect_refusal,
    direct_schemes,
    has_catalog,
    read_spark_defaults,
    refuse_connect,
    start_conf,
)
from maintainer.engine.session_options import SILENT, STARTING_JAVA, STARTING_SPARK, SessionOptions, StageListener
from maintainer.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

_start_lock = threading.Lock()


@dataclass(slots=True)
class SessionLease:
    """A JVM and its session for as long as they are needed. Closing it stops only what it started.

    The session of an embedded JVM starts when it is first asked for. ``conf`` is what the user said; ``start_seconds``
    is what starting cost so far, 0 for a borrowed session.
    """

    borrowed: bool
    conf: Mapping[str, str]
    log_path: Path | None
    start_seconds: float = 0.0
    stages: StageListener = SILENT
    _spark: SparkSession | None = None
    _embedded: launch.EmbeddedJvm | None = None
    _launch: Callable[[], launch.EmbeddedJvm] | None = None
    _planned: Mapping[str, str] = field(default_factory=dict)
    """What a session of our own starts with, besides its JARs."""
    _direct: DirectAccess | None = None
    _failure: EnvironmentUnfit | None = None
    _python_logs: engine_log.PythonLogs | None = None
    _cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _starting_session: threading.RLock = field(default_factory=threading.RLock)
    _starting_java: threading.RLock = field(default_factory=threading.RLock)
    """Held for the JVM alone: who only needs Java does not wait for Spark."""

    @property
    def spark(self) -> SparkSession:
        """The session; starts it where it was not needed before.

        Raises:
            EnvironmentUnfit: E607, Spark does not start; and as `embedded`.
        """
        with self._starting_session:
            if self._spark is None:
                embedded = self.embedded()
                started = time.monotonic()
                with self.stages.waiting(STARTING_SPARK), self._failing_once():
                    self._spark = launch.start_spark(embedded)
                self._cleanup.callback(launch.stop_quietly, self._spark.stop, launch.SESSION_TIMEOUT_SECONDS)
                self.start_seconds += time.monotonic() - started
            return self._spark

    def embedded(self) -> launch.EmbeddedJvm:
        """Our own JVM; starts it where it was not needed before.

        Raises:
            EnvironmentUnfit: E601 to E603 Java, E605 JARs, E607 the JVM does not start; the same for whoever asks next.
        """
        with self._starting_java:
            if self._failure is not None:
                raise self._failure
            if self._embedded is None:
                assert self._launch is not None
                assert self.log_path is not None
                self._python_logs = engine_log.PythonLogs(self.log_path)
                self._cleanup.callback(self._python_logs.restore)
                started = time.monotonic()
                with self.stages.waiting(STARTING_JAVA), self._failing_once():
                    self._embedded = self._launch()
                self._cleanup.callback(self._embedded.end)
                self.start_seconds += time.monotonic() - started
            return self._embedded

    @contextlib.contextmanager
    def _failing_once(self) -> Iterator[None]:
        """Keep an error of the block for whoever asks next."""
        try:
            yield
        except EnvironmentUnfit as error:
            error.ends_run = True
            self._failure = error
            raise

    def start_java(self) -> float:
        """As ``start``, for the JVM alone; a session that is borrowed has one."""
        called = time.monotonic()
        if self._launch is not None:
            self.embedded()
        return time.monotonic() - called

    def start(self) -> float:
        """Start the session now, unless it runs; returns the seconds that the caller waited. Raises as ``spark``."""
        called = time.monotonic()
        self.spark  # noqa: B018 (starts it)
        return time.monotonic() - called

    @property
    def has_java(self) -> bool:
        """Whether there is a JVM already."""
        return self._embedded is not None or self._spark is not None

    @property
    def is_started(self) -> bool:
        """Whether the session runs already."""
        return self._spark is not None

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        return self.spark.sparkContext.defaultParallelism

    @property
    def archive(self) -> ClassArchive | None:
        """What our own JVM does about the archive of classes; None where it is not ours."""
        return self._embedded.archive if self._embedded is not None else None

    def setting(self, key: str) -> str | None:
        """A setting of the session, None where it is not set; does not start it."""
        if self._spark is None:
            return self._planned.get(key)
        return self.spark.conf.get(key, None)

    def unstarted(self, start: Callable[[], SparkSession]) -> UnstartedSession | None:
        """What reads logs before the session runs, with ``start`` for a worker's session; None where it runs."""
        if self._spark is not None:
            return None
        return UnstartedSession(
            lambda: self.embedded().gateway.jvm,
            start,
            lambda: self.embedded().hadoop_conf(),
            has_catalog(self._planned),
            {**self._planned, **worker_settings(MIN_CORES, self.conf)},
            self._direct,
        )

    def kill(self) -> None:
        """End our own local JVM at once, for a process that has no time; closing cleans up after it. Never raises.

        A session that is borrowed stays, and so does one on a cluster: its executors must be told.
        """
        if self._embedded is not None and self._embedded.conf["spark.master"].startswith("local"):
            if self._python_logs is not None:
                self._python_logs.stays = True
            self._embedded.kill()

    def close(self) -> None:
        """Stop the session, its JVM and its private folder, if they are ours. May be called twice; never raises."""
        self._cleanup.close()

    def __enter__(self) -> SessionLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(
    options: SessionOptions | None = None, env: Mapping[str, str] | None = None, *, when_needed: bool = False
) -> SessionLease:
    """Borrow the session that is active in this process, or start an embedded one.

    Args:
        options: What the user said.
        env: The environment; None is that of this process.
        when_needed: Start JVM and session only when each is first asked for.

    Raises:
        EnvironmentUnfit: E601 to E603 Java, E604 versions, E605 JARs, E671 connectors, E607 Spark does not start, E608
            a setting that cannot be applied, E632 a session without Delta, E639 names of files that are not UTF-8.
        NotSupportedYet: E620 for Spark Connect.
    """
    options = options or SessionOptions()
    env = os.environ if env is None else env
    refuse_unsafe(options.conf_map)
    refuse_connect(options, env)
    refuse_other_names(sys.getfilesystemencoding())
    with _start_lock:
        existing = active_session()
        if existing is not None:
            return _borrow(existing, options)
        versions = None if when_needed and lacks_spark(env) else check_versions(env)
        lease = _prepare(options, env, versions)
        if not when_needed:
            try:
                lease.start()
            except BaseException:
                lease.close()
                raise
        return lease


def lend_session(spark: SparkSession) -> SessionLease:
    """Lend a session that the caller names; closing the lease leaves it as it is.

    Raises:
        EnvironmentUnfit: E632, it was started without Delta; E639.
        NotSupportedYet: E620 for Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise connect_refusal("the session is one of Spark Connect")
    refuse_other_names(sys.getfilesystemencoding())
    return _borrow(spark, SessionOptions())


def active_session() -> SparkSession | None:
    """Return the classic session that is active in this process, without importing pyspark to find none.

    Raises:
        NotSupportedYet: E620 when the active session is one of Spark Connect.
    """
    connect = sys.modules.get("pyspark.sql.connect.session")
    if connect is not None and connect.SparkSession.getActiveSession() is not None:
        raise connect_refusal("the active session is one of Spark Connect")
    if "pyspark.core.context" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    # Without options this returns the session of this thread or the process, and changes nothing on it.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def worker_session(lease: SessionLease) -> SparkSession:
    """Return a new session with all our settings, read back, and active for the calling thread.

    Raw calls into Delta take the thread's active session, so a thread calls this for itself, or calls
    ``DeltaJvm.activate`` before it uses a session made elsewhere.

    Raises:
        EnvironmentUnfit: E606 when a setting reads back as something else, E608 when the user's own contradicts it.
    """
    settings = worker_settings(lease.cores, lease.conf)
    worker = lease.spark.newSession()
    jvm = DeltaJvm(worker)
    with contextlib.suppress(Exception):  # without Delta's class the self-test says what is missing
        jvm.register_settings()
    set_and_check(worker.conf, {**settings, BORROWED: "true"} if lease.borrowed else settings)
    jvm.activate()
    return worker


def _borrow(spark: SparkSession, options: SessionOptions) -> SessionLease:
    """Lend the active session; refuse options that only a start could fulfil, instead of ignoring them."""
    context = spark.sparkContext
    # Another one has sessions and a Scala of its own, so that not even a look at its Delta is possible.
    if not context.version.startswith("4."):
        raise EnvironmentUnfit(
            "the active Spark session is one of another Spark",
            code="E604",
            found=f"Spark {context.version}",
            allowed=tested_pairs(),
            help="run maintainer in a Python of its own, with a pair that fits",
        )
    if options.master is not None and options.master != context.master:
        raise _too_late("--master", options.master, context.master)
    for key, value in options.conf_map.items():
        if not is_runtime_key(key):
            current = context.getConf().get(key)
            if current != value:
                raise _too_late(f"--conf {key}", value, current)
    if DELTA_EXTENSION not in (context.getConf().get(EXTENSIONS) or ""):
        raise EnvironmentUnfit(
            "the active Spark session was started without Delta",
            code="E632",
            found=f"{EXTENSIONS} = {context.getConf().get(EXTENSIONS) or 'not set'}",
            allowed=DELTA_EXTENSION,
            help="start that session with Delta, or stop it and let maintainer start its own",
        )
    with contextlib.ExitStack() as stack:
        stack.callback(ActiveSession.of_caller(spark).put_back)
        stack.callback(_put_back, context, {key: context.getLocalProperty(key) for key in THREAD_PROPERTIES})
        if options.log_path is not None:
            _open_log(options.log_path).close()
            stack.callback(engine_log.PythonLogs(options.log_path).restore)
        return SessionLease(True, options.conf_map, options.log_path, _spark=spark, _cleanup=stack.pop_all())


def _put_back(context: SparkContext, properties: Mapping[str, str | None]) -> None:
    """Give the caller's thread its pool and job group again."""
    with contextlib.suppress(Exception):  # the JVM may be gone
        for key, value in properties.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None removes the property


def _prepare(options: SessionOptions, env: Mapping[str, str], checked: Versions | None) -> SessionLease:
    """Make a lease that starts a JVM when it is first asked for; without Spark (None) that raises E604."""
    home = checked.spark_home if checked is not None else Path(sys.prefix) / "without-spark"
    defaults = read_spark_defaults(home, env)
    connectors = connectors_to_bring(options, home, defaults)
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="maintainer-spark-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        log_path = options.log_path or folder / "spark.log"
        log = stack.enter_context(_open_log(log_path))

        def launched() -> launch.EmbeddedJvm:
            refuse_nameless_user()
            versions = checked or check_versions(env)
            java = inspect_java(env)
            jars = ensure_jars(java, versions, env, connectors)
            user_options = options.conf_map.get(JAVA_OPTIONS) or defaults.get(JAVA_OPTIONS)
            archive = class_archive(java, jars, home, folder, record=options.record_classes, user_options=user_options)
            conf = start_conf(options, jars, folder, defaults, env, archive.java_options(), connectors)
            return launch.launch(conf, archive, log, log_path)

        planned = {**defaults, **start_conf(options, (), folder, defaults, env, (), connectors)}
        schemes = direct_schemes(options, home, defaults, env)
        lease = SessionLease(
            False, options.conf_map, log_path, stages=options.stages, _launch=launched, _planned=planned,
            _direct=None if schemes is None else DirectAccess(planned, schemes), _cleanup=stack.pop_all(),
        )  # fmt: skip
    atexit.register(lease.close)
    return lease


def _open_log(path: Path) -> BinaryIO:
    try:
        return engine_log.open_log(path)
    except OSError as error:
        raise EnvironmentUnfit(
            "Spark's log cannot be written",
            code="E609",
            where=str(path),
            found=error.strerror,
            help="make the folder writable, or name another project folder",
        ) from error


def _too_late(what: str, wanted: str, current: str | None) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        f"{what} cannot be applied: a Spark session is already active in this process",
        code="E608",
        found=f"wanted {wanted}, the active session has {current or 'nothing'}",
        help="stop that session first, or leave the setting out",
    )
