"""Ask an object store or a catalog's server for a sign of life before it is used: one small request, without Spark.

Hadoop's client needs a minute for each table to find that nobody listens, and Hive's half a minute for a metastore that
accepts and never answers. Here a service counts as away only where its address is known for sure, and where nothing
answers several tries: no connection, or not a byte of an answer. Anything else is left to Hadoop and Hive: an answer of
whatever kind, a proxy, settings of the user's own for how long to wait for a store.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from maintainer.delta.jvm.catalog_calls import SESSION_CATALOG, UNITY_CLASS
from maintainer.delta.spark.connectors import CONNECTOR_SETTINGS, S3_CLASS
from maintainer.delta.spark.start_conf import DELTA_CATALOG, ENVIRONMENT_OF_JAVA
from maintainer.delta.storage.failures.engine_failures import catalog_away
from maintainer.delta.storage.failures.machine_failures import unreachable
from maintainer.engine.store.cloud_settings import setting_names, store_settings
from maintainer.errors import MaintainerError
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import name_parts

Setting = Callable[[str], str | None]

_S3A = "spark.hadoop.fs.s3a."
_PATIENCE = ("attempts.maximum", "retry.limit", "retry.interval", "connection.timeout", "connection.establish.timeout")
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_NO_WAY = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN})
_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})

_HIVE = "spark.hadoop.hive.metastore."
CATALOG = "spark.sql.catalog."
_GET_NAME = b"\x80\x01\x00\x01\x00\x00\x00\x07getName\x00\x00\x00\x01\x00"
"""A call that any metastore knows, in Thrift's binary protocol. One that speaks another ends the connection, which is a
sign of life, too."""
_PROXY = re.compile("prox", re.IGNORECASE)
_WAY_OR_TRUST = re.compile(r"prox|javax\.net\.ssl\.", re.IGNORECASE)
"""What Java's options say of it: stores of certificates that are trusted, and of our own."""
_SECONDS = re.compile(r"\s*(\d+)\s*(?:s|sec|seconds?)?\s*")

_MAX_AT_ONCE = threading.BoundedSemaphore(32)

SILENCE_SECONDS = 60.0
"""How long a metastore that took a connection and gave no answer is not asked again."""

LOOK_SECONDS = 0.1
"""How often it is looked whether others wait for an answer."""

AGAIN_SECONDS = 1.0
"""How long a service that was away is waited for when it is asked again; until it answers, what was found counts."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a store or a metastore listens."""

    host: str
    port: int
    tls: bool
    is_metastore: bool = False
    bucket_in_host: bool = False
    is_catalog: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'thrift' if self.is_metastore else 'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """How long an endpoint is asked; one that takes connections and is silent for 15 seconds in all.

    Where other tables wait for the answer, the first try counts after ``answer_seconds``.

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
    answer_seconds: float = 7.0
    enough_seconds: float = 8.0

    @staticmethod
    def within(seconds: float) -> ProbeLimits:
        """Return the limits by which a silent endpoint is known after so many seconds."""
        pause_seconds = min(0.75, seconds / 4)
        each_seconds = round((seconds - pause_seconds) / 2, 1)
        return ProbeLimits(4, pause_seconds, each_seconds, each_seconds, seconds / 2)


class Probe:
    """Asks a service on threads of its own, from when this is made.

    Args:
        endpoints: Several where any will do.
        limits: How long each is asked.
        earlier: Why the service was away when it was last asked. It is asked as long as before, and waited for shortly.
    """

    def __init__(self, endpoints: Iterable[Endpoint], limits: ProbeLimits, earlier: str | None = None) -> None:
        self._reasons: dict[Endpoint, str | None] = {}
        self._first_reasons: dict[Endpoint, str] = {}
        endpoints = tuple(endpoints)
        self._limits, self._earlier = limits, earlier
        self.bucket_in_host = any(endpoint.bucket_in_host for endpoint in endpoints)
        self._one_try_ends = time.monotonic() + limits.answer_seconds
        # A name server may keep us longer: then this knows nothing, and Hadoop or Hive finds out.
        wait_seconds = 2 * (limits.answer_seconds + limits.connect_seconds) + limits.pause_seconds
        self._ends = time.monotonic() + (AGAIN_SECONDS if earlier else wait_seconds)
        self._threads = [threading.Thread(target=self._ask, args=(endpoint,), daemon=True) for endpoint in endpoints]
        for thread in self._threads:
            thread.start()

    def _ask(self, endpoint: Endpoint) -> None:
        with _MAX_AT_ONCE:
            try_failed = partial(self._first_reasons.setdefault, endpoint)
            self._reasons[endpoint] = why_away(endpoint, self._limits, try_failed)

    @property
    def found(self) -> str | None:
        """What was tried where the service is away for sure, as far as that is known now."""
        reasons = self._reasons.copy()
        if None in reasons.values():
            return None
        if len(reasons) < len(self._threads):
            return self._earlier
        return _text_of(reasons)

    def why_away(self, others_wait: Callable[[], bool] = lambda: False) -> str | None:
        """Wait for what becomes of it, and return it; see ``found``.

        Args:
            others_wait: Where this comes true, one silent try of each endpoint is enough.
        """
        while (seconds := self._ends - time.monotonic()) > 0:
            asking = [thread for thread in self._threads if thread.is_alive()]
            if not asking:
                break
            first = self._first_reasons.copy()
            is_enough = len(first) == len(self._threads) and time.monotonic() > self._one_try_ends
            if is_enough and None not in self._reasons.values() and others_wait():
                return _text_of(first)
            asking[0].join(min(seconds, LOOK_SECONDS))
        return self.found


def _text_of(reasons: Mapping[Endpoint, str | None]) -> str:
    return "; ".join(sorted(f"{endpoint}: {why}" for endpoint, why in reasons.items()))


@dataclass(frozen=True, slots=True)
class TableSign:
    """Implements ``SignOfLife`` for one of the tables of a service."""

    table: TableRef
    probe: Probe

    def error(self, others_wait: Callable[[], bool] = lambda: False) -> MaintainerError | None:
        why, where = self.probe.why_away(others_wait), self.table.identifier
        if why is None:
            return None
        if not self.table.is_path:
            return catalog_away(where, why)
        return unreachable(where, why, is_s3=True, bucket_in_host=self.probe.bucket_in_host)


def signs_of_life(
    tables: Collection[TableRef], setting: Setting, environ: Mapping[str, str], limits: ProbeLimits | None = None
) -> dict[str, TableSign]:
    """Begin to ask for signs of life; T435 or E647 by the table's identifier. Each service is asked once, all at once.

    Args:
        tables: Those whose service is not known for sure are left out.
        setting: A setting of the session, None where it is not set.
        environ: Environment variables of this process.
        limits: How long each service is asked.
    """
    asked: dict[tuple[Endpoint, ...], Probe] = {}
    signs: dict[str, TableSign] = {}
    for table in tables:
        at_store = s3_endpoint(table.location, setting, environ) if table.is_path else None
        endpoints = catalog_endpoints(table, setting, environ) if at_store is None else (at_store,)
        if endpoints and endpoints not in asked:
            default = metastore_limits(setting) if at_store is None else ProbeLimits()
            asked[endpoints] = _asked(endpoints, limits or default)
        if endpoints:
            signs[table.identifier] = TableSign(table, asked[endpoints])
    return signs


_probes: dict[tuple[Endpoint, ...], tuple[float, Probe]] = {}
_probes_lock = threading.Lock()


def _asked(endpoints: tuple[Endpoint, ...], limits: ProbeLimits) -> Probe:
    """Ask a service, unless it is a catalog's that was asked lately.

    Names are resolved for planning, and again before a vacuum; and a watch looks again and again.
    """
    with _probes_lock:
        until, last = _probes.get(endpoints, (0.0, None))
        if last is None or time.monotonic() > until or not endpoints[0].is_catalog:
            last = Probe(endpoints, limits, None if last is None else last.found)
            _probes[endpoints] = (time.monotonic() + SILENCE_SECONDS, last)
        return last


def catalog_of(name: str, setting: Setting) -> tuple[str, tuple[str, ...]]:
    """Return the catalog that a name is looked up in, and the parts of the name there, as in SQL."""
    parts = name_parts(name)
    if len(parts) > 1 and (parts[0] == SESSION_CATALOG or setting(CATALOG + parts[0]) is not None):
        return parts[0], parts[1:]
    return setting("spark.sql.defaultCatalog") or SESSION_CATALOG, parts


def unity_endpoint(catalog: str, setting: Setting, environ: Mapping[str, str]) -> Endpoint | None:
    """Return where the server of a catalog of Unity listens; None where that cannot be said for sure.

    That is so for another catalog, for a token that is fetched first, and where Java may take another way or trust
    other servers than Python does.
    """
    of_catalog = f"{CATALOG}{catalog}"
    address = _address(setting(f"{of_catalog}.uri") or "")
    is_fetched = setting(f"{of_catalog}.auth.type") not in (None, "static")
    if (
        address is None
        or setting(of_catalog) != UNITY_CLASS
        or is_fetched
        or _java_is_told(_WAY_OR_TRUST, setting, environ)
    ):
        return None
    return Endpoint(*address, is_catalog=True)


def catalog_endpoints(table: TableRef, setting: Setting, environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return where a server of Unity or Hive's metastore listens that knows a name; nothing where that is not certain.

    That is so for names in other catalogs, for a client of another maker, and where Java may take another way.
    """
    if table.is_path:
        return ()
    catalog, _ = catalog_of(table.location, setting)
    unity = unity_endpoint(catalog, setting, environ)
    if unity is not None:
        return (unity,)
    if (
        catalog != SESSION_CATALOG
        or setting("spark.sql.catalogImplementation") != "hive"
        or setting(CATALOG + SESSION_CATALOG) not in (None, DELTA_CATALOG)
        or setting(f"{_HIVE}client.factory.class")
        or _java_has_proxy(setting, environ)
    ):
        return ()
    tls = setting(f"{_HIVE}use.SSL") == "true"
    try:
        addresses = [urlsplit(uri.strip()) for uri in (setting(f"{_HIVE}uris") or "").split(",")]
        endpoints = [Endpoint(uri.hostname or "", uri.port or 0, tls, True, is_catalog=True) for uri in addresses]
    except ValueError:
        return ()
    is_known = all(uri.scheme == "thrift" for uri in addresses) and all(each.host and each.port for each in endpoints)
    return tuple(dict.fromkeys(endpoints)) if is_known else ()


def metastore_limits(setting: Setting) -> ProbeLimits:
    """Return how long a metastore is asked: as long as Hive's client would wait for one answer."""
    seconds = _SECONDS.fullmatch(setting(f"{_HIVE}client.socket.timeout") or "")
    return ProbeLimits() if seconds is None else ProbeLimits.within(float(seconds[1]))


def s3_endpoint(location: str, setting: Setting, environ: Mapping[str, str]) -> Endpoint | None:
    """Return where the S3 store of a location listens; None where that cannot be said for sure.

    That is so for Amazon's own, whose address depends on region and network; behind a proxy; where another class than
    Hadoop's reads ``s3://``; and where the user says how long to wait.
    """
    parts, kind = urlsplit(location), store_kind(location)
    if not kind.has_endpoint or not parts.netloc:
        return None
    known = (None, S3_CLASS) if parts.scheme == kind.hadoop_scheme else (S3_CLASS,)
    if setting(f"spark.hadoop.fs.{parts.scheme}.impl") not in known:
        return None

    def value(key: str) -> str | None:
        return setting(f"{_S3A}bucket.{parts.netloc}.{key}") or setting(_S3A + key)

    ours = CONNECTOR_SETTINGS["s3"]
    if any(value(key) not in (None, ours.get(_S3A + key)) for key in _PATIENCE):
        return None
    bucket = f"{parts.scheme}://{parts.netloc}"
    settings = store_settings(bucket, {name: text for name in setting_names(bucket) if (text := setting(name))}, {})
    endpoint = settings.config.get("endpoint", "")
    if not endpoint or "$" in endpoint or settings.proxy_url or _has_proxy(setting, environ):
        return None
    address = _address(endpoint)
    if address is None or f".{address[0]}".endswith(_AMAZON):
        return None
    return Endpoint(*address, bucket_in_host=settings.config["virtual_hosted_style_request"] == "true")


def _address(uri: str) -> tuple[str, int, bool] | None:
    """Host, port and whether TLS is spoken there; None for what is no address of HTTP."""
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme not in ("http", "https"):
        return None
    return host, port or (443 if parts.scheme == "https" else 80), parts.scheme == "https"


def _has_proxy(setting: Setting, environ: Mapping[str, str]) -> bool:
    """Whether Hadoop's client may take another way than a socket of Python's."""
    keys = ("http_proxy", "https_proxy", "all_proxy")
    return any(environ.get(name) for key in keys for name in (key, key.upper())) or _java_has_proxy(setting, environ)


def _java_has_proxy(setting: Setting, environ: Mapping[str, str]) -> bool:
    return _java_is_told(_PROXY, setting, environ)


def _java_is_told(words: re.Pattern[str], setting: Setting, environ: Mapping[str, str]) -> bool:
    options = [setting("spark.driver.extraJavaOptions"), setting("spark.driver.defaultJavaOptions")]
    options += [environ.get(name) for name in ENVIRONMENT_OF_JAVA]
    return any(words.search(text or "") for text in options)


def why_away(
    endpoint: Endpoint, limits: ProbeLimits, try_failed: Callable[[str], object] = lambda why: None
) -> str | None:
    """Return why an endpoint counts as away; None where it answers, or where this cannot tell.

    ``try_failed`` is called with the reason after each try.
    """
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
        try_failed(why)
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
    if endpoint.is_metastore:
        connection.sendall(_GET_NAME)
        connection.recv(1)
        return
    host = endpoint.host.encode("idna").decode("ascii") if not endpoint.host.isascii() else endpoint.host
    request = f"HEAD / HTTP/1.1\r\nHost: {host}:{endpoint.port}\r\nUser-Agent: maintainer\r\nConnection: close\r\n\r\n"
    connection.sendall(request.encode("ascii"))
    connection.recv(1)
