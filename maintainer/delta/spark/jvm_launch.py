"""Start and end the JVM of an embedded session, and the session in it: command line, log, limits, clean-up.

pyspark's own ``launch_gateway`` starts the process, with a log file instead of our terminal and with a time limit.
Settings that look like secrets go through the gateway, not on the command line, which every user of the machine can
read.

An archive of loaded classes beside the JARs lets the JVM start in half the time. Java 17 and 21 write such an archive
when a JVM ends (JEP 350) and map it into the next one. Java itself checks that it fits: its own version, and every JAR
on the class path by name, size and time. One that does not fit is ignored. To write one costs more than it saves in
the next three starts, so only ``doctor --warm`` does it.
"""

from __future__ import annotations

import contextlib
import hashlib
import locale
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from maintainer.delta.jvm import JavaObject, planned_hadoop_conf, tested_pairs
from maintainer.delta.spark import engine_log
from maintainer.delta.spark.installed_versions import INSTALL_COMMAND
from maintainer.delta.spark.java_home import Java
from maintainer.delta.spark.process_environment import java_environment, limit_of_files
from maintainer.delta.spark.start_conf import is_one_process
from maintainer.engine.side_call import side_call
from maintainer.errors import EnvironmentUnfit
from maintainer.errors.foreign_text import SECRET_KEY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


RECORDING_TIMEOUT_SECONDS = 120.0
"""Longest that a JVM may take to write its archive when it ends; usually 5 seconds."""

MAX_ARCHIVES = 3
"""Archives of other Java versions or Spark folders that stay beside the JARs; one has about 190 MB."""

_NAME = "classes-{key}.jsa"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_USERS_OWN = re.compile(r"-XX:[+]?(SharedArchiveFile|ArchiveClassesAtExit|AutoCreateSharedArchive)|-Xshare:")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """What a JVM does about the archive: it reads ``path``, or records one at ``recording`` when it ends, or neither.

    Both are absolute. At most one of ``reads`` and ``recording`` is set.
    """

    path: Path
    reads: bool = False
    recording: Path | None = None

    def java_options(self) -> tuple[str, ...]:
        """Return the Java options, each as one word; the caller quotes them."""
        if self.reads:
            return (f"-XX:SharedArchiveFile={self.path}", *_QUIET.split())
        if self.recording is not None:
            return (f"-XX:ArchiveClassesAtExit={self.recording}", *_QUIET.split())
        return ()

    def keep_recording(self) -> None:
        """Move what the JVM recorded beside the JARs, whole or not at all; remove the oldest archives. Never raises."""
        if self.recording is None or not self.recording.is_file():
            return
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            try:
                shutil.copyfile(self.recording, partial)
                os.replace(partial, self.path)
            finally:
                partial.unlink(missing_ok=True)
            archives = sorted(self.path.parent.glob(_NAME.format(key="*")), key=lambda file: file.stat().st_mtime)
            for old in archives[:-MAX_ARCHIVES]:
                old.unlink(missing_ok=True)


def class_archive(
    java: Java, jars: Sequence[Path], spark_home: Path, session_folder: Path, *, record: bool, user_options: str | None
) -> ClassArchive:
    """Say what the JVM of a session does about the archive.

    Args:
        java: The Java that will run.
        jars: Our JARs; the archive lies beside the first.
        spark_home: The Spark folder whose JARs are on the class path.
        session_folder: The session's private folder, where an archive is recorded.
        record: Whether one is to be recorded, whatever lies there: Java may ignore that one.
        user_options: The user's own Java options; where they say something about archives, we say nothing.
    """
    named = "\n".join([str(java.executable.resolve()), java.version, str(spark_home), *(str(jar) for jar in jars)])
    path = jars[0].parent / _NAME.format(key=hashlib.sha256(named.encode()).hexdigest()[:16])
    if _USERS_OWN.search(user_options or ""):
        return ClassArchive(path)
    if record:
        writable = os.access(path.parent, os.W_OK)
        return ClassArchive(path, recording=session_folder / "classes.jsa" if writable else None)
    return ClassArchive(path, reads=path.is_file())


LAUNCH_TIMEOUT_SECONDS = 120.0
STOP_TIMEOUT_SECONDS = 15.0
SESSION_TIMEOUT_SECONDS = 60.0
"""A session that stops may have a log of its events to upload, or machines to give back."""


@dataclass(slots=True)
class EmbeddedJvm:
    """A JVM with an open gateway, and the settings that its session starts with.

    ``process`` is None when somebody else started it (spark-submit).
    """

    gateway: Any
    process: Any
    archive: ClassArchive
    conf: Mapping[str, str]
    log_path: Path

    def hadoop_conf(self) -> JavaObject:
        """Make the Hadoop configuration that the session will have."""
        return planned_hadoop_conf(self.gateway.jvm, self.conf)

    def end(self) -> None:
        """Close the gateway and wait for the JVM to end, so that pyspark starts a new one for the next session.

        Kills it after a limit. Never raises.
        """
        from pyspark import SparkContext

        records = self.archive.recording is not None
        stop_quietly(self.gateway.shutdown, STOP_TIMEOUT_SECONDS)
        if self.process is not None:
            with contextlib.suppress(Exception):
                self.process.stdin.close()  # the JVM ends by itself when its input does
            try:
                self.process.wait(RECORDING_TIMEOUT_SECONDS if records else STOP_TIMEOUT_SECONDS)
            except Exception:
                self.kill()
            if self.process.returncode == 0:
                self.archive.keep_recording()
        if SparkContext._gateway is self.gateway:
            SparkContext._gateway = None
            SparkContext._jvm = None

    def kill(self) -> None:
        """End the JVM without waiting for what it does. Never raises."""
        if self.process is not None:
            with contextlib.suppress(Exception):
                self.process.kill()
                self.process.wait(STOP_TIMEOUT_SECONDS)


class _ProcessArguments(dict[str, Any]):
    """Arguments for ``Popen``. pyspark puts this process's environment among them, and Java gets its own."""

    def __init__(self, is_local: bool, **streams: BinaryIO) -> None:
        super().__init__(streams)
        self._is_local = is_local

    def __setitem__(self, key: str, value: Any) -> None:  # noqa: ANN401 (whatever Popen takes)
        if key == "env":
            value = java_environment(value, locale.getencoding(), is_local=self._is_local)
        super().__setitem__(key, value)


def launch(conf: Mapping[str, str], archive: ClassArchive, log: BinaryIO, log_path: Path) -> EmbeddedJvm:
    """Start the JVM that Spark will run in.

    Raises:
        EnvironmentUnfit: E607 when it does not come up, with the end of its log; E633 where pyspark passes our
            environment by.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    visible = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        # The value of `encryption.key` names a key, or is one.
        if not SECRET_KEY.search(key) and "encryption" not in key:
            visible.set(key, value)
    process = _ProcessArguments(conf["spark.master"].startswith("local"), stdout=log, stderr=log)
    # launch_gateway waits without a limit; a JVM that hangs must not hang us.
    launched = partial(launch_gateway, conf=visible, popen_kwargs=process)
    launch: Future[Any] = side_call(launched, "maintainer-launch")
    if not wait([launch], LAUNCH_TIMEOUT_SECONDS).done:
        raise _did_not_start(f"Spark's JVM did not answer within {LAUNCH_TIMEOUT_SECONDS:.0f} s", log_path)
    if (error := launch.exception()) is not None:
        raise _did_not_start("Spark's JVM did not start", log_path) from error
    gateway = launch.result()
    embedded = EmbeddedJvm(gateway, gateway.proc, archive, conf, log_path)
    if gateway.proc is not None and "env" not in process:
        embedded.kill()
        raise EnvironmentUnfit(
            "this PySpark starts Java with another environment than ours, in which names of files may be misread",
            code="E633",
            found="pyspark.java_gateway:launch_gateway puts no `env` into popen_kwargs",
            allowed=tested_pairs(),
            help=f"install a PySpark that fits: `{INSTALL_COMMAND}`",
        )
    return embedded


def _did_not_start(what: str, log_path: Path) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        what,
        code="E607",
        where=str(log_path),
        found=engine_log.tail(log_path) or "nothing in the log",
        help=f"check Java options and memory given with --conf{limit_of_files()}; `maintainer doctor` tries again",
    )


def start_spark(embedded: EmbeddedJvm) -> SparkSession:
    """Start the session in its JVM.

    Raises:
        EnvironmentUnfit: E607.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    spark_conf = SparkConf(loadDefaults=False)
    for key, value in embedded.conf.items():
        spark_conf.set(key, value)
    try:
        context = SparkContext(conf=spark_conf, gateway=embedded.gateway)
        master = embedded.conf["spark.master"]
        if is_one_process(master) or (master.startswith("local") and "PYSPARK_PYTHON" not in os.environ):
            # Tasks of this machine: another ``python3`` that comes first on the path may be of another version, and so
            # may what PYSPARK_PYTHON names for a cluster.
            context.pythonExec = sys.executable
        return SparkSession(context)
    except Exception as error:
        raise EnvironmentUnfit(
            "Spark did not start",
            code="E607",
            where=str(embedded.log_path),
            found=f"{embedded.conf['spark.master']}: {_first_line(error)}",
            help="check --master and --conf; the log has the details",
        ) from error


def stop_quietly(stop: Callable[[], object], limit_seconds: float) -> None:
    """Stop a session, or a gateway, and wait for it up to a limit: the JVM may not answer. Never raises."""
    with contextlib.suppress(Exception):  # a thread does not start once the interpreter ends
        wait([side_call(stop, "maintainer-stop-java")], limit_seconds)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # py4j's first line only says that a call failed; the cause comes after it.
    causes = [line for line in lines if "Exception" in line and not line.startswith("py4j")]
    return (causes or lines or [type(error).__name__])[0][:300]
