"""A real run sends its spans and its lineage to real HTTP servers: what they say is what the table's log says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.http_receiver import Receiver, http_receiver
from tests.support.policies.projects import write_project
from tests.support.product import run as command
from tests.support.tables.sick_tables import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries set variables of their own from the ones that they are given: none of them may stay."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def spans_of(receiver: Receiver) -> dict[str, dict[str, Any]]:
    """The attributes of each span, by its name."""
    spans: dict[str, dict[str, Any]] = {}
    for _, _, body in receiver.posts:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                values = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}
                spans[span.name] = values
    return spans


def test_spans_and_lineage_say_what_the_log_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "lake" / "orders"
    make_table(table, 4)
    write_project(tmp_path, {"policies/orders.yml": "table: lake/orders\nowner: team\n"})
    with http_receiver() as traces, http_receiver() as lineage:
        os.environ.update(OTEL_EXPORTER_OTLP_ENDPOINT=traces.url, OPENLINEAGE_URL=lineage.url)
        assert command(["--project", str(tmp_path), "apply", "--yes", "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert "E657" not in printed.err
    run_id = json.loads(printed.out)["run_id"]
    metrics = DeltaTable(str(table)).history(1)[0]["operationMetrics"]
    written = [
        file.stat().st_size for file in table.glob("*.parquet") if str(file) in DeltaTable(str(table)).file_uris()
    ]
    assert (int(metrics["numRemovedFiles"]), len(written)) == (4, 1)

    spans = spans_of(traces)
    assert spans["maintainer run"]["maintainer.run_id"] == run_id
    assert spans["table lake/orders"]["maintainer.owner"] == "team"
    step = spans["compact"]
    assert (step["maintainer.files_removed"], step["maintainer.files_added"]) == (4, 1)
    assert (step["maintainer.bytes_added"], step["maintainer.rows_proven"]) == (written[0], 40)
    assert (step["maintainer.version"], step["maintainer.outcome"]) == (4, "succeeded")

    events = [json.loads(body) for _, _, body in lineage.posts]
    ends = {event["job"]["name"]: event for event in events if event["eventType"] == "COMPLETE"}
    assert set(ends) == {f"{tmp_path.name}.run", f"{tmp_path.name}.lake/orders.compact"}
    (output,) = ends[f"{tmp_path.name}.lake/orders.compact"]["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(table))
    assert output["facets"]["version"]["datasetVersion"] == "4"
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (40, written[0], 1)
