"""A catalog that takes a connection and never answers is waited for once."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.delta.storage import catalog_names
from maintainer.errors import EnvironmentUnfit


class SocketTimeoutException(Exception):
    """Named as Java's: an exception of Python is described by its class."""


class Metastore:
    """A session whose catalog answers nothing, or refuses."""

    has_catalog = True

    def __init__(self, uris: str, error: Exception) -> None:
        self.spark = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: uris))
        self.error, self.asked = error, []  # type: tuple[Exception, list[str]]

    def catalog_entry(self, name: str) -> None:
        self.asked.append(name)
        raise self.error


def _ask(jvm: Any, name: str) -> EnvironmentUnfit:
    with pytest.raises(EnvironmentUnfit) as caught:
        catalog_names.entry_of(jvm, name)
    assert (caught.value.code, caught.value.where) == ("E647", name)
    return caught.value


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_names, "_silences", {})


def test_after_a_silence_the_other_names_fail_at_once_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Metastore("thrift://a:9083", SocketTimeoutException("Read timed out"))
    assert [_ask(silent, name).found for name in ("sales.a", "sales.b", "c")] == ["Read timed out"] * 3
    assert silent.asked == ["sales.a"]
    # Another catalog, and another metastore, may answer.
    _ask(silent, "unity.sales.a")
    other = Metastore("thrift://b:9083", SocketTimeoutException("Read timed out"))
    _ask(other, "sales.a")
    assert (silent.asked, other.asked) == (["sales.a", "unity.sales.a"], ["sales.a"])
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + catalog_names.SILENCE_SECONDS + 1)
    _ask(silent, "sales.b")
    assert silent.asked[-1] == "sales.b"


def test_a_refusal_is_no_silence() -> None:
    refusing = Metastore("", PermissionError("no"))
    _ask(refusing, "sales.a")
    _ask(refusing, "sales.b")
    assert refusing.asked == ["sales.a", "sales.b"]
