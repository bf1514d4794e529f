"""A user's own process and Spark session, whose JVM is killed at a point of the second turn of a loop.

``python -m tests.support.faults.user_process PROJECT POINT`` prints the exit code and the messages of two applies as
JSON: the one in which the JVM dies, and the one after it in the same process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import maintainer.delta.engine.table_engine as table_engine
from maintainer.cli.main import run
from maintainer.delta.spark.installed_versions import check_versions
from maintainer.delta.spark.jars import ensure_jars
from maintainer.delta.spark.java_home import inspect_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINTS = ("before its commit", "after its commit")


def own_session() -> SparkSession:
    """A session as users start theirs; the JARs are those that are there already."""
    from pyspark.sql import SparkSession

    jars = ensure_jars(inspect_java(os.environ), check_versions(os.environ), os.environ)
    builder: Any = SparkSession.builder
    settings = {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.master("local[2]").getOrCreate()
    return session


def die_at(spark: SparkSession, point: str) -> None:
    """Have the JVM killed at the point, in the second turn."""
    handle: Any = spark.sparkContext._jvm
    java = int(handle.java.lang.ProcessHandle.current().pid())
    names = vars(table_engine)
    real: Callable[..., Any] = names["commit_rewrite"]
    calls: list[int] = []

    def commit(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 2 and point == POINTS[0]:
            os.kill(java, signal.SIGKILL)
        receipt = real(*args, **named)
        if len(calls) == 2:
            os.kill(java, signal.SIGKILL)
        return receipt

    names["commit_rewrite"] = commit


def apply(project: str) -> dict[str, object]:
    """One apply: its exit code and what a user reads."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["--project", project, "apply", "--yes"])
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def main(project: str, point: str) -> None:
    """Two applies; the JVM dies in the first."""
    die_at(own_session(), point)
    sys.stdout.write(json.dumps([apply(project), apply(project)]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
