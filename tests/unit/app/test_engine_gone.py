"""A session whose JVM has ended: named before the work, in the middle of it, and while planning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from maintainer.app import engine_access
from maintainer.app.engine_access import EngineOptions, open_engine
from maintainer.errors import EnvironmentUnfit, ExitCode, TableError


class DeadSession:
    """What a SparkSession answers once its JVM has ended."""

    _jsparkSession = None

    @property
    def sparkContext(self) -> object:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_session_that_is_dead_already() -> None:
    with (
        pytest.raises(EnvironmentUnfit, match="the Spark JVM has gone") as caught,
        open_engine(EngineOptions(spark=DeadSession())),
    ):
        pass
    assert (caught.value.code, caught.value.exit_code) == ("E612", ExitCode.USAGE)
    assert "start this Python process again" in str(caught.value.help)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(104, "Connection reset by peer"), EnvironmentUnfit),
        (BrokenPipeError(32, "Broken pipe"), BrokenPipeError),
        (TableError("no such table", code="T401"), TableError),
        (ValueError("a bug"), ValueError),
    ],
)
def test_what_is_raised_within(error: Exception, expected: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(options: EngineOptions) -> Iterator[None]:
        yield

    monkeypatch.setattr(engine_access, "_open", opened)
    with pytest.raises(expected) as caught, open_engine():
        raise error
    assert (caught.value is error) == (expected is not EnvironmentUnfit)
