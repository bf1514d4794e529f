"""A relay before a server of S3's protocol that knows who asks: the driver, or which executor of Spark.

Each of them has a way of its own to the store: a delay for each request, and so many bytes a second, both directions
together. The relay counts the requests of each, and the bytes of data files. It is a process of its own, and prints
what it counted when its standard input ends. Processes are found in ``/proc``, so it is for Linux only.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXECUTOR = b"CoarseGrainedExecutorBackend"
DRIVER = "driver"

_PIECE_BYTES = 1 << 16
_HEAD_BYTES = 1 << 20


@dataclass(slots=True)
class Way:
    """The way of one machine to the store, and what passed on it."""

    bytes_a_second: float
    free_at: float = 0.0
    num_requests: int = 0
    data_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    async def take(self, num_bytes: int, *, is_data: bool) -> None:
        """Count bytes, and wait until they have passed."""
        self.data_bytes += num_bytes if is_data else 0
        now = asyncio.get_running_loop().time()
        self.free_at = max(now, self.free_at) + num_bytes / self.bytes_a_second
        await asyncio.sleep(max(0.0, self.free_at - now))


def machine_of(process: int) -> str:
    """Say on which machine a process would run: that of an executor, or the driver's."""
    while process > 1:
        try:
            if EXECUTOR in Path(f"/proc/{process}/cmdline").read_bytes():
                return f"executor {process}"
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return DRIVER


def process_at(port: int) -> int:
    """Return the process whose connection has this port on its side; 0 where none has."""
    sockets = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}"):
                sockets.add(f"socket:[{fields[9]}]")
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(descriptor) in sockets:
                return int(descriptor.parts[2])
    return 0


class ProcessRelay:
    """Relays to a port of this machine."""

    def __init__(self, target_port: int, delay_seconds: float, bytes_a_second: float) -> None:
        self._target_port, self._delay_seconds, self._bytes_a_second = target_port, delay_seconds, bytes_a_second
        self.ways: dict[str, Way] = {}

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, request by request."""
        with suppress(OSError, EOFError, asyncio.IncompleteReadError, asyncio.CancelledError):
            port = writer.get_extra_info("peername")[1]
            machine = await asyncio.to_thread(lambda: machine_of(process_at(port)))
            way = self.ways.setdefault(machine, Way(self._bytes_a_second))
            answers, behind = await asyncio.open_connection("127.0.0.1", self._target_port, limit=_HEAD_BYTES)
            while True:
                await self._exchange(way, (reader, writer), (answers, behind))
        writer.close()

    async def _exchange(
        self,
        way: Way,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        head = await client[0].readuntil(b"\r\n\r\n")
        method, path = head.split(b" ")[:2]
        way.num_requests += 1
        way.kinds[method.decode()] += 1
        await asyncio.sleep(self._delay_seconds)
        server[1].write(head)
        asked = _fields(head)
        if "expect" in asked:
            between = await server[0].readuntil(b"\r\n\r\n")
            client[1].write(between)
            if b" 100 " not in between.split(b"\r\n")[0]:
                return
        is_data = b".parquet" in path and b"_delta_log" not in path
        await _body(way, client[0], server[1], asked, is_data=is_data)
        answer = await server[0].readuntil(b"\r\n\r\n")
        client[1].write(answer)
        if method != b"HEAD" and not answer.startswith((b"HTTP/1.1 204", b"HTTP/1.1 304")):
            await _body(way, server[0], client[1], _fields(answer), is_data=is_data)
        await client[1].drain()


def _fields(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def _body(
    way: Way, source: asyncio.StreamReader, target: asyncio.StreamWriter, fields: dict[str, str], *, is_data: bool
) -> None:
    """Pass a body on as fast as the way allows."""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        size = -1
        while size:
            line = await source.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            chunk = await source.readexactly(size + 2)
            await way.take(size, is_data=is_data)
            target.write(line + chunk)
    left = int(fields.get("content-length") or 0)
    while left:
        piece = await source.read(min(left, _PIECE_BYTES))
        if not piece:
            raise EOFError
        left -= len(piece)
        await way.take(len(piece), is_data=is_data)
        target.write(piece)
        await target.drain()


@dataclass(slots=True)
class Passed:
    """The relay's port, and once it has ended what it counted, by machine."""

    port: int
    ways: dict[str, dict[str, int]] = field(default_factory=dict)

    def total(self, name: str, *, of_driver: bool) -> int:
        """Add up a figure of the driver, or of all executors."""
        return sum(way[name] for machine, way in self.ways.items() if (machine == DRIVER) is of_driver)


@contextmanager
def process_relay(target_port: int, delay_ms: float, megabytes_a_second: float) -> Iterator[Passed]:
    """Relay for the time of a block; what was counted is there after it."""
    command = (sys.executable, "-m", __name__, str(target_port), str(delay_ms), str(megabytes_a_second))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        passed = Passed(int(process.stdout.readline()))
        try:
            yield passed
        finally:
            process.stdin.close()
            passed.ways = json.loads(process.stdout.read())


async def relay(target_port: int, delay_ms: float, megabytes_a_second: float) -> None:
    """Relay until the standard input ends, and print what was counted."""
    relayed = ProcessRelay(target_port, delay_ms / 1000, megabytes_a_second * 1e6)
    server = await asyncio.start_server(relayed.connection, "127.0.0.1", 0, limit=_HEAD_BYTES)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    ways = {
        machine: {"requests": way.num_requests, "data_bytes": way.data_bytes, **way.kinds}
        for machine, way in relayed.ways.items()
    }
    print(json.dumps(ways), flush=True)
    os._exit(0)  # connections may still be open


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
