"""A real S3 server on 127.0.0.1 (moto): it keeps conditions of writes, or ignores them, and can be away."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto import settings
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from tests.support.stores.sick_store import StoreFaults

CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


class S3Server:
    """A server in this process, one request at a time; its objects live until the next server is opened."""

    def __init__(self, *, keeps_conditions: bool = True) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        self._application = DomainDispatcherApplication(create_backend_app)
        self._keeps_conditions = keeps_conditions
        self.faults = StoreFaults()
        # moto looks and then writes: two requests at once could both be told that they made an object.
        self._turn = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.port: int = self._server.server_port
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve, again on the same port."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._thread is not None:
            self.faults.clear()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._thread = None

    def restart(self) -> None:
        """Serve again after ``stop``, with the same objects."""
        self._server = make_server("127.0.0.1", self.port, self._answer, threaded=True)
        self.start()

    def forget(self) -> None:
        """Drop all buckets: moto keeps them for the process, also those of servers before."""
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST"), timeout=60):
            pass

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/{name}", method="PUT"), timeout=60):
            pass

    def keep_versions(self, bucket: str) -> None:
        """Let a bucket keep each version of an object, as many do: each write is answered with a version then."""
        body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        xml = {"Content-Type": "application/xml"}
        request = urllib.request.Request(f"{self.url}/{bucket}?versioning", body, xml, method="PUT")
        with urllib.request.urlopen(request, timeout=60):
            pass

    def check_credentials(self, *, on: bool = True) -> None:
        """Refuse from now on who is no user of the server; it has none, so that means everybody."""
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0.0 if on else float("inf")

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Any:
        if not self._keeps_conditions:
            for name in CONDITIONS:
                environ.pop(name, None)
        return self.faults.answer(environ, start_response, self._answer_in_turn)

    def _answer_in_turn(self, environ: dict[str, Any], start_response: Any) -> Any:
        with self._turn:
            return self._application(environ, start_response)


@contextmanager
def s3_server(bucket: str, *, keeps_conditions: bool = True) -> Iterator[S3Server]:
    """Serve a bucket, empty at first, for the time of a block."""
    server = S3Server(keeps_conditions=keeps_conditions)
    server.start()
    try:
        server.forget()
        server.make_bucket(bucket)
        yield server
    finally:
        server.stop()


def spark_keys(server: S3Server) -> dict[str, str]:
    """The settings by which a project reaches the server."""
    keys = {"endpoint": server.url, "endpoint.region": "us-east-1", "access.key": "key", "secret.key": "secret"}
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in keys.items()}
