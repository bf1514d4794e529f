"""The start of the JVM by PySpark's own function, which is told no more than we can see that it did; and its end."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark.java_gateway
import pytest

from maintainer.delta.spark import jvm_launch
from maintainer.delta.spark.jvm_launch import ClassArchive, EmbeddedJvm, launch, stop_quietly
from maintainer.errors import EnvironmentUnfit


class Process:
    """What ``Popen`` returns."""

    is_killed = False

    def kill(self) -> None:
        self.is_killed = True

    def wait(self, seconds: float) -> None:
        """It ends at once."""


@pytest.mark.parametrize("passes", ["in place", "in a copy", "started by others"])
def test_an_environment_that_does_not_reach_java_is_noticed(
    passes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process()

    def launch_gateway(conf: object, popen_kwargs: dict[str, Any]) -> SimpleNamespace:
        if passes == "in place":
            popen_kwargs["env"] = {}
        elif passes == "in a copy":
            popen_kwargs = {**popen_kwargs, "env": {}}
        return SimpleNamespace(proc=None if passes == "started by others" else process)

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", launch_gateway)
    conf, archive = {"spark.master": "local[1]"}, ClassArchive(tmp_path / "archive.jsa")
    with (tmp_path / "log").open("wb") as log:
        if passes != "in a copy":
            assert launch(conf, archive, log, tmp_path / "log").gateway.proc in (process, None)
            return
        with pytest.raises(EnvironmentUnfit, match="E633"):
            launch(conf, archive, log, tmp_path / "log")
    assert process.is_killed


@pytest.mark.parametrize("answers", [True, False])
def test_a_jvm_that_does_not_answer_is_killed(answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen, as by a host that swaps: neither the session's stop nor the gateway's comes back."""
    monkeypatch.setattr(jvm_launch, "STOP_TIMEOUT_SECONDS", 0.2)
    asked, answer = list[str](), threading.Event()
    if answers:
        answer.set()

    def call(name: str) -> None:
        asked.append(name)
        assert answer.wait(60)
        raise ConnectionError

    class Frozen(Process):
        stdin = SimpleNamespace(close=lambda: None)
        returncode = None

        def wait(self, seconds: float) -> None:
            if not answers:
                raise subprocess.TimeoutExpired("java", seconds)

    process, gateway = Frozen(), SimpleNamespace(shutdown=lambda: call("gateway"))
    embedded = EmbeddedJvm(gateway, process, ClassArchive(tmp_path / "archive.jsa"), {}, tmp_path / "log")

    def end() -> None:
        stop_quietly(lambda: call("session"), 0.2)
        embedded.end()

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(20)
    assert (ending.is_alive(), asked, process.is_killed) == (False, ["session", "gateway"], not answers)
    answer.set()
