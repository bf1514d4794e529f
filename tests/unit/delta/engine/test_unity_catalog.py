"""A catalog of Unity over REST: what is asked, and every answer that is none. The real server is asked elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from maintainer.delta.engine import catalog_names, endpoint_probe, unity_catalog
from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.delta.jvm import DeltaJvm, DirectAccess, UnstartedSession
from maintainer.delta.jvm.catalog_calls import CatalogEntry
from maintainer.errors import EnvironmentUnfit, NotSupportedYet, TableError
from maintainer.model.table.table_facts import TableRef

PROD, UNITY = "spark.sql.catalog.prod", "io.unitycatalog.spark.UCSingleCatalog"
SECRET = "dapi-not-to-be-told"
ORDERS = {
    "name": "orders", "table_type": "EXTERNAL", "data_source_format": "DELTA", "storage_location": "s3://lake/orders",
}  # fmt: skip
Answer = tuple[int, Any] | tuple[int, Any, str]
"""Status, document, and what ``Retry-After`` says."""


def session(address: str, more: Mapping[str, str] | None = None, token: str | None = None) -> DeltaJvm:
    """A session that nothing may start, with the catalog ``prod`` at an address."""

    def started() -> NoReturn:
        raise AssertionError("a JVM was started")

    conf = {PROD: UNITY, f"{PROD}.uri": address, **({f"{PROD}.token": token} if token else {}), **(more or {})}
    access = DirectAccess(conf, frozenset({"file"}))
    return DeltaJvm(UnstartedSession(started, started, started, has_catalog=True, settings=conf, direct=access))


@contextmanager
def server(answer: Callable[[str], Answer]) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Serve; gives the address, and path and token of each request."""
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            status, document, *retry_after = answer(self.path)
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for text in retry_after:
                self.send_header("Retry-After", text)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.send_response(404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on stderr."""

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{serving.server_address[1]}", asked
    finally:
        serving.shutdown()
        serving.server_close()


def entry(jvm: DeltaJvm, name: str = "prod.sales.orders") -> CatalogEntry:
    return catalog_names.entry_of(jvm, name)


def test_a_table_is_asked_for_with_the_token_and_without_a_session() -> None:
    with server(lambda path: (200, ORDERS)) as (address, asked):
        found = entry(session(f"{address}/behind/", token=SECRET))
        other = entry(
            session(address, {f"{PROD}.auth.token": SECRET, f"{PROD}.auth.type": "static"}), "prod.sales.`a b/c`"
        )
    assert (found.location, found.is_delta, found.managed_as) == ("s3://lake/orders", True, "")
    assert other.is_delta
    assert asked == [
        ("/behind/api/2.1/unity-catalog/tables/prod.sales.orders", f"Bearer {SECRET}"),
        ("/api/2.1/unity-catalog/tables/prod.sales.a%20b%2Fc", f"Bearer {SECRET}"),
    ]


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("file:///lake/orders eu", "file:/lake/orders%20eu"),
        ("file:/lake/a%20b", "file:/lake/a%2520b"),
        ("s3://lake/Öl/orders/", "s3://lake/Öl/orders"),
        ("/lake/orders", "file:/lake/orders"),
    ],
)
def test_a_location_is_a_path_as_people_write_it(written: str, uri: str) -> None:
    with server(lambda path: (200, {**ORDERS, "storage_location": written})) as (address, _):
        assert entry(session(address)).location == uri


def test_the_default_catalog_is_asked_for_names_without_one() -> None:
    with server(lambda path: (200, ORDERS)) as (address, asked):
        jvm = session(address, {"spark.sql.defaultCatalog": "prod"})
        assert entry(jvm, "sales.orders").location == "s3://lake/orders"
        for name in ("orders", "a.b.c.d"):
            with pytest.raises(TableError, match="T401"):
                entry(jvm, name)
    assert asked == [("/api/2.1/unity-catalog/tables/prod.sales.orders", None)]


@pytest.mark.parametrize(
    ("answer", "code", "found"),
    [
        ((404, {"error_code": "TABLE_NOT_FOUND"}), "T401", None),
        ((404, {"errorCode": "RESOURCE_NOT_FOUND"}), "T401", None),
        ((404, {}), "E647", "HTTP 404"),
        ((404, b"<html>not here</html>"), "E647", "HTTP 404"),
        ((401, {"error_code": "UNAUTHENTICATED", "message": f"bad {SECRET}"}), "E647", "HTTP 401"),
        ((302, b""), "E647", "HTTP 302"),
        ((500, b""), "E647", "HTTP 500"),
        ((200, b"<html>"), "E647", "an answer that is no document of Unity's"),
        ((200, b"[" * 100_000), "E647", "an answer that is no document of Unity's"),
        ((200, [1]), "E647", "an answer that is no document of Unity's"),
    ],
)
def test_what_is_no_answer_is_told_apart(answer: Answer, code: str, found: str | None) -> None:
    with server(lambda path: answer) as (address, asked), pytest.raises((TableError, EnvironmentUnfit)) as caught:
        entry(session(address, token=SECRET))
    error = caught.value
    assert (error.code, error.where) == (code, "prod.sales.orders")
    assert ("refuses" in error.what) == (found == "HTTP 401")
    assert error.found == (None if found is None else f"{address}: {found}")
    assert SECRET not in f"{error}{error.found}{error.help}{error.__cause__!r}"
    assert len(asked) == 1  # no redirect is followed


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unity_catalog, "MAX_ANSWER_BYTES", 100)
    long_answer = (200, {**ORDERS, "comment": "x" * 100})
    with server(lambda path: long_answer) as (address, _), pytest.raises(EnvironmentUnfit, match="E647"):
        entry(session(address))


@pytest.mark.parametrize("token", [f"{SECRET}\nHost: elsewhere", f"{SECRET}ł"])
def test_a_token_that_no_header_can_carry_is_not_told(token: str) -> None:
    with server(lambda path: (200, ORDERS)) as (address, asked), pytest.raises(EnvironmentUnfit) as caught:
        entry(session(address, token=token))
    assert "the token has characters that no header has" in (caught.value.found or "")
    assert SECRET not in f"{caught.value}{caught.value.__cause__!r}"
    assert caught.value.__suppress_context__
    assert asked == []
    assert SECRET not in repr(unity_catalog.unity_catalog("prod", session(address, token=token).session_setting, {}))


@pytest.mark.parametrize(
    ("more", "environ"),
    [
        ({f"{PROD}.auth.type": "oauth"}, {}),
        ({f"{PROD}.uri": "localhost"}, {}),
        ({}, {"JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=p"}),
        ({"spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStore=/etc/own.jks"}, {}),
        ({}, {"JDK_JAVA_OPTIONS": "-Xmx1g -Djavax.net.ssl.keyStore=/etc/client.p12"}),
    ],
)
def test_where_the_way_is_not_certain_the_sessions_own_class_is_asked(
    more: dict[str, str], environ: dict[str, str]
) -> None:
    setting = session("https://unity", more).session_setting
    assert unity_catalog.unity_catalog("prod", setting, environ) is None
    assert unity_catalog.unity_catalog("prod", session("https://unity").session_setting, {}) is not None


def test_what_is_no_table_of_delta_is_refused() -> None:
    answers = [{**ORDERS, "data_source_format": "PARQUET"}, {"table_type": "METRIC_VIEW", "name": "v"}]
    with server(lambda path: (200, answers.pop())) as (address, _):
        jvm = session(address)
        for _ in range(2):
            with pytest.raises(TableError, match="T402"):
                catalog_names.delta_entry(jvm, "prod.sales.orders")


def _lake(path: str) -> Answer:
    """Two schemas on a page each; one has a page of one table and an empty one."""
    second = "page_token=2" in path
    if "/schemas?" in path:
        page: dict[str, Any] = {"schemas": [{"name": "sales" if second else "hr"}]}
    elif "schema_name=sales" in path:
        page = {} if second else {"tables": [ORDERS, {**ORDERS, "name": "own", "table_type": "MANAGED"}]}
    else:
        page = {"tables": [{**ORDERS, "name": "raw", "data_source_format": "CSV"}]}
        second = True
    return 200, page if second else {**page, "next_page_token": "2"}


def test_schemas_and_tables_are_listed_page_by_page_and_no_session_starts() -> None:
    with server(_lake) as (address, asked):
        jvm = session(address)
        assert list(catalog_names.tables_in_catalog(jvm, lambda database: database != "prod.hr")) == [
            ("prod.sales.orders", "s3://lake/orders"), ("prod.sales.own", "s3://lake/orders"),
        ]  # fmt: skip
        assert len(asked) == 4
        beside = list(catalog_names.neighbours_in_catalog(jvm, [TableRef("prod.sales.other"), TableRef("/lake/x")]))
    assert beside == [TableRef("prod.sales.orders")]  # what the catalog manages is no clone of an external table


def test_pages_without_end_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unity_catalog, "MAX_PAGES", 3)
    with server(lambda path: (200, {"schemas": [], "next_page_token": "again"})) as (address, asked):
        jvm = session(address)
        with pytest.raises(EnvironmentUnfit, match="E647: prod: the catalog does not answer"):
            list(catalog_names.tables_in_catalog(jvm))
    assert len(asked) == 3


def test_a_database_that_is_not_there_is_no_empty_one() -> None:
    with server(lambda path: (404, {"error_code": "SCHEMA_NOT_FOUND"})) as (address, _):
        jvm = session(address)
        with pytest.raises(EnvironmentUnfit, match="E647"):
            list(catalog_names.neighbours_in_catalog(jvm, [TableRef("prod.sales.other")]))


def test_a_server_that_is_away_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_probe, "metastore_limits", lambda setting: endpoint_probe.ProbeLimits.within(0.2))
    looks: list[object] = []
    look = endpoint_probe.why_away

    def why_away(*given: Any) -> str | None:
        looks.append(given)
        return look(*given)

    monkeypatch.setattr(endpoint_probe, "why_away", why_away)
    jvm = session("http://127.0.0.1:1", token=SECRET)
    for name in ("prod.sales.a", "prod.sales.b"):
        with pytest.raises(EnvironmentUnfit) as caught:
            entry(jvm, name)
        assert (caught.value.code, caught.value.found) == ("E647", "http://127.0.0.1:1: Connection refused")
    assert len(looks) == 1


def test_a_table_is_read_without_a_jvm_and_one_that_the_catalog_manages_is_left_alone(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write_deltalake(str(table), pa.table({"id": [1, 2]}))
    place = {**ORDERS, "storage_location": f"file://{table}"}
    answers = {"orders": place, "own": {**place, "table_type": "MANAGED_SHALLOW_CLONE"}}
    with server(lambda path: (200, answers[path.rpartition(".")[2]])) as (address, _):
        reader = DeltaTableEngine(session(address), "group").reader
        orders, own = TableRef("prod.sales.orders"), TableRef("prod.sales.own")
        facts = reader.facts(orders)
        assert (facts.ref, facts.location, facts.version, len(facts.files)) == (orders, f"file:{table}", 0, 1)
        with pytest.raises(TableError) as caught:
            reader.facts(own)
        assert (caught.value.code, caught.value.found) == ("T407", "table type MANAGED_SHALLOW_CLONE")
        # What it refers to is known all the same: it holds back no deletion in another table.
        assert [reader.location_of(ref) for ref in (orders, own)] == [f"file:{table}"] * 2


def test_a_server_that_takes_requests_and_never_answers_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unity_catalog, "ANSWER_SECONDS", 0.2)
    answered = threading.Event()
    with server(lambda path: (200, answered.wait(10))) as (address, asked):
        jvm = session(address)
        for name in ("prod.sales.a", "prod.sales.b"):
            with pytest.raises(EnvironmentUnfit) as caught:
                entry(jvm, name)
            assert caught.value.found == f"{address}: no answer within 0.2 s"
        answered.set()
    assert len(asked) == 1


class Clock:
    """A clock that only waiting moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waits = 1_000.0, list[float]()
        monkeypatch.setattr(unity_catalog, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.mark.parametrize(
    ("busy", "waits"),
    [
        ([(429, b"", "3"), (503, b"")], [1.0, 3.0]),
        ([(503, b"", "Wed, 21 Oct 2026 07:28:00 GMT"), (429, b"", "0")], [1.0, 1.0]),
        ([(429, b"", "-5"), (429, b"", "1.5")], [1.0, 1.0]),
    ],
)
def test_a_busy_server_is_asked_again_when_it_says_so(
    busy: list[Answer], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, answers = Clock(monkeypatch), [(200, ORDERS), *busy]
    with server(lambda path: answers.pop()) as (address, asked):
        assert entry(session(address)).location == "s3://lake/orders"
    assert (clock.waits, len(asked)) == (waits, 3)


@pytest.mark.parametrize(("retry_after", "num_asked"), [("4", 4), ("16", 1), ("9" * 400, 1)])
def test_a_server_that_stays_busy_is_left_within_the_limit_and_not_asked_for_the_next_name(
    retry_after: str, num_asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    with server(lambda path: (429, b"", retry_after)) as (address, asked):
        jvm = session(address)
        for name in ("prod.sales.a", "prod.sales.b"):
            with pytest.raises(EnvironmentUnfit) as caught:
                entry(jvm, name)
            assert (caught.value.code, caught.value.found) == ("E647", f"{address}: HTTP 429")
    assert len(asked) == num_asked
    assert sum(clock.waits) <= unity_catalog.ANSWER_SECONDS


OTHER = "spark.sql.catalog.other"


@pytest.mark.parametrize(
    "more",
    [
        {f"{OTHER}.auth.type": "oauth", OTHER: UNITY, f"{OTHER}.uri": "https://unity"},
        {OTHER: "com.example.Catalog"},
    ],
)
def test_a_catalog_that_only_its_class_can_ask_is_said_and_never_passed_over(more: dict[str, str]) -> None:
    with server(_lake) as (address, _):
        jvm = session(address, more)
        names = catalog_names.tables_in_catalog(jvm)
        assert [next(names)[0] for _ in range(2)] == ["prod.sales.orders", "prod.sales.own"]
        with pytest.raises(NotSupportedYet) as caught:
            next(names)
        assert (caught.value.code, caught.value.where) == ("E620", "other")
        assert f"other: {more[OTHER]}" in (caught.value.found or "")
        meant = list(catalog_names.tables_in_catalog(jvm, meant=lambda catalog: catalog == "prod"))
        assert [name for name, _ in meant] == ["prod.sales.orders", "prod.sales.own"]
        # What stands beside a table there is not known, as of any catalog that the project does not list.
        beside = catalog_names.neighbours_in_catalog(jvm, [TableRef("prod.sales.x"), TableRef("other.sales.x")])
        assert {ref.identifier for ref in beside} == {"prod.sales.orders"}


def test_a_catalog_that_is_not_meant_is_not_asked() -> None:
    jvm = session("http://127.0.0.1:1")
    assert list(catalog_names.tables_in_catalog(jvm, meant=lambda catalog: False)) == []
