"""The look for Delta's methods does not take a JVM that is gone for a Delta that lacks them."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.jvm import DeltaJvm
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
