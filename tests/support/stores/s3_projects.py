"""Projects whose tables and state lie on an S3 server, run as a user runs them: each command a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import obstore
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from obstore.store import S3Store
from pyarrow.fs import FileSelector, S3FileSystem

from tests.support.policies.projects import write_project
from tests.support.runs.command_host import CommandHost, Done, command_host
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server, spark_keys

SECONDS = 300
"""A command that takes longer is stopped."""

ENVIRONMENT = {"S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY}

_PART = re.compile(r"(?P<folder>.*/)events(?P<other>(?:\..+)?)\.jsonl\.(?P<number>\d{5})")
"""A part of the record of a run, or of what another run wrote about it later."""

_APART = re.compile(r"waiting_rows/(?P<of_rows>[^/]+)\.jsonl|assertions/(?P<of_checks>[^/]+)/(?P<check>[^/]+)")

SETTINGS = """\
state: s3://lake/_maintainer
spark:
  conf:
    spark.driver.memory: 1g
    spark.hadoop.fs.s3a.endpoint: {url}
    spark.hadoop.fs.s3a.endpoint.region: us-east-1
    spark.hadoop.fs.s3a.path.style.access: true
    spark.hadoop.fs.s3a.access.key: ${{env:S3_ACCESS_KEY}}
    spark.hadoop.fs.s3a.secret.key: ${{env:S3_SECRET_KEY}}
"""


@dataclass(frozen=True)
class S3Project:
    """A project folder, the server that it names, and a folder for what commands keep on their machine."""

    root: Path
    server: S3Server
    home: Path
    host: CommandHost | None = None

    @property
    def options(self) -> dict[str, str]:
        """What deltalake needs to reach the server."""
        return self.server.options

    def append(self, name: str, num_files: int, **configuration: str) -> None:
        """Write commits of ten rows each to ``s3://lake/tables/NAME``."""
        for number in range(num_files):
            rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10))})
            write_deltalake(
                uri(name), rows, mode="append", storage_options=self.options, configuration=dict(configuration)
            )

    def table(self, address: str) -> DeltaTable:
        """Open a table by the second engine: a name below ``tables``, or an address."""
        return DeltaTable(address if "://" in address else uri(address), storage_options=self.options)

    def stamps(self, name: str) -> list[str]:
        """What the commits of a table say about who made them."""
        return [commit.get("userMetadata", "") for commit in self.table(name).history()]

    def rows(self, address: str) -> Counter[tuple[object, ...]]:
        """The rows of a table as the second engine reads them."""
        return Counter(tuple(row.values()) for row in self.table(address).to_pyarrow_table().to_pylist())

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run a command of maintainer: in the project's host, or as a process."""
        if self.host is not None:
            return self.host.run("--project", str(self.root), *arguments, MAINTAINER_HOME=str(self.home), **environment)
        return self.process("maintainer", "--project", str(self.root), *arguments, **environment)

    def process(self, module: str, *arguments: str, **environment: str) -> Done:
        """Run a module on this project's machine, which has the JARs and nothing else at first."""
        self.home.mkdir(exist_ok=True)
        home = {"MAINTAINER_HOME": str(self.home), "MAINTAINER_JARS": folder_with_connector("s3")}
        env = {**os.environ, **ENVIRONMENT, **home}
        started = time.monotonic()
        done = subprocess.run(
            (sys.executable, "-m", module, *arguments), env={**env, **environment},
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - started)


def uri(name: str) -> str:
    """The address of a table."""
    return f"s3://lake/tables/{name}"


def make_project(
    root: Path, server: S3Server, policies: dict[str, str], *, settings: str = SETTINGS, host: CommandHost | None = None
) -> S3Project:
    """Write a project: ``policies`` maps a table's name to what its policy says beside ``table:``."""
    files = {f"policies/{name}.yml": f"table: {uri(name)}\n{text}\n" for name, text in policies.items()}
    project = write_project(root / "project", {"maintainer.yml": settings.format(url=server.url), **files})
    return S3Project(project, server, root / "machine", host)


def project_beside(root: Path, server: S3Server, name: str, policy: str, host: CommandHost | None) -> S3Project:
    """Write a project of one table whose state no other table of the server shares: ``s3://lake/NAME``."""
    settings = SETTINGS.replace("lake/_maintainer", f"lake/{name}")
    return make_project(root, server, {name: policy}, settings=settings, host=host)


def ledger_rows(project: S3Project, name: str) -> list[tuple[str, str, str]]:
    """The rows of the ledger of ``project_beside``: table, kind and status, as the second engine reads them."""
    rows = project.table(f"s3://lake/{name}/ledger").to_pyarrow_table().to_pylist()
    return sorted((row["table"], row["kind"], row["status"]) for row in rows)


def two_minutes_later(project: S3Project, name: str) -> None:
    """Let the leases and the sign of life of whoever is dead end, in the state of ``project_beside``."""
    # Not by pyarrow: it uploads in parts, which the server refuses now and then.
    bucket = S3Store(
        "lake", endpoint=project.server.own_url, access_key_id=ACCESS_KEY, secret_access_key=SECRET_KEY, region=REGION,
        client_options={"allow_http": True},
    )  # fmt: skip
    for folder in ("alive", "leases"):
        for file in obstore.list_with_delimiter(bucket, f"{name}/{folder}/")["objects"]:
            document = json.loads(bytes(obstore.get(bucket, file["path"]).bytes()))
            content = json.dumps({**document, "expires_at_ms": 1}).encode()
            obstore.put(bucket, file["path"], content, use_multipart=False)


def store_of(server: S3Server) -> S3FileSystem:
    """A client of the server that shares no code with the program, and asks it without the relay."""
    return S3FileSystem(
        access_key=ACCESS_KEY, secret_key=SECRET_KEY, region=REGION, endpoint_override=server.own_url,
        allow_bucket_creation=True,
    )  # fmt: skip


def fetch_state(server: S3Server, place: str, folder: Path) -> Path:
    """Copy everything below ``BUCKET/FOLDER`` into a folder, and return it.

    The record of a run lies on the store in parts, beside what later runs wrote about it; in the copy all of that is
    one file, as on a disk. What lies apart from the run folders there is in them.
    """
    store = store_of(server)
    parts: dict[Path, dict[tuple[str, int], bytes]] = defaultdict(dict)
    for stored in store.get_file_info(FileSelector(place, recursive=True)):
        if not stored.is_file:
            continue
        name = stored.path.removeprefix(f"{place}/")
        match = _PART.fullmatch(name)
        part = (match["other"], int(match["number"])) if match else ("", 0)
        target = f"{match['folder']}events.jsonl" if match else _APART.sub(_in_its_run, name)
        with store.open_input_stream(stored.path) as stream:
            parts[folder / target][part] = stream.read()
    for path, numbered in parts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(numbered[part] for part in sorted(numbered)))
    return folder


def _in_its_run(apart: re.Match[str]) -> str:
    """Where an object that lies apart from its run on the store lies on a disk."""
    if apart["of_rows"]:
        return f"runs/{apart['of_rows']}/ledger_pending.jsonl"
    return f"runs/{apart['of_checks']}/assertions/{apart['check']}"


@contextmanager
def s3_host(server: S3Server, folder: Path) -> Iterator[CommandHost]:
    """Start a process with a session that has the connector and reaches the server, as ``SETTINGS`` say."""
    conf = {"spark.driver.memory": "1g", "spark.hadoop.fs.s3a.path.style.access": "true", **spark_keys(server)}
    environment = {**ENVIRONMENT, "MAINTAINER_JARS": folder_with_connector("s3")}
    with command_host(conf, ("s3",), environment, folder / "host.log") as host:
        yield host
