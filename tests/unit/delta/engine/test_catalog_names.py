"""A catalog that takes a connection and never answers is waited for once."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.delta.engine import catalog_names, endpoint_probe
from maintainer.delta.jvm import DirectAccess
from maintainer.errors import EnvironmentUnfit
from maintainer.model.table.table_facts import TableRef


class SocketTimeoutException(Exception):
    """Named as Java's: an exception of Python is described by its class."""


class Metastore:
    """A session whose catalog answers nothing, or refuses."""

    has_catalog = True
    direct: DirectAccess | None = None

    def __init__(self, uris: str, error: Exception) -> None:
        self.settings: dict[str, Any] = {"spark.hadoop.hive.metastore.uris": uris, "spark.sql.catalog.other": "Class"}
        self.hadoop_settings: dict[str, str] = {}
        self.spark = SimpleNamespace(conf=SimpleNamespace(get=self.settings.get))
        self.error, self.asked = error, []  # type: tuple[Exception, list[str]]

    def session_setting(self, key: str) -> str | None:
        return self.settings.get(key)

    def hadoop_conf(self) -> dict[str, str]:
        return self.hadoop_settings

    def catalog_entry(self, name: str) -> None:
        self.asked.append(name)
        raise self.error


def _ask(jvm: Any, name: str) -> EnvironmentUnfit:
    with pytest.raises(EnvironmentUnfit) as caught:
        catalog_names.entry_of(jvm, name)
    assert (caught.value.code, caught.value.where) == ("E647", name)
    return caught.value


def test_after_a_silence_the_other_names_fail_at_once_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Metastore("thrift://a:9083", SocketTimeoutException("Read timed out"))
    assert [_ask(silent, name).found for name in ("sales.a", "sales.b", "c")] == ["Read timed out"] * 3
    assert silent.asked == ["sales.a"]
    # Another catalog, and another metastore, may answer.
    _ask(silent, "other.sales.a")
    other = Metastore("thrift://b:9083", SocketTimeoutException("Read timed out"))
    _ask(other, "sales.a")
    assert (silent.asked, other.asked) == (["sales.a", "other.sales.a"], ["sales.a"])
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + endpoint_probe.SILENCE_SECONDS + 1)
    _ask(silent, "sales.b")
    assert silent.asked[-1] == "sales.b"


def test_a_refusal_is_no_silence() -> None:
    refusing = Metastore("", PermissionError("no"))
    _ask(refusing, "sales.a")
    _ask(refusing, "sales.b")
    assert refusing.asked == ["sales.a", "sales.b"]


class SlowMetastore(Metastore):
    """Two names are asked at once: the first is answered after the second was asked, or half a second later."""

    def __init__(self, error: Exception) -> None:
        super().__init__("thrift://a:9083", error)
        self.both = threading.Barrier(2)

    def catalog_entry(self, name: str) -> None:
        self.asked.append(name)
        with contextlib.suppress(threading.BrokenBarrierError):
            self.both.wait(0.5)
        raise self.error


def test_names_asked_at_once_wait_for_one_silence() -> None:
    silent = SlowMetastore(SocketTimeoutException("Read timed out"))
    with ThreadPoolExecutor(4) as threads:
        errors = list(threads.map(lambda name: _ask(silent, name), ("s.a", "s.b", "s.c", "s.d")))
    assert [error.found for error in errors] == ["Read timed out"] * 4
    assert len(silent.asked) == 1


def test_names_of_a_catalog_that_answers_are_asked_side_by_side() -> None:
    answering = SlowMetastore(PermissionError("no"))
    _ask(answering, "s.a")
    answering.both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: _ask(answering, name), ("s.b", "s.c")))
    assert not answering.both.broken


def test_a_contact_that_hangs_does_not_hold_up_the_others_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_names, "SILENCE_SECONDS", 0.1)
    refusing = Metastore("thrift://a:9083", PermissionError("no"))
    hanging = catalog_names._first_contacts.setdefault(("thrift://a:9083", ""), threading.Lock())
    with hanging:  # on a thread of its own: without the limit it never ends
        other = threading.Thread(target=_ask, args=(refusing, "s.a"), daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive()
    assert refusing.asked == ["s.a"]


@pytest.mark.parametrize("found", ["session", "hive-site", "not started"])
def test_a_metastore_without_a_sign_of_life_is_not_asked_by_hives_client(found: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        uris = f"thrift://127.0.0.1:{server.getsockname()[1]}"
    metastore = Metastore(uris, PermissionError("asked"))
    if found == "hive-site":
        metastore.hadoop_settings["hive.metastore.uris"] = metastore.settings.pop("spark.hadoop.hive.metastore.uris")
    metastore.settings["spark.sql.catalogImplementation"] = "hive"
    if found == "not started":
        metastore.direct, metastore.spark = DirectAccess(metastore.settings, frozenset({"file"})), SimpleNamespace()
    assert _ask(metastore, "sales.a").found == f"{uris}: Connection refused"
    jvm: Any = metastore
    with pytest.raises(EnvironmentUnfit, match="E647: the catalog's database sales: the catalog does not answer"):
        list(catalog_names.neighbours_in_catalog(jvm, [TableRef("sales.a")]))
    assert metastore.asked == []
