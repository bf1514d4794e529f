"""Table properties: one commit, validated by Delta, values as values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import (
    CommitConflict,
    DeltaEngine,
    DeltaTableEngine,
    SessionLease,
    SetPropertiesStep,
    TableError,
    TableRef,
)
from tests.support.tables.delta_tables import bytes_of, history, no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("properties") as worker:
        yield worker


def test_one_commit_on_an_odd_path(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / 'it\'s `odd` "path" 100%'
    spark.range(1).write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    after = (("delta.checkpointInterval", "7"), ("owner", 'it\'s `x` "y"; DROP'))
    step = SetPropertiesStep((("delta.checkpointInterval", None), ("owner", None)), after, ())
    calls: list[int] = []
    receipt = engine.writer.set_properties(facts, step, stamp("t/p"), lambda version, proof: calls.append(version))
    assert (receipt.version, receipt.read_version, receipt.proof) == (1, 0, None)
    assert calls == [0]
    assert engine.reader.facts(facts.ref).properties == after
    (entry,) = history(spark, path)
    assert (entry["operation"], entry["userMetadata"]) == ("SET TBLPROPERTIES", stamp("t/p").to_json())
    assert engine.jvm.spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None) is None


def test_what_delta_refuses_and_what_somebody_else_decided(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    spark.range(1).write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    before = bytes_of(path)
    for key, value in (("delta.noSuchThing", "1"), ("delta.deletedFileRetentionDuration", "often")):
        with pytest.raises(TableError) as caught:
            engine.writer.set_properties(
                facts, SetPropertiesStep(((key, None),), ((key, value),), ()), stamp(), no_intent
            )
        assert caught.value.code == "T418"
    assert bytes_of(path) == before
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'theirs')")
    step = SetPropertiesStep((("team", None),), (("team", "ours"),), ())
    with pytest.raises(CommitConflict, match="team was changed"):
        engine.writer.set_properties(facts, step, stamp(), no_intent)
    assert engine.reader.facts(facts.ref).property_map == {"team": "theirs"}
