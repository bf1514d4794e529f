"""Ask an object store for a sign of life before tables are opened there: one small request, without Spark.

Hadoop's client needs a minute for each table to find that nobody listens. Here a store counts as away only where its
address is known for sure, and where nothing answers several tries: no connection, or not a byte of an answer. Anything
else is left to Hadoop: an answer of whatever kind, a proxy, settings of the user's own for how long to wait.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from maintainer.delta.spark.connectors import CONNECTOR_SETTINGS, S3_CLASS

Setting = Callable[[str], str | None]

_S3A = "spark.hadoop.fs.s3a."
_PATIENCE = ("attempts.maximum", "retry.limit", "retry.interval", "connection.timeout", "connection.establish.timeout")
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_NO_WAY = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN})
_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})

MAX_STORES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a store listens."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """How long an endpoint is asked.

    Args:
        tries: Requests at most.
        pause_seconds: Between two of them, so that a server that starts anew is not taken for one that is away.
        connect_seconds: For a connection: two packets that were lost are sent again within it.
        answer_seconds: For the first byte of an answer.
        enough_seconds: No third try, or fourth, after so long.
    """

    tries: int = 4
    pause_seconds: float = 0.75
    connect_seconds: float = 7.0
    answer_seconds: float = 8.0
    enough_seconds: float = 8.0


def stores_away(
    locations: Collection[str], setting: Setting, environ: Mapping[str, str], limits: ProbeLimits | None = None
) -> dict[str, str]:
    """Say for each location whose store gives no sign of life what was tried. Each store is asked once, all at once.

    Args:
        locations: Tables; those elsewhere than on S3, and catalog names, are left out.
        setting: A setting of the session, None where it is not set.
        environ: Environment variables of this process.
        limits: How long each store is asked.
    """
    endpoints = {location: s3_endpoint(location, setting, environ) for location in locations}
    stores = sorted({endpoint for endpoint in endpoints.values() if endpoint is not None}, key=str)
    if not stores:
        return {}
    with ThreadPoolExecutor(min(len(stores), MAX_STORES_AT_ONCE), "maintainer-store-probe") as pool:
        answers = dict(
            zip(stores, pool.map(lambda store: why_away(store, limits or ProbeLimits()), stores), strict=True)
        )
    return {
        location: f"{endpoint}: {why}"
        for location, endpoint in endpoints.items()
        if endpoint is not None and (why := answers[endpoint]) is not None
    }


def s3_endpoint(location: str, setting: Setting, environ: Mapping[str, str]) -> Endpoint | None:
    """Return where the S3 store of a location listens; None where that cannot be said for sure.

    That is so for Amazon's own, whose address depends on region and network; behind a proxy; where another class than
    Hadoop's reads ``s3://``; and where the user says how long to wait.
    """
    parts = urlsplit(location)
    if parts.scheme not in ("s3", "s3a") or not parts.netloc:
        return None
    if setting(f"spark.hadoop.fs.{parts.scheme}.impl") not in (
        (S3_CLASS,) if parts.scheme == "s3" else (None, S3_CLASS)
    ):
        return None

    def value(key: str) -> str | None:
        return setting(f"{_S3A}bucket.{parts.netloc}.{key}") or setting(_S3A + key)

    ours = CONNECTOR_SETTINGS["s3"]
    if any(value(key) not in (None, ours.get(_S3A + key)) for key in _PATIENCE):
        return None
    if value("proxy.host") or _has_proxy(setting, environ):
        return None
    endpoint = value("endpoint") or ""
    if not endpoint or "$" in endpoint:
        return None
    tls = value("connection.ssl.enabled") != "false"
    try:
        address = urlsplit(endpoint if "://" in endpoint else f"{'https' if tls else 'http'}://{endpoint}")
        host, port = address.hostname, address.port
    except ValueError:
        return None
    if not host or address.scheme not in ("http", "https") or f".{host}".endswith(_AMAZON):
        return None
    tls = address.scheme == "https"
    return Endpoint(host, port or (443 if tls else 80), tls)


def _has_proxy(setting: Setting, environ: Mapping[str, str]) -> bool:
    """Whether Java may take another way than a socket of Python's."""
    if any(environ.get(name) for key in ("http_proxy", "https_proxy", "all_proxy") for name in (key, key.upper())):
        return True
    options = [setting("spark.driver.extraJavaOptions"), setting("spark.driver.defaultJavaOptions")]
    options += [environ.get(name) for name in _JAVA_OPTIONS]
    return any("prox" in (text or "").lower() for text in options)


def why_away(endpoint: Endpoint, limits: ProbeLimits) -> str | None:
    """Return why an endpoint counts as away; None where it answers, or where this cannot tell."""
    started = time.monotonic()
    why: str | None = None
    for number in range(limits.tries):
        if number > 1 and time.monotonic() - started > limits.enough_seconds:
            break
        if number:
            time.sleep(limits.pause_seconds)
        why = _ask(endpoint, limits)
        if why is None:
            return None
    return why


def _ask(endpoint: Endpoint, limits: ProbeLimits) -> str | None:
    try:
        connection = socket.create_connection((endpoint.host, endpoint.port), limits.connect_seconds)
    except TimeoutError:
        return f"no connection within {limits.connect_seconds:g} s"
    except socket.gaierror as error:
        return "no such host" if error.errno in _NO_SUCH_HOST else None
    except OSError as error:
        return (error.strerror or "no connection") if error.errno in _NO_WAY else None
    with connection:
        connection.settimeout(limits.answer_seconds)
        try:
            _wait_for_answer(connection, endpoint)
        except TimeoutError:
            return f"a connection, and no answer within {limits.answer_seconds:g} s"
        except OSError:
            return None  # something is there: a certificate of another kind, a connection that was closed
    return None


def _wait_for_answer(connection: socket.socket, endpoint: Endpoint) -> None:
    if endpoint.tls:
        # Nothing secret is sent, and Java has its own list of whom to trust.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = context.wrap_socket(connection, server_hostname=endpoint.host)
    host = endpoint.host.encode("idna").decode("ascii") if not endpoint.host.isascii() else endpoint.host
    request = f"HEAD / HTTP/1.1\r\nHost: {host}:{endpoint.port}\r\nUser-Agent: maintainer\r\nConnection: close\r\n\r\n"
    connection.sendall(request.encode("ascii"))
    connection.recv(1)
