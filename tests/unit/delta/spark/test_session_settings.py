"""Which settings a worker gets, who may change them, and how they follow the number of cores."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.spark import session_settings as settings
from maintainer.errors import EngineGone, EnvironmentUnfit


@pytest.mark.parametrize(
    ("cores", "listing", "shuffle", "snapshot"),
    [(0, 4, 2, 2), (1, 4, 2, 2), (2, 4, 2, 2), (8, 16, 8, 8), (64, 128, 64, 16), (1000, 512, 200, 16)],
)
def test_small_table_settings_follow_the_cores(cores: int, listing: int, shuffle: int, snapshot: int) -> None:
    assert settings.tuned(cores) == {
        settings.LISTING_TASKS: str(listing),
        settings.SHUFFLE_PARTITIONS: str(shuffle),
        settings.SNAPSHOT_PARTITIONS: str(snapshot),
    }


def test_user_settings_stand_above_ours_and_below_the_forced() -> None:
    worker = settings.worker_settings(
        2, {settings.SHUFFLE_PARTITIONS: "64", "spark.sql.parquet.compression.codec": "zstd"}
    )
    assert worker[settings.SHUFFLE_PARTITIONS] == "64"
    assert worker["spark.sql.parquet.compression.codec"] == "zstd"
    assert worker["spark.sql.files.ignoreMissingFiles"] == "false"
    assert worker["spark.databricks.delta.write.txnAppId"] is None
    assert {key: worker[key] for key in settings.FORCED} == dict(settings.FORCED)


def test_hadoop_keys_are_given_bare_and_start_keys_not_at_all() -> None:
    worker = settings.worker_settings(
        2, {"spark.hadoop.fs.s3a.endpoint": "h", "spark.driver.memory": "1g", "spark.sql.warehouse.dir": "/w"}
    )
    assert worker["fs.s3a.endpoint"] == "h"
    assert not {"spark.driver.memory", "spark.sql.warehouse.dir", "spark.hadoop.fs.s3a.endpoint"} & set(worker)


class Conf:
    """A session's settings, of which some are read once, at Spark's start."""

    static = ("spark.sql.queryExecutionListeners", "spark.sql.ui.retainedExecutions")

    def __init__(self, error: Exception, **values: str) -> None:
        self.error, self.values = error, {f"spark.sql.{key}": value for key, value in values.items()}

    def get(self, key: str, default: str | None) -> str | None:
        if isinstance(self.error, EngineGone):
            raise self.error
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        if key in self.static:
            raise self.error
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.values.pop(key, None)


CANNOT_MODIFY = "[CANNOT_MODIFY_STATIC_CONFIG] Cannot modify the value of the static Spark config.\nJVM stacktrace: no"


def test_a_setting_of_sparks_start_that_the_session_has_is_left_as_it_is() -> None:
    conf: Any = Conf(ValueError(CANNOT_MODIFY), queryExecutionListeners="org.example.Audit", variable="old")
    wanted = {"spark.sql.queryExecutionListeners": "org.example.Audit", "spark.sql.variable": None, "spark.sql.x": "y"}
    settings.set_and_check(conf, wanted)
    assert conf.values == {"spark.sql.queryExecutionListeners": "org.example.Audit", "spark.sql.x": "y"}


def test_a_setting_that_a_session_does_not_take_is_named_and_a_session_that_is_gone_is_no_setting() -> None:
    conf: Any = Conf(ValueError(CANNOT_MODIFY))
    with pytest.raises(EnvironmentUnfit) as caught:
        settings.set_and_check(conf, {"spark.sql.ui.retainedExecutions": "5"})
    found = CANNOT_MODIFY.splitlines()[0]
    assert (caught.value.code, caught.value.where, caught.value.found) == (
        "E608", "spark.sql.ui.retainedExecutions", found,
    )  # fmt: skip
    conf.error = EngineGone("gone")
    with pytest.raises(EngineGone):
        settings.set_and_check(conf, {"spark.sql.ui.retainedExecutions": "5"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.files.ignoreCorruptFiles", "TRUE"),
        ("spark.databricks.delta.retentionDurationCheck.enabled", "false"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.databricks.delta.write.txnAppId", "mine"),
    ],
)
def test_unsafe_wishes_are_refused(key: str, value: str) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        settings.worker_settings(2, {key: value})
    assert caught.value.code == "E608"
    assert caught.value.found == f"{key}={value}"
    assert caught.value.help == f"remove {key}"


def test_saying_what_is_forced_anyway_is_allowed() -> None:
    settings.refuse_unsafe({"spark.sql.files.ignoreMissingFiles": "False", "spark.sql.ansi.enabled": " true "})


@pytest.mark.parametrize(
    ("current", "slow"),
    [
        (
            {},
            {settings.LISTING_TASKS: 10_000, settings.SHUFFLE_PARTITIONS: 200, settings.SNAPSHOT_PARTITIONS: 50},
        ),
        ({settings.LISTING_TASKS: "8", settings.SHUFFLE_PARTITIONS: "2", settings.SNAPSHOT_PARTITIONS: "2"}, {}),
        (
            {settings.LISTING_TASKS: "8", settings.SHUFFLE_PARTITIONS: "800", settings.SNAPSHOT_PARTITIONS: "49"},
            {settings.SHUFFLE_PARTITIONS: 800},
        ),
    ],
)
def test_slow_settings_are_found(current: dict[str, str | None], slow: dict[str, int]) -> None:
    assert settings.slow_settings(current) == slow


def test_settings_of_a_session_that_lose_rows_or_files_are_named() -> None:
    conf = {
        "spark.sql.files.ignoreMissingFiles": "TRUE",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    }
    missing, retention = settings.unsafe_settings(conf.get)
    assert missing.startswith("the session has spark.sql.files.ignoreMissingFiles=true: ")
    assert retention.startswith("the session has spark.databricks.delta.retentionDurationCheck.enabled=false: ")
    assert settings.unsafe_settings(lambda key: None) == ()
    # What is named is what our own sessions are forced not to have.
    assert {settings.FORCED[key] for key in settings.UNSAFE_FOR_OTHERS} == {"false", "true"}
