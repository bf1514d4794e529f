"""The relay before a store passes everything on as it came, counts it by kind, and delivers it later."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.process_relay import DRIVER, process_relay
from tests.support.stores.counting_relay import CountingRelay, Request, counting_relay

SENT = bytes(range(256)) * 4096


class Echo(BaseHTTPRequestHandler):
    """Answers with the body that it was sent, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self._body()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        assert self.rfile.readline() == b"\r\n"
        return b"".join(parts)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def relay(port: int, tmp_path: Path) -> Iterator[CountingRelay]:
    with counting_relay(port, tmp_path / "requests.txt") as relay:
        yield relay


def ask(relay: CountingRelay, *requests: tuple[str, str]) -> None:
    """Make requests over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=30)
    for method, target in requests:
        connection.request(method, target)
        connection.getresponse().read()
    connection.close()


def test_requests_are_counted_by_kind_since_the_last_clear(relay: CountingRelay) -> None:
    ask(relay, ("GET", "/lake/before"))
    relay.clear()
    ask(
        relay,
        ("GET", "/lake/t/a%20b.parquet"), ("GET", "/lake?list-type=2&prefix=t%2F_delta_log%2F"), ("GET", "/lake/?x"),
        ("HEAD", "/lake/t/a"), ("PUT", "/lake/t/a"), ("DELETE", "/lake/t/a"), ("POST", "/lake/?delete"),
        ("POST", "/lake/t/a?uploads"),
    )  # fmt: skip
    assert relay.requests() == [
        Request("GET", "lake/t/a b.parquet"), Request("LIST", "lake/t/_delta_log/"), Request("LIST", "lake/"),
        Request("HEAD", "lake/t/a"), Request("PUT", "lake/t/a"), Request("DELETE", "lake/t/a"),
        Request("POST delete", "lake/"), Request("POST", "lake/t/a"),
    ]  # fmt: skip
    assert relay.counted() == Counter(request.kind for request in relay.requests())


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_pass_as_they_are_and_the_connection_is_kept(relay: CountingRelay, chunked: bool) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=30)
    for number in range(3):
        body = SENT[number:]
        sent = (body[at : at + 70_000] for at in range(0, len(body), 70_000)) if chunked else body
        connection.request("PUT", f"/lake/{number}", sent, encode_chunked=chunked)
        assert connection.getresponse().read() == body
    connection.close()
    assert relay.requests() == [Request("PUT", f"lake/{number}") for number in range(3)]


def test_each_request_arrives_later_and_many_at_once_do_not_wait_for_one_another(port: int, tmp_path: Path) -> None:
    with counting_relay(port, tmp_path / "requests.txt", delay_ms=300) as relay:
        started = time.monotonic()
        ask(relay, ("GET", "/lake/a"), ("GET", "/lake/b"))
        assert time.monotonic() - started >= 0.6
        started = time.monotonic()
        threads = [threading.Thread(target=ask, args=(relay, ("GET", f"/lake/{number}"))) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 0.3 <= time.monotonic() - started < 20 * 0.3
        assert relay.counted() == Counter({"GET": 22})


def test_a_server_that_is_away_is_a_closed_connection(tmp_path: Path) -> None:
    with counting_relay(1, tmp_path / "requests.txt") as relay, pytest.raises((http.client.HTTPException, OSError)):
        ask(relay, ("GET", "/lake/a"))


def test_the_way_of_each_machine_has_a_delay_and_a_rate_and_bytes_of_data_files_are_counted(port: int) -> None:
    """All of this process is the driver; what else asks is told from it by its command line."""
    with process_relay(port, 50, 2) as passed:
        connection = http.client.HTTPConnection("127.0.0.1", passed.port, timeout=30)
        started = time.monotonic()
        for target, size in (("/lake/t/a.parquet", 500_000), ("/lake/t/_delta_log/0.checkpoint.parquet", 1000)):
            connection.request("PUT", target, SENT[:size])
            assert connection.getresponse().read() == SENT[:size]
        assert time.monotonic() - started >= 2 * 0.05 + 2 * 500_000 / 2e6
        connection.close()
    assert passed.ways == {DRIVER: {"requests": 2, "data_bytes": 1_000_000, "PUT": 2}}
    assert (passed.total("requests", of_driver=True), passed.total("requests", of_driver=False)) == (2, 0)
