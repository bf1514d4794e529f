"""Metastores and stores that give no answer: known without Java, and asked by Hive's own client once."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.policies.projects import write_project

LIMIT_SECONDS = 2
NAMES = ("sales.a", "sales.b", "sales.c", "sales.d", "sales.e")


@contextlib.contextmanager
def silent_metastore(answered: int) -> Iterator[tuple[int, list[float]]]:
    """Accept connections, end so many of them at once, and then never answer; gives port and times of connections."""
    times: list[float] = []
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    times.append(time.monotonic())
                    if len(times) <= answered:
                        connection.close()
                    else:
                        held.append(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1]), times
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    for connection in held:
        connection.close()


def project_of(root: Path, tables: Sequence[str], settings: Mapping[str, str], num_files: int = 3) -> Path:
    import pyarrow as pa
    from deltalake import write_deltalake

    for number in range(num_files):
        write_deltalake(str(root / "lake" / "t"), pa.table({"id": [number]}), mode="append")
    conf = "".join(f"    {key}: {value}\n" for key, value in settings.items())
    files = {f"policies/{name[-1]}.yml": f"table: {name}\n" for name in tables}
    files |= {"policies/t.yml": "table: lake/t\n", "maintainer.yml": f"version: 1\nspark:\n  conf:\n{conf}"}
    return write_project(root, files)


def on_metastore(root: Path, port: int, num_files: int = 3) -> Path:
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        "spark.hadoop.hive.metastore.client.socket.timeout": f"{LIMIT_SECONDS}s",
    }
    return project_of(root, NAMES, settings, num_files)


def plan(root: Path, **env: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "maintainer", "--project", str(root), "plan"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, env={**os.environ, **env}, cwd=root,
    )  # fmt: skip
    return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize(("num_files", "does", "tries"), [(1, "up to date", 2), (3, "changes", 1)])
def test_it_is_known_without_java_while_a_table_by_path_is_planned(
    tmp_path: Path, num_files: int, does: str, tries: int
) -> None:
    """It is asked twice, as one of several machines may be behind an address; once where others wait."""
    with silent_metastore(answered=0) as (port, times):
        code, said = plan(on_metastore(tmp_path, port, num_files), JAVA_HOME=str(tmp_path / "no-java"))
    assert code == 1, said
    assert said.count("the catalog does not answer") == said.count("E647") == 1, said
    assert "sales.a, sales.b, sales.c and 2 more" in said
    assert does in said.split("[2/6] sales.")[0].split("[1/6] lake/t")[1]
    assert said.index("[1/6] lake/t") < said.index("[2/6] sales.")
    assert len(times) == tries


def test_a_store_where_nobody_listens_is_known_without_java_while_a_table_by_path_is_planned(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
    settings = {
        "spark.hadoop.fs.s3a.endpoint": address,
        "spark.hadoop.fs.s3a.access.key": "${env:A_KEY}",
        "spark.hadoop.fs.s3a.secret.key": "${env:A_SECRET}",
    }
    root = project_of(tmp_path, ("s3://bucket/a", "s3://bucket/b", "s3://bucket/c"), settings)
    code, said = plan(root, JAVA_HOME=str(tmp_path / "no-java"), A_KEY="key", A_SECRET="secret")
    assert code == 1, said
    assert said.count(f"the storage cannot be reached (found: {address}: Connection refused)") == 1, said
    assert said.count("T435") == 1
    assert "s3://bucket/a, s3://bucket/b, s3://bucket/c" in said
    assert said.index("[1/4] lake/t  changes") < said.index("[2/4] s3://bucket/")


@pytest.mark.spark
def test_hives_own_client_waits_for_it_once(tmp_path: Path) -> None:
    """It gave a sign of life, so that Hive's client is loaded, and then falls silent."""
    with silent_metastore(answered=1) as (port, times):
        code, said = plan(on_metastore(tmp_path, port))
    assert code == 1, said
    assert "the catalog does not answer (found: Read timed out)" in said
    assert said.count("E647") == 1, said
    assert "5 tables" in said
    assert "[1/6] lake/t  changes" in said
    # Hive asks who we are, and then for the database: two answers that do not come, for whatever name is first.
    asked = times[1:]
    assert 1 <= len(asked) <= 2
    assert asked[-1] - asked[0] < 2 * LIMIT_SECONDS
