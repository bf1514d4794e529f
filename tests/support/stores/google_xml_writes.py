"""A relay before fake-gcs-server that takes the writes of Google's XML protocol, which that server has by JSON alone.

The conditions are still the server's own: ``x-goog-if-generation-match`` becomes its ``ifGenerationMatch``. Everything
else passes as it came. https://cloud.google.com/storage/docs/xml-api/put-object-upload has the protocol.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.support.stores.http_relay import HttpAnswer, HttpRelay, HttpRequest, RelayedRequests, passed_on

CONDITION = "x-goog-if-generation-match"


class XmlWrites(RelayedRequests):
    """One connection to the relay."""

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
def xml_writes(port: int, behind_port: int) -> Iterator[None]:
    """Listen at ``port`` of this machine, before the server at ``behind_port``, for the time of a block."""
    relay = HttpRelay(port, type("XmlWritesBefore", (XmlWrites,), {"behind_port": behind_port}))
    try:
        yield
    finally:
        relay.close()
