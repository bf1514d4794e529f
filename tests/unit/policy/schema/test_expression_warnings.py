"""Two projects are read at once: what Python warns of an expression is left out, and all else is said afterwards."""

from __future__ import annotations

import re
import threading
import warnings
from types import SimpleNamespace

import pytest

from maintainer.policy.schema import known_expectations
from maintainer.policy.schema.known_expectations import argument_problems


def test_expressions_that_are_looked_at_together_leave_the_filters_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = {"a": threading.Event(), "b": threading.Event()}
    inside = {"a": threading.Event(), "b": threading.Event()}

    def slow(pattern: str) -> None:
        inside[pattern].set()
        ends[pattern].wait(20)

    def look(pattern: str) -> None:
        assert list(argument_problems("expect_column_values_to_match_regex", {"regex": pattern})) == []

    monkeypatch.setattr(known_expectations, "re", SimpleNamespace(compile=slow, error=re.error))
    with warnings.catch_warnings():
        before = warnings.filters[:]
        threads = {name: threading.Thread(target=look, args=(name,)) for name in ends}
        threads["a"].start()
        assert inside["a"].wait(20)
        threads["b"].start()
        inside["b"].wait(0.2)
        for name, thread in threads.items():
            ends[name].set()
            thread.join(20)
        assert warnings.filters == before
