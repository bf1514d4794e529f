"""A Hive metastore as a server of its own, out of the JARs that PySpark has; its database is an embedded Derby."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

START_SECONDS = 90.0
OPENED = ("java.lang", "java.net", "java.util", "java.util.concurrent")
SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"


@contextlib.contextmanager
def metastore(folder: Path) -> Iterator[str]:
    """Run a metastore within the block; gives its address as Hive's clients take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
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
    with (folder / "metastore.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _wait_until_there(port, server)
            yield f"thrift://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


def _wait_until_there(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"no metastore: exit code {server.poll()}")
