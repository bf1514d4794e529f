"""The start of the JVM by PySpark's own function, which is told no more than we can see that it did."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark.java_gateway
import pytest

from maintainer.delta.spark.jvm_launch import ClassArchive, launch
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
