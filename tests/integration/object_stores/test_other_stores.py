"""Whole commands on tables on real servers of Azure's and Google's protocols and HDFS; another engine reads rows.

Another engine writes and reads the tables on this machine's disk, and a client of the protocol that shares no code with
Spark's connectors copies them to the server and back.
"""

from __future__ import annotations

import getpass
import json
import time
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
import pytest
from deltalake import DeltaTable, write_deltalake
from obstore.store import AzureStore

from tests.support.policies.projects import write_project
from tests.support.runs.command_host import CommandHost, Done, command_host
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.store_servers import AZURE_ACCOUNT, AZURE_KEY, GOOGLE_KEY, azurite, fake_gcs, hdfs

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(900)]

RETENTION_SECONDS = 1
VACUUM = f"retention: {RETENTION_SECONDS}s, allowShortRetention: true, allowLargeDelete: true"


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


HDFS = pytest.param(hdfs_cloud, id="hdfs")


@pytest.fixture(
    scope="module",
    params=[pytest.param(azure_cloud, id="azure"), pytest.param(google_cloud, id="google"), HDFS],
)
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    start = request.param
    with start(tmp_path_factory.mktemp("host") / "host.log") as cloud:
        yield cloud


@pytest.fixture
def orders(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> CloudProject:
    return CloudProject(cloud, tmp_path_factory.mktemp("orders"), "orders", "optimize: {}")


def test_each_command_says_the_truth_of_a_table_there(orders: CloudProject) -> None:
    written = orders.create(6)
    rows = rows_of(written)

    plan = orders.run("plan", "--detailed-exitcode", "-o", "json")
    assert plan.returncode == 3, plan.err
    assert [step["kind"] for table in plan.document["tables"] for step in table["steps"]] == ["compact"]
    assert orders.fetched().version() == 5

    first = orders.run("apply", "--yes", "-o", "json")
    assert (first.returncode, first.document["problems"]) == (0, []), first.out
    after = orders.fetched()
    assert (after.version(), len(after.file_uris()), rows_of(after)) == (6, 1, rows)

    again = orders.run("apply", "--yes", "-o", "json")
    assert (again.returncode, again.document["counts"]["up_to_date"]) == (0, 1), again.err
    assert orders.fetched().version() == 6

    verified = orders.run("verify", orders.address, "-o", "json")
    assert [table["result"] for table in verified.document["tables"]] == ["proven"], verified.err
    verification, compaction, *writes = orders.run("history", orders.address, "-o", "json").document["history"]
    assert verification["step"] == "verify"
    assert (compaction["step"], compaction["run_id"]) == ("compact", first.document["run_id"])
    assert (compaction["num_files_removed"], compaction["num_files_added"]) == (6, 1)
    assert [row["run_id"] for row in writes] == [None] * 6
    (from_ledger,) = orders.run("history", "--ledger", "-o", "json").document["history"]
    assert (from_ledger["step"], from_ledger["table"]) == ("compact", orders.address)

    refused = orders.run("undelete", orders.address, "--run", first.document["run_id"], "--yes")
    assert (refused.returncode, "error[T430]" in refused.err) == (1, True), refused.err


def test_doctor_finds_nothing_wrong(orders: CloudProject) -> None:
    done = orders.run("doctor")
    assert done.returncode == 0, done.out + done.err


def rewritten(project: CloudProject) -> tuple[Counter[int], set[str], str]:
    """Make a table of six files that another engine replaced by one; returns its rows, those files, and the one."""
    written = project.create(6, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    rows, old = rows_of(written), file_names(written)
    written.optimize.compact()
    (new,) = file_names(written)
    project.upload()
    assert project.data_files() == old | {new}
    time.sleep(RETENTION_SECONDS + 1)
    return rows, old, new


def test_a_vacuum_deletes_what_the_log_removed_and_nothing_else(
    cloud: Cloud, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = CloudProject(cloud, tmp_path_factory.mktemp("old"), "old", f"vacuum: {{{VACUUM}}}")
    rows, _, new = rewritten(project)
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert project.data_files() == {new}
    assert rows_of(project.fetched()) == rows


@pytest.mark.parametrize("cloud", [HDFS], indirect=True)
def test_what_a_vacuum_moved_into_the_trash_comes_back(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> None:
    project = CloudProject(cloud, tmp_path_factory.mktemp("moved"), "moved", f"vacuum: {{{VACUUM}, trash: 1d}}")
    rows, old, new = rewritten(project)
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, project.data_files()) == (0, {new}), done.err
    back = project.run("undelete", project.address, "--run", done.document["run_id"], "--yes")
    assert (back.returncode, project.data_files()) == (0, old | {new}), back.err
    assert rows_of(project.fetched()) == rows
