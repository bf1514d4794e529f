"""What py4j logs goes to the log of each lease that is open, and the user's loggers are his again after the last."""

from __future__ import annotations

import importlib
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from maintainer.delta.spark.engine_log import PythonLogs, open_log
from maintainer.delta.spark.spark_session import SessionLease

PY4J = logging.getLogger("py4j")


@pytest.fixture
def users() -> Iterator[logging.Handler]:
    """A handler as a user has set it, and settings of his own."""
    importlib.import_module("pyspark.logger")  # gives py4j a handler of its own, once
    before = PY4J.handlers[:], PY4J.level, PY4J.propagate
    users = logging.NullHandler()
    PY4J.handlers[:], PY4J.propagate = [users], True
    PY4J.setLevel(logging.DEBUG)
    yield users
    PY4J.handlers[:], PY4J.propagate = before[0], before[2]
    PY4J.setLevel(before[1])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_leases_that_overlap_leave_the_users_loggers_as_they_were(
    users: logging.Handler, tmp_path: Path, order: tuple[int, ...]
) -> None:
    filters = logging.getLogger().filters[:]
    paths = [tmp_path / f"{number}.log" for number in range(3)]
    leases = [PythonLogs(path) for path in paths]
    for number in order:
        assert (users in PY4J.handlers, PY4J.level, PY4J.propagate) == (False, logging.WARNING, False)
        PY4J.warning("until %d", number)
        leases[number].restore()
    assert (PY4J.handlers, PY4J.level, PY4J.propagate) == ([users], logging.DEBUG, True)
    assert logging.getLogger().filters == filters
    PY4J.warning("later")
    for place, number in enumerate(order):
        lines = [line.rpartition(" ")[2] for line in paths[number].read_text(encoding="utf-8").splitlines()]
        assert lines == [str(written) for written in order[: place + 1]]


def test_a_handler_that_the_user_adds_meanwhile_stays(users: logging.Handler, tmp_path: Path) -> None:
    logs, added = PythonLogs(tmp_path / "spark.log"), logging.NullHandler()
    PY4J.addHandler(added)
    logs.restore()
    assert PY4J.handlers == [users, added]


class Embedded:
    """A local JVM that is killed."""

    conf: ClassVar = {"spark.master": "local[2]"}
    killed = False

    def kill(self) -> None:
        self.killed = True


@pytest.mark.usefixtures("users")
def test_a_call_that_breaks_after_the_kill_is_not_printed_either(tmp_path: Path) -> None:
    """A thread may be in a call when the JVM is killed, and hear of it after the lease was closed."""
    path = tmp_path / "spark.log"
    logs, embedded = PythonLogs(path), Embedded()
    lease = SessionLease(False, {}, path, _embedded=cast("Any", embedded), _python_logs=logs)
    lease._cleanup.callback(logs.restore)
    lease.kill()
    lease.close()
    broken = logging.LogRecord(
        "root", logging.ERROR, "/site-packages/py4j/java_gateway.py", 1, "Exception while sending command.", (), None
    )
    try:
        assert embedded.killed
        assert not logging.getLogger().filter(broken)
        assert "Exception while sending command." in path.read_text(encoding="utf-8")
    finally:
        logs.stays = False
        logs.restore()
    assert logging.getLogger().filter(broken)


def test_only_its_user_can_read_the_log_of_a_run(tmp_path: Path) -> None:
    log = tmp_path / "run" / "spark.log"
    for line in (b"one\n", b"two\n"):
        with open_log(log) as stream:
            stream.write(line)
    assert (log.read_bytes(), log.stat().st_mode & 0o777) == (b"one\ntwo\n", 0o600)
