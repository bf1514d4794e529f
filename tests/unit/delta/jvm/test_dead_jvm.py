"""The look for Delta's methods does not take a JVM that is gone for a Delta that lacks them."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.jvm import DeltaJvm
from maintainer.engine.process_loss import is_engine_lost


class Py4JError(Exception):
    """Named as py4j's own: causes are recognised by their names."""


class JavaView:
    """A view of a JVM whose every name fails in one way."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(self._words)


def jvm_that_says(words: str) -> DeltaJvm:
    jvm = DeltaJvm.__new__(DeltaJvm)
    jvm._jvm = JavaView(words)
    return jvm


def test_a_jvm_that_does_not_answer_is_lost_and_lacks_nothing() -> None:
    with pytest.raises(Py4JError) as caught:
        jvm_that_says("java does not exist in the JVM")._has("DeltaLog", "forTable", 2)
    assert is_engine_lost(caught.value)


def test_a_class_that_is_not_there_is_missing() -> None:
    said = "An error occurred while calling z:java.lang.Class.forName. Trace:\njava.lang.ClassNotFoundException: x"
    assert not jvm_that_says(said)._has("DeltaLog", "forTable", 2)
