"""A proxy before fake-gcs-server that takes the writes of Google's XML protocol, which that server has by JSON alone.

The conditions are still the server's own: ``x-goog-if-generation-match`` becomes its ``ifGenerationMatch``. Everything
else passes as it came. https://cloud.google.com/storage/docs/xml-api/put-object-upload has the protocol.
"""

from __future__ import annotations

import http.client
import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONDITION = "x-goog-if-generation-match"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
SECONDS = 60


class XmlWrites(BaseHTTPRequestHandler):
    """One request to the proxy."""

    protocol_version = "HTTP/1.1"
    behind_port = 0

    def do_PUT(self) -> None:
        """Write an object by one upload; anything else that is put, as a part of a resumable upload, passes."""
        path, _, query = self.path.partition("?")
        bucket, _, name = path.lstrip("/").partition("/")
        if query or bucket in ("storage", "upload", "download"):
            self._pass()
            return
        asked = {"uploadType": "media", "name": urllib.parse.unquote(name)}
        if (generation := self.headers.get(CONDITION)) is not None:
            asked["ifGenerationMatch"] = generation
        target = f"/upload/storage/v1/b/{bucket}/o?{urllib.parse.urlencode(asked)}"
        status, headers, content = self._behind("POST", target, self._body())
        if status == http.HTTPStatus.OK:
            stored = json.loads(content)
            answer = {"ETag": f'"{stored["md5Hash"]}"', "x-goog-generation": str(stored["generation"])}
            self._answer(status, list(answer.items()), b"")
        else:
            self._answer(status, headers, content)

    def do_GET(self) -> None:
        """Pass it."""
        self._pass()

    do_HEAD = do_POST = do_DELETE = do_PATCH = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _pass(self) -> None:
        self._answer(*self._behind(self.command, self.path, self._body()))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _behind(self, method: str, target: str, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        headers = {key: value for key, value in self.headers.items() if key.lower() not in HOP_BY_HOP}
        connection = http.client.HTTPConnection("127.0.0.1", self.behind_port, timeout=SECONDS)
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        length = len(content)
        for key, value in headers:
            if self.command == "HEAD" and key.lower() == "content-length":
                length = int(value)
            if key.lower() not in HOP_BY_HOP:
                self.send_header(key, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def xml_writes(port: int, behind_port: int) -> Iterator[None]:
    """Listen at ``port`` of this machine, before the server at ``behind_port``, for the time of a block."""
    handler = type("XmlWritesBefore", (XmlWrites,), {"behind_port": behind_port})
    proxy = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
