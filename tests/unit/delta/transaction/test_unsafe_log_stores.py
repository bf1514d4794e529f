"""Nothing is written where one writer may overwrite another's commit, unless somebody chose so."""

from __future__ import annotations

import pytest

from maintainer.delta.jvm.commit_store import (
    CONDITIONAL_LOG_STORE,
    EXCLUSIVE_LOG_STORE,
    IGNORES_CONDITION,
    NO_CONDITIONAL_WRITES,
    NO_HARD_LINKS,
)
from maintainer.delta.transaction import requirements
from maintainer.delta.transaction.requirements import refuse_unsafe_log_store
from maintainer.errors import ExitCode, Refused


@pytest.mark.parametrize(
    ("location", "settings", "refused"),
    [
        ("file:/lake/t", {}, False),
        ("hdfs://nn/lake/t", {}, False),
        ("abfss://c@a/t", {}, False),
        ("s3://b/t", {}, True),
        ("s3a://b/t", {}, True),
        ("s3n://b/t", {}, True),
        ("s3a://b/t", {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}, False),
        ("s3://b/t", {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}, True),
        ("s3://b/t", {"spark.delta.logStore.class": "our.Store"}, False),
        ("gs://b/t", {}, False),
        ("gs://b/t", {"spark.delta.logStore.gs.impl": "io.delta.storage.GCSLogStore"}, False),
        ("gs://b/t", {"spark.delta.logStore.gs.impl": "io.delta.storage.HDFSLogStore"}, True),
        ("gs://b/t", {"spark.delta.logStore.class": "org.apache.spark.sql.delta.storage.HDFSLogStore"}, True),
        ("gs://b/t", {"spark.delta.logStore.class": "io.delta.storage.AzureLogStore"}, True),
        (
            "gs://b/t",
            {"spark.delta.logStore.gs.impl": "io.delta.storage.HDFSLogStore", "spark.maintainer.singleWriter": "true"},
            False,
        ),
        ("s3a://b/t", {"spark.maintainer.singleWriter": "true"}, False),
        ("s3a://b/t", {"spark.maintainer.singleWriter": "false"}, True),
    ],
)
def test_on_s3_a_session_that_cannot_be_reached_must_have_a_store_that_was_chosen(
    location: str, settings: dict[str, str], refused: bool
) -> None:
    if not refused:
        refuse_unsafe_log_store(location, settings.get, "t")
        return
    with pytest.raises(Refused) as caught:
        refuse_unsafe_log_store(location, settings.get, "t")
    assert (caught.value.code, caught.value.exit_code) == ("A432", ExitCode.REFUSED)


@pytest.mark.parametrize(
    ("location", "store", "single_writer", "refused"),
    [
        ("file:/lake/t", EXCLUSIVE_LOG_STORE, "false", False),
        ("file:/lake/t", "our.Store", "false", False),
        ("file:/lake/t", None, "false", False),
        ("file:/lake/t", NO_HARD_LINKS, "false", True),
        ("file:/lake/t", NO_HARD_LINKS, "true", False),
        ("file:/lake/t", "io.delta.storage.LocalLogStore", "false", True),
        ("file:/lake/t", "org.apache.spark.sql.delta.storage.HDFSLogStore", "false", True),
        ("file:/lake/t", "io.delta.storage.LocalLogStore", "true", False),
        ("hdfs://nn/lake/t", "io.delta.storage.HDFSLogStore", "false", False),
    ],
)
def test_a_disk_is_refused_where_a_version_cannot_be_created_exclusively(
    location: str, store: str | None, single_writer: str, refused: bool
) -> None:
    settings = {"spark.maintainer.singleWriter": single_writer}
    if not refused:
        refuse_unsafe_log_store(location, settings.get, "t", lambda: store)
        return
    with pytest.raises(Refused) as caught:
        refuse_unsafe_log_store(location, settings.get, "t", lambda: store)
    assert (caught.value.code, caught.value.exit_code) == ("A433", ExitCode.REFUSED)


DYNAMO = "io.delta.storage.S3DynamoDBLogStore"


@pytest.mark.parametrize(
    ("store", "single_writer", "says"),
    [
        (CONDITIONAL_LOG_STORE, "false", None),
        (DYNAMO, "false", None),
        (NO_CONDITIONAL_WRITES, "false", "has no conditional writes"),
        (IGNORES_CONDITION, "false", "If-None-Match"),
        (IGNORES_CONDITION, "true", None),
        ("io.delta.storage.S3SingleDriverLogStore", "false", "spark.delta.logStore.class is"),
    ],
)
def test_on_s3_what_writes_the_commit_decides(store: str, single_writer: str, says: str | None) -> None:
    settings = {"spark.maintainer.singleWriter": single_writer}
    if says is None:
        refuse_unsafe_log_store("s3://b/t", settings.get, "t", lambda: store)
        return
    with pytest.raises(Refused) as caught:
        refuse_unsafe_log_store("s3://b/t", settings.get, "t", lambda: store)
    assert caught.value.code == "A432"
    assert says in (caught.value.found or "")
    assert "spark.delta.logStore.s3.impl" in (caught.value.help or "")


def test_the_way_out_on_s3_names_the_package_of_the_installed_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "installed", {"delta-spark": "4.0.1"}.get)
    with pytest.raises(Refused) as caught:
        refuse_unsafe_log_store("s3://b/t", lambda key: None, "t", lambda: NO_CONDITIONAL_WRITES)
    assert "io.delta:delta-storage-s3-dynamodb:4.0.1]" in (caught.value.help or "")
    assert (caught.value.help or "").startswith("use Spark 4.1 or later, whose Hadoop has them; or maintainer.yml: ")
    with pytest.raises(Refused) as caught:
        refuse_unsafe_log_store("s3://b/t", lambda key: None, "t", lambda: IGNORES_CONDITION)
    assert (caught.value.help or "").startswith("maintainer.yml: ")
