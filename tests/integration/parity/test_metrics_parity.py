"""The figures of a step beside those that OPTIMIZE returns and writes into the history, on copies of one table."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.product import DeltaEngine, Lane, SessionLease, StepOutcome, worker_session
from tests.support.product import encode_document as encode
from tests.support.runs.app_runs import applied, commit_info, newest_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

MAX_BYTES = 40_000
NOT_OURS = frozenset({"totalScheduledTasks", "autoCompactParallelismStats"})
"""What OPTIMIZE's row has for other modes, or never fills."""
OF_NEW_FILES = frozenset(
    {"filesAdded", "numAddedBytes", "minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize"}
)
SAME_IN_HISTORY = ("operation", "operationParameters", "operationMetrics", "isolationLevel", "isBlindAppend")


def random_table(path: Path, seed: int, num_partitions: int = 5) -> Path:
    chance = random.Random(seed)
    schema = pa.schema({"p": pa.int32(), "id": pa.int64(), "payload": pa.string()})
    for _ in range(4):
        rows = [
            {"p": partition, "id": chance.getrandbits(40), "payload": chance.randbytes(chance.randint(1, 9000)).hex()}
            for partition in range(num_partitions)
            if chance.random() < 0.8
        ]
        write_deltalake(str(path), pa.Table.from_pylist(rows, schema=schema), mode="append", partition_by=["p"])
    return path


def optimize(lease: SessionLease, path: Path, rest: str = "") -> dict[str, Any]:
    """Run Delta's OPTIMIZE in a session of its own and return its row of metrics."""
    session = worker_session(lease)
    session.conf.set("spark.databricks.delta.optimize.minFileSize", str(MAX_BYTES))
    session.conf.set("spark.databricks.delta.optimize.maxFileSize", str(MAX_BYTES))
    (row,) = session.sql(f"OPTIMIZE delta.`{path}` {rest}").collect()
    metrics: dict[str, Any] = row["metrics"].asDict(recursive=True)
    return metrics


def policy_of(path: Path, extra: str = "", lane: Lane = Lane.SPARK) -> str:
    # By Spark, as OPTIMIZE: another writer makes files of other sizes of the same rows.
    sizes = f"  minFileSize: {MAX_BYTES}\n  maxFileSize: {MAX_BYTES}\n  lanes: [{lane}]\n"
    return f"table: {path}\noptimize:\n{sizes}{extra}"


def alike(
    key: str, ours: Any, theirs: Any, *, of_new_files: bool = False, rel: float = 0.002, bytes_apart: int = 200
) -> bool:
    """Equal, but for some bytes of new files: rows are read in any order, and compress to more or less.

    OPTIMIZE itself makes 4108 to 4235 bytes of the same ten files of 100 numbers, by the order of their names. Another
    library writes other footers and pages.
    """
    new = of_new_files or key in OF_NEW_FILES
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(
            alike(metric, ours[metric], theirs[metric], of_new_files=new, rel=rel, bytes_apart=bytes_apart)
            for metric in ours
        )
    if ours == theirs or not new or key == "totalFiles":
        return bool(ours == theirs)
    return float(ours) == pytest.approx(float(theirs), rel=rel, abs=bytes_apart)


def check_side_by_side(
    step: StepOutcome, ours: Path, theirs: Path, row: dict[str, Any], lane: Lane = Lane.SPARK
) -> None:
    """The same row of figures but for the time, and the same commitInfo but for who made it."""
    assert step.metrics is not None
    mine: dict[str, Any] = encode(step.metrics)
    assert mine.keys() == row.keys() - NOT_OURS
    assert row["endTimeMs"] == 0
    assert mine["startTimeMs"] == step.started_at_ms <= mine["endTimeMs"] <= time.time() * 1000
    times = {"startTimeMs", "endTimeMs"}
    apart: dict[str, Any] = {} if lane is Lane.SPARK else {"rel": 0.3, "bytes_apart": 2_000}
    for key in mine.keys() - times:
        assert alike(key, mine[key], row[key], **apart), (key, mine[key], row[key])
    left, right = (commit_info(path, newest_version(path)) for path in (ours, theirs))
    for key in SAME_IN_HISTORY:
        assert alike(key, left[key], right[key], **apart), (key, left[key], right[key])
    uses = {use.lane for receipt in step.commits if receipt.proof for use in receipt.proof.lanes}
    assert uses == {lane}
    assert left.keys() - {"userMetadata"} == right.keys() - {"userMetadata"}


@pytest.mark.parametrize("lane", [Lane.SPARK, Lane.LOCAL])
@pytest.mark.parametrize(
    ("seed", "policy", "optimize_clause"),
    [
        (1, "", ""),
        pytest.param(2, "  zorder: {columns: [id], mode: full}\n", "ZORDER BY (id)", marks=pytest.mark.long),
    ],
)
def test_metrics_and_history_are_those_of_optimize(
    lease: SessionLease, tmp_path: Path, seed: int, policy: str, optimize_clause: str, lane: Lane
) -> None:
    ours = random_table(tmp_path / "ours", seed)
    theirs = Path(shutil.copytree(ours, tmp_path / "theirs"))
    step = applied(DeltaEngine(lease), tmp_path, policy_of(ours, policy, lane)).step
    row = optimize(lease, theirs, optimize_clause)
    assert row["numFilesRemoved"] > row["numFilesAdded"] > 1
    check_side_by_side(step, ours, theirs, row, lane)


@pytest.mark.long
def test_only_partitions_inside_where_are_considered(lease: SessionLease, tmp_path: Path) -> None:
    """The predicate itself stands in the operation's parameters only where OPTIMIZE ran: we hand over files."""
    ours = random_table(tmp_path / "ours", 3)
    theirs = Path(shutil.copytree(ours, tmp_path / "theirs"))
    step = applied(DeltaEngine(lease), tmp_path, policy_of(ours, '  where: "p < 3"\n')).step
    row = optimize(lease, theirs, "WHERE p < 3")
    assert step.metrics is not None
    mine: dict[str, Any] = encode(step.metrics)
    assert 0 < mine["totalConsideredFiles"] < len(list(theirs.rglob("p=*/*.parquet")))
    for key in mine.keys() - {"startTimeMs", "endTimeMs"}:
        assert mine[key] == row[key], key
    left, right = (commit_info(path, newest_version(path)) for path in (ours, theirs))
    assert left["operationMetrics"] == right["operationMetrics"]
    assert (left["operationParameters"]["predicate"], right["operationParameters"]["predicate"]) == (
        "[]",
        '["(\'p < 3)"]',
    )


@pytest.mark.parametrize("lane", [Lane.SPARK, Lane.LOCAL])
def test_deletion_vectors_are_counted_as_optimize_counts_them(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, lane: Lane
) -> None:
    ours = tmp_path / "ours"
    spark.range(0, 1000, 1, 10).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(ours))
    spark.sql(f"DELETE FROM delta.`{ours}` WHERE id % 100 < 20 AND id < 500")
    theirs = Path(shutil.copytree(ours, tmp_path / "theirs"))
    step = applied(DeltaEngine(lease), tmp_path, policy_of(ours, lane=lane)).step
    row = optimize(lease, theirs)
    assert row["deletionVectorStats"] == {"numDeletionVectorsRemoved": 5, "numDeletionVectorRowsRemoved": 100}
    check_side_by_side(step, ours, theirs, row, lane)
