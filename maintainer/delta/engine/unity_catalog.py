"""Ask a server of Unity Catalog where tables lie and which there are, over REST and without a JVM.

The settings are those of Unity's own catalog for Spark. Where its class may take another way than a plain request with
a fixed token, it is left to it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from maintainer.delta.engine.endpoint_probe import CATALOG, Endpoint, Setting, unity_endpoint
from maintainer.delta.jvm.catalog_calls import CatalogEntry
from maintainer.delta.storage.failures.engine_failures import catalog_away, catalog_refuses
from maintainer.delta.storage.log_paths import path_uri
from maintainer.errors import CatalogAway
from maintainer.model.product_version import __version__

_API = "/api/2.1/unity-catalog"
_ERROR_CODE = frozenset({"error_code", "errorCode"})
"""How servers spell what a 404 of theirs has, and none of a server that knows nothing of catalogs."""
_OF_TABLE = ("table_type", "storage_location", "data_source_format")
ANSWER_SECONDS = 15.0
"""For a connection, for each part of an answer, and as long as a busy server is asked again."""
_BUSY = frozenset({429, 503})
_PAUSE_SECONDS = 1.0
"""Before a busy server is asked again, at least; it may say more."""
MAX_ANSWER_BYTES = 32 << 20
_PAGE = 50
"""Entries of a page: the most that Unity gives."""
MAX_PAGES = 2_001
"""Pages of one list, also where a server's pages never end."""


@dataclass(frozen=True, slots=True)
class UnityCatalog:
    """One catalog of a server; it is asked, and nothing is made or changed in it."""

    name: str
    endpoint: Endpoint
    folder: str
    token: str | None = field(repr=False)

    def entry(self, parts: tuple[str, ...], where: str) -> CatalogEntry | None:
        """Return what the catalog says of the parts of a name below it; None if there is no such table.

        Raises:
            CatalogAway: E647, it gives no answer, or refuses one.
        """
        if len(parts) != 2:
            return None
        table = self._answer(f"tables/{quote('.'.join((self.name, *parts)), safe='')}", where)
        return None if table is None else _entry(where, table)

    def schemas(self) -> list[str]:
        """Return the names of its schemas, sorted; raises as `entry`."""
        pages = self._pages("schemas", self.name, catalog_name=self.name)
        return sorted(str(schema["name"]) for schema in pages)

    def tables(self, database: str) -> list[CatalogEntry]:
        """Return the tables and views of a schema, ``catalog.schema``; raises as `entry`."""
        schema = database.removeprefix(f"{self.name}.")
        pages = self._pages("tables", database, catalog_name=self.name, schema_name=schema)
        return [_entry(str(table["name"]), table) for table in pages]

    def _pages(self, kind: str, where: str, **query: str) -> Iterator[Mapping[str, Any]]:
        page_token = ""
        for _ in range(MAX_PAGES):
            asked = {**query, "max_results": _PAGE, **({"page_token": page_token} if page_token else {})}
            page = self._answer(f"{kind}?{urlencode(asked)}", where)
            if page is None:
                raise catalog_refuses(where, f"{self.endpoint}: there is no such database or catalog")
            yield from page.get(kind) or ()
            page_token = page.get("next_page_token") or ""
            if not page_token:
                return
        raise catalog_away(where, f"{self.endpoint}: more than {MAX_PAGES:,} pages of {kind}")

    def _answer(self, path: str, where: str) -> dict[str, Any] | None:
        """The document that a request is answered with; None where there is no such thing. Redirects are not followed.

        Neither the token nor what a server says in its own words is told: it may repeat the token.
        """
        headers = {"Accept": "application/json", "User-Agent": f"maintainer/{__version__}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            status, pause_seconds, body = self._asked(path, headers, where)
            if status not in _BUSY or time.monotonic() + pause_seconds > until:
                break
            time.sleep(pause_seconds)
        document = _document(body)
        if status == 404 and document and not _ERROR_CODE.isdisjoint(document):
            return None
        if status == 200 and document is not None:
            return document
        found = f"HTTP {status}" if status != 200 else "an answer that is no document of Unity's"
        unfit = (catalog_refuses if status in (401, 403) else catalog_away)(where, f"{self.endpoint}: {found}")
        unfit.is_silence = status in _BUSY
        raise unfit

    def _asked(self, path: str, headers: Mapping[str, str], where: str) -> tuple[int, float, bytes]:
        """Status and body of one answer, and how long to wait before the next request."""
        connection = (HTTPSConnection if self.endpoint.tls else HTTPConnection)(
            self.endpoint.host, self.endpoint.port, timeout=ANSWER_SECONDS
        )
        try:
            with closing(connection):
                connection.request("GET", f"{self.folder}{_API}/{path}", headers=headers)
                answer = connection.getresponse()
                return answer.status, _pause_seconds(answer), answer.read(MAX_ANSWER_BYTES + 1)
        except (OSError, HTTPException) as error:
            raise self._away(error, where) from None
        except ValueError:
            raise catalog_refuses(where, f"{self.endpoint}: the token has characters that no header has") from None

    def _away(self, error: OSError | HTTPException, where: str) -> CatalogAway:
        is_silence = isinstance(error, TimeoutError)
        why = f"no answer within {ANSWER_SECONDS:g} s" if is_silence else getattr(error, "strerror", None)
        unfit = catalog_away(where, f"{self.endpoint}: {why or type(error).__name__}")
        unfit.is_silence = is_silence
        return unfit


def unity_catalog(catalog: str, setting: Setting, environ: Mapping[str, str]) -> UnityCatalog | None:
    """Return the catalog of this name where it is one of Unity's; None for another, or where only its class can ask."""
    endpoint = unity_endpoint(catalog, setting, environ)
    if endpoint is None:
        return None
    token = setting(f"{CATALOG}{catalog}.token") or setting(f"{CATALOG}{catalog}.auth.token")
    folder = urlsplit(setting(f"{CATALOG}{catalog}.uri") or "").path.rstrip("/")
    return UnityCatalog(catalog, endpoint, folder, token)


def _pause_seconds(answer: HTTPResponse) -> float:
    """What ``Retry-After`` says in seconds; a date there says no more than that it was busy."""
    text = (answer.getheader("Retry-After") or "").strip()
    return max(_PAUSE_SECONDS, float(text)) if text.isascii() and text.isdigit() else _PAUSE_SECONDS


def _document(body: bytes) -> dict[str, Any] | None:
    """The JSON object of an answer; None where it is none, or too long."""
    try:
        document = json.loads(body) if len(body) <= MAX_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _entry(name: str, table: Mapping[str, Any]) -> CatalogEntry:
    kind, location, format_name = (str(table.get(key) or "") for key in _OF_TABLE)
    managed_as = "" if kind.startswith("EXTERNAL") else kind or "unknown"
    # Unity's class for Spark takes the location for a path as people write it: nothing in it is encoded.
    location = path_uri(location).rstrip("/") if location else ""
    return CatalogEntry(name, location, format_name, kind.endswith("VIEW"), managed_as)
