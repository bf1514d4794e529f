"""A real S3 server on 127.0.0.1 (versitygw), behind a relay that can make it sick, forget conditions, or be away."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.support.stores.http_relay import HttpAnswer, HttpRelay, HttpRequest, RelayedRequests, passed_on
from tests.support.stores.sick_store import StoreFaults
from tests.support.stores.store_servers import versitygw

ACCESS_KEY, SECRET_KEY, REGION = "key", "secret", "us-east-1"
NOBODY = 65534
CONDITIONS = ("if-none-match", "if-match")
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30

_OF_A_BODY = ("content-md5", "authorization", "x-amz-")
"""Headers, or what they begin with, that speak of the body or of who signed it."""


class S3Server:
    """A server of its own process and the relay before it, which has the faults and lists the requests.

    Attributes:
        folder: Where the bucket's objects are files.
        own_url: The server without the relay: nothing that comes this way is listed or made sick, and it answers while
            another thread holds Python's lock.
    """

    def __init__(self, port: int, folder: Path, *, keeps_conditions: bool = True) -> None:
        self._port = port
        self.folder = folder
        self.own_url = f"http://127.0.0.1:{port}"
        self._keeps_conditions = keeps_conditions
        self.faults = StoreFaults()
        handler = type("RelayedS3Requests", (RelayedRequests,), {"answer": lambda _, request: self._answer(request)})
        self._handler: type[RelayedRequests] = handler
        self._relay: HttpRelay | None = HttpRelay(0, handler)
        self.port: int = self._relay.server_port

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs needs to reach the server: some of its calls hold Python's lock, so no relay answers them."""
        return {
            "AWS_ENDPOINT_URL": self.own_url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }  # fmt: skip

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._relay is not None:
            self.faults.clear()
            self._relay.close()
            self._relay = None

    def restart(self) -> None:
        """Serve again after ``stop``, on the same port, with the same objects."""
        self._relay = HttpRelay(self.port, self._handler)

    def put(self, target: str, body: bytes) -> None:
        """Make an object under a name that clients do not give; past the relay."""
        answer = passed_on(self._port, self._signed(HttpRequest("PUT", target, (), body)))
        assert answer.status == 200, answer

    def keep_versions(self, bucket: str) -> None:
        """Let a bucket keep each version of an object: each write is answered with a version then."""
        body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        self.put(f"/{bucket}?versioning=", body)

    def _answer(self, request: HttpRequest) -> HttpAnswer | None:
        if not self._keeps_conditions and any(request.header(name) for name in CONDITIONS):
            headers = tuple((name, value) for name, value in request.headers if name.lower() not in CONDITIONS)
            request = self._signed(replace(request, headers=headers))
        return self.faults.answer(request, lambda request: passed_on(self._port, request), self._signed)

    def _signed(self, request: HttpRequest) -> HttpRequest:
        """Sign a request anew, as docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html says."""
        path, _, query = request.target.partition("?")
        now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(request.body).hexdigest()
        signed = {"host": f"127.0.0.1:{self._port}", "x-amz-content-sha256": digest, "x-amz-date": now}
        fields = "&".join(sorted(query.split("&")))
        lines = (request.method, path, fields, *(f"{name}:{value}" for name, value in signed.items()), "")
        canonical = "\n".join((*lines, ";".join(signed), digest))
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        to_sign = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        key = f"AWS4{SECRET_KEY}".encode()
        for part in (*scope.split("/"), to_sign):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={ACCESS_KEY}/{scope}, SignedHeaders={';'.join(signed)}, Signature={key.hex()}"
        signed["authorization"] = f"AWS4-HMAC-SHA256 {credential}"
        kept = (pair for pair in request.headers if not pair[0].lower().startswith(("host", *_OF_A_BODY)))
        return replace(request, headers=(*kept, *signed.items()))


@contextmanager
def s3_server(
    bucket: str, *, keeps_conditions: bool = True, keeps_versions: bool = False, obeys_modes: bool = False
) -> Iterator[S3Server]:
    """Serve a bucket, empty at first, for the time of a block; nothing of it is left behind.

    Args:
        bucket: Its name.
        keeps_conditions: Without them a write with a condition is a plain one.
        keeps_versions: With them each write is answered with a version, as by many a bucket.
        obeys_modes: It does not run as root, so that it deletes nothing in a folder that may not be written.
    """
    folder = Path(tempfile.mkdtemp(prefix="s3-server-", dir=_place()))
    versions = folder / "versions" if keeps_versions else None
    if versions is not None:
        versions.mkdir()
    try:
        user = NOBODY if obeys_modes and os.geteuid() == 0 else None
        with versitygw(folder / "buckets", bucket, ACCESS_KEY, SECRET_KEY, versions, user=user) as port:
            server = S3Server(port, folder / "buckets" / bucket, keeps_conditions=keeps_conditions)
            if keeps_versions:
                server.keep_versions(bucket)
            try:
                yield server
            finally:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place() -> Path | None:
    """Return a folder in memory, if there is one that is large and takes attributes: the server keeps tags in them."""
    try:
        with tempfile.NamedTemporaryFile(dir=MEMORY) as file:
            os.setxattr(file.name, "user.s3", b"1")
        return MEMORY if shutil.disk_usage(MEMORY).free >= MEMORY_BYTES else None
    except (OSError, AttributeError):  # macOS has neither
        return None


def spark_keys(server: S3Server) -> dict[str, str]:
    """The settings by which a project reaches the server."""
    keys = {
        "endpoint": server.url, "endpoint.region": REGION, "access.key": ACCESS_KEY, "secret.key": SECRET_KEY,
    }  # fmt: skip
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in keys.items()}
