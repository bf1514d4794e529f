"""The soak's own Spark: ``python -m tests.soak.traffic.spark_process SETTINGS``.

It makes the tables, writes and reads until the stop file is there, and then reads to the end.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintainer.delta import jvm
from maintainer.delta.spark.installed_versions import check_versions
from maintainer.delta.spark.jars import ensure_jars
from maintainer.delta.spark.java_home import inspect_java
from tests.soak.soak_lake import TABLES
from tests.soak.soak_settings import SPARK_MEMORY, SoakSettings
from tests.soak.traffic.spark_readers import StreamReader
from tests.soak.traffic.spark_writers import spark_writers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_STORE = "maintainer.ExclusiveLogStore"


def own_session(folder: Path) -> SparkSession:
    """A session whose commits never replace those of others: Delta's own store for disks looks and then renames."""
    from pyspark.sql import SparkSession

    classes = folder / "classes"
    classes.mkdir()
    jars = ensure_jars(inspect_java(os.environ), check_versions(os.environ), os.environ)
    settings = {
        "spark.driver.extraClassPath": os.pathsep.join([*map(str, jars), str(classes)]),
        "spark.driver.memory": SPARK_MEMORY,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "spark-local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.delta.logStore.file.impl": LOG_STORE,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    builder: Any = SparkSession.builder.master("local[1]").appName("soak")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    compile_log_store(session, classes)
    return session


def compile_log_store(spark: SparkSession, classes: Path) -> None:
    """Compile the product's log store with Spark's own compiler into a folder of the class path."""
    virtual_machine: Any = spark._jvm
    compiler = virtual_machine.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(virtual_machine.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(
        Path(jvm.__file__).with_name("java_classes").joinpath("ExclusiveLogStore.java").read_text(encoding="utf-8")
    )
    for entry in compiler.getBytecodes().items():
        path = classes / (str(entry[0]).replace(".", "/") + ".class")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(entry[1]))


def check_log_store(spark: SparkSession, table: Path) -> None:
    """Stop where commits would go through another store."""
    virtual_machine: Any = spark._jvm
    session: Any = spark
    log = virtual_machine.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, str(table))
    used = log.store().getDelegate(log.logPath()).logStoreImpl().getClass().getName()
    if used != LOG_STORE:
        raise RuntimeError(f"commits go through {used}, which may replace those of others")


def main(settings_file: str) -> int:
    """Write and read until told to stop."""
    settings = SoakSettings.read(Path(settings_file))
    spark = own_session(settings.root / "soak")
    for table in TABLES.values():
        spark.sql(table.create_statement(settings))
        check_log_store(spark, table.path(settings))
    writers = spark_writers(settings, spark)
    readers = [StreamReader(settings, spark, table) for table in TABLES.values() if table.reader]
    settings.ready_file.touch()
    for writer in writers:
        writer.start()
    for reader in readers:
        reader.start()
    parent = os.getppid()
    while not settings.stop_file.exists():
        if os.getppid() != parent:
            return 1
        time.sleep(0.2)
    ended = [writer.stop() for writer in writers]
    for reader in readers:
        reader.stop()
    spark.stop()
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
