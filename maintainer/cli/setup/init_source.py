"""Finds where this maintainer was installed from, as a line for requirements.txt of a new project.

A bare ``maintainer==1.2`` would be looked up in whatever index pip is configured with, and a public one may hand out
somebody else's package of that name. So the line names the place; where none is known it names a host that can
never exist, and installing fails with that name until a person has filled it in.
"""

from __future__ import annotations

import json
from importlib import metadata
from urllib.parse import urlsplit, urlunsplit

UNKNOWN = "maintainer @ git+https://fill-in.invalid/maintainer@COMMIT"
"""``.invalid`` is reserved (RFC 2606): nobody can register it."""

_REMOTE = frozenset({"http", "https", "ssh"})
_MAX_RECORD_CHARACTERS = 20_000


def requirement_line() -> str:
    """Return the requirement that installs the very maintainer that runs, or ``UNKNOWN``.

    pip writes down where a package came from that was not taken from an index (PEP 610). A folder or file of
    this machine is no place for a pipeline, so it counts as unknown.
    """
    try:
        text = metadata.distribution("maintainer").read_text("direct_url.json")
    except (metadata.PackageNotFoundError, OSError, UnicodeDecodeError):
        return UNKNOWN
    return requirement_of(text) if text else UNKNOWN


def requirement_of(record: str) -> str:
    """Return the requirement for a PEP 610 record; ``UNKNOWN`` where it names nothing that others can reach."""
    try:
        source = json.loads(record) if len(record) <= _MAX_RECORD_CHARACTERS else None
    except ValueError:
        source = None
    if not isinstance(source, dict) or not isinstance(source.get("url"), str) or "subdirectory" in source:
        return UNKNOWN
    url = _without_password(source["url"])
    vcs, archive = source.get("vcs_info"), source.get("archive_info")
    if url is None:
        return UNKNOWN
    if isinstance(vcs, dict) and vcs.get("vcs") == "git" and isinstance(vcs.get("commit_id"), str):
        return f"maintainer @ git+{url}@{vcs['commit_id']}"
    hashes = archive.get("hashes") if isinstance(archive, dict) else None
    if isinstance(hashes, dict) and isinstance(hashes.get("sha256"), str):
        return f"maintainer @ {url}#sha256={hashes['sha256']}"
    return UNKNOWN


def _without_password(url: str) -> str | None:
    """Return the URL without a password or token; None if it leads nowhere but to this machine."""
    parts = urlsplit(url)
    if parts.scheme not in _REMOTE or not parts.hostname or any(character.isspace() for character in url):
        return None
    user, at, host = parts.netloc.rpartition("@")
    # A user of ssh (`git`) is part of the address; one of https is a credential.
    address = f"{user.partition(':')[0]}@{host}" if at and parts.scheme == "ssh" else host
    return urlunsplit((parts.scheme, address, parts.path, "", ""))
