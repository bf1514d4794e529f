"""A store that gives no sign of life, on real sockets; and everything that must not be taken for one."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest

from maintainer.delta.engine import endpoint_probe
from maintainer.delta.engine.endpoint_probe import Endpoint, ProbeLimits, s3_endpoint, signs_of_life, why_away
from maintainer.delta.spark.connectors import CONNECTOR_SETTINGS
from maintainer.model.table.table_facts import TableRef

QUICK = ProbeLimits(tries=3, pause_seconds=0.05, connect_seconds=5, answer_seconds=0.5, enough_seconds=0.6)
PATIENT = ProbeLimits(tries=3, pause_seconds=0.05)
"""Where an answer comes, but on a busy machine not within half a second."""
SLOW_TO_ASK_AGAIN = ProbeLimits(tries=2, pause_seconds=1.5, connect_seconds=5, answer_seconds=0.3)
KEY = "spark.hadoop.fs.s3a."
HIVE = "spark.hadoop.hive.metastore."
OURS = CONNECTOR_SETTINGS["s3"]


@contextlib.contextmanager
def listening(answer: Callable[[socket.socket], None], port: int = 0) -> Iterator[int]:
    """Accept connections on 127.0.0.1 and do this with each."""
    with socket.create_server(("127.0.0.1", port), reuse_port=bool(port)) as server:
        taken: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                taken.append(connection)
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in taken:
                connection.close()


def says(text: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(text)
        connection.close()

    return answer


def nothing(connection: socket.socket) -> None:
    """Take the request and stay silent."""


def found_away(
    tables: Iterable[str], conf: Mapping[str, str], environ: Mapping[str, str], limits: ProbeLimits = QUICK
) -> dict[str, str | None]:
    signs = signs_of_life([TableRef(name) for name in tables], conf.get, environ, limits)
    return {name: error.found for name, sign in signs.items() if (error := sign.error()) is not None}


_BOUND: list[socket.socket] = []


def closed_port() -> int:
    """Nobody listens on it; while this process lives, nobody can but ``listening``."""
    _BOUND.append(socket.socket())
    _BOUND[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    _BOUND[-1].bind(("127.0.0.1", 0))
    return int(_BOUND[-1].getsockname()[1])


def local(port: int, *, tls: bool = False) -> Endpoint:
    return Endpoint("127.0.0.1", port, tls)


def test_a_port_where_nobody_listens_is_away() -> None:
    assert why_away(local(closed_port()), QUICK) == "Connection refused"


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_that_takes_connections_and_never_answers_is_away(tls: bool) -> None:
    with listening(nothing) as port:
        assert why_away(local(port, tls=tls), QUICK) == "a connection, and no answer within 0.5 s"


def test_a_silent_server_is_asked_twice_and_not_more() -> None:
    """One of several machines behind an address may hang: the next connection comes to another."""
    times: list[float] = []
    with listening(lambda connection: times.append(time.monotonic())) as port:
        why_away(local(port), ProbeLimits(tries=4, pause_seconds=0.0, answer_seconds=0.3, enough_seconds=0.5))
    assert len(times) == 2


def test_one_silent_connection_is_not_enough() -> None:
    number = iter(range(10))
    well = says(b"HTTP/1.1 403 Forbidden\r\n\r\n")
    with listening(lambda connection: well(connection) if next(number) else None) as port:
        assert why_away(local(port), QUICK) is None


@pytest.mark.parametrize(
    "answer",
    [
        says(b"HTTP/1.1 200 OK\r\n\r\n"),
        says(b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        says(b"HTTP/1.1 503 Slow Down\r\n\r\n"),
        says(b"what?"),
        says(b""),
        lambda connection: connection.close(),
    ],
)
@pytest.mark.parametrize("tls", [False, True])
def test_whatever_is_answered_is_a_sign_of_life(answer: Callable[[socket.socket], None], tls: bool) -> None:
    with listening(answer) as port:
        assert why_away(local(port, tls=tls), PATIENT) is None


def test_a_server_that_starts_anew_is_not_away() -> None:
    port = closed_port()
    limits = ProbeLimits(tries=200, pause_seconds=0.05, answer_seconds=5, enough_seconds=10)
    answers: list[str | None] = []
    asking = threading.Thread(target=lambda: answers.append(why_away(local(port), limits)))
    asking.start()
    time.sleep(0.2)
    with listening(says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), port):
        asking.join(10)
    assert answers == [None]


def test_each_store_is_asked_once_for_all_its_tables() -> None:
    connections: list[int] = []
    well = says(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    def answer(connection: socket.socket) -> None:
        connections.append(1)
        well(connection)

    dead = closed_port()
    with listening(answer) as port:
        conf = {
            **OURS,
            f"{KEY}endpoint": f"http://127.0.0.1:{port}",
            f"{KEY}bucket.gone.endpoint": f"http://127.0.0.1:{dead}",
        }
        tables = [f"s3://lake/t{number}" for number in range(50)] + ["s3a://gone/a", "s3://gone/b", "/lake/t", "db.t"]
        away = found_away(tables, conf, {}, PATIENT)
    assert away == dict.fromkeys(("s3a://gone/a", "s3://gone/b"), f"http://127.0.0.1:{dead}: Connection refused")
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("value", "more", "expected"),
    [
        ("https://s3.example.com", {f"{KEY}path.style.access": "true"}, "https://s3.example.com:443"),
        ("https://s3.example.com", {}, "https://lake.s3.example.com:443"),
        ("s3.example.com", {}, "https://lake.s3.example.com:443"),
        ("s3.example.com:9000", {f"{KEY}connection.ssl.enabled": "false"}, "http://lake.s3.example.com:9000"),
        ("http://[::1]:9000/", {}, "http://[::1]:9000"),
        ("http://10.0.0.1", {}, "http://10.0.0.1:80"),
    ],
)
def test_an_endpoint_of_the_settings_is_known(value: str, more: dict[str, str], expected: str) -> None:
    conf = {**OURS, f"{KEY}endpoint": value, **more}
    assert str(s3_endpoint("s3://lake/t", conf.get, {})) == expected
    assert str(s3_endpoint("s3a://lake/t", conf.get, {})) == expected


@pytest.mark.parametrize("style", ["true", "false"])
def test_where_the_bucket_was_asked_for_as_a_part_of_the_host_the_setting_is_named(style: str) -> None:
    conf = {**OURS, f"{KEY}endpoint": f"http://localhost:{closed_port()}", f"{KEY}path.style.access": style}
    error = signs_of_life([TableRef("s3://lake/t")], conf.get, {}, QUICK)["s3://lake/t"].error()
    assert error is not None
    assert error.code == "T435"
    assert ("spark.hadoop.fs.s3a.path.style.access: true" in str(error.help)) is (style == "false")
    assert ("http://lake.localhost:" in str(error.found)) is (style == "false")


@pytest.mark.parametrize(
    ("location", "conf", "environ"),
    [
        ("sales.orders", {}, {}),
        ("/lake/orders", {}, {}),
        ("abfss://lake@a.dfs.core.windows.net/t", {}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": ""}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": "s3.amazonaws.com"}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": "https://vpce-1.s3.eu-west-1.vpce.amazonaws.com"}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": "https://s3.cn-north-1.amazonaws.com.cn"}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": "http://host:port"}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": "ftp://host"}, {}),
        ("s3://lake/t", {f"{KEY}endpoint": "http://${my.host}"}, {}),
        ("s3://lake/t", {f"{KEY}proxy.host": "proxy"}, {}),
        ("s3://lake/t", {f"{KEY}bucket.lake.proxy.host": "proxy"}, {}),
        ("s3://lake/t", {"spark.driver.extraJavaOptions": "-Dhttps.proxyHost=p"}, {}),
        ("s3://lake/t", {}, {"HTTPS_PROXY": "http://proxy:3128"}),
        ("s3://lake/t", {}, {"http_proxy": "http://proxy:3128"}),
        ("s3://lake/t", {}, {"JAVA_TOOL_OPTIONS": "-DsocksProxyHost=p"}),
        ("s3://lake/t", {f"{KEY}retry.limit": "20"}, {}),
        ("s3://lake/t", {f"{KEY}bucket.lake.connection.timeout": "200s"}, {}),
        ("s3://lake/t", {"spark.hadoop.fs.s3.impl": "com.amazon.ws.emr.hadoop.fs.EmrFileSystem"}, {}),
        ("s3a://lake/t", {f"{KEY}impl": "alluxio.hadoop.ShimFileSystem"}, {}),
    ],
)
def test_where_the_way_to_the_store_is_not_certain_hadoop_decides(
    location: str, conf: dict[str, str], environ: dict[str, str]
) -> None:
    settings = {**OURS, f"{KEY}endpoint": f"http://127.0.0.1:{closed_port()}", **conf}
    assert signs_of_life([TableRef(location)], settings.get, environ, QUICK) == {}


def hive(*ports: int) -> dict[str, str]:
    uris = ",".join(f"thrift://127.0.0.1:{port}" for port in ports)
    return {"spark.sql.catalogImplementation": "hive", f"{HIVE}uris": uris}


def test_a_metastore_that_accepts_and_never_answers_is_waited_for_once() -> None:
    times: list[float] = []
    with listening(lambda connection: times.append(time.monotonic())) as port:
        started = time.monotonic()
        away = found_away(("sales.a", "sales.b", "`c`"), hive(port), {})
        again = found_away(("sales.d",), hive(port), {})
        seconds = time.monotonic() - started
    text = f"thrift://127.0.0.1:{port}: a connection, and no answer within 0.5 s"
    assert (away, again) == (dict.fromkeys(("sales.a", "sales.b", "`c`"), text), {"sales.d": text})
    assert len(times) == 2
    assert seconds >= 1.0


@pytest.mark.parametrize("others_wait", [False, True])
def test_where_others_wait_one_silent_try_is_enough(others_wait: bool) -> None:
    times: list[float] = []
    with listening(lambda connection: times.append(time.monotonic())) as port:
        (sign,) = signs_of_life([TableRef("sales.a")], hive(port).get, {}, SLOW_TO_ASK_AGAIN).values()
        error = sign.error(lambda: others_wait)
    assert error is not None
    assert error.found == f"thrift://127.0.0.1:{port}: a connection, and no answer within 0.3 s"
    assert len(times) == (1 if others_wait else 2)


def test_others_may_begin_to_wait_meanwhile() -> None:
    times: list[float] = []
    with listening(lambda connection: times.append(time.monotonic())) as port:
        (sign,) = signs_of_life([TableRef("sales.a")], hive(port).get, {}, SLOW_TO_ASK_AGAIN).values()
        begun = time.monotonic() + 0.5
        assert sign.error(lambda: time.monotonic() > begun) is not None
        assert time.monotonic() > begun
    assert len(times) == 1


def test_a_server_that_starts_anew_is_not_away_though_others_wait() -> None:
    """That nobody listens is known at once; it says no more than that, where a server has just ended."""
    port = closed_port()
    limits = ProbeLimits(tries=200, pause_seconds=0.05, answer_seconds=5, enough_seconds=10)
    (sign,) = signs_of_life([TableRef("sales.a")], hive(port).get, {}, limits).values()
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(sign.error(lambda: True) is None))
    asking.start()
    time.sleep(0.3)
    with listening(says(b""), port):
        asking.join(10)
    assert answers == [True]


@pytest.mark.parametrize("kind", ["store", "metastore"])
def test_what_was_silent_is_waited_for_shortly_the_next_time_and_is_found_again(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A watch looks each minute: it must not wait as long each time, and must see that a slow one is back."""
    monkeypatch.setattr(endpoint_probe, "SILENCE_SECONDS", 0.0)
    monkeypatch.setattr(endpoint_probe, "AGAIN_SECONDS", 0.1)
    answer_after_seconds: list[float] = []

    def answer(connection: socket.socket) -> None:
        if answer_after_seconds:
            time.sleep(answer_after_seconds[0])
            connection.close()

    def look() -> tuple[bool, float]:
        started = time.monotonic()
        return found_away([name], conf, {}) != {}, time.monotonic() - started

    with listening(answer) as port:
        name = "s3://lake/t" if kind == "store" else "sales.a"
        conf = {**OURS, f"{KEY}endpoint": f"http://127.0.0.1:{port}"} if kind == "store" else hive(port)
        first, second = look(), look()
        assert (first[0], second[0]) == (True, True)
        assert second[1] < first[1]
        assert first[1] >= 1.0
        time.sleep(1.5)  # what the second look began has ended
        answer_after_seconds.append(0.3)
        assert look()[0]
        time.sleep(0.5)
        assert not look()[0]


@pytest.mark.parametrize("answer", [says(b""), says(b"\x80\x01\x00\x02"), lambda connection: connection.close()])
def test_a_metastore_that_answers_anything_is_there(answer: Callable[[socket.socket], None]) -> None:
    with listening(answer) as port:
        assert found_away(["sales.a"], hive(port), {}, PATIENT) == {}


def test_one_of_several_metastores_is_enough() -> None:
    dead = closed_port()
    with listening(says(b"what?")) as port:
        assert found_away(["sales.a"], hive(dead, port), {}, PATIENT) == {}
    text = f"thrift://127.0.0.1:{dead}: Connection refused"
    assert found_away(["sales.a"], hive(dead), {}) == {"sales.a": text}


def test_a_metastore_is_asked_as_long_as_its_setting_says() -> None:
    def silent_seconds(timeout: str | None) -> float:
        limits = endpoint_probe.metastore_limits({f"{HIVE}client.socket.timeout": timeout}.get)
        assert limits.enough_seconds < 2 * limits.answer_seconds + limits.pause_seconds
        return 2 * limits.answer_seconds + limits.pause_seconds

    seconds = {timeout: silent_seconds(timeout) for timeout in (None, "15s", "15", "40s", "2s", "1h")}
    assert seconds == {
        None: pytest.approx(15, abs=0.3),
        "15s": pytest.approx(15, abs=0.3),
        "15": pytest.approx(15, abs=0.3),
        "40s": pytest.approx(40, abs=0.3),
        "2s": pytest.approx(2, abs=0.3),
        "1h": pytest.approx(15, abs=0.3),
    }
    store = ProbeLimits()
    assert 2 * store.answer_seconds + store.pause_seconds <= 15


@pytest.mark.parametrize(
    ("name", "conf", "environ"),
    [
        ("sales.a", {"spark.sql.catalogImplementation": "in-memory"}, {}),
        ("unity.sales.a", {"spark.sql.catalog.unity": "io.unitycatalog.spark.UCSingleCatalog"}, {}),
        ("unity.a", {"spark.sql.catalog.unity": "io.unitycatalog.spark.UCSingleCatalog"}, {}),
        ("sales.a", {"spark.sql.defaultCatalog": "unity"}, {}),
        ("sales.a", {"spark.sql.catalog.spark_catalog": "io.unitycatalog.spark.UCSingleCatalog"}, {}),
        ("sales.a", {f"{HIVE}client.factory.class": "com.amazonaws.glue.Factory"}, {}),
        ("sales.a", {f"{HIVE}uris": ""}, {}),
        ("sales.a", {f"{HIVE}uris": "zk-1:2181,zk-2:2181"}, {}),
        ("sales.a", {f"{HIVE}uris": "thrift://host"}, {}),
        ("sales.a", {f"{HIVE}uris": "thrift://host:port"}, {}),
        ("sales.a", {}, {"JAVA_TOOL_OPTIONS": "-DsocksProxyHost=p"}),
        ("/lake/a", {}, {}),
    ],
)
def test_where_the_way_to_the_metastore_is_not_certain_hive_decides(
    name: str, conf: dict[str, str], environ: dict[str, str]
) -> None:
    assert signs_of_life([TableRef(name)], {**hive(closed_port()), **conf}.get, environ, QUICK) == {}
