"""Which session is active in pyspark is one for the whole process, and the user's comes back whoever ends last."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")
from pyspark.sql import SparkSession

from maintainer.delta.jvm import ActiveSession


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_those_that_overlap_put_back_what_the_first_one_found(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    users: Any = object()
    monkeypatch.setattr(SparkSession, "_activeSession", users)
    noted = []
    for _ in range(3):
        noted.append(ActiveSession.of_caller(MagicMock()))
        monkeypatch.setattr(SparkSession, "_activeSession", object())  # as `createDataFrame` of ours
    for number in order:
        noted[number].put_back()
        assert SparkSession._activeSession is users, "also while others are still at work"
        monkeypatch.setattr(SparkSession, "_activeSession", object() if number != order[-1] else users)
    monkeypatch.setattr(SparkSession, "_activeSession", later := object())
    ActiveSession.of_caller(MagicMock()).put_back()
    assert SparkSession._activeSession is later, "what was noted is forgotten with its owner"
