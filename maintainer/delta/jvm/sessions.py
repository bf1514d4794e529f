"""Which session is active, and settings of sessions, both put back as they were found; and one that may yet start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JavaObject = Any
"""An opaque handle on an object in the JVM (py4j has no types)."""

_noted: list[ActiveSession] = []
_noted_lock = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class ActiveSession:
    """Which session is active: in Java for the calling thread, in pyspark for the whole process.

    Raw calls need ours to be active in Java, and ``createDataFrame`` of pyspark makes its session active in both. A
    user whose session we borrow would then be given ours by ``SparkSession.getActiveSession()``, without his views.
    """

    jvm: JavaObject
    in_java: JavaObject
    in_python: SparkSession | None

    @staticmethod
    def now(spark: SparkSession) -> ActiveSession:
        """Note what is active now, for a moment; ``spark`` is any session of this process."""
        from pyspark.sql import SparkSession

        java: JavaObject = spark._jvm
        return ActiveSession(java, classic_sessions(java).getActiveSession(), SparkSession._activeSession)

    @staticmethod
    def of_caller(spark: SparkSession) -> ActiveSession:
        """Note what is active where work of ours begins, for as long as it takes.

        Work that begins while other work goes on may find a session of ours in pyspark: all put back what the first
        of them found.
        """
        active = ActiveSession.now(spark)
        with _noted_lock:
            if _noted:
                active = replace(active, in_python=_noted[0].in_python)
            _noted.append(active)
        return active

    def put_back(self) -> None:
        """Make active what was active then, on the same thread; call it once. Never raises."""
        from pyspark.sql import SparkSession

        with _noted_lock:
            if self in _noted:
                _noted.remove(self)
            SparkSession._activeSession = self.in_python
        with suppress(Exception):  # the JVM may be gone
            if self.in_java.isDefined():
                classic_sessions(self.jvm).setActiveSession(self.in_java.get())
            else:
                classic_sessions(self.jvm).clearActiveSession()


@contextmanager
def changed_settings(spark: SparkSession, values: Mapping[str, str | None]) -> Iterator[None]:
    """Set (None: unset) settings of a session of ours, classic or of Spark Connect, within the block; then put back."""
    before = {key: spark.conf.get(key, None) for key in values}
    try:
        _set(spark, values)
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def classic_sessions(jvm: JavaObject) -> JavaObject:
    """Java's companion of classic sessions, which knows the active one."""
    return java_class(jvm, "org.apache.spark.sql.classic.SparkSession")


def java_class(jvm: JavaObject, name: str) -> JavaObject:
    """A Java class or package by its full name, in one call.

    Part by part (``jvm.org.apache...``) py4j has the JVM search all JARs for a class of each part's name, in vain.
    """
    return getattr(jvm, name)


@dataclass(frozen=True, slots=True)
class DirectAccess:
    """Stores that this process reads without the JVM: only settings that it knows say where they are.

    ``conf`` are the settings that the session would have, and may hold secrets; ``schemes`` those of the stores.
    """

    conf: Mapping[str, str] = field(repr=False)
    schemes: frozenset[str]


@dataclass(frozen=True, slots=True)
class UnstartedSession:
    """A session that is not started yet, perhaps in a JVM that is not either, and what starts them.

    A JVM takes longer than reading twenty logs, and a session in it again as long.

    Args:
        open_jvm: Starts the JVM, unless it runs, and returns it as py4j shows it.
        start: Starts the session; called once at most, on the thread that first needs it.
        hadoop_conf: Makes the Hadoop configuration that the session would have.
        has_catalog: Whether the session would know tables by name; Spark's own catalog in memory begins empty.
        settings: Those that the session would have; None is one that it must not have.
        direct: The stores that need no JVM; None where Java's own configuration may say otherwise.
    """

    open_jvm: Callable[[], JavaObject]
    start: Callable[[], SparkSession]
    hadoop_conf: Callable[[], JavaObject]
    has_catalog: bool
    settings: Mapping[str, str | None] = field(repr=False)
    direct: DirectAccess | None = None
