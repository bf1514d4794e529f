"""The key ``notify`` of maintainer.yml: whom a run tells that a table needs a person. Its address is a secret."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.policy_fields import setting
from maintainer.policy.yaml.yaml_document import Document

MAX_ADDRESS = 2_000
"""Characters of an address."""


class NotifyOn(str, Enum):
    """What is worth a message: a run that did not end well, or a table that goes into quarantine."""

    FAILURE = "failure"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, repr=False)
class Notify:
    """An address that takes an HTTP POST, and what for. The address is never shown: who has it can post to it."""

    url: str = setting(..., type=["string", "null"], required=True, example="${env:MAINTAINER_HOOK:-}")
    """The address, which is never printed: https, or http on this machine. `${env:NAME}` is replaced; an empty address
    sends nothing."""
    on: tuple[NotifyOn, ...] = setting(
        tuple(NotifyOn),
        items={"examples": ["failure"]},
        minItems=1,
        maxItems=2,
        note="both",
        example=["failure", "quarantine"],
    )
    """When to send. `failure`: at the end of a run that failed. `quarantine`: at once when a verification failed."""

    @property
    def host(self) -> str:
        """Scheme and host of the address, which may be shown."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}"


def notify_problems(document: Document, data: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Refuse an address that would be sent in the clear, or is none. It is not quoted: it may be a secret.

    Args:
        document: maintainer.yml.
        data: What it says once environment variables are put in.
    """
    given = data.get("notify")
    url = given.get("url") if isinstance(given, dict) else None
    if not isinstance(url, str) or not url:
        return
    what = _refused(url)
    if what is not None:
        help = "write `https://...`, best as `${env:NAME}`; `http://` is for this machine alone (127.0.0.1, localhost)"
        yield document.error_at(("notify", "url"), "P359", what, help)


def _refused(url: str) -> str | None:
    if len(url) > MAX_ADDRESS or any(character.isspace() or not character.isprintable() for character in url):
        return f"the address of `notify` has blanks, or more than {MAX_ADDRESS:,} characters"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "the address of `notify` is no URL"
    if parts.scheme not in ("https", "http") or not host:
        return "the address of `notify` is no https address"
    if parts.username is not None:
        return "the address of `notify` has a user or a password before the host, which no message is sent with"
    if parts.scheme == "http" and not is_this_machine(host):
        return "the address of `notify` is not encrypted"
    return None


def is_this_machine(host: str) -> bool:
    """Tell whether a host can only be this machine: ``localhost``, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
