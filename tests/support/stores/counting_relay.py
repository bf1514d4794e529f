"""A relay on 127.0.0.1 before a server of S3's protocol: it counts the requests, and delivers what is sent later.

What a client sends arrives after the delay, as on a long way to a store; what the server answers passes at once. A
client that waits for ``100 Continue`` before it sends a body waits twice, as it does for a real store. The relay is a
process of its own: a client in this process may hold Python's lock while it waits for an answer.

    python -m tests.support.stores.counting_relay TARGET_PORT DELAY_MS LIST_OF_REQUESTS

prints the port that it listens on, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import parse_qsl, unquote, urlsplit

ROOT = Path(__file__).parents[3]
KINDS = ("GET", "HEAD", "PUT", "LIST", "POST delete", "DELETE", "POST")
"""What requests are told apart by; ``POST`` begins and ends an upload in parts."""

_PIECE_BYTES = 1 << 18
_HEAD_BYTES = 1 << 20
_PIECES_UNDER_WAY = 64


@dataclass(frozen=True, slots=True)
class Request:
    """One request: of which kind, for which object or prefix of a bucket, ``BUCKET/NAME``."""

    kind: str
    name: str


def request_of(line: str) -> Request:
    """Read a request line of HTTP with the bucket in the path."""
    method, target, _ = line.split(" ", 2)
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    bucket, _, name = unquote(parts.path).lstrip("/").partition("/")
    if method == "GET" and not name:
        return Request("LIST", f"{bucket}/{query.get('prefix', '')}")
    if method == "POST" and "delete" in query:
        return Request("POST delete", f"{bucket}/{name}")
    return Request(method, f"{bucket}/{name}")


class CountingRelay:
    """The other end of the process."""

    def __init__(self, port: int, requests: Path) -> None:
        self.port = port
        self._requests = requests
        self._position = 0

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def clear(self) -> None:
        """Count from here on."""
        self._position = self._requests.stat().st_size

    def requests(self) -> list[Request]:
        """Return the requests since the last ``clear``, in the order in which they came."""
        with self._requests.open(encoding="utf-8") as file:
            file.seek(self._position)
            return [request_of(line) for line in file.read().splitlines()]

    def counted(self) -> Counter[str]:
        """Return how many of each kind."""
        return Counter(request.kind for request in self.requests())


@contextmanager
def counting_relay(target_port: int, requests: Path, *, delay_ms: float = 0.0) -> Iterator[CountingRelay]:
    """Relay to a port of this machine for the time of a block; the requests are listed in a file."""
    command = (sys.executable, "-m", __name__, str(target_port), str(delay_ms), str(requests))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield CountingRelay(int(process.stdout.readline()), requests)
        finally:
            process.stdin.close()


class DelayLine:
    """Writes pieces in their order, each ``delay_seconds`` after it was given."""

    def __init__(self, writer: asyncio.StreamWriter, delay_seconds: float) -> None:
        self._writer, self._delay_seconds = writer, delay_seconds
        self._pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_PIECES_UNDER_WAY)

    async def put(self, piece: bytes) -> None:
        """Give it a piece; nothing is the end. Waits while many are under way."""
        await self._pieces.put((asyncio.get_running_loop().time() + self._delay_seconds, piece))

    async def deliver(self) -> None:
        """Write until the end, and close the connection then."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while (due := await self._pieces.get())[1]:
                await asyncio.sleep(max(0.0, due[0] - loop.time()))
                self._writer.write(due[1])
                await self._writer.drain()
        self.close()

    def close(self) -> None:
        """Close the connection, whatever is still under way."""
        self._writer.close()


async def read_requests(reader: asyncio.StreamReader, line: DelayLine, listed: IO[str]) -> None:
    """Pass on requests, and list each before it is passed on."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        listed.write(first + "\n")
        await line.put(head)
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            await _pass_chunks(reader, line)
        else:
            await _pass_bytes(reader, line, int(headers.get("content-length", "0")))


async def _pass_bytes(reader: asyncio.StreamReader, line: DelayLine, left: int) -> None:
    while left:
        piece = await reader.read(min(left, _PIECE_BYTES))
        if not piece:
            raise EOFError
        left -= len(piece)
        await line.put(piece)


async def _pass_chunks(reader: asyncio.StreamReader, line: DelayLine) -> None:
    size = -1
    while size:
        header = await reader.readuntil(b"\r\n")
        size = int(header.partition(b";")[0], 16)
        await line.put(header)
        await _pass_bytes(reader, line, size + 2 if size else 0)
    trailer = b""
    while trailer != b"\r\n":
        trailer = await reader.readuntil(b"\r\n")
        await line.put(trailer)


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()


async def _relay_one(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    answers: asyncio.StreamReader,
    line: DelayLine,
    listed: IO[str],
) -> None:
    delivering = asyncio.create_task(line.deliver())
    asking = asyncio.create_task(read_requests(reader, line, listed))
    answering = asyncio.create_task(_answers(answers, writer))
    tasks = (delivering, asking, answering)
    try:
        # Either side ends the connection; what the client sent before is still delivered and answered.
        await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and not delivering.done():
            await line.put(b"")
            await delivering
            await asyncio.wait((answering,))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        line.close()


async def relay(target_port: int, delay_seconds: float, requests: Path) -> None:
    """Relay until the standard input ends."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):  # nobody listens there, or the relay ends
            answers, behind = await asyncio.open_connection("127.0.0.1", target_port)
            await _relay_one(reader, writer, answers, DelayLine(behind, delay_seconds), listed)
        writer.close()

    with requests.open("a", encoding="utf-8", buffering=1) as listed:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=_HEAD_BYTES)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        server.close()


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1]), float(sys.argv[2]) / 1000, Path(sys.argv[3])))
