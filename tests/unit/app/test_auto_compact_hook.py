"""The hook never raises: whatever its session does. What it does on real tables is an integration test."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import maintainer
from maintainer.model.run.auto_compaction import AutoCompactStatus, SwitchSource


class Conf:
    """Settings of a session that is not there."""

    def __init__(self, values: dict[str, str], error: BaseException | None = None) -> None:
        self.values = values
        self.error = error
        self.asked_on: list[str] = []

    def get(self, key: str, default: str | None = None) -> str | None:
        self.asked_on.append(threading.current_thread().name)
        if self.error is not None:
            raise self.error
        return self.values.get(key, default)


class Session:
    def __init__(self, values: dict[str, str] | None = None, error: BaseException | None = None) -> None:
        self.conf = Conf(values or {}, error)


def call(session: Session, **arguments: Any) -> Any:
    untyped: Any = maintainer.auto_compact
    return untyped(session, "sales.orders", **arguments)


def test_switched_off_it_does_nothing_at_all() -> None:
    session = Session({"spark.databricks.delta.autoCompact.enabled": "FALSE"})
    result = call(session)
    assert (result.status, result.reason) == (AutoCompactStatus.DISABLED, "auto compaction is off (session)")
    result = call(Session({"spark.databricks.delta.autoCompact.enabled": "true"}), enabled=False)
    assert (result.status, result.switch.source) == (AutoCompactStatus.DISABLED, SwitchSource.ARGUMENT)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("the JVM is gone\nmore"), "RuntimeError: the JVM is gone"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: no message"),
        (MemoryError(), "MemoryError: no message"),
    ],
)
def test_whatever_happens_is_a_result(error: BaseException, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "maintainer.auto_compact"):
        result = call(Session(error=error))
    assert (result.status, result.reason) == (AutoCompactStatus.FAILED, reason)
    # Threads of other tests may write to their own logs.
    (record,) = [record for record in caplog.records if record.name == "maintainer.auto_compact"]
    said = json.loads(record.getMessage())
    assert record.levelno == logging.WARNING
    assert (said["opType"], said["status"], said["reason"]) == ("delta.commit.hooks.autoOptimize", "failed", reason)


def test_a_session_of_spark_connect_is_refused_with_its_code() -> None:
    result = call(Session())
    assert (result.status, result.error_code) == (AutoCompactStatus.FAILED, "E620")


def test_it_works_on_a_thread_of_its_own() -> None:
    session = Session({"spark.databricks.delta.autoCompact.enabled": "false"})
    call(session)
    assert session.conf.asked_on != []
    assert threading.current_thread().name not in session.conf.asked_on


def test_an_attempt_that_takes_too_long_is_cancelled_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from maintainer.app import auto_compact_hook as auto_compact

    monkeypatch.setattr(auto_compact, "CANCEL_SECONDS", 0.01)
    cancelled: list[str] = []
    release = threading.Event()

    class Context:
        def cancelJobGroup(self, group: str) -> None:
            cancelled.append(group)

    class Slow(Conf):
        def get(self, key: str, default: str | None = None) -> str | None:
            release.wait(30)
            return default

    session: Any = Session()
    session.conf, session.sparkContext = Slow({}), Context()
    started = time.monotonic()
    result = call(session, timeout_seconds=0.05)
    release.set()
    assert time.monotonic() - started < 20
    assert (result.status, result.error_code) == (AutoCompactStatus.FAILED, "C711")
    assert len(cancelled) == 1


@pytest.mark.parametrize(
    ("timeout_seconds", "reason", "is_started"),
    [
        (float("inf"), "auto compaction is off (session)", True),
        ("60", "TypeError: '<' not supported between instances of 'float' and 'str'", False),
    ],
)
def test_no_attempt_goes_on_that_nobody_waits_for(timeout_seconds: object, reason: str, is_started: bool) -> None:
    """No limit is one, too; with what is no number nothing begins."""
    session = Session({"spark.databricks.delta.autoCompact.enabled": "false"})
    result = call(session, timeout_seconds=timeout_seconds)
    assert (result.reason, bool(session.conf.asked_on)) == (reason, is_started)


def test_importing_the_package_imports_neither_spark_nor_the_engine() -> None:
    code = (
        "import maintainer, sys; "
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', 'delta')"
        " or name.startswith('maintainer.') and name != 'maintainer.model.product_version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['maintainer.model']"


def test_two_of_one_table_in_one_process_do_not_meet() -> None:
    from maintainer.app.auto_compact_run import _alone

    with _alone("file:/a") as first, _alone("file:/a") as second, _alone("file:/b") as other:
        assert (first, second, other) == (True, False, True)
    with _alone("file:/a") as again:
        assert again, "also after the second one has left"
