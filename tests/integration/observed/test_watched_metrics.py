"""``watch`` on a real table counts what it does, and the figures of the table follow it."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.product import (
    DEFAULT_HOST,
    CliContext,
    ExitCode,
    Project,
    RunSpec,
    StopSwitch,
    WatchBounds,
    WatchOutput,
    metrics_endpoint,
    operations,
)
from tests.support.product import run as command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def test_a_watch_is_counted(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        spark.range(number * 10, number * 10 + 10, 1, 1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: ./t\nowner: team\n", encoding="utf-8")
    project = Project.load(tmp_path)
    with metrics_endpoint(project, DEFAULT_HOST, 0) as endpoint:
        output = WatchOutput(CliContext(tmp_path), endpoint.metrics)
        end = operations.watch(project, RunSpec(), WatchBounds(0.01, until_idle=True), StopSwitch(), output)
        with urllib.request.urlopen(endpoint.url, timeout=10) as answer:
            families = list(text_string_to_metric_families(answer.read().decode("utf-8")))
    assert (end.runs, end.code) == (1, ExitCode.OK)
    served = {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}
    assert served["maintainer_runs_total", "0"] == 1
    assert served["maintainer_steps_total", "compact", "succeeded"] == 1
    assert served["maintainer_commits_total", "held"] == 1
    assert served["maintainer_rewritten_files_total",] == 3
    assert served["maintainer_written_files_total",] == 1
    assert served["maintainer_table_files", "./t", "team"] == 1  # by the look after the run
    assert served["maintainer_table_last_proof_ok", "./t", "team"] == 1
    assert served["maintainer_table_state", "./t", "ok", "team"] == 1
    assert served["maintainer_running_tables",] == 0
    capfd.readouterr()

    line = ["--project", str(tmp_path), "watch", "--yes", "--until-idle", "--metrics-port", "0"]
    assert command(line) == 0
    assert "metrics: http://127.0.0.1:" in capfd.readouterr().err
