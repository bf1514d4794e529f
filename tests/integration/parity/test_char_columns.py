"""Texts of CHAR columns: a rewrite keeps them as they are stored, padded or not, whoever writes the new file.

Spark pads what it reads of such a column, and other readers do not: a file that got the padded text would show them
other values. What is stored is read by pyarrow.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.product import (
    PADS_CHAR,
    CheckResult,
    CommandSession,
    CommandTableEngine,
    DeltaCommitProver,
    DeltaEngine,
    Lane,
    SessionLease,
    TableRef,
    classic_sessions,
    command_selection,
    proof_parts,
    spark_lane,
)
from tests.support.runs.rewrites import REWRITES, in_lane
from tests.support.tables.delta_tables import actions_of, forget_logs, no_intent, stamp
from tests.support.tables.feature_tables import FeatureTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.product import CommitReceipt

pytestmark = pytest.mark.spark

ORDERED = FeatureTable((), zorder=("c", "id"))
READ = "collect_set(length(c)), collect_set(length(s.n)), collect_set(transform(a, x -> length(x))), count_if(c = 'x')"


def _build(spark: SparkSession, path: Path) -> None:
    """Five files: two of Spark, and three of a writer that knows nothing of padding, of which one padded by itself."""
    schema = "id BIGINT, c CHAR(5), s STRUCT<n: CHAR(4), v: VARCHAR(9)>, a ARRAY<CHAR(3)>"
    spark.sql(f"CREATE TABLE delta.`{path}` ({schema}) USING delta")
    for number in range(2):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, 'x', struct('n{number}', 'v '), array('a'))")
    for number, text in enumerate(("x", "y    ", "z "), start=2):
        rows = pa.table(
            {"id": [number], "c": [text], "s": [{"n": text[:4], "v": "v  "}], "a": pa.array([["a", "b  "]])}
        )
        name = f"others-{number}.parquet"
        pq.write_table(rows, path / name)
        add = {"path": name, "partitionValues": {}, "size": (path / name).stat().st_size, "modificationTime": 1,
               "dataChange": True, "stats": json.dumps({"numRecords": 1})}  # fmt: skip
        version = len([*path.glob("_delta_log/*.json")])
        (path / "_delta_log" / f"{version:020d}.json").write_text(json.dumps({"add": add}) + "\n")
    forget_logs(spark)


def _stored(path: Path) -> list[dict[str, Any]]:
    """All rows of the live files, as they are stored."""
    live: dict[str, None] = {}
    for version in range(len([*path.glob("_delta_log/*.json")])):
        actions = actions_of(path, version)
        for action in actions:
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        live.update((action["add"]["path"], None) for action in actions if "add" in action)
    rows = [row for name in live for row in pq.ParquetFile(path / unquote(name)).read().to_pylist()]
    return sorted(rows, key=lambda row: row["id"])


def _read(spark: SparkSession, path: Path) -> str:
    forget_logs(spark)
    return str(spark.sql(f"SELECT {READ} FROM delta.`{path}`").collect())


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("char") / "t"
    _build(spark, path)
    return path


def _rewritten(spark: SparkSession, lease: SessionLease, built: Path, path: Path, kind: str) -> None:
    shutil.copytree(built, path)
    with DeltaEngine(lease).worker("char") as engine:
        stored, read = _stored(path), _read(spark, path)
        facts = engine.reader.facts(TableRef(str(path)))
        step, batch = in_lane(facts, *REWRITES[kind](facts, ORDERED), Lane.SPARK)
        receipt = engine.writer.rewrite(facts, step, batch, stamp(f"t/{kind}"), no_intent)
        assert receipt.num_files_removed == 5
        assert receipt.proof is not None
        assert [use.lane for use in receipt.proof.lanes] == [Lane.SPARK]
        assert (_stored(path), _read(spark, path)) == (stored, read)
        verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), receipt.version)
        assert verification.result is CheckResult.PROVEN, verification.checks


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "compact" else pytest.mark.nightly) for kind in REWRITES]
)
def test_lane_spark_keeps_what_is_stored(
    spark: SparkSession, lease: SessionLease, built: Path, lake: Path, kind: str
) -> None:
    _rewritten(spark, lease, built, lake / kind, kind)


@pytest.mark.nightly
def test_a_proof_by_spark_reads_what_is_stored(
    spark: SparkSession, lease: SessionLease, built: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (proof_parts, spark_lane):
        monkeypatch.setattr(module, "is_for_second_engine", lambda job, number: False)
    _rewritten(spark, lease, built, lake / "t", "compact")


def _in_command(session: CommandSession, path: Path, kind: str) -> CommitReceipt:
    engine = CommandTableEngine(session)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = REWRITES[kind](facts, ORDERED)
    return engine.writer.rewrite(facts, step, batch, stamp(f"t/{kind}"), no_intent)


def test_a_command_keeps_what_is_stored(spark: SparkSession, lease: SessionLease, built: Path, lake: Path) -> None:
    shutil.copytree(built, path := lake / "t")
    stored, read = _stored(path), _read(spark, path)
    with classic_sessions(lease)("char") as session:
        receipt = _in_command(session, path, "compact")
        assert (receipt.num_files_removed, receipt.proof and receipt.proof.holds) == (5, True), receipt.proof
        assert (_stored(path), _read(spark, path)) == (stored, read)
        assert session.spark.conf.get(PADS_CHAR) == "true"


@pytest.mark.nightly
def test_a_server_that_pads_all_the_same_fails_no_proof(
    spark: SparkSession, lease: SessionLease, built: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of Spark find the same rows, and the bounds are those of what is stored."""
    shutil.copytree(built, path := lake / "t")
    stored, read = _stored(path), _read(spark, path)
    monkeypatch.setattr(command_selection, "PADS_CHAR", "spark.maintainer.nothing")
    with classic_sessions(lease)("char") as session:
        receipt = _in_command(session, path, "zorder")
    assert receipt.proof is not None
    assert receipt.proof.holds, receipt.proof
    assert _stored(path) != stored
    assert _read(spark, path) == read
    with DeltaEngine(lease).worker("char") as engine:
        verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), receipt.version)
        assert verification.result is CheckResult.PROVEN, verification.checks
