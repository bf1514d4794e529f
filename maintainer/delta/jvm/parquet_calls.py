"""Copy row groups of Parquet files with parquet-hadoop, which Spark brings along. No Spark job, no value is decoded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.sessions import JavaObject, UnstartedSession, java_class

if TYPE_CHECKING:
    from subprocess import Popen

    from pyspark.sql import SparkSession

REQUIRED = required(
    {
        "org.apache.parquet.hadoop.rewrite.RewriteOptions$Builder": "<init>/3 prune/1 build/0",
        "org.apache.parquet.hadoop.rewrite.ParquetRewriter": "<init>/1 processBlocks/0 close/0",
    }
)
"""What this module calls of parquet-hadoop, whose version is Spark's."""


class ParquetCalls(Gateway):
    """parquet-hadoop's ``ParquetRewriter``, which refuses files of different schemas."""

    def copy_row_groups(
        self, conf: JavaObject, sources: Iterable[str], target: str, without: Sequence[str] = ()
    ) -> None:
        """Join files by copying their row groups, in order. Nothing may be at the target yet.

        Args:
            conf: Hadoop's configuration.
            sources: Percent-encoded URIs of the files to join.
            target: Percent-encoded URI of the new file.
            without: Columns to leave out.
        """
        rewrite = self._java("org.apache.parquet.hadoop.rewrite")
        inputs = self._array_list()
        for uri in sources:
            inputs.add(self.path(uri))
        options = rewrite.RewriteOptions.Builder(conf, inputs, self.path(target))
        if without:
            names = self._array_list()
            for name in without:
                names.add(name)
            options = options.prune(names)
        rewriter = rewrite.ParquetRewriter(options.build())
        try:
            rewriter.processBlocks()
        finally:
            rewriter.close()


SMALL_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR")


def copy_row_groups_here(sources: Iterable[str], target: str, without: Sequence[str] = ()) -> None:
    """Copy row groups in a process that has no session, such as an executor's; see ``ParquetCalls``.

    A small JVM with Spark's JARs starts with the first copy, and ends with the process. If it is gone before, as where
    memory runs out, the next copy starts another.
    """
    if _calls_here()[2].poll() is not None:
        _calls_here.cache_clear()
    calls, conf, _ = _calls_here()
    calls.copy_row_groups(conf, sources, target, without)


@cache
def _calls_here() -> tuple[ParquetCalls, JavaObject, Popen[bytes]]:
    from py4j.java_gateway import JavaGateway
    from pyspark.find_spark_home import _find_spark_home

    find_spark_home: Callable[[], str] = _find_spark_home
    jars = Path(find_spark_home()) / "jars"
    home = os.environ.get("JAVA_HOME")
    gateway = JavaGateway.launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=str(jars / "*"),
        javaopts=list(SMALL_JVM),
        java_path="java" if home is None else os.path.join(home, "bin", "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    jvm = gateway.jvm
    conf = java_class(jvm, "org.apache.hadoop.conf.Configuration")()
    calls = ParquetCalls(UnstartedSession(lambda: jvm, _no_session, lambda: conf, False, {}))
    return calls, conf, gateway.java_process


def _no_session() -> SparkSession:
    raise AssertionError("no session is needed to copy row groups")
