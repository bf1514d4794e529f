"""A JVM that is gone lacks no method of Delta's, and one that copies row groups has another one after it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.jvm import DeltaJvm, parquet_calls
from maintainer.engine.process_loss import is_engine_lost


class Py4JError(Exception):
    """Named as py4j's own: causes are recognised by their names."""


LISTED = (("DeltaLog", "forTable", (2,)),)


class Sifted:
    """A text in the JVM that is empty, and what sifts it."""

    def compile(self, _: str) -> Sifted:
        return self

    def matcher(self, _: Sifted) -> Sifted:
        return self

    def replaceAll(self, _: str) -> str:
        return ""


class JavaView:
    """A view of a JVM whose every name fails in one way."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(self._words)


def jvm_that_says(words: str) -> DeltaJvm:
    jvm = DeltaJvm.__new__(DeltaJvm)
    jvm._jvm, jvm._modules = JavaView(words), {}
    return jvm


def test_a_jvm_that_does_not_answer_is_lost_and_lacks_nothing() -> None:
    with pytest.raises(Py4JError) as caught:
        jvm_that_says("java does not exist in the JVM").lacking(LISTED)
    assert is_engine_lost(caught.value)


def test_a_class_that_is_not_there_is_missing() -> None:
    said = "An error occurred while calling z:java.lang.Class.forName. Trace:\njava.lang.ClassNotFoundException: x"
    jvm = jvm_that_says("not asked")
    jvm._modules = {
        "scala.collection.mutable.StringBuilder": Sifted,
        "scala.runtime.ScalaRunTime": Sifted(),
        "java.lang.Thread": JavaView(said),
        "java.util.regex.Pattern": Sifted(),
    }
    assert jvm.lacking(LISTED) == ["DeltaLog.forTable/2"]


@pytest.mark.parametrize(("status", "num_started"), [(None, 1), (-9, 2)])
def test_where_the_small_jvm_of_an_executor_is_gone_the_next_copy_starts_another(
    monkeypatch: pytest.MonkeyPatch, status: int | None, num_started: int
) -> None:
    started: list[Any] = []
    copies: list[int] = []

    @cache
    def calls_here() -> tuple[Any, Any, Any]:
        number = len(started)
        started.append(SimpleNamespace(poll=lambda: None))
        return SimpleNamespace(copy_row_groups=lambda *anything: copies.append(number)), None, started[-1]

    monkeypatch.setattr(parquet_calls, "_calls_here", calls_here)
    parquet_calls.copy_row_groups_here(["file:/old"], "file:/new")
    started[0].poll = lambda: status
    parquet_calls.copy_row_groups_here(["file:/old"], "file:/new")
    assert copies == [0, num_started - 1]


@pytest.mark.nightly  # two JVMs start
def test_a_small_jvm_that_was_killed_costs_no_later_copy(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "old")
    *_, process = parquet_calls._calls_here()
    process.kill()
    process.wait()
    parquet_calls.copy_row_groups_here([f"file:{tmp_path}/old"], f"file:{tmp_path}/new")
    assert pq.read_table(tmp_path / "new")["id"].to_pylist() == [1, 2]
