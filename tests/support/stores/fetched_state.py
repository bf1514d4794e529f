"""A state on an S3 server, copied to a folder by another client, with the parts of its records put together again."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from pyarrow.fs import FileSelector, S3FileSystem

from tests.support.stores.s3_server import S3Server

_PART = re.compile(r"(?P<folder>.*/)events(?P<other>(?:\..+)?)\.jsonl\.(?P<number>\d{5})")
"""A part of the record of a run, or of what another run wrote about it later."""


def store_of(server: S3Server) -> S3FileSystem:
    """A client of the server that shares no code with the program, and asks it without the relay."""
    return S3FileSystem(access_key="key", secret_key="secret", region="us-east-1", endpoint_override=server.own_url)


def fetch_state(server: S3Server, place: str, folder: Path) -> Path:
    """Copy everything below ``BUCKET/FOLDER`` into a folder, and return it.

    The record of a run lies on the store in parts, beside what later runs wrote about it; in the copy all of that is
    one file, as on a disk.
    """
    store = store_of(server)
    parts: dict[Path, dict[tuple[str, int], bytes]] = defaultdict(dict)
    for stored in store.get_file_info(FileSelector(place, recursive=True)):
        if not stored.is_file:
            continue
        name = stored.path.removeprefix(f"{place}/")
        match = _PART.fullmatch(name)
        part = (match["other"], int(match["number"])) if match else ("", 0)
        target = f"{match['folder']}events.jsonl" if match else name
        with store.open_input_stream(stored.path) as stream:
            parts[folder / target][part] = stream.read()
    for path, numbered in parts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(numbered[part] for part in sorted(numbered)))
    return folder
