"""How long a client waits follows what it sends."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from maintainer.engine.store import object_storage, store_clients
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import RequestLimits

S3A = "spark.hadoop.fs.s3a."


@contextmanager
def slow_server(bytes_per_second: int) -> Iterator[str]:
    """A server that takes a body in small bites, and answers when it has all of it."""
    bite_bytes = 16 << 10

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            left = int(self.headers["content-length"])
            while left and (bite := self.rfile.read(min(bite_bytes, left))):
                left -= len(bite)
                time.sleep(len(bite) / bytes_per_second)
            self.send_response(200)
            self.send_header("etag", '"e"')
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def server_bind(self) -> None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, bite_bytes)
            super().server_bind()

    server = Server(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("way", ["upload", "write", "replace"])
def test_a_body_that_takes_longer_than_a_silence_is_sent(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store says nothing while it is sent a body: that is no silence."""
    monkeypatch.setattr(store_clients, "SLOWEST_BYTES_PER_SECOND", 2 << 20)
    limits, size_bytes = RequestLimits(60, 0.4, 0), 4 << 20
    with slow_server(3 << 20) as url:
        storage = ObjectStorage.open(
            "s3a://lake",
            store_settings(
                "s3a://lake", {f"{S3A}endpoint": url, f"{S3A}access.key": "key", f"{S3A}secret.key": "secret"}, {}
            ),
            limits,
        )
        body = bytes(size_bytes)
        match way:
            case "upload":
                (tmp_path / "file").write_bytes(body)
                assert storage.upload(str(tmp_path / "file"), "name").startswith('"e"')
            case "write":
                assert storage.write("name", body).startswith('"e"')
            case _:
                assert storage.replace("name", body, None)


@pytest.mark.parametrize(
    ("num_bytes", "seconds"),
    [(0, 15), (14 << 20, 15), (16 << 20, 30), (64 << 20, 120), (256 << 20, 480), (1 << 40, 600)],
)
def test_the_limit_of_silence_follows_the_size_of_the_body(
    num_bytes: int, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def made(*_: object, client_options: dict[str, timedelta], **__: object) -> object:
        waits.append(client_options["read_timeout"].total_seconds())
        return object()

    monkeypatch.setattr("obstore.store.from_url", made)
    sending = store_clients.clients(store_settings("s3a://lake", {}, {}), store_clients.OF_TABLES)
    assert sending(num_bytes) is sending(num_bytes), "one client for each wait"
    assert waits == [seconds]
    assert num_bytes > object_storage.ONE_PUT_BYTES or num_bytes / store_clients.SLOWEST_BYTES_PER_SECOND <= 600
