"""A rewrite changes nothing that anybody can see: schema, properties, protocol, partition values, rows, feeds, streams.

What was written is read back by Spark and, where it can read the table, by a second engine. The log is read here as
text, by no code of ours.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import (
    DeltaEngine,
    DeltaTableEngine,
    ExitCode,
    Lane,
    SessionLease,
    TableRef,
    run,
    unsupported_features,
)
from tests.support.runs.rewrites import LANES, partition_values, rewrite
from tests.support.tables.delta_tables import (
    actions_of,
    bytes_of,
    forget_logs,
    second_engine_rows,
    spark_rows,
)
from tests.support.tables.feature_tables import TABLES, FeatureTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.sampled(1),
    pytest.mark.usefixtures("small_row_groups_are_copied"),
]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("neutrality") as worker:
        yield worker


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a table when it is first asked for; each case works on a copy."""
    root = tmp_path_factory.mktemp("built")
    paths: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in paths:
            path = root / str(len(paths))
            for statement in TABLES[name].sql:
                spark.sql(statement.replace("{t}", f"delta.`{path}`"))
            paths[name] = path
        return paths[name]

    return make


def check_commit(path: Path, version: int) -> None:
    """The commit adds and removes files, says that no data changed, and says nothing else."""
    actions = actions_of(path, version)
    kinds = Counter(next(iter(action)) for action in actions)
    assert set(kinds) <= {"commitInfo", "add", "remove", "domainMetadata"}
    # Row tracking's high-water mark moves with every file that is added; no other domain does.
    assert {action["domainMetadata"]["domain"] for action in actions if "domainMetadata" in action} <= {
        "delta.rowTracking"
    }
    assert {action[kind]["dataChange"] for action in actions for kind in ("add", "remove") if kind in action} == {False}
    assert partition_values(actions, "add") == partition_values(actions, "remove")


def last_of(path: Path, kind: str) -> str:
    """The newest ``metaData`` or ``protocol`` action, as text."""
    last_line = ""
    for log in sorted((path / "_delta_log").glob("*.json")):
        for line in log.read_text(encoding="utf-8").splitlines():
            if line.startswith(f'{{"{kind}"'):
                last_line = line
    assert last_line
    return last_line


@pytest.mark.long
def test_streams_and_change_feeds_that_run_over_it_see_nothing(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for number in range(3):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, 0), ({number}, 1)")

    def follow(name: str) -> int:
        """Bring a stream up to date; the rows that its sink has by now."""
        reader = spark.readStream.format("delta")
        if name == "feed":
            reader = reader.option("readChangeFeed", "true").option("startingVersion", "0")
        frame = reader.load(str(path)).select("id")
        writer = frame.writeStream.format("delta").option("checkpointLocation", f"{lake}/{name}_chk")
        writer.trigger(availableNow=True).start(f"{lake}/{name}").awaitTermination(120)
        return spark.read.format("delta").load(f"{lake}/{name}").count()

    assert (follow("stream"), follow("feed")) == (6, 6)
    versions = []
    for kind, lane in LANES:
        versions.append(rewrite(engine, path, FeatureTable((), zorder=("id",)), kind, lane).version)
    assert (follow("stream"), follow("feed")) == (6, 6)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7, 0)")
    assert (follow("stream"), follow("feed")) == (7, 7)
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    across = feed.option("startingVersion", versions[0]).option("endingVersion", versions[-1] + 1).load(str(path))
    assert [(row["id"], row["_change_type"]) for row in across.collect()] == [(7, "insert")]


def _spell(path: Path, version: int, column: str, value: str | None) -> None:
    """Give the files of a commit another spelling of their partition value, as another writer would have."""
    log = path / "_delta_log" / f"{version:020d}.json"
    actions = actions_of(path, version)
    for action in actions:
        if "add" in action:
            action["add"]["partitionValues"][column] = value
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    for beside in log.parent.glob("*.crc"):
        beside.unlink()


def test_new_files_carry_the_text_of_the_files_that_they_replace(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, ts TIMESTAMP) USING delta PARTITIONED BY (ts)")
    for number in (1, 2, 3, 4):
        day = 1 if number < 3 else 2
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, TIMESTAMP'2000-01-0{day} 12:00:00')")
    _spell(path, 1, "ts", "2000-01-01 12:00:00")
    _spell(path, 3, "ts", "2000-01-02 12:00:00")
    _spell(path, 4, "ts", "2000-01-02 12:00:00")
    forget_logs(engine.jvm.spark)
    rows = spark_rows(spark, path)
    receipt = rewrite(engine, path, TABLES["append only"], "compact")
    assert (receipt.num_files_removed, receipt.num_files_added) == (4, 3)
    assert partition_values(actions_of(path, receipt.version), "add") == {
        '{"ts": "2000-01-01 12:00:00"}', '{"ts": "2000-01-01T12:00:00.000000Z"}', '{"ts": "2000-01-02 12:00:00"}'
    }  # fmt: skip
    assert spark_rows(spark, path) == rows


def test_an_empty_partition_value_stays_what_it_is(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, p STRING) USING delta PARTITIONED BY (p)")
    for number in (1, 2, 3, 4):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, NULL)")
    for version in (1, 2):
        _spell(path, version, "p", "")
    forget_logs(engine.jvm.spark)
    rows, second = spark_rows(spark, path), second_engine_rows(path)
    receipt = rewrite(engine, path, TABLES["append only"], "compact")
    assert (receipt.num_files_removed, receipt.num_files_added) == (4, 2)
    assert partition_values(actions_of(path, receipt.version), "add") == {'{"p": ""}', "{}"}
    assert spark_rows(spark, path) == rows
    assert second_engine_rows(path) == second


ODD_FEATURES = {
    # A feature in the protocol of an otherwise plain table: the code that `apply` says, and what else it says.
    "icebergCompatV2": ("T404", "icebergCompatV2 (its files also belong to an Iceberg table"),
    "redirectWriterOnly-preview": ("T404", "redirectWriterOnly-preview"),
    "futureThing": ("T404", "futureThing"),
    # Delta does not even read it: it would have to ask the catalog.
    "catalogManaged": ("T404", ""),
}


def test_what_cannot_be_handled_safely_ends_as_unsupported_and_untouched(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, policies = tmp_path / "lake", tmp_path / "policies"
    spark.sql(f"CREATE TABLE delta.`{lake}/plain` (id INT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')")
    for number in (1, 2):
        spark.sql(f"INSERT INTO delta.`{lake}/plain` VALUES ({number})")
    for feature in ODD_FEATURES:
        shutil.copytree(lake / "plain", lake / feature)
        log = lake / feature / "_delta_log"
        for beside in log.glob("*.crc"):
            beside.unlink()
        actions = actions_of(lake / feature, 0)
        for action in actions:
            if "protocol" in action:
                both = [feature] if feature in ("catalogManaged", "futureThing") else []
                action["protocol"] = {
                    "minReaderVersion": 3 if both else 1, "minWriterVersion": 7, "writerFeatures": [feature],
                    **({"readerFeatures": both} if both else {}),
                }  # fmt: skip
        (log / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    policies.mkdir()
    for feature in ODD_FEATURES:
        (policies / f"{feature}.yaml").write_text(f"version: 1\ntable: lake/{feature}\n", encoding="utf-8")
    before = bytes_of(lake)
    assert run(["--project", str(tmp_path), "apply", "--yes", "-o", "json"]) == ExitCode.FINDINGS
    tables = {
        table["ref"]["identifier"].split("/")[-1]: table for table in json.loads(capsys.readouterr().out)["tables"]
    }
    assert set(tables) == set(ODD_FEATURES)
    for feature, (code, says) in ODD_FEATURES.items():
        assert (tables[feature]["status"], tables[feature]["problem"]["code"]) == ("failed", code), feature
        assert says in json.dumps(tables[feature]["problem"]), feature
    assert bytes_of(lake) == before


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize(("kind", "lane"), LANES)
@pytest.mark.sampled(2)
def test_everything_stays(
    kind: str,
    lane: Lane,
    name: str,
    spark: SparkSession,
    engine: DeltaTableEngine,
    built: Callable[[str], Path],
    lake: Path,
) -> None:
    table = TABLES[name]
    path = lake / kind
    shutil.copytree(built(name), path)
    facts = engine.reader.facts(TableRef(str(path)))
    features = (*facts.protocol.reader_features, *facts.protocol.writer_features)
    named = {feature.removesuffix("-preview") for feature in features}
    # Old protocols imply their features by number.
    assert facts.protocol.min_writer_version < 7 or table.features <= named
    assert unsupported_features(facts.protocol) == ()
    before = [last_of(path, action) for action in ("metaData", "protocol")]
    rows = spark_rows(spark, path, None, *table.extra)
    second = second_engine_rows(path) if table.second_engine else None
    receipt = rewrite(engine, path, table, kind, lane)
    assert receipt.num_files_removed == len(facts.files)
    assert receipt.num_files_removed > receipt.num_files_added == len({file.partition_values for file in facts.files})
    check_commit(path, receipt.version)
    assert [last_of(path, action) for action in ("metaData", "protocol")] == before
    assert spark_rows(spark, path, None, *table.extra) == rows
    # And as somebody reads it who begins with the newest checkpoint.
    forget_logs(engine.jvm.spark)
    after = engine.reader.facts(facts.ref)
    assert (after.version, after.schema_json, after.properties, after.protocol, after.partition_columns) == (
        receipt.version, facts.schema_json, facts.properties, facts.protocol, facts.partition_columns
    )  # fmt: skip
    assert {file.partition_values for file in after.files} == {file.partition_values for file in facts.files}
    if second is not None:
        assert second_engine_rows(path) == second
