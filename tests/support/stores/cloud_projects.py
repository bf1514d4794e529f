"""Projects whose tables lie on a server of Azure's or Google's protocol, or on HDFS.

Another engine writes and reads the tables on this machine's disk, and a client of the protocol that shares no code with
Spark's connectors copies them to the server and back.
"""

from __future__ import annotations

import getpass
import json
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import obstore
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from obstore.store import AzureStore

from tests.support.policies.projects import write_project
from tests.support.runs.command_host import CommandHost, Done, command_host
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.store_servers import AZURE_ACCOUNT, AZURE_KEY, GOOGLE_KEY, azurite, fake_gcs, hdfs

CONTAINER = "lake"
AZURE_HOST = f"{AZURE_ACCOUNT}.dfs.core.windows.net"


class StoreClient(Protocol):
    """What is asked of a server beside the connector."""

    def names(self, prefix: str) -> list[str]:
        """The objects whose names begin with ``prefix``."""

    def read(self, name: str) -> bytes:
        """The content of an object."""

    def write(self, name: str, content: bytes) -> None:
        """Create or replace an object."""


class AzuriteClient:
    """Azurite, asked by obstore."""

    def __init__(self, endpoint: str) -> None:
        self._store = AzureStore(
            CONTAINER, account_name=AZURE_ACCOUNT, account_key=AZURE_KEY, endpoint=endpoint,
            client_options={"allow_http": True},
        )  # fmt: skip

    def names(self, prefix: str) -> list[str]:
        """List all pages, without the empty blobs by which hadoop-azure marks folders."""
        stored = {entry["path"]: entry["size"] for page in obstore.list(self._store, prefix) for entry in page}
        folders = {name.rpartition("/")[0] for name in stored}
        return [name for name, size in stored.items() if size > 0 or name not in folders]

    def read(self, name: str) -> bytes:
        """Get an object whole."""
        return bytes(obstore.get(self._store, name).bytes())

    def write(self, name: str, content: bytes) -> None:
        """Put an object whole."""
        obstore.put(self._store, name, content)


class FakeGcsClient:
    """fake-gcs-server, asked by Google's JSON API (https://cloud.google.com/storage/docs/json_api/v1)."""

    def __init__(self, url: str) -> None:
        self._url = url

    def names(self, prefix: str) -> list[str]:
        """List one page, which the server makes as long as it must be, without the objects that mark folders."""
        answer = json.loads(self._ask(f"/storage/v1/b/{CONTAINER}/o?prefix={_quoted(prefix)}"))
        return [stored["name"] for stored in answer.get("items", []) if not stored["name"].endswith("/")]

    def read(self, name: str) -> bytes:
        """Get an object whole."""
        return self._ask(f"/storage/v1/b/{CONTAINER}/o/{_quoted(name)}?alt=media")

    def write(self, name: str, content: bytes) -> None:
        """Upload an object whole."""
        self._ask(f"/upload/storage/v1/b/{CONTAINER}/o?uploadType=media&name={_quoted(name)}", content)

    def _ask(self, path: str, content: bytes | None = None) -> bytes:
        headers = {} if content is None else {"Content-Type": "application/octet-stream"}
        with urllib.request.urlopen(urllib.request.Request(self._url + path, content, headers), timeout=30) as answer:
            return bytes(answer.read())


class WebHdfsClient:
    """HDFS, asked by its REST API (https://hadoop.apache.org/docs/r3.4.2/hadoop-project-dist/hadoop-hdfs/WebHDFS.html)."""

    def __init__(self, url: str) -> None:
        self._url = url

    def names(self, prefix: str) -> list[str]:
        """List a folder and all below it; none where it is not there."""
        folder, names = prefix.rstrip("/"), list[str]()
        try:
            listed = json.loads(self._ask("GET", folder, "LISTSTATUS"))["FileStatuses"]["FileStatus"]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []
        for entry in listed:
            name = f"{folder}/{entry['pathSuffix']}"
            names += self.names(name) if entry["type"] == "DIRECTORY" else [name]
        return names

    def read(self, name: str) -> bytes:
        """Get a file whole."""
        return self._ask("GET", name, "OPEN")

    def write(self, name: str, content: bytes) -> None:
        """Create a file where the name node says."""
        place = json.loads(self._ask("PUT", name, "CREATE&noredirect=true"))["Location"]
        with urllib.request.urlopen(urllib.request.Request(place, content, method="PUT"), timeout=30):
            pass

    def _ask(self, method: str, name: str, op: str) -> bytes:
        url = f"{self._url}/{urllib.parse.quote(name)}?user.name={getpass.getuser()}&op={op}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return bytes(answer.read())


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


@dataclass(frozen=True)
class Cloud:
    """A server with one container, and a process with a session that reaches it.

    Attributes:
        container_uri: What the address of each table begins with, as ``gs://lake``.
        settings: Lines of maintainer.yml: where the state lies, on the same server, and how it is reached.
        environment: What the user's shell would hold.
    """

    container_uri: str
    client: StoreClient
    host: CommandHost
    settings: str
    environment: dict[str, str]


@contextmanager
def azure_cloud(log: Path) -> Iterator[Cloud]:
    """Start Azurite and a session that reaches it by its Blob protocol."""
    with azurite(CONTAINER) as endpoint:
        key = f"spark.hadoop.fs.azure.account.key.{AZURE_HOST}"
        conf = {
            "spark.driver.memory": "1g",
            "spark.hadoop.fs.azure.abfs.endpoint": endpoint.removeprefix("http://").partition("/")[0],
            key: AZURE_KEY,
            "spark.hadoop.fs.azure.account.hns.enabled": "false",
            "spark.hadoop.fs.azure.fns.account.service.type": "BLOB",
            "spark.hadoop.fs.azure.always.use.https": "false",
            "spark.hadoop.fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        }
        lines = "".join(f"    {name}: {value}\n" for name, value in conf.items() if name != key)
        settings = f"spark:\n  conf:\n{lines}    {key}: ${{env:AZURE_KEY}}\n"
        uri = f"abfs://{CONTAINER}@{AZURE_HOST}"
        environment = {"AZURE_KEY": AZURE_KEY}
        with command_host(conf, ("azure",), {"MAINTAINER_JARS": folder_with_connector("azure")}, log) as host:
            yield Cloud(uri, AzuriteClient(endpoint), host, f"state: {uri}/_maintainer\n{settings}", environment)


@contextmanager
def google_cloud(log: Path) -> Iterator[Cloud]:
    """Start fake-gcs-server and a session that reaches it."""
    with fake_gcs(CONTAINER) as url:
        key_file = log.with_name("key.json")
        key_file.write_text(json.dumps(GOOGLE_KEY))
        conf = {
            "spark.driver.memory": "1g",
            "spark.hadoop.fs.gs.storage.root.url": f"{url}/",
            # Of these two the connector goes by the first, and the client of the state by the second.
            "spark.hadoop.fs.gs.auth.type": "UNAUTHENTICATED",
            "spark.hadoop.fs.gs.auth.service.account.json.keyfile": str(key_file),
        }
        settings = "spark:\n  conf:\n" + "".join(f"    {name}: {value}\n" for name, value in conf.items())
        uri = f"gs://{CONTAINER}"
        with command_host(conf, ("gcs",), {"MAINTAINER_JARS": folder_with_connector("gcs")}, log) as host:
            yield Cloud(uri, FakeGcsClient(url), host, f"state: {uri}/_maintainer\n{settings}", {})


@contextmanager
def hdfs_cloud(log: Path) -> Iterator[Cloud]:
    """Start HDFS and a session, which reaches it with no setting; the state lies on this machine."""
    folder = log.with_name("hdfs")
    folder.mkdir()
    with hdfs(folder) as (uri, url), command_host({"spark.driver.memory": "1g"}, (), {}, log) as host:
        yield Cloud(uri, WebHdfsClient(url), host, "", {})


class CloudProject:
    """A project of one table on such a server, and that table's copies on this machine."""

    def __init__(self, cloud: Cloud, folder: Path, name: str, policy: str) -> None:
        """Write the project below ``folder``; ``policy`` is what stands beside ``table:``."""
        self.address = f"{cloud.container_uri}/tables/{name}"
        files = {"maintainer.yml": cloud.settings, f"policies/{name}.yml": f"table: {self.address}\n{policy}\n"}
        self._root = write_project(folder / "project", files)
        self._cloud, self._folder, self._prefix = cloud, folder, f"tables/{name}/"
        self._written, self._num_copies = folder / "written", 0

    def run(self, *arguments: str) -> Done:
        """Run a command of maintainer in the process with the session."""
        home = str(self._folder / "machine")
        environment = {**self._cloud.environment, "MAINTAINER_HOME": home}
        return self._cloud.host.run("--project", str(self._root), *arguments, **environment)

    def create(self, num_files: int, **configuration: str) -> DeltaTable:
        """Write a table of ``num_files`` commits of ten rows on this machine, copy it there, and return it."""
        for number in range(num_files):
            rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10))})
            write_deltalake(str(self._written), rows, mode="append", configuration=configuration)
        self.upload()
        return DeltaTable(str(self._written))

    def upload(self) -> None:
        """Copy to the server what it lacks of the written table, the log last, as a writer does."""
        there = set(self._cloud.client.names(self._prefix))
        files = [path for path in self._written.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: (path.parent.name == "_delta_log", path)):
            name = self._prefix + path.relative_to(self._written).as_posix()
            if name not in there:
                self._cloud.client.write(name, path.read_bytes())

    def fetched(self) -> DeltaTable:
        """The table as it lies on the server now, in a new copy."""
        self._num_copies += 1
        copy = self._folder / f"copy{self._num_copies}"
        for name in self._cloud.client.names(self._prefix):
            path = copy / name.removeprefix(self._prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._cloud.client.read(name))
        return DeltaTable(str(copy))

    def data_files(self) -> set[str]:
        """The names of the Parquet files that lie in the table's folder there."""
        names = (name.removeprefix(self._prefix) for name in self._cloud.client.names(self._prefix))
        return {name for name in names if name.endswith(".parquet") and not name.startswith("_delta_log/")}


def file_names(table: DeltaTable) -> set[str]:
    """The names of the data files of a table's newest version."""
    return {uri.rpartition("/")[2] for uri in table.file_uris()}


def rows_of(table: DeltaTable) -> Counter[int]:
    """The ids of a table, as the second engine reads them."""
    return Counter(table.to_pyarrow_table()["id"].to_pylist())
