"""The gateway to the JVM: sessions, threads, Scala values and paths, and a check that a method exists."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from maintainer.delta.jvm.sessions import (
    DirectAccess,
    JavaObject,
    UnstartedSession,
    changed_settings,
    classic_sessions,
    java_class,
)
from maintainer.engine.process_loss import is_engine_lost
from maintainer.errors import EnvironmentUnfit
from maintainer.model.cached_property import cached_property

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELTA = "org.apache.spark.sql.delta."

PIECE_BYTES = 6_000
"""In base 64 they fit into the 8 KiB that Java's writer sends at once."""

MAX_PIECES = 40
"""With more of them one answer that waits is quicker."""

THREAD_PROPERTIES = (
    "spark.scheduler.pool", "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel",
)  # fmt: skip
"""What is set of a thread that works for us: its pool and its job group."""

TESTED_DELTA: Mapping[str, tuple[str, ...]] = {
    "4.0": ("4.0.0", "4.0.1", "4.1.0", "4.2.0", "4.3.0", "4.3.1", "4.4.0"),
    "4.1": ("4.1.0", "4.2.0", "4.3.0", "4.3.1", "4.4.0"),
    "4.2": ("4.4.0",),
}
"""The versions of Delta with which `make matrix` runs each Spark; any other pair has only the look for its members."""

LAST_PATCH: Mapping[tuple[str, str], int] = {("4.1", "4.1.0"): 1, ("4.1", "4.2.0"): 1}
"""The newest patch of a Spark that a Delta runs on; Spark 4.1.2 lacks a class that these two derive from."""


def is_tested_pair(spark: str, delta: str) -> bool:
    """Whether a version of Spark and one of Delta are a pair that fits."""
    major_minor, _, patch = spark.rpartition(".")
    last = LAST_PATCH.get((major_minor, delta))
    return delta in TESTED_DELTA.get(major_minor, ()) and (last is None or patch in map(str, range(last + 1)))


def tested_pairs() -> str:
    """Say the pairs of Spark and Delta that fit, for messages."""
    lines = []
    for line, versions in TESTED_DELTA.items():
        last = {delta: LAST_PATCH.get((line, delta)) for delta in versions}
        named = (delta if last[delta] is None else f"{delta} (to Spark {line}.{last[delta]})" for delta in versions)
        lines.append(f"Spark {line} with Delta {', '.join(named)}")
    return "; ".join(lines)


Required = tuple[str, str, tuple[int, ...]]
"""Class, member (``<init>`` for a constructor), numbers of parameters of which one will do; none for a field.

The class is named below ``org.apache.spark.sql.delta``, or in full where it is not Delta's.
"""


def required(members: Mapping[str, str]) -> tuple[Required, ...]:
    """Read the members of classes from ``method/parameters`` (``/9/7``: 9, else 7; ``a|b/2``: either), with blanks."""
    listed = ((name, *member.split("/")) for name, text in members.items() for member in text.split())
    return tuple((name, member, tuple(map(int, counts))) for name, member, *counts in listed)


def has_signature(listing: str, name: str, count: int | None) -> bool:
    """Whether Java's text of members holds ``name`` with ``count`` parameters; None for a field.

    A method inherited from another class or trait is listed under that name, so only the last part is compared.
    """
    methods = name.rpartition(".")[2].split("|")
    if count is None:
        return any(line.rpartition(".")[2] in methods for line in listing.splitlines())
    return any(
        listed.rpartition(".")[2] in methods and len([p for p in parameters.split(",") if p]) == count
        for listed, parameters in re.findall(r"([\w.$]+)\(([^()]*)\)", listing)
    )


class Gateway:
    """What every kind of call needs, bound to one Spark session; it and its JVM may start when a call needs them."""

    def __init__(self, spark: SparkSession | UnstartedSession) -> None:
        self._unstarted = spark if isinstance(spark, UnstartedSession) else None
        self._started = None if isinstance(spark, UnstartedSession) else spark
        self._starting = threading.RLock()
        self._thread_entry: tuple[str, str] | None = None
        self._settings: dict[str, str] = {}
        if self._started is not None and not hasattr(self._started, "_jsparkSession"):
            raise EnvironmentUnfit(
                "this Spark session has no JVM in this process (Spark Connect)",
                code="E620",
                help="run on a classic session, for example --master local[*]",
            )
        self._hadoop_conf: JavaObject | None = None
        self._log_store: JavaObject | None = None
        self._kernel: tuple[JavaObject, JavaObject] | None = None
        self._add_file_list: JavaObject | None = None
        self._modules: dict[str, JavaObject] = {}
        self._arities: dict[tuple[str, str], int] = {}

    @cached_property
    def _jvm(self) -> JavaObject:
        """The JVM; starts it where it was not needed before."""
        if self._started is not None:
            return cast(Any, self._started._jvm)
        assert self._unstarted is not None
        return self._unstarted.open_jvm()

    @cached_property
    def _none(self) -> JavaObject:
        return self._java("scala.Option").empty()

    @cached_property
    def _set_active(self) -> JavaObject:
        """What makes a session the active one of a thread, some dozen times a table; to look it up is a call, too."""
        return classic_sessions(self._jvm).setActiveSession

    @property
    def _path(self) -> JavaObject:
        return self._java("org.apache.hadoop.fs.Path")

    @property
    def _array_list(self) -> JavaObject:
        return self._java("java.util.ArrayList")

    @property
    def _python_utils(self) -> JavaObject:
        return self._java("org.apache.spark.api.python.PythonUtils")

    @property
    def direct(self) -> DirectAccess | None:
        """The stores that are read without the JVM; None in a session that somebody else configured."""
        return None if self._unstarted is None else self._unstarted.direct

    @property
    def spark(self) -> SparkSession:
        """The session; starts it where it was not needed before.

        Raises:
            EnvironmentUnfit: E607, Spark does not start.
        """
        with self._starting:
            if self._started is not None:
                return self._started
            assert self._unstarted is not None
            session = self._unstarted.start()
            for key, value in self._settings.items():
                session.conf.set(key, value)
            self._started = session
            if self._thread_entry is not None:
                self.enter_thread(*self._thread_entry)
            else:
                self.activate()
        return session

    @property
    def has_catalog(self) -> bool:
        """Whether there may be tables with names."""
        return self._started is not None or self._unstarted is None or self._unstarted.has_catalog

    def session_setting(self, key: str) -> str | None:
        """A setting of the session, None where it is not set; does not start it."""
        if self._started is not None:
            return self._started.conf.get(key, None)
        assert self._unstarted is not None
        return self._settings.get(key, self._unstarted.settings.get(key))

    def session_settings(self) -> Mapping[str, str | None]:
        """All settings of the session; does not start it."""
        if self._started is not None:
            return self._started.conf.getAll
        assert self._unstarted is not None
        return {**self._unstarted.settings, **self._settings}

    def set_settings(self, settings: Mapping[str, str]) -> None:
        """Set settings of the session, now or when it starts."""
        self._settings |= settings
        if self._started is not None:
            for key, value in settings.items():
                self._started.conf.set(key, value)

    @property
    def _session(self) -> JavaObject:
        return self.spark._jsparkSession

    def seq(self, items: Iterable[object] = ()) -> JavaObject:
        """Make a Scala ``Seq``."""
        array = self._array_list()
        for item in items:
            array.add(item)
        return self._python_utils.toSeq(array)

    def string_map(self, values: Mapping[str, object]) -> JavaObject:
        """Make an immutable Scala ``Map`` with string keys."""
        return self._python_utils.toScalaMap(dict(values))

    def _option(self, value: object | None) -> JavaObject:
        return self._none if value is None else self._java("scala.Option").apply(value)

    def _module(self, name: str) -> JavaObject:
        """One of Delta's objects by its name below Delta's package."""
        return self._scala_object(f"{DELTA}{name}")

    def _scala_object(self, name: str) -> JavaObject:
        key = f"object {name}"
        if key not in self._modules:
            self._modules[key] = getattr(self._java(name), "MODULE$")
        return self._modules[key]

    def _java(self, name: str) -> JavaObject:
        """A Java class or package by its full name, asked for once and in one call: see ``java_class``."""
        if name not in self._modules:
            self._modules[name] = java_class(self._jvm, name)
        return self._modules[name]

    def _in_delta(self, name: str) -> JavaObject:
        """A class of Delta by its name below its package."""
        return self._java(f"{DELTA}{name}")

    def _class(self, name: str) -> JavaObject:
        """The ``Class`` of a full name, as Spark's own loader finds it."""
        key = f"class {name}"
        if key not in self._modules:
            loader = self._java("java.lang.Thread").currentThread().getContextClassLoader()
            self._modules[key] = self._java("java.lang.Class").forName(name, True, loader)
        return self._modules[key]

    def _frame(self, dataset: JavaObject) -> DataFrame:
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(dataset, self.spark)

    @staticmethod
    def _dataset(frame: DataFrame) -> JavaObject:
        return frame._jdf

    @property
    def is_started(self) -> bool:
        """Whether the session runs."""
        return self._started is not None

    def start(self) -> None:
        """Start the session where it does not run, and make it the active one of this thread."""
        self.spark  # noqa: B018 (starts it)
        self.activate()

    def activate(self) -> None:
        """Make our session the active one of this thread's JVM thread: raw DeltaLog calls read its settings.

        A session that is not started yet becomes the active one when it is.
        """
        if self._started is not None:
            self._set_active(self._session)

    @contextmanager
    def setting(self, key: str, value: str) -> Iterator[None]:
        """Set one setting of our session within the block; what it was before is put back."""
        with changed_settings(self.spark, {key: value}):
            yield

    def enter_thread(self, group: str, description: str) -> None:
        """Prepare a thread of ours: active session, scheduler pool and job group, so that a cancel reaches it."""
        self._thread_entry = (group, description)
        if self._started is None:
            return
        self.activate()
        context = self.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", group)
        context.setJobGroup(group, description, interruptOnCancel=False)

    def leave_thread(self) -> None:
        """Remove pool and job group from the thread again: it may not be ours."""
        self._thread_entry = None
        if self._started is None:
            return
        context = self.spark.sparkContext
        for key in THREAD_PROPERTIES:
            context.setLocalProperty(key, None)  # type: ignore[arg-type]  # None removes the property

    def path(self, uri: str) -> JavaObject:
        """A Hadoop path from a percent-encoded URI (as ``TableFacts.location`` is)."""
        return self._path(self._java("java.net.URI")(uri))

    def hadoop_path(self, text: str) -> JavaObject:
        """A Hadoop path from text in which nothing is percent-encoded."""
        return self._path(text)

    def across(self, text: JavaObject) -> str:
        """A Java character sequence as a Python string, by its bytes.

        As a string py4j would escape every quote and back-slash and take them apart again in Python: a second for a
        megabyte of JSON, against milliseconds. An answer that does not fit into the sender's buffer waits 40 ms for the
        receiver's delayed acknowledgement, so what is not very long comes in pieces.
        """
        encoded = self._java("java.nio.charset.StandardCharsets").UTF_8.encode(
            self._java("java.nio.CharBuffer").wrap(text)
        )
        size = int(encoded.limit())
        if not PIECE_BYTES < size <= MAX_PIECES * PIECE_BYTES:
            return bytes(encoded.array()[:size]).decode()
        pieces = []
        for start in range(0, size, PIECE_BYTES):
            piece = self._java("java.nio.ByteBuffer").allocate(min(PIECE_BYTES, size - start))
            piece.put(encoded.slice(start, min(PIECE_BYTES, size - start)))
            pieces.append(bytes(piece.array()))
        return b"".join(pieces).decode()

    def text_of(self, lines: JavaObject) -> JavaObject:
        """The lines of a Scala ``Seq`` as one character sequence that stays in the JVM."""
        return lines.addString(self._java("scala.collection.mutable.StringBuilder")(), "\n")

    def text_of_array(self, array: JavaObject) -> str:
        """An array's elements as one text, so that it costs one call however many there are."""
        return str(self._java("scala.runtime.ScalaRunTime").stringOf(array))

    def delta_version(self) -> str:
        """The Delta version of the JARs on the class path."""
        return str(self._scala_object("io.delta.package$").VERSION())

    def spark_version(self) -> str:
        """The version of the Spark on the class path."""
        return str(self._scala_object("org.apache.spark.package$").SPARK_VERSION())

    @property
    def is_tested(self) -> bool:
        """Whether Spark and Delta are one of the pairs of `TESTED_DELTA`; what does not say is not."""
        try:
            return is_tested_pair(self.spark_version(), self.delta_version())
        except Exception:
            return False

    def _version_or_unknown(self) -> str:
        try:
            return self.delta_version()
        except Exception:
            return "(unknown version)"

    def lacking(self, listed: Iterable[Required]) -> list[str]:
        """Name those of the listed members that the classes on the class path do not have."""
        lacking, of_class = [], dict[str, list[Required]]()
        for wanted in listed:
            of_class.setdefault(wanted[0], []).append(wanted)
        for name, members in of_class.items():
            text = self._members(name, members)
            lacking += [
                f"{name}.{'/'.join((member, *map(str, counts)))}"
                for _, member, counts in members
                if not any(has_signature(text, full_name(name, member), count) for count in counts or (None,))
            ]
        return lacking

    def arity(self, listed: Iterable[Required], name: str, member_name: str) -> int:
        """The first of the numbers of parameters listed for a member that it has on this class path, else the first."""
        if (name, member_name) not in self._arities:
            wanted = next(entry for entry in listed if entry[:2] == (name, member_name))
            text = self._members(name, (wanted,))
            has = (count for count in wanted[2] if has_signature(text, full_name(name, member_name), count))
            self._arities[name, member_name] = next(has, wanted[2][0])
        return self._arities[name, member_name]

    def _members(self, name: str, listed: Iterable[Required]) -> str:
        """Java's text of those members of a class that have the names of listed ones; empty where there is no class.

        It is sifted in the JVM: Delta's classes have thousands of members, and an answer that is not short waits 40 ms.
        """
        text = self._java("scala.collection.mutable.StringBuilder")()
        run_time = self._java("scala.runtime.ScalaRunTime")
        try:
            loader = self._java("java.lang.Thread").currentThread().getContextClassLoader()
            cls = self._java("java.lang.Class").forName(full_name(name), False, loader)
            for kind in dict.fromkeys("<init>" if member == "<init>" else bool(counts) for _, member, counts in listed):
                array = {"<init>": cls.getConstructors, True: cls.getMethods, False: cls.getDeclaredFields}[kind]()
                run_time.genericWrapArray(array).addString(text, "", "\n", "\n")
        except Exception as error:  # py4j raises its own kinds for a class that is not there
            if is_engine_lost(error):
                raise
        names = "|".join(full_name(name, member).rpartition(".")[2].replace("$", "[$]") for _, member, _ in listed)
        others = self._java("java.util.regex.Pattern").compile(rf"(?m)^(?![^(\n]*[.](?:{names})(?:[(]|$)).*\n")
        return str(others.matcher(text).replaceAll(""))


def full_name(name: str, member_name: str = "<init>") -> str:
    """The full name of a listed class, or of a member as Java says it: a constructor has its class's."""
    full = name if name.startswith(("io.delta.", "org.")) else DELTA + name
    return full if member_name == "<init>" else f"{full}.{member_name}"
