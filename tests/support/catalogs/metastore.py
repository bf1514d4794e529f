"""A Hive metastore as a server of its own, out of the JARs that PySpark has; its database is an embedded Derby."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyspark

from tests.support.stores.store_servers import free_port, running

OPENED = ("java.lang", "java.net", "java.util", "java.util.concurrent")
SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"


@contextlib.contextmanager
def metastore(folder: Path) -> Iterator[str]:
    """Run a metastore within the block; gives its address as Hive's clients take it."""
    port = free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    # Its asynchronous log needs a library that Spark does not ship.
    options = ["-Xmx256m", "-Dhive.async.log.enabled=false", f"-Dderby.stream.error.file={folder}/derby.log"]
    command = ["java", *opened, *options, "-cp", f"{Path(pyspark.__file__).parent}/jars/*", SERVER, "-p", str(port)]
    command += [part for key, value in settings.items() for part in ("--hiveconf", f"{key}={value}")]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "metastore.log").open("wb") as log, running(command, port, output=log):
        yield f"thrift://127.0.0.1:{port}"
